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

TESTS(TEST_WITH(tokens_without_a_text_are_empty, folder_set_up, folder_tear_down))
