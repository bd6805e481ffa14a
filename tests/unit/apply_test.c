// apply_test -- every replica that applies a commit comes to the same bits; no result weighs more
// than its peers.

#include "tests/unit/distro_fixture.h"
#include "tests/test.h"

#include "common/crypto/merkle.h"
#include "common/optimizer/apply.h"
#include "common/optimizer/distro.h"
#include "common/optimizer/distro_kernels.h"
#include "tests/unit/dct_definition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS = 9 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COMMITS = 100 };
#else
enum { COMMITS = 1000 };
#endif

static const struct apply_step usual = { .rate = 0x1p-10f, .weight_decay = 0.1f };

struct commit { // Drawn results of one form
    chunks_t *chunks;
    payload_form_t *form;
    struct apply_result results[RESULTS];
    uint32_t count;
};

// Two in three values are +-large. Beside a value that is much larger, others vanish until its
// opposite comes: their sum shows in which order they came.
static uint8_t *drawn_payload(const payload_form_t *form, float large, uint64_t *seed)
{
    uint8_t *bytes = malloc(payload_bytes(form));
    assert_non_null(bytes);
    payload_clear(form, bytes);
    for (uint32_t chunk = 0; chunk < chunks_count(payload_chunks(form)); chunk++) {
        const uint32_t elements = chunks_at(payload_chunks(form), chunk).part->elements;
        static uint16_t numbers[PAYLOAD_TOP_K_MAX];
        static float values[PAYLOAD_TOP_K_MAX];
        const uint32_t top_k = payload_top_k(form, chunk);
        uint32_t count = 0;
        for (uint32_t i = (uint32_t)(fixture_random(seed) % 9); i < elements && count < top_k;
             i += 1 + (uint32_t)(fixture_random(seed) % 9)) {
            numbers[count] = (uint16_t)i;
            const float sign = fixture_random(seed) % 2 ? 1.0f : -1.0f;
            values[count++] =
                fixture_random(seed) % 3 ? sign * large : fixture_float(seed) + 2.0f * sign;
        }
        payload_write(form, chunk, numbers, values, count, bytes);
    }
    return bytes;
}

static struct commit commit_with(chunks_t *chunks, uint32_t top_k, bool one_bit, uint32_t count,
                                 float large, uint64_t *seed)
{
    struct commit self = { .chunks = chunks, .count = count };
    self.form = fixture_form(self.chunks, top_k, one_bit);
    for (uint32_t i = 0; i < count; i++)
        self.results[i] = (struct apply_result){ 10 * i + fixture_random(seed) % 10,
                                                 drawn_payload(self.form, large, seed),
                                                 payload_bytes(self.form), false };
    return self;
}

static struct commit commit_of(uint32_t limit, uint32_t top_k, bool one_bit, uint32_t count,
                               uint64_t *seed)
{
    return commit_with(fixture_chunks(limit), top_k, one_bit, count, 2.0f, seed);
}

// All say the same.
static struct commit commit_alike(bool one_bit, uint32_t count)
{
    struct commit self = { .chunks = fixture_chunks(32), .count = count };
    self.form = fixture_form(self.chunks, 20, one_bit);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t seed = 90;
        self.results[i] = (struct apply_result){ 10 * i, drawn_payload(self.form, 2.0f, &seed),
                                                 payload_bytes(self.form), false };
    }
    return self;
}

static void commit_free(struct commit *self)
{
    for (uint32_t i = 0; i < self->count; i++) free((void *)(uintptr_t)self->results[i].payload);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
}

// As a liar would: all that the result says times `by`; by 0 it says nothing.
static void multiply(struct commit *self, uint32_t result, float by)
{
    static uint16_t numbers[PAYLOAD_TOP_K_MAX];
    static float values[PAYLOAD_TOP_K_MAX];
    const payload_form_t *form = self->form;
    uint8_t *payload = malloc(payload_bytes(form));
    assert_non_null(payload);
    payload_clear(form, payload);
    for (uint32_t chunk = 0; by != 0.0f && chunk < chunks_count(self->chunks); chunk++) {
        const uint32_t count =
            payload_read(form, chunk, self->results[result].payload, numbers, values);
        for (uint32_t i = 0; i < count; i++) values[i] *= by;
        payload_write(form, chunk, numbers, values, count, payload);
    }
    free((void *)(uintptr_t)self->results[result].payload);
    self->results[result].payload = payload;
}

static void shuffle(struct commit *self, uint64_t *seed)
{
    for (uint32_t i = self->count; i > 1; i--) {
        const uint32_t j = (uint32_t)(fixture_random(seed) % i);
        const struct apply_result result = self->results[i - 1];
        self->results[i - 1] = self->results[j];
        self->results[j] = result;
    }
}

static void draw_parameters(float *parameters, uint64_t seed)
{
    for (uint32_t i = 0; i < FIXTURE_TOTAL; i++) parameters[i] = fixture_float(&seed);
}

static struct hash applied(const struct commit *commit, const struct apply_step *step, pool_t *pool,
                           float *parameters)
{
    struct why why = { "" };
    struct hash digest;
    if (apply_commit(commit->form, commit->results, commit->count, step, pool, parameters, &why) <
        0)
        fail_msg("%s", why.text);
    const uint64_t total = chunks_total(payload_chunks(commit->form));
    assert_int_equal(apply_digest(parameters, total, pool, &digest), 0);
    return digest;
}

enum { POOLS = 4 };

struct replicas { // The replicas: each instruction set, with some numbers of threads
    const struct distro_kernels *kernels[3];
    pool_t *pools[POOLS];
};

static struct replicas replicas_new(void)
{
    static const char *const names[] = { "avx512", "avx2", "base" };
    struct replicas self;
    for (uint32_t i = 0; i < 3; i++) self.kernels[i] = distro_kernels_named(names[i]);
    for (uint32_t i = 0; i < POOLS; i++) self.pools[i] = pool_new((uint32_t[]){ 1, 2, 3, 7 }[i]);
    return self;
}

static void replicas_free(struct replicas *self)
{
    for (uint32_t i = 0; i < POOLS; i++) pool_destroy(&self->pools[i]);
}

// Every replica gets the commit's results in another order of arrival.
static void assert_all_agree(const struct replicas *self, struct commit *commit, uint64_t *seed)
{
    const uint64_t total = chunks_total(commit->chunks);
    static float begun[FIXTURE_TOTAL], parameters[FIXTURE_TOTAL];
    draw_parameters(begun, fixture_random(seed));
    memcpy(parameters, begun, total * sizeof *begun);
    const struct hash truth = applied(commit, &usual, NULL, parameters);
    const struct hash computed = digest_of(parameters, total);
    assert_true(hash_equal(&truth, &computed));
    for (uint32_t i = 0; i < 3 * POOLS; i++) {
        const struct apply_step step = { usual.rate, usual.weight_decay, self->kernels[i / POOLS] };
        if (!step.kernels) continue;
        shuffle(commit, seed);
        memcpy(parameters, begun, total * sizeof *begun);
        const struct hash digest = applied(commit, &step, self->pools[i % POOLS], parameters);
        assert_true(hash_equal(&digest, &truth));
    }
}

// Random commits, 1000 but for sanitizers, over small tensors: whole chunks, odd ones, vectors; one bit and floats; k
// from one to all, so that both codes of a block come; a result alone up to nine; one in four is
// hostile.
static void everybody_comes_to_the_same_bits(void **state)
{
    (void)state;
    static const struct chunks_tensor tensors[] = {
        { 0, 1, 24 },    { 27, 16, 24 },  { 411, 7, 5 },
        { 446, 48, 16 }, { 1214, 3, 40 }, { 1334, 1, 1 }
    };
    struct replicas replicas = replicas_new();
    uint64_t seed = 71;
    for (uint32_t set = 0; set < COMMITS; set++) {
        chunks_t *chunks = NULL;
        const uint32_t limit = (uint32_t[]){ 3, 8, 16, 24, 48 }[fixture_random(&seed) % 5];
        const uint32_t top_k = 1 + (uint32_t)(fixture_random(&seed) % (limit * limit));
        assert_int_equal(chunks_new(tensors, 6, 1340, limit, NULL, &chunks), 0);
        struct commit commit =
            commit_with(chunks, set % 3 ? 1 + top_k % 12 : top_k, set % 2,
                        1 + (uint32_t)(fixture_random(&seed) % RESULTS), 0x1p40f, &seed);
        for (uint32_t i = 0; i < commit.count; i++)
            if (fixture_random(&seed) % 4 == 0)
                multiply(&commit, i,
                         (float[]){ -1.0f, 10.0f, -0x1p23f, 0x1p-126f,
                                    0.0f }[fixture_random(&seed) % 5]);
        assert_all_agree(&replicas, &commit, &seed);
        commit_free(&commit);
    }
    replicas_free(&replicas);
}

static void everybody_comes_to_the_same_bits_of_large_chunks(void **state)
{
    (void)state;
    struct replicas replicas = replicas_new();
    uint64_t seed = 70;
    for (uint32_t set = 0; set < 12; set++) {
        struct commit commit =
            commit_of(set % 2 ? 32 : 64, 1 + set * 5 % 40, set % 3, 1 + set % RESULTS, &seed);
        assert_all_agree(&replicas, &commit, &seed);
        commit_free(&commit);
    }
    replicas_free(&replicas);
}

// The bits themselves: they may never change, or old commits could not be applied again.
static void a_known_commit_gives_a_known_digest(void **state)
{
    (void)state;
    uint64_t seed = 72;
    static const char *const digests[2] = {
        "67f055734ab90e5c76cdcd3ba866b4a0e552f16ec9d04d0f1d777288a7938b59",
        "08ff27e33ed4d22a96f90d8644cc459948db476bb077ce43a6276a4c038a204c"
    };
    for (int one_bit = 0; one_bit < 2; one_bit++) {
        struct commit commit = commit_of(64, 32, one_bit, 4, &seed);
        static float parameters[FIXTURE_TOTAL];
        draw_parameters(parameters, 73);
        const struct hash digest = applied(&commit, &usual, NULL, parameters);
        char text[HASH_HEX];
        assert_string_equal(hash_to_hex(&digest, text), digests[one_bit]);
        commit_free(&commit);
    }
}

// The mean over those that sent a coefficient, by the definition of the transform.
static void the_step_is_the_formula(void **state)
{
    (void)state;
    uint64_t seed = 74;
    struct commit commit = commit_of(32, 20, false, 5, &seed);
    multiply(&commit, 3, -10.0f);
    struct apply_weights *weights = NULL;
    assert_int_equal(apply_weights_new(1, commit.count, &weights), 0);
    static float before[FIXTURE_TOTAL], after[FIXTURE_TOTAL];
    draw_parameters(before, 75);
    memcpy(after, before, sizeof before);
    applied(&commit, &usual, NULL, after);
    const float keep = 1.0f - usual.rate * usual.weight_decay;
    uint32_t unsure = 0;
    for (uint32_t c = 0; c < chunks_count(commit.chunks); c++) {
        const struct chunk chunk = chunks_at(commit.chunks, c);
        const uint32_t height = chunk.part->row_dct->side, width = chunk.part->column_dct->side;
        apply_weigh(commit.form, c, commit.results, commit.count, weights);
        float y[1024] = { 0 }, x[1024], hits[1024] = { 0 };
        for (uint32_t i = 0; i < commit.count; i++) {
            uint16_t numbers[20];
            float values[20];
            const uint32_t count =
                payload_read(commit.form, c, commit.results[i].payload, numbers, values);
            for (uint32_t q = 0; q < count; q++) {
                y[numbers[q] % height * width + numbers[q] / height] +=
                    weights->factors[i] * values[q];
                hits[numbers[q] % height * width + numbers[q] / height] += 1.0f;
            }
        }
        for (uint32_t i = 0; i < height * width; i++) y[i] /= fmaxf(hits[i], 1.0f);
        dct_decode(chunk.part->row_dct, chunk.part->column_dct, y, x);
        for (uint32_t i = 0; i < height * width; i++) {
            const uint64_t at = chunk.at + i / width * chunk.part->columns + i % width;
            if (fabsf(x[i]) < 1e-5f) {
                unsure++;
                continue;
            } // Rounding may decide its sign
            const float want = before[at] * keep - copysignf(usual.rate, x[i]);
            assert_true(fabsf(after[at] - want) < 2e-7f);
        }
    }
    assert_true(unsure < FIXTURE_TOTAL / 100);
    for (uint32_t i = FIXTURE_HOLE; i < FIXTURE_HOLE_END; i++) assert_true(after[i] == before[i]);
    free(weights);
    commit_free(&commit);
}

// What each result counts for, if all are alike but for these lengths; 0 is an empty one.
static void assert_factors(bool one_bit, const float lengths[], const float factors[],
                           uint32_t count)
{
    struct commit commit = commit_alike(one_bit, count);
    for (uint32_t i = 0; i < count; i++) multiply(&commit, i, lengths[i]);
    struct apply_weights *weights = NULL;
    assert_int_equal(apply_weights_new(1, count, &weights), 0);
    for (uint32_t chunk = 0; chunk < chunks_count(commit.chunks); chunk++) {
        double most = 0.0; // What is alike may be nothing here
        apply_weigh(commit.form, chunk, commit.results, count, weights);
        for (uint32_t i = 0; i < count && !one_bit; i++)
            most = fmax(most, payload_square_sum(commit.form, chunk, commit.results[i].payload));
        for (uint32_t i = 0; i < count; i++) {
            const float want = most > 0.0 ? factors[i] : 1.0f;
            if (weights->factors[i] != want)
                fail_msg("result %u of %u, chunk %u, length %g: %a, wanted %a", i, count, chunk,
                         (double)lengths[i], (double)weights->factors[i], (double)want);
        }
    }
    free(weights);
    commit_free(&commit);
}

static void nothing_is_longer_than_the_median_allows(void **state)
{
    (void)state;
    static const struct {
        float lengths[6], median;
        uint32_t count;
        bool one_bit;
    } known[] = {
        { { 3 }, 3, 1, false }, // Alone, or all equal: nothing is clipped
        { { -2, 2, 2, -2 }, 2, 4, false },
        { { 0, 0 }, 1, 2, false },
        { { 1, 16 }, 1, 2, false }, // The lower median of two is the lesser
        { { 16, 1 }, 1, 2, false },
        { { 1, 1, 1, -8 }, 1, 4, false }, // The shout counts as a voice
        { { 4, 1, 0.25, 2 }, 1, 4, false },
        { { 4, 1, 0.25, 2, 64 }, 2, 5, false },
        { { 0, 0, 0, 0, 1, 16 }, 1, 6, false }, // An empty result does not count for the length
        { { 0x1p-60f, 0x1p60f }, 0x1p-60f, 2, false },
        { { 0x1p-126f, 0x1p62f }, 0x1p-126f, 2, false }, // To nothing
        { { 1, 0, -10, 1 }, 1, 4, true },                // One bit: every value is one vote
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        float factors[6];
        for (uint32_t q = 0; q < known[i].count; q++) {
            const float length = fabsf(known[i].lengths[q]), limit = known[i].median;
            factors[q] = known[i].one_bit || length <= limit ? 1.0f : limit / length;
        }
        assert_factors(known[i].one_bit, known[i].lengths, factors, known[i].count);
    }
}

// Three say the same and one the opposite, however loudly: what they say is done, to the bit.
static void a_shout_does_not_drown_three_voices(void **state)
{
    (void)state;
    struct hash digests[3];
    for (uint32_t way = 0; way < 3; way++) {
        static float parameters[FIXTURE_TOTAL];
        struct commit commit = commit_alike(false, 4);
        if (way > 0) multiply(&commit, 3, way == 1 ? -1.0f : -0x1p60f);
        draw_parameters(parameters, 92);
        digests[way] = applied(&commit, &usual, NULL, parameters);
        commit_free(&commit);
    }
    assert_true(hash_equal(&digests[0], &digests[1]));
    assert_true(hash_equal(&digests[0], &digests[2]));
}

// Where no result has a coefficient the sign is 0; decay applies to all alike.
static void an_empty_result_only_decays(void **state)
{
    (void)state;
    uint64_t seed = 76;
    struct commit commit = commit_of(32, 8, true, 1, &seed);
    uint8_t *bytes = (uint8_t *)(uintptr_t)commit.results[0].payload;
    memset(bytes + PAYLOAD_HEADER_BYTES, 0, payload_bytes(commit.form) - PAYLOAD_HEADER_BYTES);
    static float before[FIXTURE_TOTAL], after[FIXTURE_TOTAL];
    draw_parameters(before, 77);
    memcpy(after, before, sizeof before);
    applied(&commit, &(struct apply_step){ .rate = 0.5f }, NULL, after);
    assert_memory_equal(after, before, sizeof before);
    applied(&commit, &(struct apply_step){ .rate = 0.5f, .weight_decay = 0.5f }, NULL, after);
    for (uint32_t i = 0; i < FIXTURE_TOTAL; i++)
        assert_true(after[i] == ((i >= FIXTURE_HOLE && i < FIXTURE_HOLE_END) || i >= FIXTURE_END
                                     ? before[i]
                                     : 0.75f * before[i]));
    commit_free(&commit);
}

static void the_largest_values_do_no_harm(void **state)
{
    (void)state;
    uint64_t seed = 78;
    struct commit commit = commit_of(64, 4096, false, RESULTS, &seed);
    static uint16_t numbers[4096];
    static float values[4096];
    for (uint32_t i = 0; i < commit.count; i++) {
        uint8_t *payload = (uint8_t *)(uintptr_t)commit.results[i].payload;
        payload_clear(commit.form, payload);
        for (uint32_t c = 0; c < chunks_count(commit.chunks); c++) {
            const uint32_t count = payload_top_k(commit.form, c);
            for (uint32_t q = 0; q < count; q++) {
                numbers[q] = (uint16_t)q;
                values[q] = nextafterf(DISTRO_VALUE_LIMIT, 0.0f);
            }
            payload_write(commit.form, c, numbers, values, count, payload);
        }
    }
    static float parameters[FIXTURE_TOTAL];
    draw_parameters(parameters, 79);
    applied(&commit, &usual, NULL, parameters);
    for (uint32_t i = 0; i < FIXTURE_TOTAL; i++) assert_true(fabsf(parameters[i]) <= 1.002f);
    commit_free(&commit);
}

static int refused(const struct commit *commit, uint32_t count, const struct apply_step *step,
                   const char *says)
{
    static float before[FIXTURE_TOTAL], after[FIXTURE_TOTAL];
    struct why why = { "" };
    draw_parameters(before, 80);
    memcpy(after, before, sizeof before);
    const int rc = apply_commit(commit->form, commit->results, count, step, NULL, after, &why);
    assert_memory_equal(after, before, sizeof before);
    if (!strstr(why.text, says)) fail_msg("%s", why.text);
    return rc;
}

static void a_bad_commit_changes_nothing(void **state)
{
    (void)state;
    uint64_t seed = 81;
    struct commit commit = commit_of(32, 8, false, 4, &seed);
    uint8_t *last = (uint8_t *)(uintptr_t)commit.results[3].payload;
    const size_t bytes = payload_bytes(commit.form);

    assert_int_equal(refused(&commit, 0, &usual, "0 results"), FAULT_RANGE);
    assert_int_equal(refused(&commit, APPLY_RESULTS_MAX + 1, &usual, "65537 results"), FAULT_RANGE);
    last[bytes - 1] = 0x7f, last[bytes - 2] = 0xc0; // The last value is no number
    assert_true(refused(&commit, 4, &usual, "result 3") < 0);
    assert_int_equal(refused(&commit, 4, &(struct apply_step){ .rate = NAN }, "learning rate"),
                     FAULT_RANGE);
    commit.results[3].bytes--;
    assert_int_equal(refused(&commit, 4, &usual, "result 3"), FAULT_FORMAT);
    commit.results[2].begin = commit.results[0].begin;
    assert_int_equal(refused(&commit, 3, &usual, "two results"), FAULT_RANGE);

    const struct apply_step wrong[] = { { .rate = -1.0f },
                                        { .rate = INFINITY },
                                        { .rate = 1.0f, .weight_decay = -0.1f },
                                        { .rate = 1.0f, .weight_decay = NAN },
                                        { .rate = 2.0f, .weight_decay = 0.6f } };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(refused(&commit, 2, &wrong[i], "not applied"), FAULT_RANGE);
    commit_free(&commit);
}

// The two halves together: four members, each with a noisy gradient of the same bowl, come down.
static void four_members_find_the_bottom(void **state)
{
    (void)state;
    enum { MEMBERS = 4, ROUNDS = 150 };
    uint64_t seed = 82;
    chunks_t *chunks = fixture_chunks(32);
    payload_form_t *form = fixture_form(chunks, 32, true);
    static float parameters[FIXTURE_TOTAL], target[FIXTURE_TOTAL], gradient[FIXTURE_TOTAL];
    draw_parameters(parameters, 83);
    draw_parameters(target, 84);
    memcpy(target + FIXTURE_END, parameters + FIXTURE_END,
           5 * sizeof target[0]); // What belongs to no tensor stays
    memcpy(target + FIXTURE_HOLE, parameters + FIXTURE_HOLE, 5 * sizeof target[0]);
    static float residuals[MEMBERS][2][FIXTURE_TOTAL];
    distro_t *member[MEMBERS];
    struct apply_result results[MEMBERS];
    for (uint32_t m = 0; m < MEMBERS; m++) {
        float *const residual[2] = { residuals[m][0], residuals[m][1] };
        assert_int_equal(distro_new(form, 0.9f, NULL, residual, NULL, &member[m]), 0);
        results[m] =
            (struct apply_result){ m, malloc(payload_bytes(form)), payload_bytes(form), false };
    }
    double losses[2] = { 0, 0 };
    for (uint32_t round = 0; round <= ROUNDS; round++) {
        const struct apply_step step = { .rate = 0.05f * (1.0f - (float)round / (ROUNDS + 1)) };
        double loss = 0;
        for (uint32_t i = 0; i < FIXTURE_TOTAL; i++)
            loss += (double)(parameters[i] - target[i]) * (double)(parameters[i] - target[i]);
        losses[round > 0] = loss;
        for (uint32_t m = 0; m < MEMBERS; m++) {
            for (uint32_t i = 0; i < FIXTURE_TOTAL; i++)
                gradient[i] = parameters[i] - target[i] + 0.2f * fixture_float(&seed);
            assert_int_equal(distro_compress(member[m], gradient, step.rate,
                                             (uint8_t *)(uintptr_t)results[m].payload, NULL),
                             0);
            distro_adopt(member[m]);
        }
        assert_int_equal(apply_commit(form, results, MEMBERS, &step, NULL, parameters, NULL), 0);
    }
    print_message("loss %.1f -> %.3f\n", losses[0], losses[1]);
    assert_true(losses[0] > 5000 && losses[1] < 0.02 * losses[0]);
    for (uint32_t m = 0; m < MEMBERS; m++) {
        distro_destroy(&member[m]);
        free((void *)(uintptr_t)results[m].payload);
    }
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
}

TESTS(TEST(everybody_comes_to_the_same_bits),
      TEST(everybody_comes_to_the_same_bits_of_large_chunks),
      TEST(a_known_commit_gives_a_known_digest), TEST(the_step_is_the_formula),
      TEST(nothing_is_longer_than_the_median_allows), TEST(a_shout_does_not_drown_three_voices),
      TEST(an_empty_result_only_decays), TEST(the_largest_values_do_no_harm),
      TEST(a_bad_commit_changes_nothing), TEST(four_members_find_the_bottom))
