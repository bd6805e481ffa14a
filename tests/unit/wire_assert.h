#pragma once
// wire_assert -- what the wire tests share: bytes from hexadecimal text, and refusals as sentences.

#include "common/wire/wire.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static inline size_t from_hex(const char *hex, uint8_t *out)
{
    size_t count = 0;
    for (; *hex; hex++) {
        unsigned byte;
        if (*hex == ' ') continue;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        out[count++] = (uint8_t)byte;
        hex++;
    }
    return count;
}

static inline void assert_sentence(const struct wire_refusal *refusal, const char *expected)
{
    char sentence[WIRE_REFUSAL_TEXT_MAX];
    const size_t needed = wire_refusal_text(refusal, sentence, sizeof sentence);
    assert_string_equal(sentence, expected);
    assert_int_equal(needed, strlen(expected));
    assert_non_null(refusal->what);
}

static inline void assert_dropped(const struct wire_refusal *refusal, const char *why, size_t at)
{
    char sentence[2 * WIRE_REFUSAL_TEXT_MAX];
    snprintf(sentence, sizeof sentence, "%s, at byte %zu: frame dropped", why, at);
    assert_sentence(refusal, sentence);
}
