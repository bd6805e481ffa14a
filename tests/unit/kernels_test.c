// kernels_test -- the functions of a kernel set other than products (gemm_test has those): for every length from 1 to 50
// they give the portable set's bits on every instruction set that this processor has, and touch nothing behind the end
// of what they are given.

#include "common/kernel/kernels.h"
#include "tests/test.h"
#include "tests/pages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS_MAX = 8, FLOATS_MAX = 1 << 14, LENGTH_MAX = 50, ROWS = 5 };

// What one call is given. Each buffer ends where a page without access begins.
static struct {
    const struct kernels *kernels;
    float *of[BUFFERS_MAX];
    size_t counts[BUFFERS_MAX];
    unsigned used;
    uint64_t seed;
} call;

// A buffer of numbers from -1 to 1, the same for every set.
static float *numbers(size_t count)
{
    float *x = pages_new(count * sizeof *x);
    assert_true(call.used < BUFFERS_MAX);
    for (size_t i = 0; i < count; i++) {
        call.seed = call.seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(call.seed >> 32) * 0x1p-31f;
    }
    call.counts[call.used] = count;
    return call.of[call.used++] = x;
}

static float *positive(size_t count)
{
    float *x = numbers(count);
    for (size_t i = 0; i < count; i++) x[i] = fabsf(x[i]) + 0.5f;
    return x;
}

// ---- the functions ------------------------------------------------------------------------------

static void norm(size_t n)
{
    const float *x = numbers(ROWS * n), *w = numbers(n);
    call.kernels->norm(ROWS, n, x, w, 1e-5f, numbers(ROWS * n), numbers(ROWS));
}

static void norm_back(size_t n)
{
    const float *dy = numbers(ROWS * n), *x = numbers(ROWS * n), *w = numbers(n);
    const float *inverse = positive(ROWS);
    call.kernels->norm_back(ROWS, n, dy, x, w, inverse, numbers(ROWS * n), numbers(n));
}

static void rope(size_t n)
{
    const size_t stride = 2 * n + 3;
    const float *cosine = numbers(ROWS * n), *sine = numbers(ROWS * n);
    call.kernels->rope(ROWS, 2 * n, numbers((ROWS - 1) * stride + 2 * n), stride, cosine, sine,
                       n % 2 == 0);
}

static void swiglu(size_t n)
{
    const float *gate_up = numbers(ROWS * 2 * n);
    call.kernels->swiglu(ROWS, n, gate_up, numbers(ROWS * n));
}

static void swiglu_back(size_t n)
{
    const float *gate_up = numbers(ROWS * 2 * n), *dy = numbers(ROWS * n);
    call.kernels->swiglu_back(ROWS, n, gate_up, dy, numbers(ROWS * 2 * n));
}

// Rows that begin in the middle of the sequence, and whose last one sees all of it.
static void softmax(size_t n)
{
    const size_t width = n + ROWS - 1, stride = width + 2;
    float *scores = numbers((ROWS - 1) * stride + width);
    call.kernels->softmax(ROWS, n - 1, width, 0.5f, scores, stride, numbers(ROWS));
}

static void softmax_back(size_t n)
{
    const size_t width = n + ROWS - 1, stride = width + 2, head = n, io = head + 1;
    const size_t extent = (ROWS - 1) * stride + width, io_extent = (ROWS - 1) * io + head;
    float *scores = numbers(extent), *d_scores = numbers(extent);
    const float *log_sum = positive(ROWS), *out = numbers(io_extent), *d_out = numbers(io_extent);
    call.kernels->softmax_back(ROWS, n - 1, width, 0.5f, scores, d_scores, stride, log_sum, out,
                               d_out, io, head);
}

static void entropy(size_t n)
{
    uint32_t targets[ROWS];
    for (uint32_t r = 0; r < ROWS; r++) targets[r] = (uint32_t)(r * 7 % n);
    float *logits = numbers(ROWS * n);
    call.kernels->entropy(ROWS, n, logits, targets, 0.25f, numbers(ROWS));
}

static void accumulate(size_t n)
{
    const float *from = numbers(n);
    call.kernels->accumulate(n, from, numbers(n));
}

static void scale(size_t n) { call.kernels->scale(n, 0.75f, numbers(n)); }

static void add_weighed(size_t n)
{
    const struct kernels_weights by = { 0.75f, 1.5f, -0.25f };
    const float *from = numbers(n);
    call.kernels->add_weighed(n, &by, from, numbers(n));
}

static void square_sum(size_t n)
{
    const double sum = call.kernels->square_sum(n, numbers(n));
    memcpy(numbers(2), &sum, sizeof sum);
}

static void project(size_t n)
{
    enum { OUTS = 7 };
    const size_t stride = n + 1;
    const float *x = numbers((ROWS - 1) * stride + n), *w = numbers((OUTS - 1) * stride + n);
    call.kernels->project(ROWS, OUTS, n, x, stride, w, stride, numbers(ROWS * OUTS), OUTS);
    call.kernels->project(1, OUTS, n, x, stride, w, stride, numbers(OUTS), OUTS);
}

static void attend(size_t n)
{
    const size_t dim = 2 * n;
    const float *q = numbers(dim), *k = numbers(n * dim), *v = numbers(n * dim);
    call.kernels->attend(n, dim, 0.5f, q, k, v, numbers(n), numbers(dim));
}

static const struct adamw_factors adamw_factors = { .keep = 0.99f,
                                                    .one_less_beta1 = 0.1f,
                                                    .beta2 = 0.95f,
                                                    .one_less_beta2 = 0.05f,
                                                    .root_factor = 2,
                                                    .eps = 1e-8f,
                                                    .step = 1e-3f,
                                                    .pull = 0.01f };

static void adamw(size_t n)
{
    const float *gradient = numbers(n);
    call.kernels->adamw(n, &adamw_factors, gradient, numbers(n), numbers(n), positive(n));
}

static void adam(size_t n)
{
    const float *gradient = numbers(n);
    call.kernels->adam(n, &adamw_factors, gradient, numbers(n), numbers(n), positive(n));
}

static void sgd(size_t n)
{
    const struct sgd_factors by = {
        .pull = 0.01f, .momentum = 0.9f, .nesterov = n % 2, .step = 1e-3f
    };
    const float *gradient = numbers(n);
    call.kernels->sgd(n, &by, gradient, numbers(n), numbers(n));
    call.kernels->sgd(n, &by, gradient, numbers(n), NULL);
}

// ---- every set, every length --------------------------------------------------------------------

static const struct {
    const char *name;
    void (*run)(size_t n);
} functions[] = {
    { "norm", norm },
    { "norm_back", norm_back },
    { "rope", rope },
    { "swiglu", swiglu },
    { "swiglu_back", swiglu_back },
    { "softmax", softmax },
    { "softmax_back", softmax_back },
    { "entropy", entropy },
    { "accumulate", accumulate },
    { "scale", scale },
    { "add_weighed", add_weighed },
    { "square_sum", square_sum },
    { "project", project },
    { "attend", attend },
    { "adamw", adamw },
    { "adam", adam },
    { "sgd", sgd },
};

// All buffers after the call, one behind the other.
static size_t run(size_t function, size_t n, float *ret_all)
{
    size_t count = 0;
    call.used = 0, call.seed = n, call.kernels = kernels_chosen();
    functions[function].run(n);
    for (unsigned i = 0; i < call.used; i++) {
        assert_true(count + call.counts[i] <= FLOATS_MAX);
        memcpy(ret_all + count, call.of[i], call.counts[i] * sizeof *ret_all);
        count += call.counts[i];
        pages_free(call.of[i], call.counts[i] * sizeof *ret_all);
    }
    return count;
}

static void every_set_gives_the_same_bits(void **state)
{
    (void)state;
    static const char *const sets[] = { "avx2", "avx512" };
    static float wanted[FLOATS_MAX], had[FLOATS_MAX];
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (size_t n = 1; n <= LENGTH_MAX; n++) {
            assert_true(learn_set_isa("base"));
            const size_t count = run(f, n, wanted);
            for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
                if (!learn_set_isa(sets[s])) continue;
                assert_int_equal(run(f, n, had), count);
                if (memcmp(had, wanted, count * sizeof *had) != 0)
                    fail_msg("%s of length %zu differs between base and %s", functions[f].name, n,
                             sets[s]);
            }
        }
    assert_true(learn_set_isa("best"));
}

TESTS(TEST(every_set_gives_the_same_bits))
