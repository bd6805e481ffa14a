// audit_bench -- the cost of a recomputed result: processor time on one thread of a result, of
// making it again, and of what REVEAL adds: the hash and the digest of a residual, which author and
// auditor both compute. cost_bench measures what audits cost a whole run.

#include "common/base/ensure.h"
#include "common/model/model_tensors.h"
#include "common/optimizer/result.h"
#include "tests/bench/train_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 5 };

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

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct times {
    double result, again, hash, digest;
};

static struct times measure_once(compute_t *compute, optimizer_t *distro,
                                 const struct result_work *work, uint8_t *payload)
{
    struct why why = { 0 };
    struct hash to, digest;
    struct times times;
    double loss, norm;
    const uint64_t floats = model_parameter_count(&models[0].shape);
    double began = now_ms();
    ensure(compute_gradient(compute, work->tokens, work->count, &why, &loss) == 0);
    ensure(compute_clip(compute, work->clip, &why, &norm) == 0);
    ensure(result_make(distro, work->rate, &why, payload) == 0);
    times.result = now_ms() - began;
    result_discard(distro);
    began = now_ms();
    ensure(result_gradient_again(distro, work, &why) == 0);
    ensure(result_again(distro, work, &why, payload, &to) == 0);
    times.again = now_ms() - began;
    began = now_ms();
    to = hash_of(work->residual, floats * sizeof(float));
    times.hash = now_ms() - began;
    began = now_ms();
    ensure(apply_digest(work->residual, floats, NULL, &digest) == 0);
    times.digest = now_ms() - began;
    return times;
}

int main(void)
{
    const struct bench_model *bench = &models[0];
    struct why why = { 0 };
    struct compute_device device;
    struct layout_tensor *room = calloc(model_tensor_count(&bench->shape), sizeof *room);
    struct layout layout;
    optimizer_t *distro;
    compute_t *compute;
    double times[4][TURNS];
    const uint64_t floats = model_parameter_count(&bench->shape);
    ensure(room && model_tensors_layout(&bench->shape, room, &why, &layout) == 0);
    ensure(compute_find("cpu", &why, &device) == 0);
    const struct optimizer_place place = { &bench->shape, &layout, { 0, floats }, NULL };
    const struct optimizer_settings settings = {
        .decay = 0.999f, .keeps_former = true, .chunk = 64, .topk = 8, .one_bit = true
    };
    ensure(optimizer_new(&optimizer_distro, &place, &settings, &why, &distro) == 0);
    struct compute_config config = {
        .shape = bench->shape, .micro_batch = 4, .seq = bench->shape.seq_len_max, .trains = true
    };
    optimizer_ask(distro, &config);
    ensure(compute_new(&device, &config, &why, &compute) == 0);
    ensure(optimizer_begin(distro, compute, &why) == 0);
    float *params = train_numbers(floats), *residual = train_numbers(floats);
    const size_t count = bench->batch * ((size_t)config.seq + 1);
    uint32_t *tokens = calloc(count, sizeof *tokens);
    uint8_t *payload = malloc(payload_bytes(result_form(distro)));
    ensure(tokens && payload);
    for (size_t i = 0; i < count; i++) tokens[i] = (uint32_t)(i * i % 7919 % bench->shape.vocab);
    memcpy(compute_host(compute), params, floats * sizeof *params);
    ensure(compute_push(compute, &why) == 0);
    const struct result_work work = { .params = params,
                                      .residual = residual,
                                      .tokens = tokens,
                                      .count = bench->batch,
                                      .clip = 1.0,
                                      .rate = 1e-3f };
    for (size_t turn = 0; turn < TURNS; turn++) {
        const struct times took = measure_once(compute, distro, &work, payload);
        times[0][turn] = took.result, times[1][turn] = took.again;
        times[2][turn] = took.hash, times[3][turn] = took.digest;
    }
    printf("%s model, %u samples of %u tokens, processor time: result %.0f ms, made again %.0f ms, "
           "residual of %.1f MB: SHA-256 %.1f ms, digest %.1f ms\n",
           bench->name, bench->batch, config.seq, median(times[0], TURNS), median(times[1], TURNS),
           (double)floats * 4e-6, median(times[2], TURNS), median(times[3], TURNS));
    compute_destroy(&compute);
    optimizer_destroy(&distro);
    free(room);
    free(params), free(residual), free(tokens), free(payload);
    return 0;
}
