#pragma once
// text -- a sentence put together in the caller's memory. Always terminated; what does not fit is
// cut, and `cut` says so.

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

// The shortest decimal that reads back as the same double. With a point whatever the locale: a
// digest hangs on it.
void config_text_add_real(struct config_text *self, double value);
double config_text_to_real(const char *text); // NaN for what is no number

// At most `count` bytes of `from`, safe for a terminal: a control character becomes a space, what
// is no UTF-8 becomes '?', one character for one byte.
void config_text_add_safe(struct config_text *self, const char *from, size_t count);

// A string as TOML writes it, in quotes. `from` must hold no control character.
void config_text_add_quoted(struct config_text *self, const char *from);
