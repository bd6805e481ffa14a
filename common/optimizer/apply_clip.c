// How much each result counts in one chunk. The limit is the lower median of the squared norms of
// those that send something: as long as liars are fewer than half of these, it is no higher than
// the square of the longest honest result.
#include "common/optimizer/apply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int apply_weights_new(uint32_t threads, uint32_t count, struct apply_weights **ret_weights)
{
    const size_t doubles = (size_t)2 * count;
    const size_t each = doubles * sizeof(double) + count * sizeof(float);
    struct apply_weights *self = malloc(threads * (sizeof *self + each));
    if (!self) return FAULT_MEMORY;
    double *numbers = (double *)(void *)(self + threads);
    float *factors = (float *)(void *)(numbers + threads * doubles);
    for (uint32_t i = 0; i < threads; i++)
        self[i] = (struct apply_weights){ .factors = factors + (size_t)i * count,
                                          .squares = numbers + i * doubles,
                                          .sorted = numbers + i * doubles + count };
    *ret_weights = self;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

// The lower median of what is above zero; 0 if nothing is. Sorts them.
static double median(double *numbers, uint32_t count)
{
    qsort(numbers, count, sizeof *numbers, by_size);
    uint32_t zeros = 0;
    while (zeros < count && numbers[zeros] == 0.0) zeros++;
    return zeros < count ? numbers[zeros + (count - zeros - 1) / 2] : 0.0;
}

void apply_weigh(const payload_form_t *form, uint32_t chunk, const struct apply_result *results,
                 uint32_t count, struct apply_weights *weights)
{
    double *squares = weights->squares;
    for (uint32_t i = 0; i < count; i++) weights->factors[i] = 1.0f;
    if (payload_one_bit(form) || count == 1) return;
    for (uint32_t i = 0; i < count; i++)
        squares[i] = payload_square_sum(form, chunk, results[i].payload);
    memcpy(weights->sorted, squares, count * sizeof *squares);
    const double limit = median(weights->sorted, count); // The square of the median norm
    for (uint32_t i = 0; i < count; i++)
        if (squares[i] > limit) weights->factors[i] = (float)sqrt(limit / squares[i]);
}
