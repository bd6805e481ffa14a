#pragma once
// lags -- how many pushes had which lag: a histogram of eight bins, each but the first two twice as wide as the one before.
//
//     bin      0    1    2      3      4       5        6        7
//     lag      0    1    2-3    4-7    8-15    16-31    32-63    64 and more
//
// A trainer counts its own (TASK_TRAINED, BUSY), the coordinator tells them (PUSHES), an observer shows them. Pure; values.

#include "common/wire/wire.h"

enum { LAGS_BINS = 8 };

uint64_t lags_first(uint32_t bin); // The least lag of a bin
void lags_count(struct wire_lags *self, uint64_t lag);
struct wire_lags lags_sum(const struct wire_lags *a, const struct wire_lags *b);
uint64_t lags_at(const struct wire_lags *self, uint32_t bin);
