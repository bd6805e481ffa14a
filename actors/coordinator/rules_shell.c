// rules_shell -- one long list: struct rules in its order, then CONFIG as members get it, then the
// part of CONFIG that belongs to the strategy (strategies_shell.h).

#include "actors/coordinator/rules_shell.h"
#include "actors/coordinator/strategies_shell.h"
#include "common/learner/products.h"
#include "common/model/recipe.h"
#include <stdio.h>

static uint32_t ms32(uint64_t ms) { return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX; }

void rules_of_config(const struct run_config *config, struct rules *ret_rules)
{
    struct rules rules = {
        .config = config_digest(config),
        .run_seed = rules_run_seed(config->run_id),
        .waiting_ms = ms32(config->waiting_extra_ms),
        .warmup_ms = ms32(config->warmup_ms),
        .train_ms = ms32(config->round_train_ms),
        .witness_ms = ms32(config->round_witness_ms),
        .cooldown_ms = ms32(config->cooldown_ms),
        .epoch_ms = config->epoch_ms,
        .epoch_rounds = (uint32_t)config->rounds_per_epoch,
        .total_steps = config->total_steps,
        .min_clients = (uint32_t)config->min_clients,
        .init_min_clients = (uint32_t)config->init_min_clients,
        .batch_start = (uint32_t)config->batch_start,
        .batch_end = (uint32_t)config->batch_end,
        .batch_warmup_tokens = config->batch_warmup_tokens,
        .seq_len = (uint32_t)config->max_seq_len,
        .lr = recipe_schedule(config),
        .cold_start_steps = (uint32_t)config->cold_start_steps,
        .heartbeat_ms = ms32(config->heartbeat_ms),
        .lease_ms = ms32(config->lease_ms),
        .unhealthy_rounds = (uint32_t)config->unhealthy_rounds,
        .snapshot_rounds = (uint32_t)config->snapshot_rounds,
        .genesis_digest = config->model_digest,
        .dataset_digest = config->dataset_digest,
        .first_epoch = config->progress_epoch,
        .first_step = config->progress_step - 1,
        .first_position = config->progress_data_index,
        .start_paused = config->run_state == CONFIG_RUN_STATE_PAUSED,
    };
    snprintf(rules.run_id, sizeof rules.run_id, "%.*s", WIRE_RUN_MAX, config->run_id);
    rules.frame = (struct wire_config){
        .config = rules.config,
        .genesis_step = rules.first_step,
        .genesis_digest = rules.genesis_digest,
        .seq_len = rules.seq_len,
        .clip_norm = (float)recipe_clip_norm(config),
        .weight_decay = (float)config->weight_decay,
        .heartbeat_ms = rules.heartbeat_ms,
        .lease_ms = rules.lease_ms,
        .snapshot_rounds = rules.snapshot_rounds,
        .total_steps = rules.total_steps,
        .data_digest = config->manifest_digest,
        .micro_batch = (uint32_t)config->micro_batch,
        .products = (uint8_t)products_of_config(config->products),
    };
    snprintf(rules.frame.run, sizeof rules.frame.run, "%s", rules.run_id);
    strategy_of(config)->set_rules(config, &rules);
    *ret_rules = rules;
}
