// torch_golden -- a golden file of what an optimizer of torch does (tests/numeric/optimizers/make_golden.py tells its
// layout), to be followed step by step. One golden at a time.

#include "common/vector/layout.h"
#include "tests/test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

struct golden {
    FILE *file;
    struct layout_tensor room[2];
    struct layout layout; // A matrix and a vector
    uint32_t steps, moments;
    double beta1, beta2, eps, momentum, weight_decay;
    float params[256], rates[64], gradients[64][256];
    double theirs[256];
};

static struct golden golden;

static void golden_read(void *to, size_t bytes)
{
    assert_int_equal(fread(to, 1, bytes, golden.file), bytes);
}

static void golden_begin(const char *name)
{
    char path[80], magic[8];
    uint32_t sizes[5];
    double numbers[5];
    snprintf(path, sizeof path, "tests/numeric/optimizers/%s.golden", name);
    golden = (struct golden){ .file = fopen(path, "rb") };
    assert_non_null(golden.file);
    golden_read(magic, sizeof magic);
    golden_read(sizes, sizeof sizes);
    golden_read(numbers, sizeof numbers);
    assert_memory_equal(magic, "SHOALOPT", 8);
    layout_init(&golden.layout, golden.room, 2);
    assert_int_equal(layout_add_matrix(&golden.layout, "a", sizes[0], sizes[1], LAYOUT_F32, NULL),
                     0);
    assert_int_equal(layout_add_vector(&golden.layout, "b", sizes[2], LAYOUT_F32, NULL), 0);
    golden.steps = sizes[3], golden.moments = sizes[4];
    assert_true(golden.layout.total <= 256 && golden.steps <= 64);
    golden.beta1 = numbers[0], golden.beta2 = numbers[1], golden.eps = numbers[2];
    golden.momentum = numbers[3], golden.weight_decay = numbers[4];
    golden_read(golden.params, golden.layout.total * sizeof(float));
    for (uint32_t step = 0; step < golden.steps; step++) {
        golden_read(&golden.rates[step], sizeof(float));
        golden_read(golden.gradients[step], golden.layout.total * sizeof(float));
    }
}

// `apart` is for what cancels: gradients of up to 30 leave their rounding in a small first moment.
static void golden_compare(const char *what, uint32_t step, const float *ours, double apart)
{
    golden_read(golden.theirs, golden.layout.total * sizeof(double));
    for (uint64_t i = 0; i < golden.layout.total; i++) {
        const double theirs = golden.theirs[i];
        if (!(fabs((double)ours[i] - theirs) <= 2e-6 * fabs(theirs) + apart))
            fail_msg("step %u, %s %llu: %.9g, torch has %.9g", step, what, (unsigned long long)i,
                     (double)ours[i], theirs);
    }
}

static void golden_end(void) { assert_int_equal(fclose(golden.file), 0); }
