// audit_bench -- what recomputing by chance costs.
//
//   in a run   four trainers as real processes, audits off, 10 % and 25 % in turns: committed tokens
//              a second. The limit it is compared with: who audits does not train, so where each
//              trainer has a machine of its own 1 - percent/100 of the speed is left; where all
//              share one, each audit adds one trainer's work to that of the round
//   alone      processor time on one thread of a result, of making it again, and of what REVEAL adds:
//              the hash and the digest of a residual, which its author and its auditor both take

#include "common/actor/shell.h"
#include "common/ensure.h"
#include "common/learn/compute.h"
#include "tests/bench/train_models.h"
#include "tests/live/testbed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { TURNS = 5, STEPS = 60, FIRST = 8, BATCH = 96, SEQ_LEN = 32, PERCENTS = 3 };

static const unsigned percents[PERCENTS] = { 0, 10, 25 };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

// ---- in a run -------------------------------------------------------------------------------------

// Tokens a second between the commits of steps FIRST and STEPS.
static double run_once(unsigned percent)
{
    struct testbed *bed = testbed_new(&(struct testbed_options){
        .trainers = 4, .total_steps = STEPS, .epoch_rounds = 4 * STEPS, .batch = BATCH,
        .verification_percent = percent, .no_checkpointer = true, .train_s = 20, .witness_s = 20,
        .lease_s = 20, .warmup_s = 20, .cooldown_s = 20 });
    testbed_start_all(bed);
    testbed_await_step(bed, FIRST);
    const uint64_t began_ms = shell_now_ms(), first = bed->news.commits;
    testbed_await_step(bed, STEPS);
    const double seconds = (double)(shell_now_ms() - began_ms) / 1000.0;
    testbed_destroy(&bed);
    return (double)((STEPS - first) * BATCH * SEQ_LEN) / seconds;
}

static void measure_runs(void)
{
    double speeds[PERCENTS][TURNS];
    for (size_t turn = 0; turn < TURNS; turn++)
        for (size_t p = 0; p < PERCENTS; p++) speeds[p][turn] = run_once(percents[p]);
    double off = 0.0;
    for (size_t p = 0; p < PERCENTS; p++) {
        const double speed = median(speeds[p], TURNS);
        if (p == 0) off = speed;
        printf("audits %2u %%   %8.0f committed tokens/s   %5.2f of off   (%.0f to %.0f in %d turns)\n",
               percents[p], speed, speed / off, speeds[p][0], speeds[p][TURNS - 1], TURNS);
    }
}

// ---- alone ----------------------------------------------------------------------------------------

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct times { double result, again, hash, digest; };

static struct times measure_once(compute_t *compute, const struct compute_work *work, uint8_t *payload)
{
    struct why why = { 0 };
    struct hash to, digest;
    struct times times;
    double loss, norm;
    const uint64_t floats = model_parameter_count(&models[0].shape);
    double began = now_ms();
    ensure(compute_gradient(compute, work->tokens, work->count, &why, &loss) == 0);
    ensure(compute_clip(compute, work->clip, &why, &norm) == 0);
    ensure(compute_compress(compute, work->rate, &why, payload) == 0);
    times.result = now_ms() - began;
    compute_discard(compute);
    began = now_ms();
    ensure(compute_again(compute, work, &why, payload, &to) == 0);
    times.again = now_ms() - began;
    began = now_ms();
    to = hash_of(work->residual, floats * sizeof(float));
    times.hash = now_ms() - began;
    began = now_ms();
    ensure(apply_digest(work->residual, floats, NULL, &digest) == 0);
    times.digest = now_ms() - began;
    return times;
}

static void measure_alone(void)
{
    const struct bench_model *bench = &models[0];
    struct why why = { 0 };
    struct compute_device device;
    chunks_t *chunks;
    payload_form_t *form;
    compute_t *compute;
    double times[4][TURNS];
    const uint64_t floats = model_parameter_count(&bench->shape);
    ensure(chunks_of_model(&bench->shape, 64, &why, &chunks) == 0);
    ensure(payload_form_new(chunks, 8, true, &why, &form) == 0);
    ensure(compute_find("cpu", &why, &device) == 0);
    const struct compute_config config = { .shape = bench->shape, .micro_batch = 4,
                                           .seq = bench->shape.seq_len_max, .form = form,
                                           .decay = 0.999f, .trains = true };
    ensure(compute_new(&device, &config, &why, &compute) == 0);
    float *params = train_numbers(floats), *residual = train_numbers(floats);
    const size_t count = bench->batch * ((size_t)config.seq + 1);
    uint32_t *tokens = calloc(count, sizeof *tokens);
    uint8_t *payload = malloc(payload_bytes(form));
    ensure(tokens && payload);
    for (size_t i = 0; i < count; i++) tokens[i] = (uint32_t)(i * i % 7919 % bench->shape.vocab);
    memcpy(compute_host(compute), params, floats * sizeof *params);
    ensure(compute_push(compute, &why) == 0);
    const struct compute_work work = { .params = params, .residual = residual, .tokens = tokens,
                                       .count = bench->batch, .clip = 1.0, .rate = 1e-3f };
    for (size_t turn = 0; turn < TURNS; turn++) {
        const struct times took = measure_once(compute, &work, payload);
        times[0][turn] = took.result, times[1][turn] = took.again;
        times[2][turn] = took.hash, times[3][turn] = took.digest;
    }
    printf("%s model, %u samples of %u tokens, processor time: result %.0f ms, made again %.0f ms, "
           "residual of %.1f MB: SHA-256 %.1f ms, digest %.1f ms\n", bench->name, bench->batch,
           config.seq, median(times[0], TURNS), median(times[1], TURNS),
           (double)floats * 4e-6, median(times[2], TURNS), median(times[3], TURNS));
    compute_destroy(&compute);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
    free(params), free(residual), free(tokens), free(payload);
}

int main(void)
{
    measure_runs();
    measure_alone();
    return 0;
}
