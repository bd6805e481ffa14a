#pragma once
// assignment -- which trainer trains which samples of a round. Every member computes it from the
// seed, as Psyche does: the trainers are shuffled (Fisher-Yates from the end, with a linear
// congruential generator that starts at the seed), then each gets one interval, in shuffled order:
//
//     samples     0 ─────┬─────┬─────┬────┬──── B       B = batch size, T = trainers
//     trainer        4      3     2    1    0           each ⌊B/T⌋, the first B mod T one more
//
// The intervals are half-open, [begin, end), and index the round's list of samples (see table.h).
// Psyche's closed [start, end] is [begin + data_index, end − 1 + data_index]. If there are fewer
// samples than trainers, the trainers at the end of the shuffled order get none.
//
// The order is not fair, because the remainder keeps the generator's poor low bits: of eight
// trainers, one comes first 1.8 times as often as it should and one 0.26 times. That decides only
// which samples a trainer gets, and whether it gets one more. Pure; any thread.

#include "common/run/limits.h"
#include <stdbool.h>
#include <stdint.h>

struct share {
    uint32_t trainer, begin, end;
}; // `trainer`: its index among the round's clients

// assignment_deal fills it. The caller gives the memory, and keeps it while it reads the deal.
struct deal {
    uint32_t capacity;    // Trainers that the memory has room for
    struct share *shares; // [capacity] by `begin`, rising; the empty ones last
    uint32_t *by_trainer; // [capacity] indices into `shares`, in order of trainer
    uint32_t trainers;    // T
    uint32_t count;       // Trainers with at least one sample: the smaller of T and B
};

// Deals [0, batch_size) to the trainers, whose indices must rise strictly; 0 ≤ trainers ≤ capacity.
// With 0 trainers the deal is empty. O(T).
void assignment_deal(uint64_t seed, const uint32_t *trainer_indices, uint32_t trainers,
                     uint32_t batch_size, struct deal *out);

// The trainer's share. False, and nothing written, if the deal has no sample for this trainer.
// O(log T).
bool deal_of_trainer(const struct deal *self, uint32_t trainer, struct share *ret_share);
