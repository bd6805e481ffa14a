#pragma once
// doctor -- the parts of `shoal doctor`, in the order in which they run. Each adds its results, and leaves
// behind what a later one needs.
//
//     doctor_files     --state, --data-config   ─▶ demands of the run
//     doctor_network   the ticket's broker, coordinator and members   ─▶ demands as CONFIG has them
//     doctor_machine   clock, disk, device, memory: is it enough for these demands?

#include "actors/shoal/run/checkup.h"
#include "common/actor/command.h"
#include "common/base/hash.h"
#include "common/learner/solo.h"

struct doctor_demands { // Of a run to its members
    bool known;
    struct model_shape shape;
    const struct optimizer_kind *optimizer;
    struct optimizer_settings settings;
    uint32_t seq_len, verification_percent;
    bool same_bits;        // All trainers compute alike: micro_batch is theirs
    bool no_gpu;           // This version computes such a run on CPUs only
    uint32_t micro_batch;  // Of all trainers
    uint32_t lanes, batch; // The most of a gradient in lanes; 0: it has none
    uint32_t state_floats; // Of a replica, for each parameter
    uint32_t copies;       // Of the state in memory: pins, and one that is fetched
    uint32_t disk_copies;  // Copies of the state that a trainer has on its disk
    uint64_t beside;       // Bytes of what a trainer's jobs take besides
    bool links;            // Trainers link with one another, at a port of their own
    uint32_t result_bytes; // Of one trainer in one round; 0: there are none
    uint32_t snapshot_rounds, trainers;
    enum gemm_precision precision;
    uint64_t ledger_bytes; // Of its coordinator; 0: not known
};

struct doctor {
    struct command command; // Ticket, run and key
    const char *word;       // The ticket, as an argument
    const char *state_path, *data_path;
    const char *bulk_bind, *announce, *bulk_port, *device, *label;
    uint64_t threads, micro_batch;
    struct checkup checkup;
    struct doctor_demands demands;
    bool has_config;           // state.toml was read ..
    struct hash config_digest; // .. and this is its digest
    char config_run[WIRE_RUN_MAX + 1];
    uint64_t latest_unix_ms; // The latest start of a member, by its own clock; 0: none known
    char latest_name[ACTOR_NAME_MAX + 1];
};

// From CONFIG as members have it; `trainers` and `ledger_bytes` stay. False, with nothing changed: it is of
// no strategy, or no model, that this program knows.
bool doctor_demands_of(const struct wire_config *config, struct doctor_demands *ret_demands);

void doctor_files(struct doctor *self);
void doctor_network(struct doctor *self);
void doctor_machine(struct doctor *self);
