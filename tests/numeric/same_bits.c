// same_bits -- trains both models of the benchmark for a few steps on every instruction set that
// this processor has, with 1, 2, 3 and 7 threads, in both precisions, and holds the bits of all
// gradients and parameters against each other. Half an hour long: `make same-bits`.

#include "common/base/ensure.h"
#include "common/base/hash.h"
#include "common/kernel/kernels.h"
#include "common/model/model.h"
#include "common/kernel/gradient.h"
#include "tests/bench/train_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12 };

static const char *const isas[] = { "amx", "avx512bf16", "avx512", "avx2", "base" };
static const uint32_t thread_counts[] = { 1, 2, 3, 7 };

// Gradients of all steps, and the parameters after each, as one hash. Descent along the gradient:
// each of its bits matters to the next step.
static struct hash train(const struct bench_model *bench, enum gemm_precision precision,
                         uint32_t threads, int steps)
{
    const struct model_shape *shape = &bench->shape;
    const uint64_t count = model_parameter_count(shape);
    const size_t tokens_count = (size_t)bench->batch * (shape->seq_len_max + 1);
    const struct model_options options = { bench->batch, shape->seq_len_max, precision, false };
    float *params = train_numbers(count), *grad = train_numbers(count);
    uint32_t *tokens = calloc(tokens_count, sizeof *tokens);
    pool_t *pool = pool_new(threads);
    struct hash hash = { { 0 } };
    struct why why = { 0 };
    model_t *model;
    double loss, norm;
    ensure(tokens && pool);
    ensure(model_new(shape, &options, pool, &why, &model) == 0);
    for (size_t i = 0; i < tokens_count; i++) tokens[i] = (uint32_t)(i * i % 7919 % shape->vocab);
    for (int step = 0; step < steps; step++) {
        ensure(model_loss_and_grad(model, params, tokens, bench->batch, shape->seq_len_max, &why,
                                   grad, &loss) == 0);
        ensure(gradient_clip(pool, grad, count, 1.0, &why, &norm) == 0);
        for (uint64_t i = 0; i < count; i++) params[i] -= 0.1f * grad[i];
        hash = hash_of_two(hash.bytes, HASH_BYTES, grad, count * sizeof *grad);
        hash = hash_of_two(hash.bytes, HASH_BYTES, params, count * sizeof *params);
    }
    model_destroy(&model);
    pool_destroy(&pool);
    free(params);
    free(grad);
    free(tokens);
    return hash;
}

// Returns how many differ from the first.
static int compare(const struct bench_model *bench, enum gemm_precision precision, int steps,
                   size_t isas_count)
{
    struct hash first = { { 0 } };
    int differ = 0;
    char hex[HASH_HEX];
    for (size_t i = 0; i < isas_count; i++) {
        if (!learn_set_isa(isas[i])) {
            printf("%-4s %-8s %-11s not on this processor\n", bench->name,
                   gemm_precision_name(precision), isas[i]);
            continue;
        }
        const size_t counts = strcmp(isas[i], "base") == 0 ? 1 : 4;
        for (size_t t = 0; t < counts; t++) {
            const struct hash hash = train(bench, precision, thread_counts[t], steps);
            if (hash_is_none(&first)) first = hash;
            const bool same = hash_equal(&hash, &first);
            printf("%-4s %-8s %-11s %u threads  %2d steps  %.16s%s\n", bench->name,
                   gemm_precision_name(precision), isas[i], thread_counts[t], steps,
                   hash_to_hex(&hash, hex), same ? "" : "  DIFFERS");
            fflush(stdout);
            differ += !same;
        }
    }
    return differ;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : STEPS;
    int differ = 0;
    ensure(steps >= 1 && steps <= 1000);
    for (int precision = GEMM_FLOAT32; precision < GEMM_PRECISIONS; precision++) {
        for (size_t i = 0; i < sizeof models / sizeof *models; i++)
            differ += compare(&models[i], (enum gemm_precision)precision, steps, 4);
        differ += compare(&models[0], (enum gemm_precision)precision, 1, 5); // Portable C as well
    }
    printf(differ ? "%d differ\n" : "the same bits everywhere\n", differ);
    return differ != 0;
}
