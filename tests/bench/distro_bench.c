// distro_bench -- what compress and apply cost, beside what moving the same memory costs and
// beside a training step.
//
//     distro_bench [results in a commit = 4] [avx512|avx2|base] [8m|32m|all] [float]
//
// Two models at Psyche's setting: squares of 64 x 64, 8 of 4096, one bit unless `float` asks for
// values, whose norms apply then measures (apply.h). The floors are measured
// in the same run, in turns with the work, over the same vectors and threads: compress reads the
// gradient and reads and writes the momentum (12 bytes a parameter), apply reads and writes the
// parameters (8). Each figure is the best of a few; multiples and shares are of processor time, so
// that a busy machine does not change them much.

#include "common/model/model.h"
#include "common/optimizer/apply.h"
#include "common/optimizer/distro.h"
#include "common/optimizer/distro_kernels.h"
#include "tests/bench/train_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { REPEATS = 15, RESULTS_MAX = 64, TASKS = 256, STEP_TOKENS = 2048 };

struct cost {
    double wall, busy; // Milliseconds: by the clock, and of all threads together
};

static const struct cost nothing_yet = { 1e9, 1e9 };

static double milliseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static struct cost cost_now(void)
{
    return (struct cost){ milliseconds(CLOCK_MONOTONIC), milliseconds(CLOCK_PROCESS_CPUTIME_ID) };
}

static void keep_best(struct cost begin, struct cost *best)
{
    const struct cost now = cost_now();
    if (now.wall - begin.wall < best->wall) best->wall = now.wall - begin.wall;
    if (now.busy - begin.busy < best->busy) best->busy = now.busy - begin.busy;
}

static float *numbers(size_t count)
{
    float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
    uint32_t state = 1;
    for (size_t i = 0; x && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f * (i % 997 == 0 ? 20.0f : 1.0f);
    }
    return x;
}

// In large pages, as a device has them (compute_cpu.c).
static float *residual_new(size_t count)
{
    enum { PAGE = 2 << 20 };
    const size_t bytes = (count * sizeof(float) + PAGE - 1) / PAGE * PAGE;
    float *x = aligned_alloc(PAGE, bytes);
    if (x) madvise(x, bytes, MADV_HUGEPAGE); // A wish
    return x;
}

struct bench {
    const struct model_shape *shape;
    size_t total;
    chunks_t *chunks;
    payload_form_t *form;
    float *gradient, *momentum, *parameters, *residual[2];
    uint8_t *payload;
    struct apply_result results[RESULTS_MAX];
    uint32_t count;
    bool one_bit;
    const struct distro_kernels *kernels;
};

// ---- the floors. Vectors, so that memory is all there is to wait for.

typedef float wide __attribute__((vector_size(64)));

static void move_momentum(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct bench *bench = arg;
    const struct pool_share share = pool_share_of(bench->total / 16, 1, TASKS, task);
    const wide *gradient = (const wide *)bench->gradient;
    wide *momentum = (wide *)bench->momentum;
    for (uint64_t i = share.first; i < share.end; i++)
        momentum[i] = 0.999f * momentum[i] + 0.001f * gradient[i];
}

static void move_parameters(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct bench *bench = arg;
    const struct pool_share share = pool_share_of(bench->total / 16, 1, TASKS, task);
    wide *parameters = (wide *)bench->parameters;
    for (uint64_t i = share.first; i < share.end; i++) parameters[i] = 0.9999f * parameters[i];
}

// ---- a step

static int time_step(const struct bench *bench, pool_t *pool, struct why *why,
                     struct cost *ret_cost)
{
    const uint32_t seq = (uint32_t)bench->shape->seq_len_max, batch = STEP_TOKENS / seq;
    uint32_t *tokens = malloc(batch * (seq + 1) * sizeof *tokens);
    const struct model_options options = { batch, seq, GEMM_BF16, false };
    model_t *model = NULL;
    double loss;
    int rc = tokens ? model_new(bench->shape, &options, pool, why, &model) : FAULT_MEMORY;
    for (uint32_t i = 0; rc == 0 && i < batch * (seq + 1); i++)
        tokens[i] = i * 2654435761u % (uint32_t)bench->shape->vocab;
    for (size_t i = 0; rc == 0 && i < bench->total; i++) bench->parameters[i] *= 0.02f;
    *ret_cost = nothing_yet;
    for (int i = 0; rc == 0 && i < 2; i++) {
        const struct cost begin = cost_now();
        rc = model_loss_and_grad(model, bench->parameters, tokens, batch, seq, why, bench->gradient,
                                 &loss);
        keep_best(begin, ret_cost);
    }
    model_destroy(&model);
    free(tokens);
    return rc;
}

// ---- one line

static int run(struct bench *bench, uint32_t threads, struct why *why)
{
    pool_t *pool = pool_new(threads);
    distro_t *distro = NULL;
    int rc =
        pool ? distro_new(bench->form, 0.999f, pool, bench->residual, why, &distro) : FAULT_MEMORY;
    const struct apply_step step = { .rate = 1e-3f,
                                     .weight_decay = 0.1f,
                                     .kernels = bench->kernels };
    struct cost took, compress = nothing_yet, apply = nothing_yet;
    struct cost floor[2] = { nothing_yet, nothing_yet };
    if (rc == 0) rc = time_step(bench, pool, why, &took);
    if (rc == 0) distro_set_kernels(distro, step.kernels);
    if (rc == 0) rc = distro_set_residual(distro, NULL, why);
    for (int i = 0; rc == 0 && i < REPEATS; i++) {
        struct cost begin = cost_now();
        pool_run(pool, TASKS, move_momentum, bench);
        keep_best(begin, &floor[0]);
        begin = cost_now();
        rc = distro_compress(distro, bench->gradient, 1e-3f, bench->payload, why);
        keep_best(begin, &compress);
        if (rc == 0) distro_adopt(distro);
        begin = cost_now();
        pool_run(pool, TASKS, move_parameters, bench);
        keep_best(begin, &floor[1]);
        begin = cost_now();
        if (rc == 0)
            rc = apply_commit(bench->form, bench->results, bench->count, &step, pool,
                              bench->parameters, why);
        keep_best(begin, &apply);
    }
    if (rc == 0)
        printf("  %u thread%s\n"
               "    compress    %6.2f ms, %4.2f x its floor of %5.2f ms, %.2f %% of a step of %u "
               "tokens (%.0f ms)\n"
               "    apply of %-2u %6.2f ms, %4.2f x its floor of %5.2f ms\n",
               threads, threads == 1 ? "" : "s", compress.wall, compress.busy / floor[0].busy,
               floor[0].wall, 100 * compress.busy / took.busy, STEP_TOKENS, took.wall, bench->count,
               apply.wall, apply.busy / floor[1].busy, floor[1].wall);
    distro_destroy(&distro);
    pool_destroy(&pool);
    return rc;
}

// Every result of the commit is another member's.
static int fill_results(struct bench *bench, struct why *why)
{
    distro_t *distro = NULL;
    int rc = distro_new(bench->form, 0.999f, NULL, bench->residual, why, &distro);
    if (rc == 0) rc = distro_set_residual(distro, NULL, why);
    for (uint32_t i = 0; rc == 0 && i < bench->count; i++) {
        uint8_t *payload = malloc(payload_bytes(bench->form));
        bench->results[i] = (struct apply_result){ i, payload, payload_bytes(bench->form), false };
        rc = payload ? distro_compress(distro, bench->gradient, 1e-3f, payload, why) : FAULT_MEMORY;
        if (rc == 0) distro_adopt(distro);
    }
    distro_destroy(&distro);
    return rc;
}

static int bench_init(struct bench *bench, struct why *why)
{
    bench->total = model_parameter_count(bench->shape);
    bench->gradient = numbers(bench->total);
    bench->momentum = numbers(bench->total);
    bench->parameters = numbers(bench->total);
    for (int i = 0; i < 2; i++) bench->residual[i] = residual_new(bench->total);
    int rc = bench->gradient && bench->momentum && bench->parameters && bench->residual[0] &&
                     bench->residual[1]
                 ? 0
                 : FAULT_MEMORY;
    if (rc == 0) rc = chunks_of_model(bench->shape, 64, why, &bench->chunks);
    if (rc == 0) rc = payload_form_new(bench->chunks, 8, bench->one_bit, why, &bench->form);
    if (rc == 0) bench->payload = malloc(payload_bytes(bench->form));
    if (rc == 0 && !bench->payload) rc = FAULT_MEMORY;
    return rc == 0 ? fill_results(bench, why) : rc;
}

static void bench_free(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->count; i++) free((void *)(uintptr_t)bench->results[i].payload);
    free(bench->payload);
    free(bench->parameters);
    free(bench->momentum);
    free(bench->gradient);
    free(bench->residual[0]);
    free(bench->residual[1]);
    payload_form_destroy(&bench->form);
    chunks_destroy(&bench->chunks);
}

int main(int argc, char **argv)
{
    const long results = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
    const struct distro_kernels *kernels =
        argc > 2 ? distro_kernels_named(argv[2]) : distro_kernels_best();
    const char *model = argc > 3 ? argv[3] : "all";
    const bool one_bit = argc <= 4;
    if (results < 1 || results > RESULTS_MAX || !kernels || argc > 5 ||
        (!one_bit && strcmp(argv[4], "float") != 0)) {
        fprintf(stderr,
                "distro_bench: 1..%d results, an instruction set of this processor, a model and"
                " perhaps `float`, please\n",
                RESULTS_MAX);
        return 2;
    }
    struct why why = { "" };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof models / sizeof models[0]; i++) {
        if (strcmp(model, "all") != 0 && strcmp(model, models[i].name) != 0) continue;
        struct bench bench = { .shape = &models[i].shape,
                               .count = (uint32_t)results,
                               .one_bit = one_bit,
                               .kernels = kernels };
        rc = bench_init(&bench, &why);
        if (rc == 0)
            printf("%.2f M parameters, %s, %s: a result of %zu bytes, %.3f per 4096 parameters\n",
                   (double)bench.total * 1e-6, kernels->name, one_bit ? "one bit" : "values",
                   payload_bytes(bench.form),
                   (double)payload_bytes(bench.form) * 4096 / (double)bench.total);
        for (uint32_t threads = 1; threads <= 2 && rc == 0; threads++)
            rc = run(&bench, threads, &why);
        bench_free(&bench);
    }
    return rc < 0 ? fault_exit(rc, &why) : 0;
}
