#pragma once
// text -- a sentence that is put together in the caller's memory. It is always terminated; if it
// does not fit it is cut, and `cut` is set.

#include <stdbool.h>
#include <stddef.h>

struct config_text {
    char *bytes;
    size_t max, count;
    bool cut;
};

struct config_text config_text_in(char *bytes, size_t max); // Borrows `bytes`, max >= 1
void config_text_add(struct config_text *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Adds the shortest decimal that reads back as the same double. The decimal point does not depend
// on the locale, because digests are made from the text.
void config_text_add_real(struct config_text *self, double value);
double config_text_to_real(const char *text); // NaN if the text is not a number

// Adds at most `count` bytes of `from`, made safe for a terminal: a control character becomes a
// space, a byte that is not UTF-8 becomes '?'.
void config_text_add_safe(struct config_text *self, const char *from, size_t count);

// Adds a string as TOML writes it, in quotes. `from` must not have a control character.
void config_text_add_quoted(struct config_text *self, const char *from);
