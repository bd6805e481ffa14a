#pragma once
// leases_group -- what follows from the configuration and from one group, for the coordinator, the verifier of its
// ledger, and a member alike: its places, and how many steps some trained samples are.
//
//     place     0 ... 3    4   5   6         servers = 3
//               trainers   servers           each part in the order of the roster
//
// Pure; values.

#include "common/run/leases.h"
#include "common/run/rules.h"

enum {
    LEASES_GROUP_MAX = 64, // Places of a group
    LEASES_FAILURES = 3,   // A process that failed so many tasks in a row is not well
};

static inline uint64_t leases_bit(uint32_t place) { return (uint64_t)1 << place; }

// As the coordinator and the verifier of its ledger have it.
static inline const struct wire_leases_config *leases_config(const struct rules *rules)
{
    return rules_strategy(rules);
}

// As a member has it, of a run of leases.
static inline const struct wire_leases_config *leases_config_of(const struct wire_config *config)
{
    return config->strategy.body;
}

struct lease_rules leases_rules_of(const struct wire_leases_config *config);

// The place in the group of this process of a member; NO_MEMBER (UINT32_MAX): it is not in it.
uint32_t leases_group_place(const struct wire_group *group, uint32_t member, uint64_t instance);

// The first place of a server: the trainers are before it.
uint32_t leases_group_servers(const struct wire_group *group,
                              const struct wire_leases_config *config);

// Whether it is a group of trainers and then as many servers as `config` says, each in the order of the roster.
// Nothing may be done with one from outside before that.
bool leases_group_is_sound(const struct wire_group *group, const struct wire_leases_config *config);

// All places of the group, and those of its servers, as bits.
uint64_t leases_group_all(const struct wire_group *group);
uint64_t leases_group_owners(const struct wire_group *group,
                             const struct wire_leases_config *config);

// How far a run has come: its step, the samples that are trained in all, and those of them that are of no step yet.
struct leases_way {
    uint64_t step, samples_done, rest;
};

// The same with `samples` more, but no further than `last`. A step has schedule_batch_size samples, by the samples
// before it.
struct leases_way leases_way_on(struct leases_way way, uint64_t samples, uint64_t last,
                                const struct wire_leases_config *config, uint32_t seq_len);
