// Chooses the widest kernels that this processor runs.
#include "common/optimizer/distro_kernels.h"

#include <string.h>

static bool runs(const struct distro_kernels *kernels)
{
    if (kernels == &distro_kernels_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (kernels == &distro_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

static const struct distro_kernels *const variants[] = { &distro_kernels_avx512,
                                                         &distro_kernels_avx2,
                                                         &distro_kernels_base }; // Best first

const struct distro_kernels *distro_kernels_best(void)
{
    size_t i = 0;
    while (!runs(variants[i])) i++; // The last one always does
    return variants[i];
}

const struct distro_kernels *distro_kernels_named(const char *name)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if (strcmp(variants[i]->name, name) == 0) return runs(variants[i]) ? variants[i] : NULL;
    return NULL;
}
