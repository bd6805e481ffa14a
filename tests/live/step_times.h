#pragma once
// step_times -- when a trainer began and applied each step of a window, to the microsecond, without
// a word of its own about it: a library that is loaded with LD_PRELOAD and hears the learner's
// failpoints (common/base/failpoint.h).
//
//     LD_PRELOAD=build/live/step_times.so SHOAL_STEP_TIMES=FILE shoal-trainer ...
//
// FILE is mapped by both sides and outlives the process; a next life goes on in it.

#include <stdatomic.h>
#include <stdint.h>

enum { STEP_TIMES_MAX = 1 << 16 }; // The newest of them

struct step_times {
    atomic_uint_least64_t applied; // So many steps; begun_us, applied_us of step i at i modulo
    uint64_t begun_us[STEP_TIMES_MAX], applied_us[STEP_TIMES_MAX]; // clock_us
};
