#include "common/config/text.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ensure.h"

struct config_text config_text_in(char *bytes, size_t max)
{
    ensure(max > 0);
    bytes[0] = 0;
    return (struct config_text){ .bytes = bytes, .max = max };
}

void config_text_add(struct config_text *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const size_t left = self->max - self->count;
    const int wanted = vsnprintf(self->bytes + self->count, left, format, arguments);
    va_end(arguments);
    ensure(wanted >= 0);
    self->cut = self->cut || (size_t)wanted >= left;
    self->count += (size_t)wanted < left ? (size_t)wanted : left - 1;
}

// The C locale: glibc has it ready and gives the same one each time.
static locale_t point_locale(void)
{
    const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    ensure(locale != (locale_t)0);
    return locale;
}

void config_text_add_real(struct config_text *self, double value)
{
    char text[40];
    if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value) {
        config_text_add(self, "%" PRId64, (int64_t)value);
        return;
    }
    const locale_t before = uselocale(point_locale());
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    uselocale(before);
    config_text_add(self, "%s", text);
}

double config_text_to_real(const char *text)
{
    char *end;
    const locale_t before = uselocale(point_locale());
    const double value = strtod(text, &end);
    uselocale(before);
    return end == text || *end ? NAN : value;
}

// The number of bytes of the character at `from`; 0 if it is not UTF-8.
static size_t character_bytes(const unsigned char *from, size_t count)
{
    const size_t bytes = from[0] < 0x80   ? 1
                         : from[0] < 0xc2 ? 0
                         : from[0] < 0xe0 ? 2
                         : from[0] < 0xf0 ? 3
                         : from[0] < 0xf5 ? 4
                                          : 0;
    if (bytes > count) return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((from[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

void config_text_add_safe(struct config_text *self, const char *from, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)from;
    for (size_t i = 0; i < count;) {
        const size_t taken = character_bytes(bytes + i, count - i);
        if (taken == 0) config_text_add(self, "?");
        else if (bytes[i] < 0x20 || bytes[i] == 0x7f) config_text_add(self, " ");
        else config_text_add(self, "%.*s", (int)taken, from + i);
        i += taken ? taken : 1;
    }
}

void config_text_add_quoted(struct config_text *self, const char *from)
{
    config_text_add(self, "\"");
    for (const char *at = from; *at; at++)
        config_text_add(self, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    config_text_add(self, "\"");
}
