#include "common/learn/gemm.h"
#include "common/learn/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const isas[] = { "base", "avx2", "avx512" };
static const char *const forms[] = { [GEMM_NT] = "NT", [GEMM_NN] = "NN", [GEMM_TN] = "TN" };

enum { PAD = 3, GUARD = 12345 };

static uint64_t seed = 1;

static float number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

static float *numbers(size_t count)
{
    float *x = malloc((count + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = number();
    return x;
}

// The promise itself: one chain of fmaf per element.
static void chain(const struct gemm *job, float *c)
{
    for (size_t i = 0; i < job->m; i++) {
        for (size_t j = 0; j < job->n; j++) {
            float sum = job->add ? c[i * job->c_stride + j] : 0.0f;
            for (size_t k = 0; k < job->k; k++) {
                const float a = job->form == GEMM_TN ? job->a[k * job->a_stride + i]
                                                    : job->a[i * job->a_stride + k];
                const float b = job->form == GEMM_NT ? job->b[j * job->b_stride + k]
                                                    : job->b[k * job->b_stride + j];
                sum = fmaf(a, b, sum);
            }
            c[i * job->c_stride + j] = sum;
        }
    }
}

// A product whose memory has a few floats beside each row that nobody may touch.
struct fixture { struct gemm job; float *a, *b, *before, *wanted, *c; size_t c_count; };

static struct fixture fixture_of(enum gemm_form form, bool add, uint32_t m, uint32_t n, uint32_t k)
{
    const size_t a_stride = (form == GEMM_TN ? m : k) + PAD;
    const size_t b_stride = (form == GEMM_NT ? k : n) + PAD;
    struct fixture self = { .c_count = (size_t)m * (n + PAD) };
    self.a = numbers((form == GEMM_TN ? k : m) * a_stride);
    self.b = numbers((form == GEMM_NT ? n : k) * b_stride);
    self.before = numbers(self.c_count);
    self.wanted = malloc((self.c_count + 1) * sizeof(float));
    self.c = malloc((self.c_count + 1) * sizeof(float));
    memcpy(self.wanted, self.before, self.c_count * sizeof(float));
    self.job = (struct gemm){ .form = form, .add = add, .m = m, .n = n, .k = k, .a = self.a,
                              .b = self.b, .c = self.c, .a_stride = a_stride, .b_stride = b_stride,
                              .c_stride = n + PAD };
    chain(&self.job, self.wanted);
    return self;
}

static void fixture_free(struct fixture *self)
{
    free(self->a);
    free(self->b);
    free(self->before);
    free(self->wanted);
    free(self->c);
}

static void check(struct fixture *self, const char *isa, pool_t *pool)
{
    const size_t scratch_count = gemm_scratch_count(pool_threads(pool), self->job.n, self->job.k);
    float *scratch = malloc((scratch_count + 1) * sizeof *scratch);
    // What is not packed must not count
    for (size_t i = 0; i <= scratch_count; i++) scratch[i] = (float)NAN;
    scratch[scratch_count] = GUARD;
    memcpy(self->c, self->before, self->c_count * sizeof(float));
    gemm_run(pool, &self->job, scratch);
    assert_true(scratch[scratch_count] == GUARD);
    free(scratch);
    if (memcmp(self->c, self->wanted, self->c_count * sizeof(float)) != 0)
        fail_msg("%s %s m=%u n=%u k=%u add=%d threads=%u differs from the chain", isa,
                 forms[self->job.form], self->job.m, self->job.n, self->job.k, self->job.add,
                 pool_threads(pool));
}

// Every form and size, on every instruction set this processor has, with 1 to 4 threads: the
// chain's bits.
static void every_form_is_the_chain(const uint32_t (*sizes)[3], size_t count)
{
    pool_t *pools[4];
    for (uint32_t t = 0; t < 4; t++) assert_non_null(pools[t] = pool_new(t + 1));
    for (size_t s = 0; s < count; s++) {
        for (enum gemm_form form = GEMM_NT; form <= GEMM_TN; form++) {
            for (int add = 0; add <= 1; add++) {
                struct fixture self = fixture_of(form, add, sizes[s][0], sizes[s][1], sizes[s][2]);
                for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
                    if (!learn_set_isa(isas[i])) continue;
                    for (uint32_t t = 0; t < 4; t++) check(&self, isas[i], pools[t]);
                }
                fixture_free(&self);
            }
        }
    }
    for (uint32_t t = 0; t < 4; t++) pool_destroy(&pools[t]);
    assert_true(learn_set_isa("best"));
}

static void small_sizes_are_the_chain(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = {
        { 0, 3, 3 }, { 3, 0, 3 }, { 3, 3, 0 }, { 1, 1, 1 }, { 1, 2, 3 }, { 14, 32, 16 },
        { 15, 33, 17 }, { 13, 31, 15 }, { 28, 64, 32 }, { 29, 65, 5 }, { 6, 16, 100 },
        { 7, 17, 31 }, { 4, 48, 33 }, { 100, 40, 24 }, { 71, 19, 48 },
    };
    every_form_is_the_chain(sizes, sizeof sizes / sizeof sizes[0]);
}

static void sizes_beyond_one_block_are_the_chain(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = { { 9, 20, 1030 }, { 150, 35, 20 }, { 5, 2100, 7 } };
    every_form_is_the_chain(sizes, sizeof sizes / sizeof sizes[0]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_sizes_are_the_chain),
        cmocka_unit_test(sizes_beyond_one_block_are_the_chain),
        cmocka_unit_test(unknown_isas_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
