// strategies_shell -- a function for each strategy fills its part of CONFIG; the table at the end names
// them.
#include "actors/coordinator/strategies_shell.h"
#include "common/base/ensure.h"
#include "common/learner/run_check.h"
#include "common/model/recipe.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/pace/windows/window.h"
#include <stdio.h>

// ---- distro -------------------------------------------------------------------------------------

static void distro_rules(const struct run_config *config, struct rules *rules)
{
    const struct wire_rounds_config part = {
        .compression_decay = (float)config->compression_decay,
        .topk = (uint32_t)config->compression_topk,
        .chunk = (uint32_t)config->compression_chunk,
        .one_bit = config->quantize_1bit,
        .witness_nodes = (uint32_t)config->witness_nodes,
        .least_train_ms = (uint32_t)config->round_least_ms,
        .witness_standalone = config->witness_standalone,
        .verification_percent = (uint32_t)config->verification_percent,
    };
    rules_set_strategy(rules, FRAME_ROUNDS_CONFIG, &part, sizeof part);
}

static void distro_model(const struct run_model *model, struct rules *rules)
{
    struct wire_rounds_config part = *rounds_config(rules);
    part.payload_bytes = model->result_bytes;
    rules_set_strategy(rules, FRAME_ROUNDS_CONFIG, &part, sizeof part);
}

// ---- allreduce, sharded, server --------------------------------------------------------------------------

_Static_assert((int)CONFIG_GROUP_MAX == (int)WINDOW_MEMBERS_MAX, "a group has so many places");

static uint8_t descent_of(enum config_value value)
{
    switch (value) {
    case CONFIG_OPTIMIZER_ADAM: return DESCENT_ADAM;
    case CONFIG_OPTIMIZER_SGD: return DESCENT_SGD;
    default: ensure(value == CONFIG_OPTIMIZER_ADAMW); // The loader has refused the others
    }
    return DESCENT_ADAMW;
}

static uint32_t members_least(const struct run_config *config)
{
    return config->min_clients < WINDOW_MEMBERS_MAX ? (uint32_t)config->min_clients
                                                    : WINDOW_MEMBERS_MAX;
}

// The state has moments beside the parameters, so the ledger's first digest is not model.digest: the
// first quorum decides it. model.digest still goes to the trainers, in CONFIG: they compare the
// parameters that they begin with.
static void windows_rules(const struct run_config *config, struct rules *rules)
{
    struct wire_windows_config part = {
        .lanes = (uint32_t)config->lanes,
        .window_ms = (uint32_t)config->window_ms,
        .step_timeout_ms = (uint32_t)config->step_timeout_ms,
        .parts = config_shares(config) ? PARTS_MOMENTS : PARTS_NONE,
        .link = config->link == CONFIG_LINK_PLAIN ? LINK_PLAIN : LINK_SEALED,
        .connections = (uint32_t)config->connections,
        .clip_norm = recipe_clip_norm(config),
        .weight_decay = config->weight_decay,
        .beta1 = config->betas[0],
        .beta2 = config->betas[1],
        .eps = config->eps,
        .optimizer = descent_of(config->optimizer),
        .momentum = config->momentum,
        .nesterov = config->nesterov,
        .batch_start = rules->batch_start,
        .batch_end = rules->batch_end,
        .batch_warmup_tokens = rules->batch_warmup_tokens,
        .save_steps = (uint32_t)config->checkpoint_steps,
        .save_passes = (uint32_t)config->checkpoint_passes,
        .keep = (uint32_t)config->checkpoint_keep,
        .memory_every = (uint32_t)config->memory_every,
        .buddies = (uint32_t)config->buddies,
        .servers = config_servers(config),
        .members_least = members_least(config),
    };
    snprintf(part.shared_dir, sizeof part.shared_dir, "%s", config->checkpoint_shared_dir);
    rules->genesis_digest = (struct hash){ { 0 } };
    rules_set_strategy(rules, FRAME_WINDOWS_CONFIG, &part, sizeof part);
}

// ---- server, asynchronous -------------------------------------------------------------------------

// A task of a few milliseconds is late after three times its average: after any delay of a processor or a network. A
// second is longer than those, and short beside what a task of another trainer is worth waiting for.
enum { LEASE_LEAST_MS = 1000 };

// As in windows, the state has moments. A group puts its state together in the time in which a step of windows may
// wait for all others.
static void leases_rules(const struct run_config *config, struct rules *rules)
{
    struct wire_leases_config part = {
        .servers = config_servers(config),
        .push_every = (uint32_t)config->push_every,
        .pull_every = (uint32_t)config->pull_every,
        .staleness = config->staleness,
        .task_samples = config->task_samples,
        .strikes_max = (uint32_t)config->task_failures,
        .time_min_ms = LEASE_LEAST_MS,
        .time_max_ms = (uint32_t)config->task_ms,
        .pass_barrier = config->pass_barrier,
        .settle_ms = (uint32_t)config->step_timeout_ms,
        .link = config->link == CONFIG_LINK_PLAIN ? LINK_PLAIN : LINK_SEALED,
        .connections = (uint32_t)config->connections,
        .clip_norm = recipe_clip_norm(config),
        .weight_decay = config->weight_decay,
        .beta1 = config->betas[0],
        .beta2 = config->betas[1],
        .eps = config->eps,
        .optimizer = descent_of(config->optimizer),
        .momentum = config->momentum,
        .nesterov = config->nesterov,
        .batch_start = rules->batch_start,
        .batch_end = rules->batch_end,
        .batch_warmup_tokens = rules->batch_warmup_tokens,
        .save_steps = (uint32_t)config->checkpoint_steps,
        .save_passes = (uint32_t)config->checkpoint_passes,
        .keep = (uint32_t)config->checkpoint_keep,
        .members_least = members_least(config),
        .memory_every = (uint32_t)config->memory_every,
        .buddies = (uint32_t)config->buddies,
        .transfer = config->transfer == CONFIG_TRANSFER_BF16 ? TRANSFER_BF16 : TRANSFER_FLOAT32,
    };
    snprintf(part.shared_dir, sizeof part.shared_dir, "%s", config->checkpoint_shared_dir);
    rules->genesis_digest = (struct hash){ { 0 } };
    rules_set_strategy(rules, FRAME_LEASES_CONFIG, &part, sizeof part);
}

// ---- the table ----------------------------------------------------------------------------------

static const struct strategy strategies[] = {
    { CONFIG_STRATEGY_DISTRO, CONFIG_NONE, distro_rules, distro_model },
    { CONFIG_STRATEGY_ALLREDUCE, CONFIG_NONE, windows_rules, NULL },
    { CONFIG_STRATEGY_SHARDED, CONFIG_NONE, windows_rules, NULL },
    { CONFIG_STRATEGY_SERVER, CONFIG_SERVER_MODE_SYNC, windows_rules, NULL },
    { CONFIG_STRATEGY_SERVER, CONFIG_SERVER_MODE_ASYNC, leases_rules, NULL },
};

static bool is_meant(const struct strategy *strategy, const struct run_config *config)
{
    return strategy->kind == config->strategy &&
           (strategy->mode == CONFIG_NONE || strategy->mode == config->server_mode);
}

const struct strategy *strategy_of(const struct run_config *config)
{
    const size_t count = sizeof strategies / sizeof *strategies;
    size_t i = 0;
    while (i < count && !is_meant(&strategies[i], config)) i++;
    ensure(i < count); // Else keys.def has a strategy that the table lacks
    return &strategies[i];
}
