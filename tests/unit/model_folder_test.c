// model_folder_test -- folders of transformers are read, ours are what it has read, and what is
// wrong with a folder is said. tests/golden/hf/make.py made the folders and the logits.

#include "actors/shoal/model/model_folder.c" // The front command's own parts are in no library
#include "common/model/model.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"

#include <math.h>

#define GOLDEN "tests/golden/hf/"
enum { TOKENS = 50, VOCAB = 40 };

// As make.py exports them.
static const struct {
    const char *name;
    enum layout_dtype dtype;
    uint64_t max_shard_bytes;
    const char *torch_dtype;
} goldens[] = {
    { "llama3", LAYOUT_BF16, 3000, "\"dtype\": \"bfloat16\"" },
    { "tied", LAYOUT_F32, 1000000, "\"dtype\": \"float32\"" },
    { "mistral", LAYOUT_F16, 4000, "\"dtype\": \"float16\"" },
};
enum { GOLDENS = sizeof goldens / sizeof *goldens };

static struct model_folder loaded(const char *dir)
{
    struct model_folder model;
    struct why why = { 0 };
    if (model_folder_load(dir, &why, &model) < 0) fail_msg("%s", why.text);
    return model;
}

static void expect_refusal(const char *dir, int fault, const char *word)
{
    struct model_folder model;
    struct why why = { 0 };
    const int rc = model_folder_load(dir, &why, &model);
    if (rc != fault || !strstr(why.text, word))
        fail_msg("%s, not %s with \"%s\": \"%s\"", fault_name(rc), fault_name(fault), word,
                 why.text);
}

static void slurp(const char *path, void *to, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there; run this from the root of the repository", path);
    assert_int_equal(fread(to, 1, bytes, file), bytes);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

// The model's logits after each of the tokens of hf_models.py are the file's within 1e-4.
static void expect_logits(const struct model_folder *self, const char *path)
{
    static float wanted[TOKENS][VOCAB];
    uint32_t tokens[TOKENS];
    float logits[VOCAB], low = INFINITY, high = -INFINITY;
    struct why why = { 0 };
    model_t *model;
    slurp(path, wanted, sizeof wanted);
    assert_int_equal(self->shape.vocab, VOCAB);
    for (uint32_t i = 0; i < TOKENS; i++) tokens[i] = (i * i * 7 + i * 3 + 1) % VOCAB;
    if (model_new(&self->shape, &(struct model_options){ 1, TOKENS, GEMM_FLOAT32, false }, NULL,
                  &why, &model) < 0)
        fail_msg("%s", why.text);
    for (uint32_t n = 0; n < TOKENS; n++) {
        assert_int_equal(model_logits_last(model, self->params, tokens, n + 1, NULL, logits), 0);
        for (int v = 0; v < VOCAB; v++) {
            if (!(fabsf(logits[v] - wanted[n][v]) < 1e-4f))
                fail_msg("%s: token %d after %u: %g, transformers %g", path, v, n + 1,
                         (double)logits[v], (double)wanted[n][v]);
            low = fminf(low, wanted[n][v]);
            high = fmaxf(high, wanted[n][v]);
        }
    }
    assert_true(high - low > 5);
    model_destroy(&model);
}

static void folders_of_transformers_say_the_same_here(void **state)
{
    (void)state;
    for (int g = 0; g < GOLDENS; g++) {
        char path[100];
        snprintf(path, sizeof path, GOLDEN "%s", goldens[g].name);
        struct model_folder model = loaded(path);
        snprintf(path, sizeof path, GOLDEN "%s/logits.f32", goldens[g].name);
        expect_logits(&model, path);
        model_folder_free(&model);
    }
}

// The files in exported.sha256, and no other weights.
static void expect_files(const char *list, const char *dir, size_t files)
{
    char hex[HASH_HEX], name[100], path[600], found[HASH_HEX];
    FILE *file = fopen(list, "r");
    size_t count = 0;
    assert_non_null(file);
    for (; fscanf(file, "%64s %99s", hex, name) == 2; count++) {
        static char bytes[100000];
        snprintf(path, sizeof path, "%s/%s", dir, name);
        FILE *weights = fopen(path, "rb");
        if (!weights) fail_msg("%s is not there", path);
        const size_t length = fread(bytes, 1, sizeof bytes, weights);
        const struct hash hash = hash_of(bytes, length);
        assert_string_equal(hash_to_hex(&hash, found), hex);
        fclose(weights);
    }
    fclose(file);
    assert_int_equal(count, files > 1 ? files + 1 : 1);
}

static void transformers_has_read_what_we_export(void **state)
{
    (void)state;
    for (int g = 0; g < GOLDENS; g++) {
        char path[100], out[300];
        struct why why = { 0 };
        size_t files;
        snprintf(path, sizeof path, GOLDEN "%s", goldens[g].name);
        snprintf(out, sizeof out, "%s/%s", folder, goldens[g].name);
        struct model_folder model = loaded(path);
        const struct model_export how = { .dtype = goldens[g].dtype,
                                          .from = path,
                                          .max_shard_bytes = goldens[g].max_shard_bytes };
        if (model_folder_export(out, &model, &how, &why, &files) < 0) fail_msg("%s", why.text);
        assert_int_equal(model_folder_export(out, &model, &how, &why, &files), FAULT_DENIED);
        model_folder_free(&model);

        snprintf(path, sizeof path, GOLDEN "%s/exported.sha256", goldens[g].name);
        expect_files(path, out, files);
        model = loaded(out);
        assert_non_null(strstr(model.config, goldens[g].torch_dtype));
        snprintf(path, sizeof path, GOLDEN "%s/exported.f32", goldens[g].name);
        expect_logits(&model, path);
        model_folder_free(&model);
    }
}

// ---- What a folder may hold besides, and what it must

// A folder "model" with the tied golden's config, tie_word_embeddings said to be `tied`, and its
// numbers, and `count` more tensors of small numbers; element `odd` of all is changed.
static struct layout_tensor room[40];

static void put_tied(const char *tied, const struct layout_tensor *more, size_t count, size_t odd)
{
    struct model_folder model = loaded(GOLDEN "tied");
    struct layout layout;
    float *values = calloc(20000, sizeof *values);
    assert_non_null(values);
    layout_init(&layout, room, 40);
    for (size_t i = 0; i < model.layout.count + count; i++) {
        const struct layout_tensor *tensor =
            i < model.layout.count ? &model.layout.tensors[i] : &more[i - model.layout.count];
        assert_int_equal(tensor->dims == 2 ? layout_add_matrix(&layout, tensor->name, tensor->rows,
                                                               tensor->cols, LAYOUT_F32, NULL)
                                           : layout_add_vector(&layout, tensor->name, tensor->cols,
                                                               LAYOUT_F32, NULL),
                         0);
    }
    assert_true(layout.total <= 20000);
    memcpy(values, model.params, model.floats * sizeof *values);
    memcpy(values + model.floats, model.params, (layout.total - model.floats) * sizeof *values);
    if (odd) values[odd] += 0.125f;

    char command[1200];
    snprintf(command, sizeof command,
             "rm -rf '%s/model' && mkdir '%s/model' && "
             "sed 's/\"tie_word_embeddings\": true/\"tie_word_embeddings\": %s/' " GOLDEN
             "tied/config.json > '%s/model/config.json'",
             folder, folder, tied, folder);
    assert_int_equal(system(command), 0);
    const int dir = open(path_of("model"), O_RDONLY | O_DIRECTORY);
    struct why why = { 0 };
    size_t files;
    const struct safetensors_source source = safetensors_from_memory(values);
    if (hf_folder_write_weights(dir, &layout, &source, NULL, 0, 8000, &why, &files) < 0)
        fail_msg("%s", why.text);
    close(dir);
    free(values);
    model_folder_free(&model);
}

static void a_tied_head_may_stand_there_if_it_is_the_embedding(void **state)
{
    (void)state;
    const struct layout_tensor head = {
        .name = "lm_head.weight", .rows = 40, .cols = 16, .dims = 2
    };
    const struct layout_tensor narrow = {
        .name = "lm_head.weight", .rows = 16, .cols = 40, .dims = 2
    };
    put_tied("true", &head, 1, 0);
    struct model_folder with = loaded(path_of("model")), without = loaded(GOLDEN "tied");
    assert_true(hash_equal(&with.digest, &without.digest));
    assert_int_equal(with.floats, without.floats);
    const size_t floats = with.floats;
    model_folder_free(&with);
    model_folder_free(&without);

    put_tied("true", &head, 1, floats + 639);
    expect_refusal(path_of("model"), FAULT_FORMAT,
                   "tensor 'lm_head.weight' is not "
                   "'model.embed_tokens.weight', which tie_word_embeddings says it is");
    put_tied("true", &narrow, 1, 0);
    expect_refusal(path_of("model"), FAULT_FORMAT, "'lm_head.weight' is not");

    put_tied("false", &head, 1, floats + 639); // A head of its own: the odd one is its last
    with = loaded(path_of("model"));
    assert_int_equal(with.floats, floats + 640);
    assert_true(with.params[floats + 639] == with.params[639] + 0.125f);
    model_folder_free(&with);
    put_tied("false", NULL, 0, 0);
    expect_refusal(path_of("model"), FAULT_FORMAT, "tensor 'lm_head.weight' is missing");
}

static void old_rotation_tables_are_passed_over_and_nothing_else(void **state)
{
    (void)state;
    const struct layout_tensor more[] = {
        { .name = "model.layers.0.self_attn.rotary_emb.inv_freq", .cols = 4, .dims = 1 },
        { .name = "model.layers.1.self_attn.rotary_emb.inv_freq", .cols = 4, .dims = 1 },
        { .name = "model.layers.1.self_attn.q_proj.bias", .cols = 16, .dims = 1 },
    };
    put_tied("true", more, 2, 0);
    struct model_folder model = loaded(path_of("model")), golden = loaded(GOLDEN "tied");
    assert_true(hash_equal(&model.digest, &golden.digest));
    model_folder_free(&model);
    model_folder_free(&golden);
    put_tied("true", more, 3, 0);
    expect_refusal(path_of("model"), FAULT_FORMAT,
                   "tensor 'model.layers.1.self_attn.q_proj.bias' "
                   "is unexpected");
}

static void what_is_missing_or_cut_is_named(void **state)
{
    (void)state;
    put_tied("true", NULL, 0, 0);
    assert_int_equal(truncate(path_of("model/model-00002-of-00003.safetensors"), 3000), 0);
    expect_refusal(path_of("model"), FAULT_RANGE, "model-00002-of-00003.safetensors");
    assert_int_equal(unlink(path_of("model/model-00002-of-00003.safetensors")), 0);
    expect_refusal(path_of("model"), FAULT_NOT_FOUND, "model-00002-of-00003.safetensors");
    assert_int_equal(unlink(path_of("model/model.safetensors.index.json")), 0);
    put("model/pytorch_model.bin", "", 0);
    expect_refusal(path_of("model"), FAULT_NOT_FOUND,
                   "neither model.safetensors nor "
                   "model.safetensors.index.json is there (pytorch_model.bin");
    put("model/config.json", "{}", 2);
    expect_refusal(path_of("model"), FAULT_FORMAT, "model_type");
    char zeros[5000] = "{"; // Behind a zero byte there may be more
    put("model/config.json", zeros, sizeof zeros);
    expect_refusal(path_of("model"), FAULT_FORMAT, "config.json");
}

static void a_checkpoint_that_is_damaged_is_refused(void **state)
{
    (void)state;
    struct model_folder model = loaded(GOLDEN "tied");
    char hex[HASH_HEX];
    const struct safetensors_note note = { "digest", hash_to_hex(&model.digest, hex) };
    struct layout halves;
    struct layout_tensor halves_room[40];
    layout_init(&halves, halves_room, 40);
    layout_copy_as(&halves, &model.layout, LAYOUT_BF16);
    for (int turn = 0; turn < 3; turn++) { // Whole, damaged, and in halves
        size_t files;
        put_tied("true", NULL, 0, 0);
        const int dir = open(path_of("model"), O_RDONLY | O_DIRECTORY);
        model.params[100] += turn ? 1e-3f : 0;
        const struct safetensors_source source = safetensors_from_memory(model.params);
        assert_int_equal(hf_folder_write_weights(dir, turn < 2 ? &model.layout : &halves, &source,
                                                 &note, 1, 1 << 20, NULL, &files),
                         0);
        close(dir);
        if (turn == 1) expect_refusal(path_of("model"), FAULT_DIGEST, "damaged or changed");
        else {
            struct model_folder again = loaded(path_of("model"));
            model_folder_free(&again);
        }
    }
    model_folder_free(&model);
}

// ---- What is not written

static void expect_no_export(struct model_folder *model, const struct model_export *how,
                             const char *word)
{
    struct why why = { 0 };
    char out[300];
    size_t files;
    snprintf(out, sizeof out, "%s/out", folder);
    assert_int_equal(model_folder_export(out, model, how, &why, &files), FAULT_RANGE);
    if (!strstr(why.text, word)) fail_msg("\"%s\" does not say \"%s\"", why.text, word);
    assert_int_equal(access(out, F_OK), -1);
}

static void what_does_not_fit_is_not_written(void **state)
{
    (void)state;
    struct model_folder model = loaded(GOLDEN "tied");
    struct model_export how = { .dtype = LAYOUT_F16, .max_shard_bytes = 1000000, .from = folder };
    model.params[641] = -65520;
    expect_no_export(&model, &how,
                     "tensor 'model.layers.0.input_layernorm.weight': -65520 at 1 "
                     "does not fit F16, allowed -65504..65504");
    model.params[641] = 3.4e38f;
    how.dtype = LAYOUT_BF16;
    expect_no_export(&model, &how, "does not fit BF16, allowed -3.38953e+38..3.38953e+38");
    model_folder_free(&model);

    struct layout layout;
    struct layout_tensor many[SAFETENSORS_FILES_MAX + 1];
    static float values[SAFETENSORS_FILES_MAX + 1];
    struct why why = { 0 };
    size_t files;
    layout_init(&layout, many, SAFETENSORS_FILES_MAX + 1);
    for (int i = 0; i <= SAFETENSORS_FILES_MAX; i++) {
        char name[20];
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(layout_add_vector(&layout, name, 1, LAYOUT_F32, NULL), 0);
    }
    const struct safetensors_source source = safetensors_from_memory(values);
    assert_int_equal(hf_folder_write_weights(-1, &layout, &source, NULL, 0, 3, &why, &files),
                     FAULT_RANGE);
    assert_non_null(strstr(why.text, "3 bytes a file make more than 256 files"));
}

static void genesis_keeps_what_its_config_says(void **state)
{
    (void)state;
    struct why why = { 0 };
    struct model_genesis genesis = { .seed = 1 };
    struct hash digest;
    char *text;
    assert_int_equal(
        model_folder_read_config(GOLDEN "llama3/config.json", &why, &genesis.shape, &text), 0);
    genesis.config = text;
    assert_int_equal(model_folder_create(path_of("new"), &genesis, &why, &digest), 0);
    free(text);
    struct model_folder model = loaded(path_of("new"));
    assert_true(hash_equal(&model.digest, &digest));
    assert_int_equal(model.shape.rope_scaling.type, ROPE_LLAMA3);
    assert_non_null(strstr(model.config, "\"eos_token_id\": 2,"));
    model_folder_free(&model);
}

TESTS_WITH(folder_set_up, folder_tear_down, TEST(folders_of_transformers_say_the_same_here),
           TEST(transformers_has_read_what_we_export),
           TEST(a_tied_head_may_stand_there_if_it_is_the_embedding),
           TEST(old_rotation_tables_are_passed_over_and_nothing_else),
           TEST(what_is_missing_or_cut_is_named), TEST(a_checkpoint_that_is_damaged_is_refused),
           TEST(what_does_not_fit_is_not_written), TEST(genesis_keeps_what_its_config_says))
