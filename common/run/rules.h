#pragma once
// rules -- what a run's configuration decides, as the coordinator's core and the verifier of its
// ledger need it. One function makes the rules from a configuration file (rules_of_config, beside
// the coordinator), so both use the same rules.
//
// Durations are in ms; 0 means that the limit does not apply. Pure; any thread.

#include "common/run/limits.h"
#include "common/run/schedule.h"
#include "common/wire/wire.h"

struct rules {
    char run_id[WIRE_RUN_MAX + 1];
    struct hash config; // Digest of the configuration
    struct key owner;   // The key that may control the run: the coordinator's own
    uint64_t run_seed;
    uint32_t waiting_ms, warmup_ms, train_ms, witness_ms, cooldown_ms;
    uint64_t epoch_ms; // Exactly one of these two is not 0
    uint32_t epoch_rounds;
    uint64_t total_steps;
    uint32_t min_clients, init_min_clients;
    uint32_t batch_start, batch_end; // Samples a round, rising over `batch_warmup_tokens`
    uint64_t batch_warmup_tokens;
    uint32_t seq_len;
    struct schedule lr;
    uint32_t cold_start_steps;
    uint32_t heartbeat_ms, lease_ms, unhealthy_rounds, snapshot_rounds;
    struct hash genesis_digest; // Of the first parameters. None: the first quorum decides
    struct hash dataset_digest; // Of the data. None: the first data provider decides
    uint64_t first_epoch, first_step, first_position; // [progress]
    bool start_paused;
    struct hash audit_secret; // The keys of all rounds follow from it. Only the coordinator has it
    // CONFIG as members get it. The shell owns the bytes that it points to. `frame` has the kind of
    // the strategy's part, `strategy` its body, a struct without pointers.
    struct wire_config frame;
    _Alignas(8) uint8_t strategy[STRATEGY_BYTES];
};

// The body of the strategy's part of CONFIG. Its kind is rules->frame.strategy.kind.
static inline const void *rules_strategy(const struct rules *rules) { return rules->strategy; }

// Copies the body of the strategy's part: at most STRATEGY_BYTES bytes, without pointers.
void rules_set_strategy(struct rules *rules, uint16_t kind, const void *body, size_t bytes);

// CONFIG as members get it. It points into *rules.
struct wire_config rules_frame(const struct rules *rules);

// The seed of all draws of a run. It follows from the name, so two runs of one name draw alike.
uint64_t rules_run_seed(const char *run_id);
