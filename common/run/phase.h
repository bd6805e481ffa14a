#pragma once
// phase -- what is true of a phase under every pace. Pure; any thread.

#include "common/wire/wire.h"

// Whether steps are made in this phase: RoundTrain, and RoundWitness under a pace that votes.
static inline bool phase_makes_steps(uint8_t phase)
{
    return phase == PHASE_TRAIN || phase == PHASE_WITNESS;
}
