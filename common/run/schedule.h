#pragma once
// schedule -- the learning rate of a step and the batch size of a round, by Psyche's kinds and
// keys.
//
//     rate  │    base ┌───────╮ stable        every kind begins with its warm-up:
//           │        ╱         ╲ cosine         init + (base − init) · step / warmup_steps
//           │       ╱           ╰──╲ linear    the drawing is WarmupStableDecay; Linear and Cosine
//           │ init ╱                ╲____      fall to final_lr at total_steps and stay there
//           └───────────────────────────▶ step
//
// One difference from Psyche: its Cosine is not clamped, so there the rate rises again after
// total_steps.
//
// The coordinator computes the rate and sends the bits of the float. Any machine that computes it
// gets the same bits: doubles, one written order of operations, a cosine of our own, no libm. Pure;
// any thread.

#include <stdint.h>

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,
    SCHEDULE_WARMUP_STABLE_DECAY,
};

struct schedule {
    enum schedule_kind kind;
    uint32_t warmup_steps;
    double warmup_init_lr, base_lr;
    // Linear and Cosine
    uint32_t total_steps; // At most warmup_steps: final_lr follows the warm-up at once
    double final_lr;
    // WarmupStableDecay: the length of each part in steps; 0: no such part
    uint32_t stable_steps, cosine_decay_steps, linear_decay_steps;
    double cosine_decay_final_lr; // At most base_lr
    double linear_decay_final_lr; // At most cosine_decay_final_lr
};

// After a cold start, the rates are multiplied by (step − start) / steps, which rises from 0 at
// `start` to 1 at start + steps. steps = 0: no cold start.
struct cold_start {
    uint32_t start, steps;
};

// The rate of any step. `cold` may be NULL.
float schedule_rate(const struct schedule *self, uint32_t step, const struct cold_start *cold);

// Samples of a round: round(start + (end − start) · tokens / warmup_tokens) in exact arithmetic,
// halves upward; `end` from warmup_tokens on. `tokens`: trained before this round. Needs start ≤
// end. Psyche computes with doubles, misses an exact half now and then, and is then one lower (once
// in 200,000 random cases).
uint32_t schedule_batch_size(uint32_t start, uint32_t end, uint64_t warmup_tokens, uint64_t tokens);
