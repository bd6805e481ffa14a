// leases_evidence -- a group follows from the roster; a lease from the table of samples and an open group; the end of
// a lease from the lease, and its steps from the samples; and a group is closed when no lease is out.
//
// The verifier keeps a table of its own and lets each record change it, as the coordinator does (leases_run.h). So it
// asks leases_next what the coordinator had to deal, and a record that names another task is refused.

#include "common/pace/leases/leases_pace.h"
#include "common/base/ensure.h"
#include "common/pace/evidence.h"
#include <inttypes.h>
#include <string.h>

enum { COUNT_GROUPS, COUNT_TASKS, COUNT_STEPS };

static struct leases_witness *own(struct evidence *evidence)
{
    return (struct leases_witness *)(void *)evidence->pace_state;
}

// ---- the data position --------------------------------------------------------------------------

static void set_table(struct leases_witness *self, const struct wire_data_position *position)
{
    table_init(&self->table, self->memory, TABLE_INTERVALS_MAX,
               self->pass_samples ? self->pass_samples : 1, position->cursor);
}

static bool hear_genesis(struct evidence *evidence, const struct wire_record_genesis *genesis)
{
    set_table(own(evidence), &(struct wire_data_position){ .cursor = genesis->cursor });
    return true;
}

static bool hear_data(struct evidence *evidence, const struct wire_record_data *data)
{
    struct leases_witness *self = own(evidence);
    self->pass_samples = self->table.pass_length = data->samples;
    return true;
}

static bool hear_restore(struct evidence *evidence, const struct wire_record_restore *restore)
{
    struct leases_witness *self = own(evidence);
    const struct wire_data_position *position = &restore->data_position;
    if (self->run.is_open)
        return evidence_refuse(evidence, "a restore while group %" PRIu64 " is open",
                               self->run.group.number);
    leases_run_restore(&self->run);
    set_table(self, position);
    self->samples_done = restore->samples_done;
    return (table_restore(&self->table, TABLE_TODO, 0, position->returned,
                          position->returned_count) == TABLE_OK &&
            table_restore(&self->table, TABLE_FAILED, 0, position->failed,
                          position->failed_count) == TABLE_OK) ||
           evidence_refuse(evidence,
                           "a restore to step %" PRIu64 " has a data position that is none",
                           restore->step);
}

// ---- groups -------------------------------------------------------------------------------------

static bool members_are_healthy(struct evidence *evidence, const struct wire_group *group)
{
    const uint32_t servers = leases_group_servers(group, leases_config(&evidence->rules));
    for (uint32_t i = 0; i < group->group_count; i++) {
        const uint32_t member = group->group[i].member;
        const struct wire_member *place =
            member < evidence->roster.count ? &evidence->roster.members[member] : NULL;
        if (!place || place->role != (i < servers ? ACTOR_TRAINER : ACTOR_SERVER) ||
            place->state != MEMBER_HEALTHY || place->instance != group->group[i].instance)
            return evidence_refuse(evidence,
                                   "group %" PRIu64 " has member %u at place %u, which is no "
                                   "healthy %s with this process",
                                   group->number, member, i,
                                   i < servers ? "trainer" : "parameter server");
    }
    return true;
}

static bool hear_group(struct evidence *evidence, const struct wire_group *group)
{
    struct leases_witness *self = own(evidence);
    if (self->run.is_open || group->number != evidence->number + 1 ||
        group->step != evidence->step || group->samples_done != self->samples_done)
        return evidence_refuse(evidence,
                               "group %" PRIu64 " at step %" PRIu64
                               " does not follow group %" PRIu64 " and step %" PRIu64,
                               group->number, group->step, evidence->number, evidence->step);
    if (!leases_group_is_sound(group, leases_config(&evidence->rules)))
        return evidence_refuse(evidence,
                               "group %" PRIu64 " is none of trainers and then %u parameter "
                               "servers, each in the order of the roster",
                               group->number, leases_config(&evidence->rules)->servers);
    if (!members_are_healthy(evidence, group)) return false;
    leases_run_begin(&self->run, &self->table, group);
    evidence->number = group->number;
    evidence->counts[COUNT_GROUPS]++;
    return true;
}

static bool hear_save(struct evidence *evidence, const struct wire_save_share *save)
{
    struct leases_witness *self = own(evidence);
    const struct leases_run *run = &self->run;
    if (!run->is_open || run->closing.attempt > 0 || save->number != run->group.number ||
        save->step != evidence->step || save->step <= run->group.step ||
        (run->save_number == save->number && save->step <= run->save_step) ||
        (run->copy_number == save->number && save->step <= run->copy_step))
        return evidence_refuse(evidence,
                               "group %" PRIu64 " is told to save step %" PRIu64
                               ", which does not follow from group %" PRIu64 " at step %" PRIu64,
                               save->number, save->step, run->group.number, evidence->step);
    leases_run_save(&self->run, save);
    return true;
}

static bool hear_copy(struct evidence *evidence, const struct wire_save_share *copy)
{
    struct leases_witness *self = own(evidence);
    const struct leases_run *run = &self->run;
    if (!run->is_open || run->closing.attempt > 0 || copy->number != run->group.number ||
        copy->step != evidence->step || copy->step <= run->group.step ||
        (run->copy_number == copy->number && copy->step <= run->copy_step) ||
        (run->save_number == copy->number && copy->step <= run->save_step))
        return evidence_refuse(evidence,
                               "group %" PRIu64 " is told to copy step %" PRIu64
                               ", which does not follow from group %" PRIu64 " at step %" PRIu64,
                               copy->number, copy->step, run->group.number, evidence->step);
    leases_run_copy(&self->run, copy);
    return true;
}

static bool hear_kept(struct evidence *evidence, const struct wire_record_kept *kept)
{
    const struct leases_run *run = &own(evidence)->run;
    return (run->is_open && kept->window == run->copy_number && kept->step == run->copy_step &&
            kept->window == run->group.number && !hash_is_none(&kept->digest)) ||
           evidence_refuse(evidence,
                           "a memory save of step %" PRIu64 " and group %" PRIu64
                           " does not follow from copies of step %" PRIu64 " in group %" PRIu64,
                           kept->step, kept->window, run->copy_step, run->copy_number);
}

static bool hear_close(struct evidence *evidence, const struct wire_close_group *closing)
{
    struct leases_witness *self = own(evidence);
    const struct wire_group *group = &self->run.group;
    const uint64_t all = leases_group_all(group);
    const uint64_t owners = leases_group_owners(group, leases_config(&evidence->rules));
    if (!self->run.is_open || self->run.settled || self->run.leases.count > 0 ||
        closing->number != group->number || closing->attempt != self->run.closing.attempt + 1 ||
        closing->step != evidence->step || leases_run_must_step(&self->run, closing->step) ||
        closing->members & ~all || owners & ~closing->members)
        return evidence_refuse(evidence,
                               "attempt %" PRIu64 " to close group %" PRIu64 " at step %" PRIu64
                               ", with %u tasks out, does not follow",
                               closing->attempt, closing->number, closing->step,
                               self->run.leases.count);
    leases_run_close(&self->run, closing);
    return true;
}

static bool hear_settled(struct evidence *evidence, const struct wire_group_settled *settled)
{
    struct leases_witness *self = own(evidence);
    if (!self->run.is_open || self->run.settled || settled->number != self->run.group.number ||
        settled->attempt != self->run.closing.attempt ||
        settled->differ & ~self->run.closing.members ||
        settled->differ == self->run.closing.members)
        return evidence_refuse(evidence,
                               "group %" PRIu64 " is said to be settled in attempt %" PRIu64
                               ", which does not follow attempt %" PRIu64,
                               settled->number, settled->attempt, self->run.closing.attempt);
    leases_run_settle(&self->run, settled);
    return true;
}

static bool hear_phase(struct evidence *evidence, const struct wire_record_phase *record)
{
    struct leases_witness *self = own(evidence);
    if (record->phase == PHASE_COOLDOWN)
        self->samples_done -= leases_run_over(&self->run, &self->table, evidence->step);
    return true;
}

// ---- leases -------------------------------------------------------------------------------------

static bool is_busy(const struct leases *leases, const struct wire_lease *lease)
{
    return leases_of_dead(leases, lease->member, 0) != NULL;
}

static bool hear_lease(struct evidence *evidence, const struct wire_lease *lease)
{
    struct leases_witness *self = own(evidence);
    const struct leases *leases = &self->run.leases;
    const struct wire_leases_config *config = leases_config(&evidence->rules);
    const struct lease_rules rules = leases_rules_of(config);
    const uint32_t place = leases_group_place(&self->run.group, lease->member, lease->instance);
    struct lease next = { .member = lease->member, .instance = lease->instance };
    uint32_t count = 0;
    if (!self->run.is_open || self->run.closing.attempt > 0 || lease->number <= leases->newest ||
        place >= leases_group_servers(&self->run.group, config) || is_busy(leases, lease))
        return evidence_refuse(evidence,
                               "lease %" PRIu64 " is of member %u, which is no idle trainer of an "
                               "open group, or does not follow lease %" PRIu64,
                               lease->number, lease->member, leases->newest);
    if (leases_next(leases, &self->table, &rules, &next, self->list, TABLE_INTERVALS_MAX, &count) !=
            LEASE_OK ||
        next.task != lease->task || count != lease->samples_count ||
        memcmp(self->list, lease->samples, count * sizeof *self->list) != 0)
        return evidence_refuse(evidence,
                               "lease %" PRIu64 " is of the task at %" PRIu64
                               "; the table has the task at %" PRIu64 " next, or none",
                               lease->number, lease->task, next.task);
    if (table_deal_again(&self->table, lease->number, lease->samples, count) != TABLE_OK)
        return evidence_refuse(evidence, "lease %" PRIu64 " finds no room in the table",
                               lease->number);
    ensure(table_return_rest(&self->table, lease->number) == TABLE_OK);
    leases_run_deal(&self->run, &self->table, lease);
    evidence->counts[COUNT_TASKS]++;
    return true;
}

static uint64_t samples_of(const struct table *table, uint64_t number)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->entries[i].state == TABLE_PENDING && table->entries[i].number == number)
            samples += table->entries[i].end - table->entries[i].begin;
    return samples;
}

static bool fate_follows(struct evidence *evidence, const struct wire_lease_ended *ended,
                         const struct lease *lease)
{
    const struct lease_rules rules = leases_rules_of(leases_config(&evidence->rules));
    if (ended->cause == LEASE_CAUSE_FINISHED) return ended->fate == FATE_DONE;
    if (ended->cause == LEASE_CAUSE_NO_DATA) return ended->fate == FATE_RETURNED;
    return ended->fate == (uint8_t)leases_outcome(&own(evidence)->run.leases, &rules, lease);
}

static bool rate_follows(const struct evidence *evidence, const struct wire_lease_ended *ended)
{
    if (ended->end <= ended->step) return ended->lr_bits == 0;
    const float rate = schedule_rate(&evidence->rules.lr, (uint32_t)ended->end, NULL);
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    return ended->lr_bits == bits;
}

// The step of a group that dealt tasks and committed none.
static bool hear_step(struct evidence *evidence, const struct wire_lease_ended *ended)
{
    struct leases_witness *self = own(evidence);
    if (!self->run.is_open || self->run.leases.count > 0 || self->run.closing.attempt > 0 ||
        !leases_run_must_step(&self->run, evidence->step) || ended->lease > 0 ||
        ended->fate != FATE_DONE || ended->samples > 0 || ended->rest > 0 ||
        ended->step != evidence->step || ended->end != ended->step + 1 ||
        !rate_follows(evidence, ended))
        return evidence_refuse(evidence,
                               "group %" PRIu64 " commits step %" PRIu64
                               " before it is closed, which does not follow from step %" PRIu64,
                               self->run.group.number, ended->end, evidence->step);
    leases_run_end(&self->run, &self->table, ended);
    evidence->step = ended->end;
    evidence->counts[COUNT_STEPS]++;
    return true;
}

static bool hear_end(struct evidence *evidence, const struct wire_lease_ended *ended)
{
    struct leases_witness *self = own(evidence);
    if (ended->cause == LEASE_CAUSE_CLOSED) return hear_step(evidence, ended);
    const struct lease *lease = leases_run_lease(&self->run, ended->lease);
    if (!lease || !fate_follows(evidence, ended, lease))
        return evidence_refuse(evidence, "lease %" PRIu64 " ends as %s, which does not follow: %s",
                               ended->lease, wire_enum_name(&wire_enum_lease_fate, ended->fate),
                               lease ? "its task has another number of strikes" : "it is not out");
    const uint64_t samples = ended->fate == FATE_DONE ? samples_of(&self->table, ended->lease) : 0;
    const struct leases_way from = { evidence->step, self->samples_done, self->run.rest };
    const struct leases_way way =
        leases_way_on(from, samples, evidence->rules.total_steps, leases_config(&evidence->rules),
                      evidence->rules.seq_len);
    if (ended->samples != samples || ended->step != evidence->step || ended->end != way.step ||
        ended->rest != way.rest || !rate_follows(evidence, ended))
        return evidence_refuse(evidence,
                               "lease %" PRIu64 " leads with %" PRIu64 " samples from step %" PRIu64
                               " to %" PRIu64 "; its %" PRIu64 " samples lead to step %" PRIu64,
                               ended->lease, ended->samples, ended->step, ended->end, samples,
                               way.step);
    leases_run_end(&self->run, &self->table, ended);
    self->samples_done = way.samples_done;
    evidence->step = ended->end;
    evidence->counts[COUNT_STEPS] += ended->end - ended->step;
    return true;
}

bool leases_verifies(struct evidence *evidence, uint16_t kind, const void *record)
{
    switch (kind) {
    case FRAME_RECORD_GENESIS: return hear_genesis(evidence, record);
    case FRAME_RECORD_DATA: return hear_data(evidence, record);
    case FRAME_RECORD_RESTORE: return hear_restore(evidence, record);
    case FRAME_RECORD_PHASE: return hear_phase(evidence, record);
    case FRAME_RECORD_GROUP: return hear_group(evidence, record);
    case FRAME_RECORD_LEASE: return hear_lease(evidence, record);
    case FRAME_RECORD_LEASE_END: return hear_end(evidence, record);
    case FRAME_RECORD_SAVE: return hear_save(evidence, record);
    case FRAME_RECORD_COPY: return hear_copy(evidence, record);
    case FRAME_RECORD_KEPT: return hear_kept(evidence, record);
    case FRAME_RECORD_CLOSE: return hear_close(evidence, record);
    case FRAME_RECORD_SETTLED: return hear_settled(evidence, record);
    default: return true;
    }
}
