#include "common/learn/kernels.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic(const struct kernels *) chosen;

static bool can_run(const struct kernels *set)
{
    __builtin_cpu_init();
    if (set == &kernels_avx512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
            && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    }
    if (set == &kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

static const struct kernels *best(void)
{
    if (can_run(&kernels_avx512)) return &kernels_avx512;
    if (can_run(&kernels_avx2)) return &kernels_avx2;
    return &kernels_base;
}

const struct kernels *kernels_chosen(void)
{
    const struct kernels *set = atomic_load(&chosen);
    // Twice at once is harmless: the answer is the same
    if (!set) atomic_store(&chosen, set = best());
    return set;
}

bool learn_set_isa(const char *name)
{
    static const struct kernels *const sets[] = { &kernels_avx512, &kernels_avx2, &kernels_base };
    if (strcmp(name, "best") == 0) {
        atomic_store(&chosen, best());
        return true;
    }
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (strcmp(name, sets[i]->name) != 0) continue;
        if (!can_run(sets[i])) return false;
        atomic_store(&chosen, sets[i]);
        return true;
    }
    return false;
}
