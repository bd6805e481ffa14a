#pragma once
// tokenizer_check -- what must hold of any bytes whatsoever, as a text and as a tokenizer.json,
// checked by the fuzzer and by the unit test that replays its finds. Dies (ensure) where it does
// not hold; not for two threads at once; run from the root of the source.

#include "common/base/ensure.h"
#include "common/text/tokenizer_json.h"

#include <string.h>

static struct why tokenizer_check_why;

static inline bool tokenizer_check_encodes(encoder_t *encoder, const uint8_t *text, size_t count,
                                           unsigned flags, struct token_list *ids)
{
    const int rc = tokenizer_encode(encoder, text, count, flags, &tokenizer_check_why, ids);
    ensure(rc == 0 || rc == FAULT_RANGE); // A byte that is not a token
    return rc == 0;
}

// The ids are in the vocabulary, and the same again now that the words are remembered, and in two
// parts. With `exact` they decode to the text.
static inline void tokenizer_check_text(const tokenizer_t *tokenizer, encoder_t *encoder,
                                        const uint8_t *text, size_t count, bool exact)
{
    struct token_list ids = { 0 }, again = { 0 }, parts = { 0 };
    struct byte_list back = { 0 };
    const size_t cut = tokenizer_last_cut(tokenizer, text, count);
    ensure(cut <= count);
    if (tokenizer_check_encodes(encoder, text, count, 0, &ids)) {
        ensure(tokenizer_check_encodes(encoder, text, count, 0, &again));
        ensure(tokenizer_check_encodes(encoder, text, cut, 0, &parts));
        ensure(tokenizer_check_encodes(encoder, text + cut, count - cut, cut ? ENCODE_CONTINUES : 0,
                                       &parts));
        ensure(again.count == ids.count && parts.count == ids.count);
        ensure(!ids.count || memcmp(ids.ids, again.ids, ids.count * sizeof *ids.ids) == 0);
        ensure(!ids.count || memcmp(ids.ids, parts.ids, ids.count * sizeof *ids.ids) == 0);
        ensure(tokenizer_decode(tokenizer, ids.ids, ids.count, false, &tokenizer_check_why,
                                &back) == 0);
        ensure(!exact || back.count == count);
        ensure(!exact || !count || memcmp(back.bytes, text, count) == 0);
    } else {
        ensure(!exact);
    }
    token_list_free(&ids);
    token_list_free(&again);
    token_list_free(&parts);
    byte_list_free(&back);
}

static inline void tokenizer_check_as_text(const uint8_t *bytes, size_t count)
{
    static const char *const paths[] = { "bytes", "tests/golden/tokenizer/llama3.json",
                                         "tests/golden/tokenizer/gpt2.json" };
    static tokenizer_t *tokenizers[3];
    static encoder_t *encoders[3];
    for (int i = 0; i < 3; i++) {
        if (!tokenizers[i])
            ensure(tokenizer_load(paths[i], &tokenizer_check_why, &tokenizers[i]) == 0);
        if (!encoders[i]) encoders[i] = encoder_new(tokenizers[i]);
        ensure(encoders[i]);
        tokenizer_check_text(tokenizers[i], encoders[i], bytes, count, i < 2);
    }
}

// True if the bytes are a tokenizer.json. If not, tokenizer_check_why says why.
static inline bool tokenizer_check_bytes(const uint8_t *bytes, size_t count)
{
    static const char text[] = "I'm  a\nbab\tab 123 é世 <s>ab <s> \n abab abc";
    tokenizer_t *tokenizer = NULL;
    tokenizer_check_as_text(bytes, count);
    tokenizer_check_why.text[0] = 0;
    if (tokenizer_read("it", (const char *)bytes, count, &tokenizer_check_why, &tokenizer) < 0) {
        ensure(!tokenizer && strstr(tokenizer_check_why.text, "it"));
        return false;
    }
    encoder_t *encoder = encoder_new(tokenizer);
    ensure(encoder);
    tokenizer_check_text(tokenizer, encoder, (const uint8_t *)text, sizeof text - 1, false);
    tokenizer_check_text(tokenizer, encoder, bytes, count, false);
    encoder_destroy(&encoder);
    tokenizer_destroy(&tokenizer);
    return true;
}
