#pragma once
// alone -- the state that one trainer alone reaches (`shoal train`) with the model, data and
// state.toml of a testbed. A run of allreduce must pin the same digest at the same step, whoever
// took part in it.
//
//     struct hash digest = alone_digest(bed, 312); // Goes on from the step asked before
//
// Its checkpoints are in the bed's folder "alone", its output in alone.log. A failure fails the
// test.

#include "tests/live/testbed.h"

// `step` is above 0 and not below the one asked before.
struct hash alone_digest(struct testbed *bed, uint64_t step);
