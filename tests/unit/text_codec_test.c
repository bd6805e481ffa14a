// text_codec_test -- tokens that a model may say and its tokenizer does not know.

#include "actors/shoal/text/text_codec.c" // The front command's own parts are in no library
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <string.h>

static void tokens_without_a_text_are_empty(void **state)
{
    (void)state;
    static const char json[] = // 1 and 2 are a hole, 4 and 5 padding
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":3},\"merges\":[]},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}";
    static const struct {
        uint32_t tokens[3];
        const char *text;
    } cases[] = {
        { { 0, 3, 0 }, "aba" },
        { { 0, 1, 3 }, "ab" },
        { { 2, 3, 4 }, "b" },
        { { 1, 2, 5 }, "" },
    };
    struct why why = { 0 };
    text_codec_t *codec = NULL;
    put("tokenizer.json", json, sizeof json - 1);
    if (text_codec_open(folder, 6, &why, &codec) < 0) fail_msg("%s", why.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t bytes = 0;
        if (text_codec_decode(codec, cases[i].tokens, 3, &why, &text, &bytes) < 0)
            fail_msg("case %zu: %s", i, why.text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(bytes, strlen(text));
        free(text);
    }
    text_codec_close(&codec);
}

// The first file that names an end counts.
static void the_end_of_a_text(void **state)
{
    (void)state;
    static const char json[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":3,\"<end>\":5},\"merges\":[]},"
        "\"added_tokens\":[{\"id\":5,\"content\":\"<end>\",\"special\":true,\"normalized\":false,"
        "\"single_word\":false,\"lstrip\":false,\"rstrip\":false}],"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}";
    static const struct {
        const char *name, *json;
        uint32_t ends[2], count;
    } cases[] = {
        // Each file is put beside those before it
        { "tokenizer.json", json, { 0 }, 0 },
        { "config.json", "{\"eos_token_id\":4}", { 4 }, 1 },
        { "config.json", "{\"eos_token_id\":[4,1,9,-1,null]}", { 4, 1 }, 2 },
        { "generation_config.json", "{\"eos_token_id\":null}", { 4, 1 }, 2 },
        { "generation_config.json", "{\"eos_token_id\":2}", { 2 }, 1 },
        { "special_tokens_map.json", "{\"eos_token\":\"b\"}", { 3 }, 1 },
        { "tokenizer_config.json", "{\"eos_token\":\"<none>\"}", { 3 }, 1 },
        { "tokenizer_config.json", "{\"eos_token\":\"<end>\"}", { 5 }, 1 },
        { "tokenizer_config.json", "{\"eos_token\":{\"content\":\"<end>\"}}", { 5 }, 1 },
    };
    struct why why = { 0 };
    uint32_t ends[TEXT_CODEC_ENDS_MAX], count;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_codec_t *codec = NULL;
        put(cases[i].name, cases[i].json, strlen(cases[i].json));
        if (text_codec_open(folder, 6, &why, &codec) < 0 ||
            text_codec_ends(codec, folder, 6, &why, ends, &count) < 0)
            fail_msg("case %zu: %s", i, why.text);
        assert_int_equal(count, cases[i].count);
        assert_memory_equal(ends, cases[i].ends, count * sizeof *ends);
        text_codec_close(&codec);
    }
    char *token = NULL;
    assert_int_equal(text_codec_end_token(folder, "tokenizer_config.json", &why, &token), 0);
    assert_string_equal(token, "<end>");
    free(token);
    assert_int_equal(text_codec_end_token(folder, "none.json", &why, &token), 0);
    assert_null(token);
    text_codec_t *codec = NULL;
    put("tokenizer_config.json", "{", 1);
    assert_int_equal(text_codec_open(folder, 6, &why, &codec), 0);
    assert_int_equal(text_codec_ends(codec, folder, 6, &why, ends, &count), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "tokenizer_config.json"));
    text_codec_close(&codec);
}

TESTS(TEST_WITH(tokens_without_a_text_are_empty, folder_set_up, folder_tear_down),
      TEST_WITH(the_end_of_a_text, folder_set_up, folder_tear_down))
