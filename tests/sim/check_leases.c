// check_leases -- the place of leases in the simulator's table of paces. No seed draws them: what a learner of an
// asynchronous group computes is not simulated, so there is nothing yet to hold its records against.

#include "tests/sim/sim.h"

const struct sim_pace sim_pace_leases = { .one_in = 0 };
