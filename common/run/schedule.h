#pragma once
// schedule -- the learning rate of a step and the batch size of a round, by Psyche's kinds and
// keys.
//
//     rate  │    base ┌───────╮ stable        every kind begins with its warm-up:
//           │        ╱         ╲ cosine         init + (base − init) · step / warmup_steps
//           │       ╱           ╰──╲ linear    the drawing is WarmupStableDecay; Linear and Cosine
//           │ init ╱                ╲____      fall to final_lr, which follows total_steps
//           └───────────────────────────▶ step
//
// Steps count from 1: step n turns the parameters after n − 1 steps into those after n. No step of
// 1..total_steps has the rate 0, also with warmup_init_lr = 0 and final_lr = 0:
//
//     step               rate
//     1                  init + (base − init) / warmup_steps; without a warm-up, base
//     warmup_steps       base
//     warmup_steps + 1   base again: each part of the decay begins with the rate that it falls from
//     total_steps        one step short of final_lr, which every later step has
//
// So Linear over four steps from 8 to 0 has the rates 8, 6, 4, 2; with two of them as warm-up from
// 0, the rates 4, 8, 8, 4. The warm-up is Psyche's. Its decay is one step ahead of ours: its step
// total_steps has final_lr, which may be 0. (Schedulers that count from 0, Hugging Face's for
// example, give the first step the rate 0 instead.) And Psyche's Cosine is not clamped: there the
// rate rises again after total_steps.
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

// After a cold start at the parameters of step `start`, the rates are multiplied by (step − start) /
// steps: 1 / steps for the first step after it, 1 from step start + steps on. steps = 0: no cold
// start.
struct cold_start {
    uint32_t start, steps;
};

// The rate of a step, which is at least 1. `cold` may be NULL.
float schedule_rate(const struct schedule *self, uint32_t step, const struct cold_start *cold);

// Samples of a round: round(start + (end − start) · tokens / warmup_tokens) in exact arithmetic,
// halves upward; `end` from warmup_tokens on. `tokens`: trained before this round. Needs start ≤
// end. Psyche computes with doubles, misses an exact half now and then, and is then one lower (once
// in 200,000 random cases).
uint32_t schedule_batch_size(uint32_t start, uint32_t end, uint64_t warmup_tokens, uint64_t tokens);
