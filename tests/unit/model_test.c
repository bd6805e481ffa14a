// model_test -- forward pass and gradient against torch's, the same bits everywhere, and what does
// not fit.

#include "common/base/hash.h"
#include "common/kernel/kernels.h"
#include "common/model/genesis.h"
#include "common/model/model.h"
#include "common/kernel/gradient.h"
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };
static const char *const goldens[] = { "gqa", "tied", "untied", "llama3", "yarn", "linear" };

// SHA-256 of (SHA-256 of the gradient, loss) for each: the same on every machine and compiler.
// A change of the arithmetic needs new pins, and trainers of both kinds cannot check each other.
static const char *const pinned[] = {
    "06259f6e22eca8bb4c5abc50d3ed4b4e0081715a88a572c46c27e8d5a6a41eab",
    "ea6fa1997123894bd0938d465a8f647abb957818c7f3d09001308a03ddb54c8c",
    "9b820a4dc09e3798e194bd928c46fc427a1e0291d3b1534142f38b629cd43217",
    "b9639f7795eaee5a922bb96efc7c764c85b48f109c321e4830db8413400a88f2",
    "56848bd45f28be96566a532b971521b6ea58e3f20e8c1329ab3dcf6aa8ee74ba",
    "526f36922eb795115ddee50eed65fb408e1d43ce56a0f0aaaf955373d6ac3e03",
};

static const char *const pinned_bf16[] = {
    "9d5d46a248aa9ae42f0f89a0cc9eb7867547f1a59436d8709ad84e62da15087d",
    "8ccd7d52a8a0a67e6caf81fbe1fadb212afc1d1fc6b1dcf60656cf09db4ab5a8",
    "a982169ea3577f49a52d404027440c04b124a686db189a803f4687ac9c86bbfa",
    "20cb02f25892989d367d3573df4327afa174d5aa580782c389f085d4e9b8b973",
    "9ade49926e1b97120f80e1230e081155d19d0f197bf627777c2065c58fbed909",
    "b2136171c4bb69d73ae4f797d2fa1e21332b3caf26693849919422c8f868596b",
};

// Of a processor with AMX, by its tiles.
static const char *const pinned_bf16_amx[] = {
    "ca98a8a19c938bcbcf0378ae59603897576ad1d16ebc57ad29679fd4b292c055",
    "08ba6aa14c548d5ab756328d4cb589de686755fd32be58f0995ac2532c916755",
    "b5f270adc4643e429f2f2a245cf8decad9d59aa36094535104d31b6893ea6102",
    "1bfbb16036767d7cc73f15943b4fc140922757f1fe1784b142c89514572c30be",
    "4e5f486350f75edbc7e7f8cf153a54bc7ef92127e435710cca18ebd1175e7180",
    "58a489da674d17920d7bc57b081ff6349529f12204b4334ca85bd194d069fb24",
};

enum { GOLDEN_BYTES_MAX = 100 * 1024, ISAS = 5, GOLDENS = 6 };

static uint64_t count_of(const struct model_shape *shape) { return model_parameter_count(shape); }

static float *floats(uint64_t count)
{
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    return x;
}

static model_t *model_with(const struct model_shape *shape, const struct model_options *options,
                           pool_t *pool)
{
    struct why why = { 0 };
    model_t *model = NULL;
    if (model_new(shape, options, pool, &why, &model) < 0) fail_msg("%s", why.text);
    return model;
}

static model_t *model_of(const struct model_shape *shape, uint32_t batch, uint32_t seq,
                         pool_t *pool)
{
    return model_with(shape, &(struct model_options){ .batch_max = batch, .seq_max = seq }, pool);
}

static void fill_tokens(uint32_t *tokens, size_t count, uint32_t vocab, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tokens[i] = (uint32_t)(seed >> 33) % vocab;
    }
}

// Under sanitizers too, a call for more memory than there is must come back with NULL.
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

// ---- What PyTorch says, in float64: tests/numeric/llama/make_golden.py tells the layout of the
// files.

struct golden {
    struct model_shape shape;
    uint32_t seq, batch;
    uint64_t seed, count;
    struct hash genesis;
    double loss;
    uint32_t *tokens;
    float *params, *gradient;
};

static void read_exactly(FILE *file, void *to, size_t bytes)
{
    assert_true(fread(to, 1, bytes, file) == bytes);
}

static void read_header(FILE *file, struct golden *self)
{
    char magic[8];
    uint32_t n[10];
    double reals[2];
    read_exactly(file, magic, sizeof magic);
    assert_memory_equal(magic, "SHOALNUM", 8);
    read_exactly(file, n, sizeof n);
    read_exactly(file, reals, sizeof reals);
    read_exactly(file, &self->seed, sizeof self->seed);
    read_exactly(file, self->genesis.bytes, HASH_BYTES);
    read_exactly(file, &self->loss, sizeof self->loss);
    read_exactly(file, &self->count, sizeof self->count);
    self->shape = (struct model_shape){ .vocab = n[0],
                                        .dim = n[1],
                                        .layers = n[2],
                                        .heads = n[3],
                                        .kv_heads = n[4],
                                        .head_dim = n[5],
                                        .ffn = n[6],
                                        .seq_len_max = n[7],
                                        .tied = n[9] & 1,
                                        .rope_theta = reals[0],
                                        .rms_eps = reals[1] };
    self->shape.rope_scaling.type = n[9] >> 8;
    self->seq = n[7];
    self->batch = n[8];
    assert_true(self->count * sizeof(float) < GOLDEN_BYTES_MAX &&
                self->batch * (self->seq + 1) < 1000);
}

static void read_scaling(FILE *file, struct rope_scaling *scaling)
{
    double reals[8];
    if (scaling->type == ROPE_DEFAULT) return;
    read_exactly(file, reals, sizeof reals);
    *scaling = (struct rope_scaling){ .type = scaling->type,
                                      .factor = reals[0],
                                      .low_freq_factor = reals[1],
                                      .high_freq_factor = reals[2],
                                      .original = (uint32_t)reals[3],
                                      .beta_fast = reals[4],
                                      .beta_slow = reals[5],
                                      .attention_factor = reals[6],
                                      .truncate = reals[7] != 0 };
}

// Genesis times 8, norms about 1: see make_golden.py.
static void fill_params(const struct model_shape *shape, uint64_t seed, float *params)
{
    genesis_fill(shape, seed, params);
    for (uint32_t t = 0; t < model_tensor_count(shape); t++) {
        const struct model_tensor tensor = model_tensor_at(shape, t);
        for (uint64_t k = 0; k < model_tensor_size(&tensor); k++) {
            float *number = params + tensor.offset + k;
            *number = tensor.cols ? *number * 8.0f : *number + (float)((int)(k % 7) - 3) / 16.0f;
        }
    }
}

static struct golden golden_of(const char *name)
{
    struct golden self = { 0 };
    char path[100];
    snprintf(path, sizeof path, "tests/numeric/llama/%s.golden", name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there; run this from the root of the repository", path);
    read_header(file, &self);
    const size_t tokens = (size_t)self.batch * (self.seq + 1);
    self.tokens = malloc(tokens * sizeof *self.tokens);
    self.gradient = floats(self.count);
    self.params = floats(self.count);
    read_exactly(file, self.tokens, tokens * sizeof *self.tokens);
    read_exactly(file, self.gradient, self.count * sizeof(float));
    read_scaling(file, &self.shape.rope_scaling);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    assert_int_equal(model_shape_check(&self.shape, NULL), 0);
    assert_int_equal(self.count, count_of(&self.shape));
    fill_params(&self.shape, self.seed, self.params);
    return self;
}

static void golden_free(struct golden *self)
{
    free(self->tokens);
    free(self->params);
    free(self->gradient);
}

static double difference(const float *a, const float *b, uint64_t count)
{
    double apart = 0, length = 0;
    for (uint64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        length += (double)b[i] * (double)b[i];
    }
    assert_true(length > 0);
    return sqrt(apart / length);
}

// Of every golden model: loss and gradient of each tensor against torch's, within these bounds.
static void expect_torchs(enum gemm_precision precision, double loss_most, double least,
                          double most)
{
    double worst = 0;
    for (size_t g = 0; g < GOLDENS; g++) {
        struct golden golden = golden_of(goldens[g]);
        float *gradient = floats(golden.count);
        model_t *model =
            model_with(&golden.shape,
                       &(struct model_options){ golden.batch, golden.seq, precision, false }, NULL);
        double loss = 0;
        assert_int_equal(model_loss_and_grad(model, golden.params, golden.tokens, golden.batch,
                                             golden.seq, NULL, gradient, &loss),
                         0);
        if (fabs(loss / golden.loss - 1) > loss_most)
            fail_msg("%s: loss %.9f, torch %.9f", goldens[g], loss, golden.loss);
        for (uint32_t t = 0; t < model_tensor_count(&golden.shape); t++) {
            const struct model_tensor tensor = model_tensor_at(&golden.shape, t);
            const double apart =
                difference(gradient + tensor.offset, golden.gradient + tensor.offset,
                           model_tensor_size(&tensor));
            if (apart < least || apart > most)
                fail_msg("%s: %s differs by %g", goldens[g], tensor.name, apart);
            if (apart > worst) worst = apart;
        }
        model_destroy(&model);
        assert_null(model);
        free(gradient);
        golden_free(&golden);
    }
    print_message("largest relative difference of a tensor: %.2g\n", worst);
}

static void every_gradient_is_torchs(void **state)
{
    (void)state;
    expect_torchs(GEMM_FLOAT32, 1e-6, 0, 1e-5);
}

// 8 bits of each factor are kept: a product is off by 2^-8 at most, a sum of many by less; and
// whatever is nearer than float32 must be was not computed in bf16.
static void bf16_stays_near(void **state)
{
    (void)state;
    expect_torchs(GEMM_BF16, 2e-3, 1e-5, 0.03);
    expect_torchs(GEMM_BF16_AMX, 2e-3, 1e-5, 0.03);
}

static void genesis_is_pythons(void **state)
{
    (void)state;
    for (size_t g = 0; g < GOLDENS; g++) {
        struct golden golden = golden_of(goldens[g]);
        genesis_fill(&golden.shape, golden.seed, golden.params);
        const struct hash hash = hash_of(golden.params, golden.count * sizeof(float));
        assert_true(hash_equal(&hash, &golden.genesis));
        golden_free(&golden);
    }
}

// ---- The same bits

static struct hash gradient_hash(const struct golden *golden, enum gemm_precision precision,
                                 pool_t *pool, int times)
{
    float *gradient = floats(golden->count);
    // All of it must be overwritten
    for (uint64_t i = 0; i < golden->count; i++) gradient[i] = (float)NAN;
    // Kept or computed again, in turns: it must not show
    const bool recompute = pool_threads(pool) % 2 == 0;
    model_t *model = model_with(
        &golden->shape, &(struct model_options){ golden->batch, golden->seq, precision, recompute },
        pool);
    double loss = 0, again = 0;
    for (int i = 0; i < times; i++)
        assert_int_equal(model_loss_and_grad(model, golden->params, golden->tokens, golden->batch,
                                             golden->seq, NULL, gradient, &loss),
                         0);
    assert_int_equal(
        model_loss(model, golden->params, golden->tokens, golden->batch, golden->seq, NULL, &again),
        0);
    assert_memory_equal(&loss, &again, sizeof loss);
    const struct hash of_gradient = hash_of(gradient, golden->count * sizeof(float));
    const struct hash hash = hash_of_two(of_gradient.bytes, HASH_BYTES, &loss, sizeof loss);
    model_destroy(&model);
    free(gradient);
    return hash;
}

static void expect_one_hash(const char *name, const struct golden *golden,
                            enum gemm_precision precision)
{
    struct hash first = { { 0 } };
    for (size_t i = 0; i < ISAS; i++) {
        if (!learn_set_isa(isas[i])) continue;
        // 1 and 3 there: it is slow
        const uint32_t threads_each = strcmp(isas[i], "base") == 0 ? 2 : 1;
        for (uint32_t threads = 1; threads <= 4; threads += threads_each) {
            pool_t *pool = pool_new(threads);
            const struct hash hash = gradient_hash(golden, precision, pool, threads == 2 ? 3 : 1);
            pool_destroy(&pool);
            if (hash_is_none(&first)) first = hash;
            if (!hash_equal(&hash, &first))
                fail_msg("%s: other bits on %s with %u threads", name, isas[i], threads);
        }
    }
    assert_true(learn_set_isa("best"));
}

static void bits_depend_on_nothing_but_the_input(void **state)
{
    (void)state;
    for (size_t g = 0; g < GOLDENS; g++) {
        struct golden golden = golden_of(goldens[g]);
        char text[HASH_HEX];
        const struct hash hash = gradient_hash(&golden, GEMM_FLOAT32, NULL, 1);
        assert_string_equal(hash_to_hex(&hash, text), pinned[g]);
        const struct hash bf16 = gradient_hash(&golden, GEMM_BF16, NULL, 1);
        assert_string_equal(hash_to_hex(&bf16, text), pinned_bf16[g]);
        expect_one_hash(goldens[g], &golden, GEMM_FLOAT32);
        expect_one_hash(goldens[g], &golden, GEMM_BF16);
        const struct hash amx = gradient_hash(&golden, GEMM_BF16_AMX, NULL, 1);
        assert_string_equal(hash_to_hex(&amx, text), pinned_bf16_amx[g]);
        expect_one_hash(goldens[g], &golden, GEMM_BF16_AMX);
        golden_free(&golden);
    }
}

// Wider than a register, and nothing a multiple of anything.
static void bits_depend_on_nothing_at_odd_sizes(void **state)
{
    (void)state;
    struct golden odd = { .batch = 2,
                          .seq = 67,
                          .shape = { .vocab = 97,
                                     .dim = 51,
                                     .layers = 1,
                                     .heads = 6,
                                     .kv_heads = 3,
                                     .head_dim = 34,
                                     .ffn = 83,
                                     .seq_len_max = 67,
                                     .rope_theta = 10000,
                                     .rms_eps = 1e-5 } };
    odd.count = count_of(&odd.shape);
    odd.params = floats(odd.count);
    odd.tokens = malloc(2 * 68 * sizeof *odd.tokens);
    fill_params(&odd.shape, 5, odd.params);
    fill_tokens(odd.tokens, 2 * 68, 97, 1);
    expect_one_hash("odd sizes", &odd, GEMM_FLOAT32);
    expect_one_hash("odd sizes, bf16", &odd, GEMM_BF16);
    expect_one_hash("odd sizes, bf16-amx", &odd, GEMM_BF16_AMX);
    golden_free(&odd);
}

// ---- Properties that need no reference

// Along the gradient the loss must rise by the gradient's length.
static void gradient_is_the_slope(void **state)
{
    (void)state;
    for (size_t g = 0; g < GOLDENS; g++) {
        struct golden golden = golden_of(goldens[g]);
        model_t *model = model_of(&golden.shape, golden.batch, golden.seq, NULL);
        float *moved = floats(golden.count);
        const double length = gradient_norm(NULL, golden.gradient, golden.count), step = 2e-3;
        double losses[2];
        for (int side = 0; side < 2; side++) {
            const double by = (side ? step : -step) / length;
            for (uint64_t i = 0; i < golden.count; i++)
                moved[i] = (float)((double)golden.params[i] + by * (double)golden.gradient[i]);
            assert_int_equal(model_loss(model, moved, golden.tokens, golden.batch, golden.seq, NULL,
                                        &losses[side]),
                             0);
        }
        const double slope = (losses[1] - losses[0]) / (2 * step);
        if (fabs(slope / length - 1) > 2e-3)
            fail_msg("%s: slope %g, length %g", goldens[g], slope, length);
        free(moved);
        model_destroy(&model);
        golden_free(&golden);
    }
}

// With so large a vocabulary the head takes 64 rows at a time; samples on their own fit in one go.
static void a_batch_is_the_mean_of_its_samples(void **state)
{
    (void)state;
    const struct model_shape shape = { .vocab = 70001,
                                       .dim = 2,
                                       .layers = 1,
                                       .heads = 1,
                                       .kv_heads = 1,
                                       .head_dim = 2,
                                       .ffn = 3,
                                       .seq_len_max = 40,
                                       .rope_theta = 10000,
                                       .rms_eps = 1e-5,
                                       .tied = true };
    const uint64_t count = count_of(&shape);
    float *params = floats(count), *whole = floats(count), *one = floats(count);
    float *other = floats(count);
    uint32_t tokens[2 * 41];
    double loss, losses[2];
    fill_params(&shape, 3, params);
    fill_tokens(tokens, 2 * 41, shape.vocab, 2);
    model_t *model = model_of(&shape, 2, 40, NULL);
    assert_int_equal(model_loss_and_grad(model, params, tokens, 2, 40, NULL, whole, &loss), 0);
    assert_int_equal(model_loss_and_grad(model, params, tokens, 1, 40, NULL, one, &losses[0]), 0);
    assert_int_equal(
        model_loss_and_grad(model, params, tokens + 41, 1, 40, NULL, other, &losses[1]), 0);
    for (uint64_t i = 0; i < count; i++) one[i] = (one[i] + other[i]) / 2;
    assert_true(fabs(loss - (losses[0] + losses[1]) / 2) < 1e-9 * loss);
    assert_true(difference(whole, one, count) < 1e-5);
    model_destroy(&model);
    free(params);
    free(whole);
    free(one);
    free(other);
}

// ---- Refusals

static void expect_refusal(int rc, int fault, const struct why *why, const char *word)
{
    assert_int_equal(rc, fault);
    if (!strstr(why->text, word)) fail_msg("\"%s\" does not say \"%s\"", why->text, word);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct golden golden = golden_of("gqa");
    struct why why = { 0 };
    model_t *model = NULL;
    float *gradient = floats(golden.count), logits[48];
    double loss = -1;
    expect_refusal(
        model_new(&golden.shape, &(struct model_options){ 0, 8, 0, false }, NULL, &why, &model),
        FAULT_RANGE, &why, "batch = 0, allowed 1..4096");
    expect_refusal(
        model_new(&golden.shape, &(struct model_options){ 2, 21, 0, false }, NULL, &why, &model),
        FAULT_RANGE, &why, "seq = 21, allowed 1..20");
    assert_null(model);
    model = model_of(&golden.shape, 2, 20, NULL);
    expect_refusal(model_loss(model, golden.params, golden.tokens, 3, 20, &why, &loss), FAULT_RANGE,
                   &why, "batch = 3");
    expect_refusal(model_loss(model, golden.params, golden.tokens, 2, 0, &why, &loss), FAULT_RANGE,
                   &why, "seq = 0");
    golden.tokens[30] = 48;
    gradient[0] = 7;
    expect_refusal(
        model_loss_and_grad(model, golden.params, golden.tokens, 2, 20, &why, gradient, &loss),
        FAULT_RANGE, &why, "token 48 at position 9 of sample 1, allowed 0..47");
    assert_true(gradient[0] == 7 && loss == -1);
    expect_refusal(model_logits_last(model, golden.params, golden.tokens, 21, &why, logits),
                   FAULT_RANGE, &why, "21 tokens");
    expect_refusal(model_logits_last(model, golden.params, golden.tokens + 30, 1, &why, logits),
                   FAULT_RANGE, &why, "token 48");
    model_destroy(&model);
    model_destroy(&model);
    free(gradient);
    golden_free(&golden);
}

static void a_number_that_is_none_is_noticed(void **state)
{
    (void)state;
    static const float rubbish[] = { NAN, INFINITY, -INFINITY };
    struct golden golden = golden_of("untied");
    float *gradient = floats(golden.count);
    model_t *model = model_of(&golden.shape, 1, golden.seq, NULL);
    for (size_t i = 0; i < ISAS; i++) {
        if (!learn_set_isa(isas[i])) continue;
        for (size_t r = 0; r < 3; r++) {
            for (uint32_t t = 1; t < model_tensor_count(&golden.shape); t++) {
                struct why why = { 0 };
                double loss;
                const uint64_t place = model_tensor_at(&golden.shape, t).offset;
                const float kept = golden.params[place];
                golden.params[place] = rubbish[r];
                expect_refusal(model_loss_and_grad(model, golden.params, golden.tokens, 1, 9, &why,
                                                   gradient, &loss),
                               FAULT_NAN, &why, "loss");
                golden.params[place] = kept;
            }
        }
    }
    assert_true(learn_set_isa("best"));
    model_destroy(&model);
    free(gradient);
    golden_free(&golden);
}

// ---- Learning and speaking

enum { CYCLE = 8, CYCLE_SEQ = 16 };

static const struct model_shape cycle_shape = { .vocab = CYCLE,
                                                .dim = 16,
                                                .layers = 1,
                                                .heads = 2,
                                                .kv_heads = 1,
                                                .head_dim = 8,
                                                .ffn = 24,
                                                .seq_len_max = CYCLE_SEQ,
                                                .rope_theta = 10000,
                                                .rms_eps = 1e-5,
                                                .tied = true };

// The alphabet in a circle, three steps at a time.
static void fill_cycle(uint32_t *tokens, uint32_t count, uint32_t from)
{
    for (uint32_t i = 0; i < count; i++) tokens[i] = (from + 3 * i) % CYCLE;
}

static void it_learns_what_it_is_shown(void **state)
{
    (void)state;
    const uint64_t count = count_of(&cycle_shape);
    float *params = floats(count), *gradient = floats(count);
    uint32_t tokens[4 * (CYCLE_SEQ + 1)];
    double loss = 0, norm = 0;
    model_t *model = model_of(&cycle_shape, 4, CYCLE_SEQ, NULL);
    genesis_fill(&cycle_shape, 1, params);
    for (uint32_t b = 0; b < 4; b++) fill_cycle(tokens + b * (CYCLE_SEQ + 1), CYCLE_SEQ + 1, b);
    for (int step = 0; step < 300; step++) {
        assert_int_equal(
            model_loss_and_grad(model, params, tokens, 4, CYCLE_SEQ, NULL, gradient, &loss), 0);
        // Knowing nothing costs log(vocab)
        if (step == 0) assert_true(fabs(loss - log(CYCLE)) < 0.2);
        assert_int_equal(gradient_clip(NULL, gradient, count, 1.0, NULL, &norm), 0);
        for (uint64_t i = 0; i < count; i++) params[i] -= 0.2f * gradient[i];
    }
    if (!(loss < 0.05)) fail_msg("after 300 steps the loss is %g", loss);
    model_destroy(&model);
    free(params);
    free(gradient);
}

static void logits_and_loss_say_the_same(void **state)
{
    (void)state;
    struct golden golden = golden_of("gqa");
    model_t *model = model_of(&golden.shape, 2, 20, NULL);
    float logits[48];
    double sum_of_losses = 0, loss;
    for (uint32_t n = 1; n <= 20; n++) {
        double sum = 0;
        assert_int_equal(model_logits_last(model, golden.params, golden.tokens, n, NULL, logits),
                         0);
        for (int i = 0; i < 48; i++) sum += exp((double)logits[i]);
        sum_of_losses += log(sum) - (double)logits[golden.tokens[n]];
    }
    assert_int_equal(model_loss(model, golden.params, golden.tokens, 1, 20, NULL, &loss), 0);
    assert_true(fabs(loss - sum_of_losses / 20) < 1e-6);
    model_destroy(&model);
    golden_free(&golden);
}

static void memory_is_known_beforehand(void **state)
{
    (void)state;
    const struct golden golden = golden_of("gqa");
    const struct model_options options = { 1, 20, GEMM_BF16, false }, both = { 2, 20, 0, false };
    const struct model_options less = { 2, 20, GEMM_BF16, true };
    const uint64_t one = model_memory_bytes(&golden.shape, &options, 1);
    const uint64_t two = model_memory_bytes(&golden.shape, &both, 1);
    assert_true(one > 20 * 24 * sizeof(float) && two > one && two < 2 * one);
    assert_true(model_memory_bytes(&golden.shape, &options, 2) > one);
    assert_true(model_memory_bytes(&golden.shape, &less, 1) < two);
    // The largest shape there is asks for a number, not for a smaller one after an overflow
    struct model_shape huge = { MODEL_VOCAB_MAX,
                                MODEL_DIM_MAX,
                                MODEL_LAYERS_MAX,
                                MODEL_HEADS_MAX,
                                MODEL_HEADS_MAX,
                                MODEL_HEAD_DIM_MAX,
                                MODEL_FFN_MAX,
                                MODEL_SEQ_LEN_MAX,
                                1e4,
                                1e-5,
                                false,
                                { 0 } };
    const struct model_options all = { MODEL_BATCH_MAX, MODEL_SEQ_LEN_MAX, GEMM_FLOAT32, false };
    const uint64_t most = model_memory_bytes(&huge, &all, POOL_THREADS_MAX);
    assert_true(most > 1ULL << 50 && most < 1ULL << 63);
    struct why why = { 0 };
    model_t *model = NULL;
    expect_refusal(model_new(&huge, &all, NULL, &why, &model), FAULT_MEMORY, &why, "bytes");
    golden_free(&(struct golden){
        .tokens = golden.tokens, .params = golden.params, .gradient = golden.gradient });
}

TESTS(TEST(every_gradient_is_torchs), TEST(bf16_stays_near), TEST(genesis_is_pythons),
      TEST(bits_depend_on_nothing_but_the_input), TEST(bits_depend_on_nothing_at_odd_sizes),
      TEST(gradient_is_the_slope), TEST(a_batch_is_the_mean_of_its_samples),
      TEST(what_does_not_fit_is_refused), TEST(a_number_that_is_none_is_noticed),
      TEST(it_learns_what_it_is_shown), TEST(logits_and_loss_say_the_same),
      TEST(memory_is_known_beforehand))
