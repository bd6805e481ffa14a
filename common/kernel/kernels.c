// kernels -- the sets in order of speed; the first one that the processor can run is chosen at the
// first question, unless learn_set_isa has named another.

#include "common/kernel/kernels.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic(const struct kernels *) chosen;

// The fastest first.
static const struct kernels *const sets[] = { &kernels_avx512bf16, &kernels_avx512, &kernels_avx2,
                                              &kernels_base };
enum { SETS = sizeof sets / sizeof sets[0] };

static bool can_run(const struct kernels *set)
{
    __builtin_cpu_init();
    if (set == &kernels_avx512bf16 && !__builtin_cpu_supports("avx512bf16")) return false;
    if (set == &kernels_avx512bf16 || set == &kernels_avx512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    }
    if (set == &kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

static const struct kernels *best(void)
{
    size_t i = 0;
    while (!can_run(sets[i])) i++; // The last set runs on every processor
    return sets[i];
}

const struct kernels *kernels_chosen(void)
{
    const struct kernels *set = atomic_load(&chosen);
    // Two threads may do this at the same time: both find the same set
    if (!set) atomic_store(&chosen, set = best());
    return set;
}

bool learn_set_isa(const char *name)
{
    if (strcmp(name, "best") == 0) {
        atomic_store(&chosen, best());
        return true;
    }
    for (size_t i = 0; i < SETS; i++) {
        if (strcmp(name, sets[i]->name) != 0) continue;
        if (!can_run(sets[i])) return false;
        atomic_store(&chosen, sets[i]);
        return true;
    }
    return false;
}
