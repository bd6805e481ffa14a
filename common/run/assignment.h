#pragma once
// assignment -- which trainer trains which positions of a round, computed by everyone from the
// seed. Agrees with Psyche: the trainers are shuffled (Fisher-Yates from the end, drawn from a
// linear congruential generator started at the seed), then each gets one interval, in shuffled
// order:
//
//     positions   0 ─────┬─────┬─────┬────┬──── B       B = batch size, T = trainers
//     trainer        4      3     2    1    0           each ⌊B/T⌋, the first B mod T one more
//
// What is dealt are positions in the round's list of samples (see table.h), half-open: [begin,
// end). Psyche's closed [start, end] is [begin + data_index, end − 1 + data_index]. With fewer
// positions than trainers, those at the end of the shuffled order get nothing.
//
// The order is not fair, since the remainders see the generator's poor low bits: of eight trainers
// one comes first 1.8 times its equal share and one 0.26 times. That decides who trains which
// samples and who trains one more, not how many batches anybody gets to answer for. Pure; any
// thread.

#include "common/run/limits.h"
#include <stdbool.h>
#include <stdint.h>

struct share {
    uint32_t trainer, begin, end;
}; // The trainer's index among the round's clients

// The caller's memory, filled by assignment_deal and borrowed for as long as the deal is read.
struct deal {
    uint32_t capacity;    // Trainers that the memory holds
    struct share *shares; // [capacity] in order of position, the empty ones last
    uint32_t *by_trainer; // [capacity] places in `shares`, in order of trainer
    uint32_t trainers;    // T
    uint32_t count;       // Trainers that got something: the smaller of T and B
};

// Deals [0, batch_size) to the trainers, whose indices must rise strictly; 0 ≤ trainers ≤ capacity.
// Without trainers nothing is dealt: no round should have been opened. O(T).
void assignment_deal(uint64_t seed, const uint32_t *trainer_indices, uint32_t trainers,
                     uint32_t batch_size, struct deal *out);

// The trainer's share. False, and nothing written, if it is no trainer of this deal or got nothing.
// O(log T).
bool deal_of_trainer(const struct deal *self, uint32_t trainer, struct share *ret_share);
