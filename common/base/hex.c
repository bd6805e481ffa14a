#include "common/base/hex.h"
#include <string.h>

char *hex_encode(const uint8_t *bytes, size_t count, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * count] = 0;
    return text;
}

static unsigned digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                  : (unsigned)(c - 'A') + 10;
}

bool hex_decode(const char *text, uint8_t *ret_bytes, size_t count)
{
    if (strspn(text, "0123456789abcdefABCDEF") != 2 * count || text[2 * count]) return false;
    for (size_t i = 0; i < count; i++)
        ret_bytes[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return true;
}
