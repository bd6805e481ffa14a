#pragma once
// selection_step -- where a search for a mark begins. Private to selection.c and selection_read.c.

#include "common/optimizer/selection.h"

#include <string.h>

// Octave and step of rank + 1: exponent and first five bits of it as a double. Conversion is one
// instruction everywhere; that which counts zeros is a slow one on many processors. It may round a
// rank to the step above. That moves a border between steps, and the table is filled by the same
// function: all that both need is that a greater rank has no lesser step.
static inline uint32_t selection_step(uint64_t rank)
{
    const double next = (double)(int64_t)(rank + 1);
    uint64_t bits;
    memcpy(&bits, &next, sizeof bits);
    return (uint32_t)(bits >> 47) - 1023 * SELECTION_STEPS;
}
