#pragma once
// rules -- what a run's configuration decides, as the coordinator's core and the verifier of its
// ledger need it. One function makes them of a configuration file (rules_of_config, beside the
// coordinator), so both go by the same rules.
//
// Durations in ms; 0 where the limit does not apply. Pure.

#include "common/run/schedule.h"
#include "common/wire/wire.h"

// Every rule that a round's draw follows from: draw.h sees no others. A rule that is added here is
// checked by the verifier, and its test asks for it (evidence_test.c).
#define DRAW_RULES(R)                                                                              \
    R(uint32_t, witness_nodes)  /* Witnesses of a round; 0: all, but at most WITNESSES_OPEN */     \
    R(bool, witness_standalone) /* Elect among witness actors, not among trainers */               \
    R(uint32_t, verification_percent) /* Of a round's clients that recompute instead of training */

struct draw_rules {
#define DRAW_RULE(type, name) type name;
    DRAW_RULES(DRAW_RULE)
#undef DRAW_RULE
};

struct rules {
    char run_id[WIRE_RUN_MAX + 1];
    struct hash config; // Digest of the configuration
    struct key owner;   // Key that may control the run: the coordinator's own
    uint64_t run_seed;
    uint32_t waiting_ms, warmup_ms, train_ms, witness_ms, cooldown_ms;
    uint64_t epoch_ms; // Exactly one of these two is not 0
    uint32_t epoch_rounds;
    uint64_t total_steps;
    uint32_t min_clients, init_min_clients;
    struct draw_rules draw;
    uint32_t batch_start, batch_end; // Samples of a round, rising over `batch_warmup_tokens`
    uint64_t batch_warmup_tokens;
    uint32_t seq_len;
    struct schedule lr;
    uint32_t cold_start_steps;
    uint32_t heartbeat_ms, lease_ms, unhealthy_rounds, snapshot_rounds;
    struct hash genesis_digest; // None: pinned by the first quorum
    struct hash dataset_digest; // That data providers must have. None: the first one decides
    uint64_t first_epoch, first_step, first_position; // [progress]
    bool start_paused;
    struct hash audit_secret; // That the draws' keys follow from; nobody else knows it
    struct wire_config frame; // What members are sent; its bytes are the shell's
};

// The seed of all draws of a run: two runs of one name draw alike.
uint64_t rules_run_seed(const char *run_id);
