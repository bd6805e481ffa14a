// train_bench -- how fast the model trains, as a share of what this processor can multiply at most.
//
//     train_bench                                 both models, one thread and all; then trainers
//                                                 of one thread each, twice as many as processors,
//                                                 beside one trainer with a thread for each
//     train_bench MODEL PRECISION THREADS [STEPS] one of them: 8m|32m, float32|bf16|bf16-amx
//     train_bench --serve MODEL PRECISION THREADS says its tokens a step, kernels, operations a token
//                                                 and peak; then reads numbers of steps, answers with
//                                                 seconds
//
// A step is loss, gradient and clipping of 2048 tokens, and after it AdamW's update where it says
// so: always with --serve. Arithmetic is counted as 6 operations a token and matrix parameter, and
// 6 * layers * (seq + 1) * heads' width a token for attention, which is causal: a token sees (seq + 1) / 2
// others on average. The peak is
// that of independent multiply-adds in registers, in the same run on the same threads: of float32,
// or of bf16 pairs or AMX tiles where the processor has them and is quicker with them. The share of it is taken
// by processor time, so that neighbours on the machine do not count; tokens a second are by the
// clock on the wall.

#include "common/base/ensure.h"
#include "common/kernel/kernels.h"
#include "common/model/model.h"
#include "common/model/model_tensors.h"
#include "common/optimizer/adamw.h"
#include "common/kernel/gradient.h"
#include "tests/bench/train_models.h"

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHAINS = 24,      // Registers that AVX-512 has for them
    CHAINS_AVX2 = 12, // It has sixteen in all: more chains lie in memory, and take twice as long
    PEAK_TURNS = 1 << 20,
    TILE_TURNS = 1 << 18,
    PEAK_REPEATS = 5,
    STEPS = 8,
    TURNS = 5,
    TURN_S = 4,
    TENSORS_MAX = 128
};

static double clock_of(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds(void) { return clock_of(CLOCK_MONOTONIC); }
static double processor_seconds(void) { return clock_of(CLOCK_PROCESS_CPUTIME_ID); }

// ---- the peak -----------------------------------------------------------------------------------

// Many chains at a time, each as long as the loop: their latency is hidden.
static volatile float sink;

#define CHAINS_OF(name, count, isa, type, all, step, first_lane)                                   \
    __attribute__((target(isa))) static void name(void)                                            \
    {                                                                                              \
        type sums[count], rest;                                                                    \
        _Pragma("GCC unroll 24") for (int i = 0; i < count; i++) sums[i] =                         \
            all(1.0f + (float)i * 1e-6f);                                                          \
        const type a = all(0.9999f), b = all(1e-7f);                                               \
        for (int turn = 0; turn < PEAK_TURNS; turn++) {                                            \
            _Pragma("GCC unroll 24") for (int i = 0; i < count; i++) sums[i] = step;               \
            __asm__ volatile("" : "+v"(sums[0]));                                                  \
        }                                                                                          \
        rest = sums[0];                                                                            \
        _Pragma("GCC unroll 24") for (int i = 1; i < count; i++) rest += sums[i];                  \
        sink = first_lane(rest);                                                                   \
    }

CHAINS_OF(chains_bf16, CHAINS, "avx512f,avx512bf16", __m512, _mm512_set1_ps,
          _mm512_dpbf16_ps(sums[i], (__m512bh)a, (__m512bh)b), _mm512_cvtss_f32)
CHAINS_OF(chains_avx512, CHAINS, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps(sums[i], a, b),
          _mm512_cvtss_f32)
CHAINS_OF(chains_avx2, CHAINS_AVX2, "avx2,fma", __m256, _mm256_set1_ps,
          _mm256_fmadd_ps(sums[i], a, b), _mm256_cvtss_f32)

__attribute__((target("amx-tile,amx-bf16"))) static void tiles_amx(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } whole = { 1, 0, { 0 }, { 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16 } };
    _tile_loadconfig(&whole);
    _tile_zero(4);
    _tile_zero(5);
    for (int turn = 0; turn < TILE_TURNS; turn++) {
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_release();
}

struct peak {
    void (*run)(void);
    double operations;
};

static struct peak peak_of(enum gemm_precision precision)
{
    const double steps = (double)PEAK_TURNS * CHAINS, fewer = (double)PEAK_TURNS * CHAINS_AVX2;
    if (precision == GEMM_BF16_AMX && learn_set_isa("amx"))
        return (struct peak){ tiles_amx, TILE_TURNS * 4.0 * 16 * 16 * 32 * 2 };
    if (precision == GEMM_BF16 && __builtin_cpu_supports("avx512bf16"))
        return (struct peak){ chains_bf16, steps * 64 };
    if (__builtin_cpu_supports("avx512f")) return (struct peak){ chains_avx512, steps * 32 };
    return (struct peak){ chains_avx2, fewer * 16 };
}

struct peak_run {
    struct peak peak;
    double took[POOL_THREADS_MAX]; // Of each task, in seconds of its thread's processor time
};

static void peak_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    struct peak_run *self = arg;
    const double began = clock_of(CLOCK_THREAD_CPUTIME_ID);
    self->peak.run();
    self->took[task] = clock_of(CLOCK_THREAD_CPUTIME_ID) - began;
}

// Operations a second of a thread's processor time, when all threads are at it; the best of a few.
static double peak_rate(pool_t *pool, enum gemm_precision precision)
{
    struct peak_run run = { .peak = peak_of(precision) };
    double best = 1e9;
    for (int i = 0; i < PEAK_REPEATS; i++) {
        pool_run(pool, pool_threads(pool), peak_task, &run);
        double took = 0;
        for (uint32_t task = 0; task < pool_threads(pool); task++) took += run.took[task];
        if (took < best) best = took;
    }
    return (double)pool_threads(pool) * run.peak.operations / best;
}

// ---- a trainer ----------------------------------------------------------------------------------

struct trainer {
    const struct bench_model *bench;
    pool_t *pool;
    model_t *model;
    struct layout_tensor tensors[TENSORS_MAX];
    struct layout layout;
    struct adamw adamw;
    uint64_t count;
    float *params, *grad;
    uint32_t *tokens;
};

static struct trainer *trainer_new(const struct bench_model *bench, enum gemm_precision precision,
                                   uint32_t threads)
{
    struct why why = { 0 };
    const struct model_shape *shape = &bench->shape;
    const struct model_options options = { bench->batch, shape->seq_len_max, precision, false };
    const size_t tokens = (size_t)bench->batch * (shape->seq_len_max + 1);
    struct trainer *self = calloc(1, sizeof *self);
    ensure(self && model_tensor_count(shape) <= TENSORS_MAX);
    self->bench = bench;
    self->count = model_parameter_count(shape);
    self->pool = pool_new(threads);
    ensure(self->pool && model_new(shape, &options, self->pool, &why, &self->model) == 0);
    ensure(model_tensors_layout(shape, self->tensors, &why, &self->layout) == 0);
    self->adamw = (struct adamw){ .options = { 0.9, 0.95, 1e-8, 0.1 },
                                  .layout = &self->layout,
                                  .at = { 0, self->count },
                                  .pool = self->pool,
                                  .m = train_numbers(self->count),
                                  .v = train_numbers(self->count) };
    memset(self->adamw.m, 0, self->count * sizeof *self->adamw.m);
    memset(self->adamw.v, 0, self->count * sizeof *self->adamw.v);
    self->params = train_numbers(self->count);
    self->grad = train_numbers(self->count);
    self->tokens = calloc(tokens, sizeof *self->tokens);
    ensure(self->tokens);
    for (size_t i = 0; i < tokens; i++) self->tokens[i] = (uint32_t)(i * 7919 % shape->vocab);
    return self;
}

static void trainer_destroy(struct trainer *self)
{
    free(self->adamw.m);
    free(self->adamw.v);
    model_destroy(&self->model);
    pool_destroy(&self->pool);
    free(self->params);
    free(self->grad);
    free(self->tokens);
    free(self);
}

static void train(struct trainer *self, uint32_t steps, bool updates)
{
    struct why why = { 0 };
    double loss, norm;
    for (uint32_t i = 0; i < steps; i++) {
        ensure(model_loss_and_grad(self->model, self->params, self->tokens, self->bench->batch,
                                   self->bench->shape.seq_len_max, &why, self->grad, &loss) == 0);
        ensure(gradient_clip(self->pool, self->grad, self->count, 1.0, &why, &norm) == 0);
        if (updates) adamw_step(&self->adamw, self->grad, 1e-5f, self->params);
    }
}

static double step_tokens(const struct bench_model *bench)
{
    return (double)bench->batch * bench->shape.seq_len_max;
}

static double operations_per_token(const struct model_shape *shape)
{
    const double heads = (double)shape->heads * shape->head_dim;
    const double kv = (double)shape->kv_heads * shape->head_dim;
    const double layer =
        shape->dim * (2 * heads + 2 * kv) + 3.0 * (double)shape->dim * (double)shape->ffn;
    const double matrices = shape->layers * layer + (double)shape->vocab * shape->dim;
    return 6 * matrices + 6.0 * shape->layers * (shape->seq_len_max + 1.0) * heads;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

struct step_times {
    double wall, processor;
};

// Medians over `steps` steps, in seconds.
static struct step_times time_steps(struct trainer *trainer, uint32_t steps, bool updates)
{
    double *wall = calloc(2 * (size_t)steps, sizeof *wall), *processor = wall + steps;
    ensure(wall);
    for (uint32_t i = 0; i < steps; i++) {
        wall[i] = seconds(), processor[i] = processor_seconds();
        train(trainer, 1, updates);
        wall[i] = seconds() - wall[i], processor[i] = processor_seconds() - processor[i];
    }
    const struct step_times times = { median(wall, steps), median(processor, steps) };
    free(wall);
    return times;
}

// Pairs can be the slower way.
static double best_peak(pool_t *pool, enum gemm_precision precision)
{
    const double plain = peak_rate(pool, GEMM_FLOAT32), pairs = peak_rate(pool, precision);
    return pairs > plain ? pairs : plain;
}

static void measure(const struct bench_model *bench, enum gemm_precision precision,
                    uint32_t threads, uint32_t steps)
{
    struct trainer *trainer = trainer_new(bench, precision, threads);
    train(trainer, 2, false);
    const double peak = best_peak(trainer->pool, precision);
    const struct step_times bare = time_steps(trainer, steps, false);
    const struct step_times whole = time_steps(trainer, steps, true);
    const double tokens = step_tokens(bench);
    const double operations = tokens * operations_per_token(&bench->shape);
    printf("%-4s %-8s %2u threads  %9.0f tokens/s  %9.0f per processor second and thread, "
           "%5.1f %% of %.0f GFLOP/s  (with AdamW %.0f tokens/s, %.1f %%)\n",
           bench->name, gemm_precision_name(precision), threads, tokens / bare.wall,
           tokens / bare.processor, 100 * operations / bare.processor / peak, peak * 1e-9,
           tokens / whole.wall, 100 * operations / whole.processor / peak);
    fflush(stdout);
    trainer_destroy(trainer);
}

// ---- several on one machine ---------------------------------------------------------------------

static void exchange(int fd, bool write_it, void *bytes, size_t count)
{
    ensure((write_it ? write(fd, bytes, count) : read(fd, bytes, count)) == (ssize_t)count);
}

static _Noreturn void train_for_a_turn(const struct bench_model *bench, uint32_t threads, int start,
                                       int result)
{
    struct trainer *trainer = trainer_new(bench, GEMM_BF16, threads);
    double rate = 0;
    char byte = 0;
    train(trainer, 1, false);
    exchange(result, true, &byte, 1);
    exchange(start, false, &byte, 1);
    const double began = seconds();
    for (uint32_t steps = 1; seconds() - began < TURN_S; steps++) {
        train(trainer, 1, false);
        rate = steps * step_tokens(bench) / (seconds() - began);
    }
    exchange(result, true, &rate, sizeof rate);
    _exit(0);
}

// Tokens a second of `processes` that train at the same time, together.
static double rate_of(const struct bench_model *bench, uint32_t processes, uint32_t threads)
{
    int start[2], result[2];
    double sum = 0, rate;
    char bytes[256] = { 0 };
    ensure(processes <= sizeof bytes && pipe(start) == 0 && pipe(result) == 0);
    fflush(stdout);
    for (uint32_t i = 0; i < processes; i++) {
        const pid_t pid = fork();
        ensure(pid >= 0);
        if (pid == 0) train_for_a_turn(bench, threads, start[0], result[1]);
    }
    for (uint32_t i = 0; i < processes; i++) exchange(result[0], false, bytes, 1);
    exchange(start[1], true, bytes, processes);
    for (uint32_t i = 0; i < processes; i++) {
        exchange(result[0], false, &rate, sizeof rate);
        sum += rate;
    }
    while (wait(NULL) > 0) {
    }
    for (int i = 0; i < 2; i++) close(start[i]), close(result[i]);
    return sum;
}

static void measure_together(const struct bench_model *bench, uint32_t processors)
{
    double alone[TURNS], together[TURNS];
    for (int i = 0; i < TURNS; i++) {
        alone[i] = rate_of(bench, 1, processors);
        together[i] = rate_of(bench, 2 * processors, 1);
    }
    printf("%-4s bf16     %u trainers of one thread together %.0f tokens/s, %.1f %% of the %.0f of "
           "one with %u threads (medians of %d turns)\n",
           bench->name, 2 * processors, median(together, TURNS),
           100 * median(together, TURNS) / median(alone, TURNS), median(alone, TURNS), processors,
           TURNS);
    fflush(stdout);
}

static void serve(const struct bench_model *bench, enum gemm_precision precision, uint32_t threads)
{
    struct trainer *trainer = trainer_new(bench, precision, threads);
    unsigned steps;
    train(trainer, 1, true);
    printf("%.0f %s %.0f %.0f\n", step_tokens(bench), kernels_chosen()->name,
           operations_per_token(&bench->shape), best_peak(trainer->pool, precision));
    fflush(stdout);
    while (scanf("%u", &steps) == 1) {
        const double began = seconds();
        train(trainer, steps, true);
        printf("%.6f\n", seconds() - began);
        fflush(stdout);
    }
    trainer_destroy(trainer);
}

// ---- command line -------------------------------------------------------------------------------

static int usage(void)
{
    fprintf(stderr, "usage: train_bench [[--serve] 8m|32m float32|bf16|bf16-amx THREADS "
                    "[STEPS]]\n");
    return 64;
}

static int run_one(char **argv, int argc, bool serves)
{
    const struct bench_model *bench = NULL;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(argv[0], models[i].name) == 0) bench = &models[i];
    int precision = 0;
    while (precision < GEMM_PRECISIONS &&
           strcmp(argv[1], gemm_precision_name((enum gemm_precision)precision)) != 0)
        precision++;
    const long threads = strtol(argv[2], NULL, 10);
    const long steps = argc > 3 ? strtol(argv[3], NULL, 10) : STEPS;
    if (!bench || precision == GEMM_PRECISIONS || threads < 1 || threads > POOL_THREADS_MAX ||
        steps < 1 || steps > 10000)
        return usage();
    if (serves) serve(bench, (enum gemm_precision)precision, (uint32_t)threads);
    else measure(bench, (enum gemm_precision)precision, (uint32_t)threads, (uint32_t)steps);
    return 0;
}

int main(int argc, char **argv)
{
    const bool serves = argc > 1 && strcmp(argv[1], "--serve") == 0;
    if (argc > 1)
        return argc - serves < 4 ? usage() : run_one(argv + 1 + serves, argc - 1 - serves, serves);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t processors = online < POOL_THREADS_MAX ? (uint32_t)online : POOL_THREADS_MAX;
    printf("kernels %s\n", kernels_chosen()->name);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        for (int precision = GEMM_FLOAT32; precision < GEMM_PRECISIONS; precision++) {
            measure(&models[i], (enum gemm_precision)precision, 1, STEPS);
            if (processors > 1)
                measure(&models[i], (enum gemm_precision)precision, processors, STEPS);
        }
    }
    measure_together(&models[0], processors);
    return 0;
}
