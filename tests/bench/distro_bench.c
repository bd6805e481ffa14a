// distro_bench -- what compress and apply cost, beside what copying the same memory costs.
//
//     distro_bench [million parameters = 8] [results in the commit = 4]
//
// The yardstick: compress reads the gradient and the residual and writes the residual (12 bytes a
// parameter), apply reads and writes the parameters (8). At the speed of memcpy that is the floor.

#include "common/learn/apply.h"
#include "common/learn/distro.h"
#include "common/learn/distro_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 512, REPEATS = 7, RESULTS_MAX = 64 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *numbers(size_t count)
{
    float *x = malloc(count * sizeof *x);
    uint32_t state = 1;
    for (size_t i = 0; x && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f * (i % 997 == 0 ? 20.0f : 1.0f);
    }
    return x;
}

struct bench {
    size_t total;
    payload_form_t *form;
    float *gradient, *parameters;
    struct apply_result results[RESULTS_MAX];
    uint32_t count;
};

// The best of a few: bytes of memory moved per second, read and written.
static double copy_rate(const struct bench *bench)
{
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        const double begin = seconds();
        memcpy(bench->parameters, bench->gradient, bench->total * sizeof(float));
        const double took = seconds() - begin;
        if (took < best) best = took;
    }
    return (double)(2 * bench->total * sizeof(float)) / best;
}

static int run(struct bench *bench, uint32_t threads, const char *kernels, double rate,
               struct why *why)
{
    pool_t *pool = pool_new(threads);
    distro_t *distro = NULL;
    int rc = pool ? distro_new(bench->form, 0.99f, pool, why, &distro) : FAULT_MEMORY;
    const struct apply_step step = {
        .rate = 1e-3f, .weight_decay = 0.1f, .kernels = distro_kernels_named(kernels)};
    double compress = 1e9, apply = 1e9;
    if (rc == 0) distro_set_kernels(distro, step.kernels);
    for (int i = 0; rc == 0 && i < REPEATS; i++) {
        double begin = seconds();
        rc = distro_compress(distro, bench->gradient, 1e-3f,
                             (uint8_t *)(uintptr_t)bench->results[0].payload, why);
        if (seconds() - begin < compress) compress = seconds() - begin;
        if (rc == 0) distro_adopt(distro);
        begin = seconds();
        if (rc == 0)
            rc = apply_commit(bench->form, bench->results, bench->count, &step, pool,
                              bench->parameters, why);
        if (seconds() - begin < apply) apply = seconds() - begin;
    }
    if (rc == 0) {
        const double millions = (double)bench->total * 1e-6, moved = (double)bench->total;
        printf("%-7s %u thread(s)  compress %6.2f ms (%.2f ns/parameter, %.1f x copying)  apply "
               "%6.2f ms"
               " (%.2f ns/parameter, %.1f x copying)\n",
               kernels, threads, compress * 1e3, compress * 1e3 / millions,
               compress / (12 * moved / rate), apply * 1e3, apply * 1e3 / millions,
               apply / (8 * moved / rate));
    }
    distro_destroy(&distro);
    pool_destroy(&pool);
    return rc;
}

// Every result of the commit is another member's.
static int fill_results(struct bench *bench, struct why *why)
{
    distro_t *distro = NULL;
    int rc = distro_new(bench->form, 0.99f, NULL, why, &distro);
    for (uint32_t i = 0; rc == 0 && i < bench->count; i++) {
        uint8_t *payload = malloc(payload_bytes(bench->form));
        bench->results[i] = (struct apply_result){i, payload, payload_bytes(bench->form)};
        rc = payload ? distro_compress(distro, bench->gradient, 1e-3f, payload, why) : FAULT_MEMORY;
        if (rc == 0) distro_adopt(distro);
    }
    distro_destroy(&distro);
    return rc;
}

int main(int argc, char **argv)
{
    const long millions = argc > 1 ? strtol(argv[1], NULL, 10) : 8;
    const long results = argc > 2 ? strtol(argv[2], NULL, 10) : 4;
    if (millions < 1 || millions > 1000 || results < 1 || results > RESULTS_MAX) {
        fprintf(stderr, "distro_bench: 1..1000 million parameters and 1..%d results, please\n",
                RESULTS_MAX);
        return 2;
    }
    struct why why = {""};
    const uint32_t rows = (uint32_t)millions * 1000000 / COLUMNS / 64 * 64;
    struct bench bench = {.total = (size_t)rows * COLUMNS, .count = (uint32_t)results};
    const struct chunks_tensor tensor = {0, rows, COLUMNS};
    chunks_t *chunks = NULL;
    bench.gradient = numbers(bench.total);
    bench.parameters = numbers(bench.total);
    int rc = bench.gradient && bench.parameters ? 0 : FAULT_MEMORY;
    if (rc == 0) rc = chunks_new(&tensor, 1, bench.total, 64, &why, &chunks);
    if (rc == 0) rc = payload_form_new(chunks, 32, true, &why, &bench.form);
    if (rc == 0) rc = fill_results(&bench, &why);
    if (rc < 0) return fault_exit(rc, &why);
    const double rate = copy_rate(&bench);
    printf("%.1f M parameters, %u results of %zu bytes; memcpy %.1f GB/s read and written\n",
           (double)bench.total * 1e-6, bench.count, payload_bytes(bench.form), rate * 1e-9);
    static const char *const names[] = {"avx512", "avx2"};
    for (size_t i = 0; i < 2 && rc == 0; i++)
        for (uint32_t threads = 1; threads <= 2 && rc == 0 && distro_kernels_named(names[i]);
             threads++)
            rc = run(&bench, threads, names[i], rate, &why);
    return rc < 0 ? fault_exit(rc, &why) : 0;
}
