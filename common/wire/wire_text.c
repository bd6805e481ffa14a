#include "common/wire/wire_text.h"

unsigned wire_text_character(const uint8_t *at, size_t left)
{
    const uint8_t first = left > 0 ? at[0] : 0xff, second = left > 1 ? at[1] : 0;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4 || (second & 0xc0) != 0x80) return 0;
    if (first < 0xe0) return 2;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if (left < 3 || (at[2] & 0xc0) != 0x80) return 0;
    if (first < 0xf0) return 3;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return left > 3 && (at[3] & 0xc0) == 0x80 ? 4 : 0;
}

bool wire_text_is_control(const uint8_t *at)
{
    return at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
}

size_t wire_text_fault(const uint8_t *text, size_t count)
{
    for (size_t i = 0; i < count;) {
        const unsigned bytes = wire_text_character(text + i, count - i);
        if (bytes == 0 || wire_text_is_control(text + i)) return i;
        i += bytes;
    }
    return count;
}
