// Tokenizers against what Hugging Face's package made of the same files and texts
// (tests/golden/tokenizer), and against themselves.

#include "common/text/bpe_train.h"
#include "common/text/tokenizer_json.h"
#include "common/text/unicode.h"
#include "tests/fuzz/tokenizer_check.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#define GOLDEN "tests/golden/tokenizer/"

static struct why why;

static tokenizer_t *load(const char *path)
{
    tokenizer_t *self = NULL;
    const int rc = tokenizer_load(path, &why, &self);
    if (rc < 0) fail_msg("%s", why.text);
    return self;
}

static struct token_list encode(const tokenizer_t *tokenizer, const void *text, size_t count)
{
    struct token_list ids = { 0 };
    encoder_t *encoder = encoder_new(tokenizer);
    assert_non_null(encoder);
    if (tokenizer_encode(encoder, text, count, 0, &why, &ids) < 0) fail_msg("%s", why.text);
    encoder_destroy(&encoder);
    return ids;
}

// ---- Hugging Face's ids

struct lengths {
    const json_t *wanted;
    size_t count;
};

static int check_length(void *context, const uint8_t *word, size_t count)
{
    struct lengths *self = context;
    const json_t *wanted = json_array_get(self->wanted, self->count++);
    if (json_integer_value(wanted) == (json_int_t)count) return 0;
    return why_set(&why, FAULT_FORMAT, "word %zu is \"%.*s\"", self->count - 1, (int)count, word);
}

static void check_words(const tokenizer_t *tokenizer, const json_t *one)
{
    const json_t *text = json_object_get(one, "text");
    struct lengths lengths = { .wanted = json_object_get(one, "words") };
    const bool prefix = tokenizer->pretokenizer.add_prefix_space &&
                        json_string_value(text)[0] != ' ' && json_string_length(text);
    const size_t count = json_string_length(text) + prefix;
    uint8_t *bytes = malloc(count + 1);
    bytes[0] = ' ';
    memcpy(bytes + prefix, json_string_value(text), count - prefix);
    if (pretokenize_words(&tokenizer->pretokenizer, bytes, count, check_length, &lengths) < 0)
        fail_msg("\"%s\": %s", json_string_value(text), why.text);
    assert_int_equal(lengths.count, json_array_size(lengths.wanted));
    free(bytes);
}

static void check_case(const tokenizer_t *tokenizer, const json_t *one)
{
    check_words(tokenizer, one);
    const json_t *text = json_object_get(one, "text"), *ids = json_object_get(one, "ids");
    struct token_list list = encode(tokenizer, json_string_value(text), json_string_length(text));
    for (size_t i = 0; i < list.count && i < json_array_size(ids); i++)
        if (json_integer_value(json_array_get(ids, i)) != list.ids[i])
            fail_msg("\"%s\": token %zu is %u", json_string_value(text), i, list.ids[i]);
    assert_int_equal(list.count, json_array_size(ids));
    token_list_free(&list);
}

static void test_ids_are_those_of_hugging_face(void **state)
{
    (void)state;
    static const char *const names[] = { "gpt2.json", "llama3.json", "smollm.json", "neox.json",
                                         "qwen2.json" };
    json_t *cases = json_load_file(GOLDEN "cases.json", JSON_ALLOW_NUL, NULL);
    assert_true(json_array_size(cases) > 250);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[100];
        snprintf(path, sizeof path, GOLDEN "%s", names[n]);
        tokenizer_t *tokenizer = load(path);
        for (size_t i = 0; i < json_array_size(cases); i++) {
            const json_t *one = json_array_get(cases, i);
            const char *name = json_string_value(json_object_get(one, "tokenizer"));
            if (strcmp(name, names[n]) == 0) check_case(tokenizer, one);
        }
        tokenizer_destroy(&tokenizer);
    }
    json_decref(cases);
}

static void test_template(void **state)
{
    (void)state;
    struct token_list ids = { 0 };
    uint32_t id;
    tokenizer_t *tokenizer = load(GOLDEN "llama3.json");
    tokenizer_template(tokenizer, false, &ids);
    tokenizer_template(tokenizer, true, &ids);
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], 600);
    assert_int_equal(ids.ids[1], 601);
    assert_int_equal(tokenizer_find(tokenizer, "<|end|>", &why, &id), 0);
    assert_int_equal(id, 601);
    assert_int_equal(tokenizer_find(tokenizer, "<|none|>", &why, &id), FAULT_NOT_FOUND);
    assert_int_equal(tokenizer_id_end(tokenizer), 602);
    token_list_free(&ids);
    tokenizer_destroy(&tokenizer);
}

// ---- there and back

static uint32_t random_state = 1;
static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % n;
}

// Bytes of all kinds, among them pieces of words, tokens and UTF-8, whole and broken.
static size_t random_text(uint8_t *text, size_t count_max)
{
    static const char *const parts[] = { " the", "\n",   "License", "'ll", "<|begin|>", "<|end|>",
                                         "é",    "世界", "😀",       " ",   "  ",        "123",
                                         "\r\n", "\t",   "!?",      ".\n", "a\u0301",   "\u0323" };
    size_t count = 0;
    while (count + 16 < count_max) {
        const char *part = parts[random_below(sizeof parts / sizeof *parts)];
        const size_t length = strlen(part) - (random_below(8) == 0);
        if (random_below(4) == 0) text[count++] = (uint8_t)random_below(256);
        else memcpy(text + count, part, length), count += length;
    }
    return count;
}

static void test_any_bytes_come_back(void **state)
{
    (void)state;
    static const char *const paths[] = { "bytes", GOLDEN "llama3.json" };
    for (size_t p = 0; p < 2; p++) {
        tokenizer_t *tokenizer = load(paths[p]);
        for (int i = 0; i < 500; i++) {
            uint8_t text[400];
            const size_t count = random_text(text, 20 + random_below(380));
            struct token_list ids = encode(tokenizer, text, count);
            struct byte_list back = { 0 };
            assert_int_equal(tokenizer_decode(tokenizer, ids.ids, ids.count, false, &why, &back),
                             0);
            assert_int_equal(back.count, count);
            assert_memory_equal(back.bytes, text, count);
            token_list_free(&ids);
            byte_list_free(&back);
        }
        tokenizer_destroy(&tokenizer);
    }
}

// A token of white space that takes along what is behind it, in a text of nothing else.
static void test_much_white_space_takes_linear_time(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\":[{\"id\":1,\"content\":\" \",\"rstrip\":true}],\"model\":{\"type\":"
        "\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"}}";
    enum { SPACES = 1 << 20 }; // Squared, these are half an hour
    tokenizer_t *tokenizer = NULL;
    uint8_t *text = malloc(2 * SPACES + 2);
    assert_int_equal(tokenizer_read("it", json, sizeof json - 1, &why, &tokenizer), 0);
    memset(text, ' ', 2 * SPACES + 2);
    text[SPACES] = text[2 * SPACES + 1] = 'a'; // Two runs
    struct token_list ids = encode(tokenizer, text, 2 * SPACES + 2);
    assert_int_equal(ids.count, 2 * SPACES + 2);
    for (size_t i = 0; i < ids.count; i++)
        if (ids.ids[i] != (text[i] == ' ')) fail_msg("token %zu is %u", i, ids.ids[i]);
    token_list_free(&ids);
    free(text);
    tokenizer_destroy(&tokenizer);
}

static void test_decode_refuses_and_skips(void **state)
{
    (void)state;
    struct byte_list back = { 0 };
    tokenizer_t *tokenizer = load(GOLDEN "llama3.json");
    const uint32_t ids[] = { 600, 64, 601, 602 };
    assert_int_equal(tokenizer_decode(tokenizer, ids, 3, false, &why, &back), 0);
    assert_int_equal(back.count, strlen("<|begin|>a<|end|>"));
    back.count = 0;
    assert_int_equal(tokenizer_decode(tokenizer, ids, 3, true, &why, &back), 0);
    assert_int_equal(back.count, 1);
    assert_int_equal(back.bytes[0], 'a');
    assert_int_equal(tokenizer_decode(tokenizer, ids, 4, true, &why, &back), FAULT_RANGE);
    assert_non_null(strstr(why.text, "token 3 is 602"));
    byte_list_free(&back);
    tokenizer_destroy(&tokenizer);
}

#define ABC(more)                                                                                  \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"},"            \
    "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]" more "}}"

static int encode_abccc(const char *json, struct token_list *ids)
{
    tokenizer_t *tokenizer = NULL;
    assert_int_equal(tokenizer_read("it", json, strlen(json), &why, &tokenizer), 0);
    encoder_t *encoder = encoder_new(tokenizer);
    ids->count = 0;
    const int rc =
        tokenizer_encode(encoder, (const uint8_t *)"abccc", 5, ENCODE_CONTINUES, &why, ids);
    encoder_destroy(&encoder);
    tokenizer_destroy(&tokenizer);
    return rc;
}

static void test_a_byte_without_a_token(void **state)
{
    (void)state;
    struct token_list ids = { 0 };
    assert_int_equal(encode_abccc(ABC(""), &ids), FAULT_RANGE);
    assert_non_null(strstr(why.text, "0x63, 2 bytes into a word"));
    assert_int_equal(encode_abccc(ABC(",\"unk_token\":\"b\""), &ids), 0);
    assert_int_equal(ids.count, 4);
    assert_int_equal(encode_abccc(ABC(",\"unk_token\":\"b\",\"fuse_unk\":true"), &ids), 0);
    assert_int_equal(ids.count, 2);
    token_list_free(&ids);
}

// ---- cuts

static void test_cuts_change_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = { "bytes", GOLDEN "llama3.json", GOLDEN "smollm.json",
                                         GOLDEN "neox.json", GOLDEN "qwen2.json" };
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        tokenizer_t *tokenizer = load(paths[p]);
        encoder_t *encoder = encoder_new(tokenizer);
        size_t cuts = 0;
        for (int i = 0; i < 300; i++) {
            uint8_t text[600];
            struct token_list parts = { 0 };
            const size_t count = random_text(text, 100 + random_below(500));
            const size_t cut = tokenizer_last_cut(tokenizer, text, count - random_below(20));
            struct token_list whole = encode(tokenizer, text, count);
            cuts += cut > 0;
            assert_int_equal(tokenizer_encode(encoder, text, cut, 0, &why, &parts), 0);
            assert_int_equal(tokenizer_encode(encoder, text + cut, count - cut,
                                              cut ? ENCODE_CONTINUES : 0, &why, &parts),
                             0);
            assert_int_equal(parts.count, whole.count);
            assert_memory_equal(parts.ids, whole.ids, whole.count * sizeof *whole.ids);
            token_list_free(&whole);
            token_list_free(&parts);
        }
        assert_true(cuts > 100);
        encoder_destroy(&encoder);
        tokenizer_destroy(&tokenizer);
    }
    tokenizer_t *tokenizer = load(GOLDEN "gpt2.json"); // Its <right> reaches over line feeds
    assert_int_equal(tokenizer_last_cut(tokenizer, (const uint8_t *)"ab\ncd", 5), 0);
    tokenizer_destroy(&tokenizer);
}

// ---- files

static void assert_same_tokenizer(const tokenizer_t *a, const tokenizer_t *b)
{
    assert_int_equal(bpe_id_end(a->bpe), bpe_id_end(b->bpe));
    for (uint32_t id = 0; id < bpe_id_end(a->bpe); id++) {
        size_t count = 0, other = 0;
        const char *text = bpe_text(a->bpe, id, &count), *same = bpe_text(b->bpe, id, &other);
        assert_int_equal(count, other);
        if (text) assert_memory_equal(text, same, count);
    }
    assert_int_equal(bpe_merge_count(a->bpe), bpe_merge_count(b->bpe));
    for (uint32_t rank = 0; rank < bpe_merge_count(a->bpe); rank++) {
        uint32_t pairs[2][2];
        bpe_merge_at(a->bpe, rank, &pairs[0][0], &pairs[0][1]);
        bpe_merge_at(b->bpe, rank, &pairs[1][0], &pairs[1][1]);
        assert_memory_equal(pairs[0], pairs[1], sizeof pairs[0]);
    }
    assert_memory_equal(bpe_options_of(a->bpe), bpe_options_of(b->bpe), sizeof(struct bpe_options));
    assert_int_equal(a->nfc, b->nfc);
    assert_memory_equal(&a->pretokenizer, &b->pretokenizer, sizeof a->pretokenizer);
    assert_int_equal(a->plain.count, b->plain.count);
    assert_int_equal(a->normalized.count, b->normalized.count);
    assert_int_equal(a->before_count, b->before_count);
    assert_memory_equal(a->after, b->after, sizeof a->after);
}

static void test_written_is_read(void **state)
{
    (void)state;
    static const char *const paths[] = { "bytes", GOLDEN "gpt2.json", GOLDEN "llama3.json",
                                         GOLDEN "smollm.json", GOLDEN "neox.json" };
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        const struct tokenizer_config config = { .seq_len = 512, .end_token = "<|end|>" };
        tokenizer_t *tokenizer = load(paths[p]);
        assert_int_equal(tokenizer_write(tokenizer, folder, &config, &why), 0);
        tokenizer_t *back = load(folder);
        assert_same_tokenizer(tokenizer, back);
        assert_int_equal(tokenizer_is_bytes(back), p == 0);
        tokenizer_destroy(&tokenizer);
        tokenizer_destroy(&back);
    }
    json_t *json = json_load_file(path_of("tokenizer_config.json"), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(json, "model_max_length")), 512);
    assert_string_equal(json_string_value(json_object_get(json, "eos_token")), "<|end|>");
    json_decref(json);
}

static void test_install(void **state)
{
    (void)state;
    assert_int_equal(tokenizer_install("bytes", folder, 512, &why), 0);
    json_t *json = json_load_file(path_of("tokenizer.json"), 0, NULL);
    const json_t *vocab = json_object_get(json_object_get(json, "model"), "vocab");
    assert_int_equal(json_object_size(vocab), 256);
    assert_int_equal(json_integer_value(json_object_get(vocab, "Ġ")), ' ');
    json_decref(json);
    assert_int_equal(tokenizer_install(GOLDEN "gpt2.json", folder, 0, &why), 0);
    tokenizer_t *tokenizer = load(folder);
    assert_int_equal(tokenizer_id_end(tokenizer), 611);
    tokenizer_destroy(&tokenizer);
    assert_int_equal(tokenizer_install(path_of("none"), folder, 0, &why), FAULT_NOT_FOUND);
    put("tokenizer_config.json", "{}", 2); // Taken along as it is
    char other[512];
    snprintf(other, sizeof other, "%s", path_of("other"));
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(tokenizer_install(folder, other, 0, &why), 0);
    json = json_load_file(path_of("other/tokenizer_config.json"), 0, NULL);
    assert_int_equal(json_object_size(json), 0);
    json_decref(json);
}

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define ENDS       ",\"pre_tokenizer\":" BYTE_LEVEL ",\"decoder\":{\"type\":\"ByteLevel\"}}"
#define MODEL(more)                                                                                \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]" more "}"
#define WITH(key)    "{" key "," MODEL("") ENDS
#define PRE(pre)     "{" MODEL("") ",\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":" pre "}"
#define ADDED(token) WITH("\"added_tokens\":[" token "]")

static const struct {
    const char *json, *says;
} refused[] = {
    { "", "no valid JSON" },
    { "[]", "not an object" },
    { "{}", "model" },
    { WITH("\"version\":\"2.0\""), "'version' is not \"1.0\"" },
    { WITH("\"truncation\":{\"max_length\":5}"), "'truncation' is not null" },
    { WITH("\"padding\":{}"), "'padding' is not null" },
    { WITH("\"normalizer\":{\"type\":\"NFKC\"}"), "normalizer: type 'NFKC', known are NFC" },
    { WITH("\"normalizer\":{\"type\":\"NFC\",\"x\":1}"), "normalizer: the key 'x'" },
    { WITH("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
           "{\"type\":\"Lowercase\"}]}"),
      "type 'Lowercase'" },
    { WITH("\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[{\"id\":3,\"content\":"
           "\"e\\u0301\"}]"),
      "added_tokens[0]: its content is not in NFC" },
    { WITH("\"frobnicate\":1"), "the key 'frobnicate'" },
    { "{" MODEL(",\"dropout\":0.1") ENDS, "model: 'dropout'" },
    { "{" MODEL(",\"byte_fallback\":true") ENDS, "model: 'byte_fallback'" },
    { "{" MODEL(",\"end_of_word_suffix\":\"</w>\"") ENDS, "model: 'end_of_word_suffix'" },
    { "{" MODEL(",\"continuing_subword_prefix\":\"##\"") ENDS, "'continuing_subword_prefix'" },
    { "{" MODEL(",\"fuse_unk\":1") ENDS, "'fuse_unk' is neither true nor false" },
    { "{\"model\":{\"type\":\"WordPiece\"}" ENDS, "type 'WordPiece', known are BPE" },
    { "{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}" ENDS, "id 0 is given to two" },
    { "{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}" ENDS, "vocab 'a': its id is not a number" },
    { "{\"model\":{\"vocab\":{\"a\":1048576},\"merges\":[]}" ENDS, "0 to 1048575" },
    { "{\"model\":{\"vocab\":{\"\":0},\"merges\":[]}" ENDS, "a token of 0 bytes" },
    { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}" ENDS, "a text that is not a token" },
    { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a z\"]}" ENDS,
      "merges[0]: 'z' is not a token" },
    { "{\"model\":{\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[\"a a\",[\"a\",\"a\"]]}" ENDS,
      "merges[1]: merge 1 of ids 0 and 0 is there already, as merge 0" },
    { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}" ENDS, "merges[0]: neither" },
    { "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}" ENDS, "merges[0]: neither" },
    { ADDED("{\"id\":3,\"content\":\"x\",\"single_word\":true}"), "[0]: 'single_word' is true" },
    { ADDED("{\"id\":7,\"content\":\"x\"}"), "its id is 7, but vocabulary and place make it 3" },
    { ADDED("{\"id\":1,\"content\":\"a\"}"), "its id is 1, but vocabulary and place make it 0" },
    { ADDED("{\"id\":3,\"content\":\"x\"},{\"id\":4,\"content\":\"x\"}"), "two added tokens 'x'" },
    { ADDED("{\"id\":3,\"content\":\"\"}"), "0 bytes" },
    { ADDED("{\"id\":3,\"content\":\"x\",\"stem\":true}"), "the key 'stem'" },
    { PRE("null"), "pre_tokenizer: not an object" },
    { PRE("{\"type\":\"Whitespace\"}"), "type 'Whitespace', known are ByteLevel, Split" },
    { PRE("{\"type\":\"Digits\"}"), "does not end with ByteLevel" },
    { PRE("{\"type\":\"Sequence\",\"pretokenizers\":[" BYTE_LEVEL "," BYTE_LEVEL "]}"),
      "comes after ByteLevel" },
    { PRE("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},"
          "{\"type\":\"ByteLevel\"}]}"),
      "'add_prefix_space' behind another" },
    { PRE("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
          "{\"Regex\":\"\\\\w+\"},\"behavior\":\"Isolated\"}," BYTE_LEVEL "]}"),
      "the regular expression is none of" },
    { WITH("\"post_processor\":{\"type\":\"BertProcessing\"}"), "type 'BertProcessing'" },
    { WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"), "no Sequence A" },
    { WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
           "{\"id\":\"x\"}}]}"),
      "'special_tokens' lacks 'x'" },
    { "{" MODEL("") ",\"pre_tokenizer\":" BYTE_LEVEL ",\"decoder\":null}",
      "decoder: not an object" },
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        tokenizer_t *tokenizer = NULL;
        why.text[0] = 0;
        const int rc =
            tokenizer_read("it", refused[i].json, strlen(refused[i].json), &why, &tokenizer);
        if (rc == 0 || !strstr(why.text, refused[i].says))
            fail_msg("%s: %d, \"%s\" lacks \"%s\"", refused[i].json, rc, why.text, refused[i].says);
        assert_null(tokenizer);
        assert_non_null(strstr(why.text, "it"));
    }
    static const char *const normalizers[] = {
        "null", "{\"type\":\"Sequence\",\"normalizers\":[]}", "{\"type\":\"NFC\"}",
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"NFC\"}]}"
    };
    for (size_t i = 0; i < sizeof normalizers / sizeof *normalizers; i++) {
        char json[600];
        tokenizer_t *tokenizer = NULL;
        snprintf(json, sizeof json, "{\"normalizer\":%s," MODEL("") "%s", normalizers[i], ENDS);
        if (tokenizer_read("it", json, strlen(json), &why, &tokenizer) < 0)
            fail_msg("%s", why.text);
        assert_int_equal(tokenizer->nfc, i >= 2);
        tokenizer_destroy(&tokenizer);
    }
    static const char good[] = WITH("\"version\":\"1.0\"");
    tokenizer_t *tokenizer = NULL;
    assert_int_equal(tokenizer_read("it", good, strlen(good), &why, &tokenizer), 0);
    tokenizer_destroy(&tokenizer);
}

static uint8_t *slurp(const char *path, size_t *ret_count)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t *bytes = malloc(1 << 20);
    *ret_count = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

// ---- training

// Of LICENSE, cut wherever it may be, dealt to some workers.
static tokenizer_t *train(uint32_t workers, uint32_t piece)
{
    static const char *const special[] = { "<|endoftext|>" };
    const struct bpe_train_options options = { .pretokenizer = { .add_prefix_space = true,
                                                                 .gpt2_is_byte_level = true,
                                                                 .count = 1,
                                                                 .chain = { PRETOKENIZE_GPT2 } },
                                               .vocab_size = 600,
                                               .special_tokens = special,
                                               .special_count = 1,
                                               .workers = workers };
    bpe_train_t *self = NULL;
    tokenizer_t *tokenizer = NULL;
    struct bpe_train_result result;
    size_t count;
    uint8_t *text = slurp("LICENSE", &count);
    assert_int_equal(bpe_train_new(&options, &why, &self), 0);
    for (size_t at = 0, part = 0, length; at < count; at += length, part++) {
        const size_t cut =
            count - at > piece ? pretokenize_last_cut(&options.pretokenizer, text + at, piece) : 0;
        length = cut ? cut : count - at;
        bpe_train_add(self, (uint32_t)(part % workers), text + at, length,
                      at ? ENCODE_CONTINUES : 0);
    }
    assert_int_equal(bpe_train_finish(self, NULL, NULL, &why, &tokenizer, &result), 0);
    assert_int_equal(result.merges, 600 - 257);
    bpe_train_destroy(&self);
    free(text);
    return tokenizer;
}

static void test_training_is_that_of_hugging_face(void **state)
{
    (void)state;
    static const uint32_t ways[][2] = { { 1, 1 << 20 }, { 1, 500 }, { 3, 500 } };
    tokenizer_t *theirs = load(GOLDEN "gpt2.json");
    for (size_t i = 0; i < 3; i++) {
        tokenizer_t *ours = train(ways[i][0], ways[i][1]);
        added_tokens_free(&theirs->plain); // They come after training
        added_tokens_free(&theirs->normalized);
        added_tokens_free(&ours->plain);
        assert_same_tokenizer(ours, theirs);
        tokenizer_destroy(&ours);
    }
    tokenizer_destroy(&theirs);
}

static void test_training_is_refused(void **state)
{
    (void)state;
    static const char *const special[] = { "<s>", "<s>" };
    struct bpe_train_options options = {
        .vocab_size = 300, .special_tokens = special, .special_count = 2, .workers = 1
    };
    struct bpe_train_result result;
    bpe_train_t *self = NULL;
    tokenizer_t *tokenizer = NULL;
    assert_int_equal(bpe_train_new(&options, &why, &self), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "special token '<s>'"));
    options.special_count = 1;
    options.vocab_size = 0;
    assert_int_equal(bpe_train_new(&options, &why, &self), FAULT_RANGE);
    options.vocab_size = 300;
    assert_int_equal(bpe_train_new(&options, &why, &self), 0);
    assert_int_equal(bpe_train_finish(self, NULL, NULL, &why, &tokenizer, &result), FAULT_RANGE);
    bpe_train_destroy(&self);
}

static void test_utf8(void **state)
{
    (void)state;
    uint8_t text[4];
    size_t length;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000) continue;
        const size_t count = unicode_put(c, text);
        if (unicode_next(text, count, &length) != c || length != count) fail_msg("U+%04X", c);
        if (count > 1 && unicode_next(text, count - 1, &length) != UNICODE_INVALID)
            fail_msg("U+%04X cut", c);
    }
    static const char *const bad[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff",
        "\xc3("
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(unicode_valid_until((const uint8_t *)bad[i], strlen(bad[i])), 0);
}

TESTS(TEST(test_ids_are_those_of_hugging_face), TEST(test_template), TEST(test_any_bytes_come_back),
      TEST(test_much_white_space_takes_linear_time), TEST(test_decode_refuses_and_skips),
      TEST(test_a_byte_without_a_token), TEST(test_cuts_change_nothing),
      TEST_WITH(test_written_is_read, folder_set_up, folder_tear_down),
      TEST_WITH(test_install, folder_set_up, folder_tear_down), TEST(test_refusals),
      TEST(test_training_is_that_of_hugging_face), TEST(test_training_is_refused), TEST(test_utf8))
