// kernels -- the sets in order of speed; the first one that the processor can run is chosen at the
// first question, unless learn_set_isa has named another. Where two sets come into question, the
// processor is asked: some multiply pairs of bfloat16 in one instruction at half the rate of two
// multiply-adds (Intel's of 2023), others at twice that rate. A product is timed with both, for a
// fraction of a millisecond.

#include "common/kernel/kernels.h"

#include <cpuid.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic(const struct kernels *) chosen;

// AVX-512's but for one product.
static struct kernels kernels_amx, kernels_avx512bf16;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_sets(void)
{
    kernels_amx = kernels_avx512bf16 = kernels_avx512;
    kernels_amx.name = "amx";
    kernels_amx.product[GEMM_BF16_AMX] = kernels_product_amx;
    kernels_avx512bf16.name = "avx512bf16";
    kernels_avx512bf16.product[GEMM_BF16] = kernels_product_pairs;
}

// The fastest first.
static const struct kernels *const sets[] = { &kernels_amx, &kernels_avx512bf16, &kernels_avx512,
                                              &kernels_avx2, &kernels_base };
enum { SETS = sizeof sets / sizeof sets[0] };

// Linux gives a process the tiles' registers on demand (Documentation/arch/x86/xstate.rst). It refuses if it does
// not know them, and if a thread has a signal stack too small for them.
static bool can_use_tiles(void)
{
    enum { LEAF_FEATURES = 7, BIT_BF16 = 22, BIT_TILES = 24, REQUEST = 0x1023, TILE_DATA = 18 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d)) return false;
    if (!(d >> BIT_BF16 & 1) || !(d >> BIT_TILES & 1)) return false;
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static bool can_run(const struct kernels *set)
{
    __builtin_cpu_init();
    const bool pairs = set == &kernels_amx || set == &kernels_avx512bf16;
    if (pairs && !__builtin_cpu_supports("avx512bf16")) return false;
    if (set == &kernels_amx && !can_use_tiles()) return false;
    if (pairs || set == &kernels_avx512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    }
    if (set == &kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The shortest of some times of a product of bfloat16, all of it in the first cache.
static int64_t product_ns(const struct kernels *set)
{
    enum { ROWS = 14, COLUMNS = 32, DEPTH = 128, TRIES = 24 }; // A tile of either set
    static const float zeros[COLUMNS * DEPTH];                 // Two words for a pair, at most
    const struct kernels_piece nothing = { 0 };
    const struct kernels_panels a = { zeros, DEPTH, ROWS }, b = { zeros, DEPTH, COLUMNS };
    float sum[ROWS * COLUMNS];
    int64_t least = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const int64_t began = now_ns();
        for (int k = 0; k < 4; k++)
            set->product[GEMM_BF16].multiply(ROWS, COLUMNS, DEPTH, a, b, sum, COLUMNS, false,
                                             &nothing);
        const int64_t took = now_ns() - began;
        if (took < least) least = took;
    }
    return least;
}

static const struct kernels *best(void)
{
    size_t i = 0;
    pthread_once(&made, make_sets);
    while (!can_run(sets[i])) i++; // The last set runs on every processor
    if (sets[i] == &kernels_avx512bf16 &&
        product_ns(&kernels_avx512) < product_ns(&kernels_avx512bf16))
        return &kernels_avx512;
    return sets[i];
}

const struct kernels *kernels_chosen(void)
{
    const struct kernels *set = atomic_load(&chosen);
    // Two threads may do this at the same time: the first one's choice stays
    if (!set) {
        const struct kernels *found = best();
        if (atomic_compare_exchange_strong(&chosen, &set, found)) set = found;
    }
    return set;
}

bool learn_set_isa(const char *name)
{
    if (strcmp(name, "best") == 0) {
        atomic_store(&chosen, best());
        return true;
    }
    pthread_once(&made, make_sets);
    for (size_t i = 0; i < SETS; i++) {
        if (strcmp(name, sets[i]->name) != 0) continue;
        if (!can_run(sets[i])) return false;
        atomic_store(&chosen, sets[i]);
        return true;
    }
    return false;
}
