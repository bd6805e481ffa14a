// leases_group -- counts places, and turns samples into steps.

#include "common/pace/leases/leases_group.h"

struct lease_rules leases_rules_of(const struct wire_leases_config *config)
{
    const uint32_t most_ms =
        config->time_max_ms > config->time_min_ms ? config->time_max_ms : config->time_min_ms;
    return (struct lease_rules){ .task_samples = config->task_samples,
                                 .strikes_max = config->strikes_max,
                                 .time_min_ms = config->time_min_ms,
                                 .time_max_ms = most_ms,
                                 .pass_barrier = config->pass_barrier };
}

uint32_t leases_group_place(const struct wire_group *group, uint32_t member, uint64_t instance)
{
    for (uint32_t i = 0; i < group->group_count; i++)
        // mutant: leases: the group is of keys, not of processes
        if (group->group[i].member == member && group->group[i].instance == instance) return i;
    return UINT32_MAX;
}

uint32_t leases_group_servers(const struct wire_group *group,
                              const struct wire_leases_config *config)
{
    return group->group_count > config->servers ? group->group_count - config->servers : 0;
}

// Whether this member is in one of the first `count` places.
static bool is_listed(const struct wire_group *group, uint32_t count, uint32_t member)
{
    for (uint32_t i = 0; i < count; i++)
        if (group->group[i].member == member) return true;
    return false;
}

bool leases_group_is_sound(const struct wire_group *group, const struct wire_leases_config *config)
{
    const uint32_t trainers = leases_group_servers(group, config);
    bool in_order = trainers > 0;
    for (uint32_t i = 1; i < group->group_count; i++)
        in_order &= i == trainers || group->group[i - 1].member < group->group[i].member;
    for (uint32_t i = trainers; in_order && i < group->group_count; i++)
        in_order &= !is_listed(group, trainers, group->group[i].member);
    return in_order;
}

uint64_t leases_group_all(const struct wire_group *group)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < group->group_count; i++) all |= leases_bit(i);
    return all;
}

uint64_t leases_group_owners(const struct wire_group *group,
                             const struct wire_leases_config *config)
{
    uint64_t owners = 0;
    for (uint32_t i = leases_group_servers(group, config); i < group->group_count; i++)
        owners |= leases_bit(i);
    return owners;
}

struct leases_way leases_way_on(struct leases_way way, uint64_t samples, uint64_t last,
                                const struct wire_leases_config *config, uint32_t seq_len)
{
    uint64_t before = way.samples_done - way.rest; // The samples of whole steps
    way.samples_done += samples;
    way.rest += samples;
    while (way.step < last) {
        const uint32_t batch = schedule_batch_size(config->batch_start, config->batch_end,
                                                   config->batch_warmup_tokens, before * seq_len);
        // mutant: leases: a step is counted before all of its samples are trained
        if (way.rest < batch) break;
        way.rest -= batch;
        before += batch;
        way.step++;
    }
    return way;
}
