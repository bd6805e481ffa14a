// gemm_test -- every product gives the bits of the chains of multiply-adds that gemm.h promises, on every instruction
// set that this processor has. It touches nothing behind the end of a matrix, of scratch or of what is packed.

#include "common/kernel/gemm.h"
#include "common/kernel/kernels.h"
#include "tests/test.h"
#include "tests/pages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };
static const char *const forms[] = { [GEMM_NT] = "NT", [GEMM_NN] = "NN", [GEMM_TN] = "TN" };

enum { PAD = 3 };
#if defined(__SANITIZE_ADDRESS__) // With one thread and with four: it takes a minute all the same
enum { THREADS_STEP = 3 };
#else
enum { THREADS_STEP = 1 };
#endif

static uint64_t seed = 1;

static float number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

static float *numbers(size_t count)
{
    float *x = pages_new(count * sizeof *x);
    for (size_t i = 0; i < count; i++) x[i] = number();
    return x;
}

// Scales each number by a power of two near 2^exponent; every 17th by 2^75 less.
static void scatter(float *x, size_t count, int exponent)
{
    for (size_t i = 0; i < count; i++) {
        const int spread = (int)(fabsf(number()) * 8) - 4;
        x[i] = ldexpf(x[i], exponent + spread - (i % 17 == 0 ? 75 : 0));
    }
}

// ---- the promise itself: one chain of multiply-adds per element ---------------------------------

static float element(const struct gemm *job, bool of_a, size_t i, size_t k)
{
    const float *x = of_a ? job->a : job->b;
    const size_t stride = of_a ? job->a_stride : job->b_stride;
    const bool by_row = job->form == GEMM_NT || (of_a && job->form == GEMM_NN);
    if (k >= job->k) return 0.0f;
    return by_row ? x[i * stride + k] : x[k * stride + i];
}

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }

static float rounded(float x) // To 8 significant bits
{
    int exponent;
    const float part = frexpf(flushed(x), &exponent);
    return ldexpf(nearbyintf(ldexpf(part, 8)), exponent - 8);
}

// Row i of A and column j of B, rounded, and zeros behind them.
struct factors {
    const float *a, *b;
};

static float chain_bf16(const struct gemm *job, struct factors of, float sum)
{
    for (size_t pair = 0; pair < job->k; pair += 2)
        for (size_t at = 2; at-- > 0;)
            sum = flushed(fmaf(of.a[pair + at], of.b[pair + at], flushed(sum)));
    return sum;
}

// Of up to 32 k from `first` on, every other one.
static float chain_of_step(struct factors of, size_t first)
{
    float sum = 0.0f;
    for (size_t k = first; k < first + 32; k += 2) sum = flushed(fmaf(of.a[k], of.b[k], sum));
    return sum;
}

static float chain_bf16_amx(const struct gemm *job, struct factors of, float sum)
{
    for (size_t k = 0; k < job->k; k += 32) {
        const float even = chain_of_step(of, k), odd = chain_of_step(of, k + 1);
        sum = flushed(flushed(sum) + flushed(even + odd));
    }
    return sum;
}

static float chain_float32(const struct gemm *job, size_t i, size_t j, float sum)
{
    for (size_t k = 0; k < job->k; k++)
        sum = fmaf(element(job, true, i, k), element(job, false, j, k), sum);
    return sum;
}

static float *rounded_rows(const struct gemm *job, bool of_a, size_t rows, size_t width)
{
    float *values = malloc((rows * width + 1) * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < width; k++)
            values[i * width + k] = rounded(element(job, of_a, i, k));
    return values;
}

static void chain(const struct gemm *job, float *c)
{
    const size_t width = (job->k + 32) / 32 * 32;
    float *a = rounded_rows(job, true, job->m, width);
    float *b = rounded_rows(job, false, job->n, width);
    for (size_t i = 0; i < job->m; i++) {
        for (size_t j = 0; j < job->n; j++) {
            float *to = &c[i * job->c_stride + j];
            const float sum = job->add ? *to : 0.0f;
            const struct factors of = { a + i * width, b + j * width };
            switch (job->precision) {
            case GEMM_BF16: *to = chain_bf16(job, of, sum); break;
            case GEMM_BF16_AMX: *to = chain_bf16_amx(job, of, sum); break;
            default: *to = chain_float32(job, i, j, sum);
            }
        }
    }
    free(a);
    free(b);
}

// A product whose memory has a few floats beside each row that must stay untouched.
struct fixture {
    struct gemm job;
    float *a, *b, *before, *wanted, *c;
    size_t a_count, b_count, c_count;
};

struct kind {
    enum gemm_form form;
    enum gemm_precision precision;
    bool add, tiny;
};

// Floats from the first of a matrix to its last.
static size_t extent(size_t rows, size_t columns, size_t stride)
{
    return rows && columns ? (rows - 1) * stride + columns : 0;
}

static struct fixture fixture_of(struct kind kind, uint32_t m, uint32_t n, uint32_t k)
{
    const enum gemm_form form = kind.form;
    const size_t a_stride = (form == GEMM_TN ? m : k) + PAD;
    const size_t b_stride = (form == GEMM_NT ? k : n) + PAD;
    struct fixture self = { .a_count = extent(form == GEMM_TN ? k : m, a_stride - PAD, a_stride),
                            .b_count = extent(form == GEMM_NT ? n : k, b_stride - PAD, b_stride),
                            .c_count = extent(m, n, n + PAD) };
    self.a = numbers(self.a_count);
    self.b = numbers(self.b_count);
    self.before = numbers(self.c_count);
    if (kind.tiny) {
        scatter(self.a, self.a_count, -63);
        scatter(self.b, self.b_count, -62);
        scatter(self.before, self.c_count, -126);
    }
    self.wanted = numbers(self.c_count);
    self.c = numbers(self.c_count);
    memcpy(self.wanted, self.before, self.c_count * sizeof(float));
    self.job = (struct gemm){ .form = form,
                              .precision = kind.precision,
                              .add = kind.add,
                              .m = m,
                              .n = n,
                              .k = k,
                              .a = self.a,
                              .b = self.b,
                              .c = self.c,
                              .a_stride = a_stride,
                              .b_stride = b_stride,
                              .c_stride = n + PAD };
    chain(&self.job, self.wanted);
    return self;
}

static void fixture_free(struct fixture *self)
{
    pages_free(self->a, self->a_count * sizeof(float));
    pages_free(self->b, self->b_count * sizeof(float));
    pages_free(self->before, self->c_count * sizeof(float));
    pages_free(self->wanted, self->c_count * sizeof(float));
    pages_free(self->c, self->c_count * sizeof(float));
}

static void check(struct fixture *self, const char *isa, pool_t *pool)
{
    const size_t scratch_count = gemm_scratch_count(pool_threads(pool), self->job.n, self->job.k);
    float *scratch = pages_new(scratch_count * sizeof *scratch);
    // What is not packed must not count
    for (size_t i = 0; i < scratch_count; i++) scratch[i] = (float)NAN;
    memcpy(self->c, self->before, self->c_count * sizeof(float));
    gemm_run(pool, &self->job, scratch);
    pages_free(scratch, scratch_count * sizeof *scratch);
    if (memcmp(self->c, self->wanted, self->c_count * sizeof(float)) != 0)
        fail_msg("%s %s precision=%d m=%u n=%u k=%u add=%d threads=%u differs from the chain", isa,
                 forms[self->job.form], (int)self->job.precision, self->job.m, self->job.n,
                 self->job.k, self->job.add, pool_threads(pool));
}

static void check_everywhere(struct kind kind, const uint32_t size[3], pool_t *const pools[4])
{
    struct fixture self = fixture_of(kind, size[0], size[1], size[2]);
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        if (!learn_set_isa(isas[i])) continue;
        for (uint32_t t = 0; t < 4; t += THREADS_STEP) check(&self, isas[i], pools[t]);
    }
    fixture_free(&self);
}

// Every form, precision and size, on every instruction set this processor has, with 1 to 4 threads:
// the chain's bits.
static void every_form_is_the_chain(const uint32_t (*sizes)[3], size_t count, bool tiny)
{
    pool_t *pools[4];
    for (uint32_t t = 0; t < 4; t++) assert_non_null(pools[t] = pool_new(t + 1));
    for (size_t s = 0; s < count; s++)
        for (uint32_t i = 0; i < 3 * GEMM_PRECISIONS * 2; i++)
            check_everywhere(
                (struct kind){ i % 3, i / 3 % GEMM_PRECISIONS, i >= 3 * GEMM_PRECISIONS, tiny },
                sizes[s], pools);
    for (uint32_t t = 0; t < 4; t++) pool_destroy(&pools[t]);
    assert_true(learn_set_isa("best"));
}

// b of the fixture's size is packed; the product has as many columns and as much depth, or less.
static void check_packed(struct kind kind, const uint32_t packed[3], uint32_t n, uint32_t k)
{
    struct fixture self = fixture_of(kind, packed[0], packed[1], packed[2]);
    const size_t count = gemm_packed_count(packed[1], packed[2]);
    float *to = pages_new(count * sizeof *to);
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        if (!learn_set_isa(isas[i])) continue;
        self.job.n = packed[1], self.job.k = packed[2];
        for (size_t f = 0; f < count; f++)
            to[f] = (float)NAN; // What the set before has packed must not count
        gemm_pack(&self.job, to);
        self.job.b_packed = to, self.job.packed_n = packed[1], self.job.packed_k = packed[2];
        self.job.n = n, self.job.k = k;
        memcpy(self.wanted, self.before, self.c_count * sizeof(float));
        chain(&self.job, self.wanted);
        check(&self, isas[i], NULL);
    }
    pages_free(to, count * sizeof *to);
    fixture_free(&self);
}

static void packed_floats_serve_smaller_products(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * GEMM_PRECISIONS * 2; i++) {
        const struct kind kind = { i % 3, i / 3 % GEMM_PRECISIONS, i >= 3 * GEMM_PRECISIONS,
                                   false };
        check_packed(kind, (const uint32_t[]){ 17, 101, 37 }, 101, 37);
        check_packed(kind, (const uint32_t[]){ 64, 101, 48 }, 64, 48);
        check_packed(kind, (const uint32_t[]){ 64, 48, 101 }, 48, 64);
        check_packed(kind, (const uint32_t[]){ 15, 33, 1100 }, 32, 576);
    }
    assert_true(learn_set_isa("best"));
}

static void small_sizes_are_the_chain(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = {
        { 0, 3, 3 },    { 3, 0, 3 },    { 3, 3, 0 },    { 1, 1, 1 },     { 1, 2, 3 },
        { 14, 32, 16 }, { 15, 33, 17 }, { 13, 31, 15 }, { 28, 64, 32 },  { 29, 65, 5 },
        { 6, 16, 100 }, { 7, 17, 31 },  { 4, 48, 33 },  { 100, 40, 24 }, { 71, 19, 48 },
    };
    every_form_is_the_chain(sizes, sizeof sizes / sizeof sizes[0], false);
}

static void sizes_beyond_one_block_are_the_chain(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = {
        { 9, 20, 1030 }, { 150, 35, 20 }, { 5, 2100, 7 }, { 1, 700, 1600 }, { 16, 40, 530 }
    };
    every_form_is_the_chain(sizes, sizeof sizes / sizeof sizes[0], false);
}

// Inputs, sums and results on either side of 2^-126.
static void tiny_numbers_are_the_chain(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = { { 30, 70, 41 }, { 17, 5, 1100 } };
    every_form_is_the_chain(sizes, sizeof sizes / sizeof sizes[0], true);
}

static void unknown_isas_are_refused(void **state)
{
    (void)state;
    assert_true(learn_set_isa("base"));
    assert_false(learn_set_isa("sse9"));
    assert_string_equal(kernels_chosen()->name, "base");
    assert_true(learn_set_isa("best"));
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (!learn_set_isa(isas[i])) print_message("not on this processor: %s\n", isas[i]);
    assert_true(learn_set_isa("best"));
}

TESTS(TEST(small_sizes_are_the_chain), TEST(sizes_beyond_one_block_are_the_chain),
      TEST(packed_floats_serve_smaller_products), TEST(tiny_numbers_are_the_chain),
      TEST(unknown_isas_are_refused))
