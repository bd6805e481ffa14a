// distro_test -- a member's results are those of the paper, the same bytes everywhere, and a
// residual goes on.

#include "tests/unit/distro_fixture.h"
#include "tests/test.h"

#include "common/crypto/merkle.h"
#include "common/optimizer/distro.h"
#include "common/optimizer/distro_kernels.h"
#include "tests/unit/dct_definition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bench { // One member, and where it writes
    chunks_t *chunks;
    payload_form_t *form;
    distro_t *distro;
    uint8_t *payload;
    float gradient[FIXTURE_TOTAL];
    _Alignas(
        64) float residual[2][(FIXTURE_TOTAL + 15) / 16 * 16]; // Whole vectors, as a device has
};

static struct bench *bench_new(uint32_t limit, uint32_t top_k, bool one_bit, float decay,
                               pool_t *pool)
{
    struct bench *self = aligned_alloc(64, sizeof *self);
    assert_non_null(self);
    memset(self, 0, sizeof *self);
    self->chunks = fixture_chunks(limit);
    self->form = fixture_form(self->chunks, top_k, one_bit);
    float *const residual[2] = { self->residual[0], self->residual[1] };
    assert_int_equal(distro_new(self->form, decay, pool, residual, NULL, &self->distro), 0);
    self->payload = malloc(payload_bytes(self->form));
    assert_non_null(self->payload);
    return self;
}

static void bench_destroy(struct bench *self)
{
    distro_destroy(&self->distro);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    free(self->payload);
    free(self);
}

static const float *residual_of(const struct bench *self)
{
    return self->residual[distro_adopted(self->distro)];
}

static void draw_gradient(struct bench *self, uint64_t seed)
{
    for (uint32_t i = 0; i < FIXTURE_TOTAL; i++) self->gradient[i] = fixture_float(&seed);
}

static struct hash compress(struct bench *self, float rate)
{
    assert_int_equal(distro_compress(self->distro, self->gradient, rate, self->payload, NULL), 0);
    assert_int_equal(payload_check(self->form, self->payload, payload_bytes(self->form), NULL), 0);
    return hash_of(self->payload, payload_bytes(self->form));
}

// The algorithm as the paper writes it, chunk by chunk, over three results that are all adopted.
static void results_are_those_of_the_paper(void **state)
{
    (void)state;
    struct bench *self = bench_new(32, 5, false, 0.9f, NULL);
    float *residual = calloc(FIXTURE_TOTAL, sizeof *residual);
    for (uint64_t step = 0; step < 3; step++) {
        draw_gradient(self, 31 + step);
        compress(self, 0.25f);
        distro_adopt(self->distro);
        for (uint32_t c = 0; c < chunks_count(self->chunks); c++) {
            const struct chunk chunk = chunks_at(self->chunks, c);
            const uint32_t height = chunk.part->row_dct->side, width = chunk.part->column_dct->side;
            static float x[1024], y[1024];
            for (uint32_t i = 0; i < height * width; i++)
                x[i] = self->gradient[chunk.at + i / width * chunk.part->columns + i % width];
            dct_encode(chunk.part->row_dct, chunk.part->column_dct, x, y);
            float *delta = residual + chunk.coefficients;
            for (uint32_t i = 0; i < height * width; i++)
                delta[i] = 0.9f * delta[i] + 0.25f * y[i % height * width + i / height];
            uint16_t numbers[5];
            float values[5], least = INFINITY;
            const uint32_t count = payload_read(self->form, c, self->payload, numbers, values);
            assert_int_equal(count, payload_top_k(self->form, c));
            for (uint32_t i = 0; i < count; i++) {
                assert_true(fabsf(values[i] - delta[numbers[i]]) < 2e-6f);
                least = fminf(least, fabsf(values[i]));
                delta[numbers[i]] = 0.0f;
            }
            for (uint32_t i = 0; i < height * width; i++) {
                assert_true(fabsf(delta[i]) <=
                            least + 2e-6f); // What is kept is smaller than what is sent
                assert_true(fabsf(delta[i] - residual_of(self)[chunk.coefficients + i]) < 2e-6f);
            }
        }
    }
    free(residual);
    bench_destroy(self);
}

static void a_batch_dealt_again_gives_the_same_bytes(void **state)
{
    (void)state;
    struct bench *self = bench_new(32, 8, true, 0.9f, NULL);
    draw_gradient(self, 41);
    compress(self, 0.5f);
    distro_adopt(self->distro);
    draw_gradient(self, 42);
    const struct hash begun = distro_residual_hash(self->distro), first = compress(self, 0.5f);
    const struct hash led = distro_candidate_hash(self->distro);

    distro_discard(self->distro); // Not committed: dealt again
    const struct hash again = compress(self, 0.5f), led_again = distro_candidate_hash(self->distro);
    assert_true(hash_equal(&first, &again) && hash_equal(&led, &led_again));
    const struct hash unmoved = distro_residual_hash(self->distro);
    assert_true(hash_equal(&begun, &unmoved));

    const struct hash third = compress(self, 0.5f); // Without a word in between
    assert_true(hash_equal(&first, &third));

    distro_adopt(self->distro); // Committed at last
    const struct hash moved = distro_residual_hash(self->distro);
    assert_true(hash_equal(&led, &moved) && !hash_equal(&begun, &moved));
    const struct hash next = compress(self, 0.5f);
    assert_false(hash_equal(&first, &next));
    bench_destroy(self);
}

static void the_first_residual_is_a_declared_zero(void **state)
{
    (void)state;
    struct bench *self = bench_new(64, 8, true, 0.9f, NULL);
    static const float zero[FIXTURE_TOTAL];
    const struct hash declared = digest_of(zero, FIXTURE_TOTAL),
                      first = distro_residual_hash(self->distro);
    assert_true(hash_equal(&declared, &first));
    draw_gradient(self, 43);
    compress(self, 1.0f);
    distro_adopt(self->distro);
    const struct hash later = distro_residual_hash(self->distro);
    const struct hash computed = digest_of(residual_of(self), FIXTURE_TOTAL);
    assert_true(hash_equal(&later, &computed) && !hash_equal(&later, &first));
    assert_int_equal(distro_set_residual(self->distro, NULL, NULL), 0); // Lost: zero again
    const struct hash reset = distro_residual_hash(self->distro);
    assert_true(hash_equal(&declared, &reset));
    bench_destroy(self);
}

// A hash that was asked for belongs to that candidate, and not to the one that replaces it.
static void another_candidate_has_another_hash(void **state)
{
    (void)state;
    struct bench *self = bench_new(64, 8, true, 0.9f, NULL);
    struct hash seen[3];
    for (uint64_t i = 0; i < 3; i++) {
        draw_gradient(self, 46 + i);
        compress(self, 1.0f);
        seen[i] = distro_candidate_hash(self->distro);
        if (i == 1) distro_adopt(self->distro);
        const struct hash adopted = distro_residual_hash(self->distro);
        const struct hash computed = digest_of(residual_of(self), FIXTURE_TOTAL);
        assert_true(hash_equal(&adopted, &computed));
        assert_true(i != 1 || hash_equal(&adopted, &seen[1]));
    }
    assert_false(hash_equal(&seen[0], &seen[1]) || hash_equal(&seen[1], &seen[2]));
    bench_destroy(self);
}

// A loader writes into the adopted residual and calls distro_changed.
static void a_changed_residual_has_another_hash_and_no_candidate(void **state)
{
    (void)state;
    struct bench *self = bench_new(32, 8, true, 0.9f, NULL);
    draw_gradient(self, 45);
    compress(self, 1.0f);
    distro_adopt(self->distro);
    assert_int_equal(distro_adopted(self->distro), 1);
    compress(self, 1.0f);
    const struct hash before = distro_residual_hash(self->distro);
    self->residual[1][9] += 1.0f;
    distro_changed(self->distro);
    const struct hash after = distro_residual_hash(self->distro),
                      computed = digest_of(self->residual[1], FIXTURE_TOTAL);
    assert_true(hash_equal(&after, &computed) && !hash_equal(&after, &before));
    bench_destroy(self);
}

static void a_saved_residual_goes_on_where_it_was(void **state)
{
    (void)state;
    struct bench *one = bench_new(32, 8, true, 0.9f, NULL),
                 *two = bench_new(32, 8, true, 0.9f, NULL);
    draw_gradient(one, 44);
    draw_gradient(two, 44);
    compress(one, 1.0f);
    distro_adopt(one->distro);
    assert_int_equal(distro_set_residual(two->distro, residual_of(one), NULL), 0);
    const struct hash a = compress(one, 1.0f), b = compress(two, 1.0f);
    assert_true(hash_equal(&a, &b));

    static float bad[FIXTURE_TOTAL];
    const struct hash before = distro_residual_hash(two->distro),
                      led = distro_candidate_hash(two->distro);
    for (int i = 0; i < 3; i++) {
        bad[77] = (float[]){ NAN, -INFINITY, DISTRO_VALUE_LIMIT }[i];
        struct why why = { "" };
        assert_int_equal(distro_set_residual(two->distro, bad, &why), FAULT_NAN);
        assert_non_null(strstr(why.text, "residual 77"));
    }
    const struct hash after = distro_residual_hash(two->distro),
                      still = distro_candidate_hash(two->distro);
    assert_true(hash_equal(&before, &after) && hash_equal(&led, &still));
    bench_destroy(one);
    bench_destroy(two);
}

// Every processor and every number of threads: the same bytes and the same candidate, five results
// long.
static void the_bytes_depend_on_nothing_else(void **state)
{
    (void)state;
    static const char *const names[] = { "avx512", "avx2", "base" };
    struct hash first[5] = { 0 }, led[5] = { 0 };
    for (uint32_t run = 0; run < 12; run++) {
        const struct distro_kernels *kernels = distro_kernels_named(names[run / 4]);
        if (!kernels) continue;
        pool_t *pool = pool_new(run % 4 + 1);
        struct bench *self = bench_new(64, 16, false, 0.999f, pool);
        distro_set_kernels(self->distro, kernels);
        for (uint64_t step = 0; step < 5; step++) {
            draw_gradient(self, 51 + step);
            const struct hash bytes = compress(self, 0.01f),
                              hash = distro_candidate_hash(self->distro);
            if (run == 0 || hash_is_none(&first[step])) first[step] = bytes, led[step] = hash;
            assert_true(hash_equal(&bytes, &first[step]) && hash_equal(&hash, &led[step]));
            distro_adopt(self->distro);
        }
        bench_destroy(self);
        pool_destroy(&pool);
    }
    char text[HASH_HEX]; // The bits themselves: another compiler must come to these
    assert_string_equal(hash_to_hex(&first[4], text),
                        "0b9e2b4c387b1bfee77404434ff31dc3e43338b8c1eba54e692102458cc82e80");
    assert_string_equal(hash_to_hex(&led[4], text),
                        "de88be48033c8dfba17f2982650e0d65e6a3d385e831b9c3492ee09c6669a961");
}

static void a_gradient_that_is_not_finite_makes_no_result(void **state)
{
    (void)state;
    const float bad[] = { NAN, INFINITY, -INFINITY, 3e38f };
    for (int i = 0; i < 4; i++) {
        struct bench *self = bench_new(32, 8, true, 0.9f, NULL);
        draw_gradient(self, 61);
        compress(self, 1.0f);
        distro_adopt(self->distro);
        const struct hash before = distro_residual_hash(self->distro);
        self->gradient[9000] = bad[i];
        struct why why = { "" };
        assert_int_equal(distro_compress(self->distro, self->gradient, 1.0f, self->payload, &why),
                         FAULT_NAN);
        assert_non_null(strstr(why.text, "no result"));
        const struct hash after = distro_residual_hash(self->distro);
        assert_true(hash_equal(&before, &after));
        bench_destroy(self);
    }
}

// An untouched chunk sends nothing: one bit could only say +1 or -1.
static void what_is_zero_is_not_sent(void **state)
{
    (void)state;
    struct bench *self = bench_new(32, 8, true, 0.9f, NULL);
    self->gradient[200] = 1.0f; // In the second tensor's first chunk
    compress(self, 1.0f);
    uint32_t live = 0;
    for (uint32_t c = 0; c < chunks_count(self->chunks); c++) {
        uint16_t numbers[8];
        float values[8];
        live += payload_read(self->form, c, self->payload, numbers, values) > 0;
    }
    assert_int_equal(live, 1);
    bench_destroy(self);
}

static void holes_play_no_part(void **state)
{
    (void)state;
    struct bench *self = bench_new(32, 8, true, 0.9f, NULL);
    draw_gradient(self, 62);
    const struct hash before = compress(self, 1.0f), led = distro_candidate_hash(self->distro);
    for (uint32_t i = FIXTURE_HOLE; i < FIXTURE_HOLE_END; i++) self->gradient[i] = NAN;
    const struct hash after = compress(self, 1.0f), led_after = distro_candidate_hash(self->distro);
    assert_true(hash_equal(&before, &after) && hash_equal(&led, &led_after));
    bench_destroy(self);
}

static void a_decay_out_of_range_is_refused(void **state)
{
    (void)state;
    const float wrong[] = { 1.0f, -0.1f, NAN, INFINITY };
    chunks_t *chunks = fixture_chunks(32);
    payload_form_t *form = fixture_form(chunks, 8, true);
    float *const nothing[2] = { NULL };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct why why = { "" };
        distro_t *distro = NULL;
        assert_int_equal(distro_new(form, wrong[i], NULL, nothing, &why, &distro), FAULT_RANGE);
        assert_null(distro);
        assert_non_null(strstr(why.text, "it must be"));
    }
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

TESTS(TEST(results_are_those_of_the_paper), TEST(a_batch_dealt_again_gives_the_same_bytes),
      TEST(the_first_residual_is_a_declared_zero), TEST(another_candidate_has_another_hash),
      TEST(a_changed_residual_has_another_hash_and_no_candidate),
      TEST(a_saved_residual_goes_on_where_it_was), TEST(the_bytes_depend_on_nothing_else),
      TEST(a_gradient_that_is_not_finite_makes_no_result), TEST(what_is_zero_is_not_sent),
      TEST(holes_play_no_part), TEST(a_decay_out_of_range_is_refused))
