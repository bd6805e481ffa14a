// Copies the settings of a state.toml into the fields of schedule.h, one by one.
#include "common/model/recipe.h"

double recipe_clip_norm(const struct run_config *config)
{
    return (double)(float)config->clip_grad_norm;
}

uint32_t recipe_batch_size(const struct run_config *config, uint64_t samples)
{
    return schedule_batch_size((uint32_t)config->batch_start, (uint32_t)config->batch_end,
                               config->batch_warmup_tokens, samples * config->max_seq_len);
}

struct schedule recipe_schedule(const struct run_config *config)
{
    struct schedule schedule = {
        .warmup_steps = (uint32_t)config->lr_warmup_steps,
        .warmup_init_lr = config->lr_warmup_init,
        .base_lr = config->lr_base,
        .total_steps = (uint32_t)config->lr_total_steps,
        .final_lr = config->lr_final,
        .stable_steps = (uint32_t)config->lr_stable_steps,
        .cosine_decay_steps = (uint32_t)config->lr_cosine_steps,
        .linear_decay_steps = (uint32_t)config->lr_linear_steps,
        .cosine_decay_final_lr = config->lr_cosine_final,
        .linear_decay_final_lr = config->lr_linear_final,
    };
    switch (config->lr_schedule) {
    case CONFIG_SCHEDULE_LINEAR: schedule.kind = SCHEDULE_LINEAR; break;
    case CONFIG_SCHEDULE_COSINE: schedule.kind = SCHEDULE_COSINE; break;
    case CONFIG_SCHEDULE_WSD: schedule.kind = SCHEDULE_WARMUP_STABLE_DECAY; break;
    default: schedule.kind = SCHEDULE_CONSTANT;
    }
    return schedule;
}
