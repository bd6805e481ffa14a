#include "common/text/byte_alphabet.h"
#include "common/text/unicode.h"
#include <pthread.h>

enum { CODE_POINTS = 0x144 }; // One more than the highest

static uint16_t code_points[256];
static int16_t bytes_of[CODE_POINTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_printable(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static void fill_tables(void)
{
    uint16_t next = 0x100;
    for (int i = 0; i < CODE_POINTS; i++) bytes_of[i] = -1;
    for (unsigned byte = 0; byte < 256; byte++) {
        code_points[byte] = is_printable(byte) ? (uint16_t)byte : next++;
        bytes_of[code_points[byte]] = (int16_t)byte;
    }
}

uint32_t byte_alphabet_code_point(uint8_t byte)
{
    pthread_once(&once, fill_tables);
    return code_points[byte];
}

int byte_alphabet_byte(uint32_t code_point)
{
    pthread_once(&once, fill_tables);
    return code_point < CODE_POINTS ? bytes_of[code_point] : -1;
}

size_t byte_alphabet_write(const uint8_t *bytes, size_t count, uint8_t *text)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += unicode_put(byte_alphabet_code_point(bytes[i]), text + length);
    return length;
}

bool byte_alphabet_read(const uint8_t *text, size_t count, uint8_t *bytes, size_t *ret_count)
{
    size_t length, made = 0;
    for (size_t at = 0; at < count; at += length) {
        const int byte = byte_alphabet_byte(unicode_next(text + at, count - at, &length));
        if (byte < 0) return false;
        bytes[made++] = (uint8_t)byte;
    }
    *ret_count = made;
    return true;
}
