#pragma once
// seen_steps -- trainers of a testbed whose steps are seen as they begin and are applied
// (step_times.h), also while they are stopped or cut off.

#include "tests/live/step_times.h"
#include "tests/live/testbed.h"

void seen_start(struct testbed *bed, unsigned trainer); // With the library
const struct step_times *seen_steps(struct testbed *bed, unsigned trainer);

// The instant (clock_us) by which each of these trainers, as bits, has applied a step that it began
// after `after_us`. 0: not yet.
uint64_t seen_all(struct testbed *bed, unsigned trainers, uint64_t after_us);

// Waits for it; fails the test when the time is up.
uint64_t seen_await(struct testbed *bed, unsigned trainers, uint64_t after_us, uint64_t timeout_ms,
                    const char *what);

// Microseconds between steps of one trainer that were applied in [from_us, to_us). Returns how many.
unsigned seen_gaps(struct testbed *bed, unsigned trainer, uint64_t from_us, uint64_t to_us,
                   double *ret_us, unsigned max);

// The port at which the links of a trainer end, from its log.
unsigned seen_links_port(struct testbed *bed, unsigned trainer);
