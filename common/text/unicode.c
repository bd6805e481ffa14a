// unicode -- what is known of every code point is filled into one table before main begins, from the
// ranges of unicode_ranges.def: a lookup then is one load. UTF-8 is decoded by hand, strictly.

#include "common/text/unicode.h"

#define LETTER                   UNICODE_LETTER
#define NUMBER                   UNICODE_NUMBER
#define SPACE                    UNICODE_SPACE
#define NEW_NUMBER               UNICODE_NEW_NUMBER
#define NFC_CHANGES              UNICODE_NFC_CHANGES
#define NFC_JOINS                UNICODE_NFC_JOINS
#define RANGE(first, last, flag) { first, last, flag },
static const struct {
    uint32_t first, last;
    uint8_t flag;
} ranges[] = {
#include "common/text/unicode_ranges.def"
};

uint8_t unicode_classes[UNICODE_INVALID + 1];

__attribute__((constructor)) static void fill_classes(void)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
            unicode_classes[c] |= ranges[i].flag;
}

static int continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

uint32_t unicode_next(const uint8_t *text, size_t count, size_t *ret_length)
{
    const uint32_t a = text[0];
    *ret_length = 1;
    if (a < 0x80) return a;
    if (a < 0xc2 || count < 2 || !continues(text[1])) return UNICODE_INVALID;
    if (a < 0xe0) {
        *ret_length = 2;
        return (a & 0x1f) << 6 | (text[1] & 0x3f);
    }
    if (count < 3 || !continues(text[2])) return UNICODE_INVALID;
    uint32_t code_point = (a & 0x0f) << 12 | (uint32_t)(text[1] & 0x3f) << 6 | (text[2] & 0x3f);
    if (a < 0xf0) {
        if (code_point < 0x800 || (code_point >= 0xd800 && code_point < 0xe000))
            return UNICODE_INVALID;
        *ret_length = 3;
        return code_point;
    }
    if (a > 0xf4 || count < 4 || !continues(text[3])) return UNICODE_INVALID;
    code_point = (a & 0x07) << 18 | (uint32_t)(text[1] & 0x3f) << 12 |
                 (uint32_t)(text[2] & 0x3f) << 6 | (text[3] & 0x3f);
    if (code_point < 0x10000 || code_point > 0x10ffff) return UNICODE_INVALID;
    *ret_length = 4;
    return code_point;
}

size_t unicode_valid_until(const uint8_t *text, size_t count)
{
    size_t at = 0, length;
    while (at < count && unicode_next(text + at, count - at, &length) != UNICODE_INVALID)
        at += length;
    return at;
}

size_t unicode_put(uint32_t code_point, uint8_t *text)
{
    if (code_point < 0x80) {
        text[0] = (uint8_t)code_point;
        return 1;
    }
    const size_t more = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
    text[0] = (uint8_t)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | code_point >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        text[i] = (uint8_t)(0x80 | (code_point >> 6 * (more - i) & 0x3f));
    return more + 1;
}
