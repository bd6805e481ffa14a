#pragma once
// selection_step -- where a search for a mark begins. Private to selection.c and selection_read.c.

#include "common/optimizer/selection.h"

#include <string.h>

// Octave and step of rank + 1: the exponent and the first five bits of it as a double. The conversion is one
// instruction on every processor; the instruction that counts leading zeros is slow on many. The conversion may
// round a rank up to the next step, which moves the border between two steps. That does no harm: the table is filled
// with the same function, and a greater rank never has a lesser step.
static inline uint32_t selection_step(uint64_t rank)
{
    const double next = (double)(int64_t)(rank + 1);
    uint64_t bits;
    memcpy(&bits, &next, sizeof bits);
    return (uint32_t)(bits >> 47) - 1023 * SELECTION_STEPS;
}
