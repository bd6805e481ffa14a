// decoder_test -- logits with a memory against those of the whole forward pass, and text from them.

#include "common/kernel/kernels.h"
#include "common/model/generate.h"
#include "common/model/genesis.h"
#include "common/model/model.h"
#include "tests/test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SEQ = 150, VOCAB = 53 }; // More than two of the decoder's blocks

static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };
static const struct model_shape shapes[] = {
    { .vocab = VOCAB,
      .dim = 40,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 10,
      .ffn = 72,
      .seq_len_max = SEQ,
      .rope_theta = 10000,
      .rms_eps = 1e-5 },
    { .vocab = VOCAB,
      .dim = 20,
      .layers = 3,
      .heads = 3,
      .kv_heads = 1,
      .head_dim = 34,
      .ffn = 37,
      .seq_len_max = SEQ,
      .rope_theta = 500000,
      .rms_eps = 1e-6,
      .tied = true },
    { .vocab = VOCAB,
      .dim = 32,
      .layers = 1,
      .heads = 2,
      .kv_heads = 2,
      .head_dim = 16,
      .ffn = 64,
      .seq_len_max = SEQ,
      .rope_theta = 10000,
      .rms_eps = 1e-5,
      .rope_scaling = { .type = ROPE_LINEAR, .factor = 3 } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t tokens[SEQ + 1];

// Genesis times 8, so that attention is far from uniform.
static float *params_of(const struct model_shape *shape)
{
    float *params = malloc(model_parameter_count(shape) * sizeof *params);
    assert_non_null(params);
    genesis_fill(shape, 3, params);
    for (uint32_t i = 0; i < model_tensor_count(shape); i++) {
        const struct model_tensor tensor = model_tensor_at(shape, i);
        for (uint64_t k = 0; tensor.cols && k < model_tensor_size(&tensor); k++)
            params[tensor.offset + k] *= 8;
    }
    return params;
}

static decoder_t *decoder_of(const struct model_shape *shape, const float *params, uint32_t seq,
                             pool_t *pool)
{
    decoder_t *decoder = NULL;
    assert_int_equal(decoder_new(shape, params, seq, pool, NULL, &decoder), 0);
    return decoder;
}

static void logits_are_those_of_the_whole_pass(void **state)
{
    (void)state;
    static float all[SEQ * VOCAB], last[VOCAB];
    for (size_t s = 0; s < SHAPES; s++) {
        float *params = params_of(&shapes[s]);
        model_t *model;
        assert_int_equal(
            model_new(&shapes[s], &(struct model_options){ 1, SEQ, 0, false }, NULL, NULL, &model),
            0);
        decoder_t *decoder = decoder_of(&shapes[s], params, SEQ, NULL);
        assert_int_equal(decoder_read(decoder, tokens, SEQ, SEQ, NULL, all), 0);
        double high = 0;
        for (uint32_t n = 1; n <= SEQ; n += n < 4 ? 1 : 36) {
            assert_int_equal(model_logits_last(model, params, tokens, n, NULL, last), 0);
            for (uint32_t i = 0; i < VOCAB; i++) {
                const double apart = fabs((double)last[i] - (double)all[(n - 1) * VOCAB + i]);
                if (!(apart < 1e-4)) fail_msg("shape %zu, token %u: %g apart", s, n, apart);
                high = fmax(high, fabs((double)last[i]));
            }
        }
        assert_true(high > 0.5); // There is something to compare
        decoder_destroy(&decoder);
        model_destroy(&model);
        free(params);
    }
}

// However it is read, and on whatever.
static void bits_depend_on_the_tokens_alone(void **state)
{
    (void)state;
    static float all[SEQ * VOCAB], some[SEQ * VOCAB];
    float *params = params_of(&shapes[0]);
    decoder_t *whole = decoder_of(&shapes[0], params, SEQ, NULL);
    assert_true(learn_set_isa("base"));
    assert_int_equal(decoder_read(whole, tokens, SEQ, SEQ, NULL, all), 0);
    for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++) {
        if (!learn_set_isa(isas[isa])) continue;
        pool_t *pool = pool_new((uint32_t)isa + 1);
        decoder_t *decoder = decoder_of(&shapes[0], params, SEQ, pool);
        uint32_t other[3] = { 1, 2, 3 };
        assert_int_equal(decoder_read(decoder, tokens, 70, 3, NULL, some), 0);
        assert_memory_equal(some, all + 67 * VOCAB, 3 * VOCAB * sizeof *all);
        assert_int_equal(decoder_read(decoder, other, 3, 0, NULL, NULL), 0);
        assert_int_equal(decoder_keep(decoder, tokens, SEQ), 70);
        for (uint32_t i = 70; i < SEQ; i++) {
            assert_int_equal(decoder_read(decoder, tokens + i, 1, 1, NULL, some), 0);
            assert_memory_equal(some, all + i * VOCAB, VOCAB * sizeof *all);
        }
        decoder_rewind(decoder, 5);
        assert_int_equal(decoder_read(decoder, tokens + 5, SEQ - 5, SEQ - 5, NULL, some), 0);
        assert_memory_equal(some, all + 5 * VOCAB, (SEQ - 5) * VOCAB * sizeof *all);
        decoder_destroy(&decoder);
        pool_destroy(&pool);
    }
    learn_set_isa("best");
    decoder_destroy(&whole);
    free(params);
}

static void what_cannot_be_read_is_refused(void **state)
{
    (void)state;
    float *params = params_of(&shapes[2]), logits[VOCAB];
    decoder_t *decoder = NULL;
    struct why why = { 0 };
    assert_int_equal(decoder_new(&shapes[2], params, SEQ + 1, NULL, &why, &decoder), FAULT_RANGE);
    assert_non_null(strstr(why.text, "151 positions, allowed 1..150"));
    decoder = decoder_of(&shapes[2], params, 10, NULL);
    assert_int_equal(decoder_read(decoder, tokens, 4, 1, &why, logits), 0);
    assert_int_equal(decoder_read(decoder, tokens, 7, 1, &why, logits), FAULT_RANGE);
    assert_non_null(strstr(why.text, "7 tokens after 4, allowed 10"));
    const uint32_t foreign[2] = { 0, VOCAB };
    assert_int_equal(decoder_read(decoder, foreign, 2, 1, &why, logits), FAULT_RANGE);
    assert_non_null(strstr(why.text, "token 53 at position 5"));
    params[model_final_norm_offset(&shapes[2])] = NAN;
    assert_int_equal(decoder_read(decoder, tokens, 2, 1, &why, logits), FAULT_NAN);
    assert_int_equal(decoder_count(decoder), 4);
    decoder_destroy(&decoder);
    free(params);
}

// ---- text

static const struct generate_options likeliest = { .top_p = 1 };

// The likeliest, by the whole forward pass over what the decoder's window should hold.
static void a_full_window_forgets_its_older_half(void **state)
{
    (void)state;
    enum { WINDOW = 11, PROMPT = 4, COUNT = 40 };
    uint32_t said[COUNT], all[PROMPT + COUNT], first = 0;
    float *params = params_of(&shapes[0]), logits[VOCAB];
    model_t *model;
    assert_int_equal(
        model_new(&shapes[0], &(struct model_options){ 1, WINDOW, 0, false }, NULL, NULL, &model),
        0);
    decoder_t *decoder = decoder_of(&shapes[0], params, WINDOW, NULL);
    assert_int_equal(generate(decoder, tokens, PROMPT, &likeliest, COUNT, NULL, said, NULL), 0);
    memcpy(all, tokens, PROMPT * sizeof *all);
    for (uint32_t n = PROMPT; n < PROMPT + COUNT; n++) {
        if (n - first > WINDOW) first = n - (WINDOW + 1) / 2;
        assert_int_equal(model_logits_last(model, params, all + first, n - first, NULL, logits), 0);
        all[n] = 0;
        for (uint32_t i = 1; i < VOCAB; i++)
            if (logits[i] > logits[all[n]]) all[n] = i;
    }
    assert_memory_equal(said, all + PROMPT, sizeof said);
    // A prompt longer than the window, and one that is read already
    assert_int_equal(generate(decoder, all, PROMPT + 30, &likeliest, 5, NULL, said, NULL), 0);
    uint32_t again[5];
    assert_int_equal(generate(decoder, all, PROMPT + 30, &likeliest, 5, NULL, again, NULL), 0);
    assert_memory_equal(said, again, sizeof again);
    decoder_destroy(&decoder);
    model_destroy(&model);
    free(params);
}

static void expect_shares(const struct generate_options *how, const float *logits,
                          const double *shares, uint32_t vocab)
{
    enum { DRAWS = 20000 };
    struct generate_candidate room[8];
    uint32_t times[8] = { 0 };
    uint64_t draws = how->seed;
    for (int i = 0; i < DRAWS; i++) times[generate_choose(how, logits, vocab, room, &draws)]++;
    for (uint32_t i = 0; i < vocab; i++) {
        const double deviation = sqrt(shares[i] * (1 - shares[i]) / DRAWS);
        if (!(fabs(times[i] / (double)DRAWS - shares[i]) <= 4.5 * deviation))
            fail_msg("token %u came %u times of %d, its share is %g", i, times[i], DRAWS,
                     shares[i]);
    }
}

static void tokens_are_drawn_in_proportion(void **state)
{
    (void)state;
    // Probabilities 0.1, 0.4, 0.2, 0.3 at temperature 1, in no order
    const float logits[] = { (float)log(0.1), (float)log(0.4), (float)log(0.2), (float)log(0.3) };
    const double sixteen = 0.01 + 0.16 + 0.04 + 0.09;
    static const struct generate_options
        plain = { .seed = 1, .temperature = 1, .top_p = 1 },
        colder = { .seed = 2, .temperature = 0.5f, .top_p = 1 },
        two = { .seed = 3, .temperature = 1, .top_k = 2, .top_p = 1 },
        nucleus = { .seed = 4, .temperature = 1, .top_p = 0.75f },
        both = { .seed = 5, .temperature = 1, .top_k = 3, .top_p = 0.5f },
        tiny = { .seed = 6, .temperature = 1, .top_p = 1e-6f };
    expect_shares(&plain, logits, (double[]){ 0.1, 0.4, 0.2, 0.3 }, 4);
    expect_shares(&colder, logits,
                  (double[]){ 0.01 / sixteen, 0.16 / sixteen, 0.04 / sixteen, 0.09 / sixteen }, 4);
    expect_shares(&two, logits, (double[]){ 0, 4 / 7.0, 0, 3 / 7.0 }, 4);
    expect_shares(&nucleus, logits, (double[]){ 0, 4 / 9.0, 2 / 9.0, 3 / 9.0 }, 4);
    // Of the three that stay, 4/9 is less than half: the second one belongs to it
    expect_shares(&both, logits, (double[]){ 0, 4 / 7.0, 0, 3 / 7.0 }, 4);
    expect_shares(&tiny, logits, (double[]){ 0, 1, 0, 0 }, 4);
    const float equal[] = { 1, 3, 3, 2 };
    static const struct generate_options one = { .temperature = 1, .top_k = 1, .top_p = 1 };
    expect_shares(&one, equal, (double[]){ 0, 1, 0, 0 }, 4);
    expect_shares(&likeliest, equal, (double[]){ 0, 1, 0, 0 }, 4);
}

static void the_same_seed_says_the_same(void **state)
{
    (void)state;
    uint32_t first[30], second[30];
    float *params = params_of(&shapes[1]);
    decoder_t *decoder = decoder_of(&shapes[1], params, SEQ, NULL);
    struct generate_options how = { .seed = 9, .temperature = 1.5f, .top_k = 20, .top_p = 0.9f };
    assert_int_equal(generate(decoder, tokens, 3, &how, 30, NULL, first, NULL), 0);
    assert_int_equal(generate(decoder, tokens, 3, &how, 30, NULL, second, NULL), 0);
    assert_memory_equal(first, second, sizeof first);
    how.seed = 10;
    assert_int_equal(generate(decoder, tokens, 3, &how, 30, NULL, second, NULL), 0);
    assert_memory_not_equal(first, second, sizeof first);

    static const struct {
        struct generate_options how;
        uint32_t prompt;
        const char *says;
    } wrong[] = {
        { { .temperature = 0.001f, .top_p = 1 }, 3, "temperature = 0.001" },
        { { .temperature = NAN, .top_p = 1 }, 3, "temperature = nan" },
        { { .temperature = 1, .top_p = 0 }, 3, "top_p = 0" },
        { { .temperature = 1, .top_p = 1.5f }, 3, "top_p = 1.5" },
        { { .temperature = 1, .top_p = 1 }, 0, "a prompt of 0 tokens" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct why why = { 0 };
        assert_int_equal(
            generate(decoder, tokens, wrong[i].prompt, &wrong[i].how, 3, &why, first, NULL),
            FAULT_RANGE);
        if (!strstr(why.text, wrong[i].says)) fail_msg("%s", why.text);
    }
    decoder_destroy(&decoder);
    free(params);
}

// A text is what it is without ends, up to the first of them.
static void a_text_stops_at_its_end(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    uint32_t all[COUNT], said[COUNT], count;
    float *params = params_of(&shapes[1]);
    decoder_t *decoder = decoder_of(&shapes[1], params, SEQ, NULL);
    struct generate_options how = { .seed = 9, .temperature = 1.5f, .top_p = 1 };
    assert_int_equal(generate(decoder, tokens, 3, &how, COUNT, NULL, all, &count), 0);
    assert_int_equal(count, COUNT);
    for (uint32_t end = 0; end < COUNT; end++) {
        const uint32_t ends[] = { VOCAB, all[end] };
        uint32_t first = 0;
        while (all[first] != all[end]) first++;
        how.ends = ends, how.ends_count = 2;
        assert_int_equal(generate(decoder, tokens, 3, &how, COUNT, NULL, said, &count), 0);
        assert_int_equal(count, first);
        assert_memory_equal(said, all, first * sizeof *all);
    }
    decoder_destroy(&decoder);
    free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(logits_are_those_of_the_whole_pass),
        TEST(bits_depend_on_the_tokens_alone),
        TEST(what_cannot_be_read_is_refused),
        TEST(a_full_window_forgets_its_older_half),
        TEST(tokens_are_drawn_in_proportion),
        TEST(the_same_seed_says_the_same),
        TEST(a_text_stops_at_its_end),
    };
    for (uint32_t i = 0; i <= SEQ; i++) tokens[i] = (i * i + 7 * i + i / 3) % VOCAB;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
