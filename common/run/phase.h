#pragma once
// phase -- what every member may say of a phase, whatever the run's pace.

#include "common/wire/wire.h"

// Steps are made: RoundTrain, and where results are voted on RoundWitness between two of them.
static inline bool phase_makes_steps(uint8_t phase)
{
    return phase == PHASE_TRAIN || phase == PHASE_WITNESS;
}
