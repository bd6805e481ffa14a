// pretokenize -- the regular expressions of pretokenize.h as functions: each looks at the first
// characters of a text and returns the length of the first piece, in the order of the alternatives.
// A function is named after the part of the expression that it matches.

#include "common/text/pretokenize.h"
#include "common/base/ensure.h"
#include "common/text/unicode.h"

#define CL100K(number)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" number                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char *const patterns[PRETOKENIZE_RULES] = {
    [PRETOKENIZE_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
                         "|\\s+(?!\\S)|\\s+",
    [PRETOKENIZE_CL100K] = CL100K("\\p{N}{1,3}"),
    [PRETOKENIZE_CL100K1] = CL100K("\\p{N}"),
};

const char *pretokenize_pattern(enum pretokenize_rule rule) { return patterns[rule]; }

// One character: its class as one bit, and one bit that says whether it is a number to Digits; no
// bit is set at the end of the text.
enum {
    OTHER = 1 << UNICODE_OTHER,
    LETTER = 1 << UNICODE_LETTER,
    NUMBER = 1 << UNICODE_NUMBER,
    SPACE = 1 << UNICODE_SPACE,
    CLASSES = OTHER | LETTER | NUMBER | SPACE,
    DIGIT = 1 << 4,
    NO_DIGIT = 1 << 5
};
struct glyph {
    unsigned class;
    size_t length;
};

static inline struct glyph look(const uint8_t *text, size_t count, size_t at)
{
    struct glyph glyph = { 0, 0 };
    if (at >= count) return glyph;
    glyph.length = 1;
    const uint32_t code_point =
        text[at] < 0x80 ? text[at] : unicode_next(text + at, count - at, &glyph.length);
    glyph.class =
        1u << unicode_class_of(code_point) | (unicode_is_digit(code_point) ? DIGIT : NO_DIGIT);
    return glyph;
}

// Where the run of characters of these classes that begins at `at` ends; `at` if there is none.
static size_t run_end(const uint8_t *text, size_t count, size_t at, unsigned classes)
{
    for (struct glyph glyph; (glyph = look(text, count, at)).class & classes;) at += glyph.length;
    return at;
}

static bool is_line_end(uint8_t byte) { return byte == '\n' || byte == '\r'; }

static uint8_t lower(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte; }

// The length of 's 't 're 've 'm 'll 'd at text[0], which is an apostrophe; else 0. With `fold`
// also capitals and the long s: what (?i: ) takes for an s.
static size_t contraction(const uint8_t *text, size_t count, bool fold)
{
    const uint8_t a = count > 1 ? fold ? lower(text[1]) : text[1] : 0;
    const uint8_t b = count > 2 ? fold ? lower(text[2]) : text[2] : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l')) return 3;
    return fold && count > 2 && text[1] == 0xc5 && text[2] == 0xbf ? 3 : 0;
}

// \s+(?!\S)|\s+ : all of the run at the text's end; else all but its last character, which goes
// with what follows; but a single one stands alone.
static size_t spaces_end(const uint8_t *text, size_t count)
{
    size_t at = 0, last = 0;
    for (struct glyph glyph; (glyph = look(text, count, at)).class & SPACE;) {
        last = at;
        at += glyph.length;
    }
    return at == count || last == 0 ? at : last;
}

static size_t next_gpt2(const uint8_t *text, size_t count)
{
    const size_t apostrophe = text[0] == '\'' ? contraction(text, count, false) : 0;
    if (apostrophe) return apostrophe;
    const size_t begin = text[0] == ' ';
    const unsigned class = look(text, count, begin).class & CLASSES;
    return class & (LETTER | NUMBER | OTHER) ? run_end(text, count, begin, class)
                                             : spaces_end(text, count);
}

// \s*[\r\n]+ : up to the last line end of the run of spaces; 0 if there is none in it.
static size_t line_end(const uint8_t *text, size_t count)
{
    size_t at = run_end(text, count, 0, SPACE);
    while (at > 0 && !is_line_end(text[at - 1])) at--;
    return at;
}

static size_t numbers_end(const uint8_t *text, size_t count, uint32_t most)
{
    size_t at = 0;
    for (struct glyph glyph; most-- > 0 && (glyph = look(text, count, at)).class & NUMBER;)
        at += glyph.length;
    return at;
}

static size_t next_cl100k(const uint8_t *text, size_t count, uint32_t numbers_max)
{
    const size_t apostrophe = text[0] == '\'' ? contraction(text, count, true) : 0;
    if (apostrophe) return apostrophe;
    const struct glyph first = look(text, count, 0);
    if (first.class & LETTER) return run_end(text, count, 0, LETTER);
    if (first.class & NUMBER) return numbers_end(text, count, numbers_max);
    const struct glyph second = look(text, count, first.length);
    if (second.class & LETTER && !is_line_end(text[0]))
        return run_end(text, count, first.length, LETTER);
    const size_t begin = text[0] == ' ';
    if ((begin ? second : first).class & OTHER) {
        size_t end = run_end(text, count, begin, OTHER);
        while (end < count && is_line_end(text[end])) end++;
        return end;
    }
    const size_t line = line_end(text, count);
    return line ? line : spaces_end(text, count);
}

size_t pretokenize_next(enum pretokenize_rule rule, const uint8_t *text, size_t count)
{
    const struct glyph first = look(text, count, 0);
    const unsigned digit = first.class & DIGIT;
    switch (rule) {
    case PRETOKENIZE_GPT2: return next_gpt2(text, count);
    case PRETOKENIZE_CL100K: return next_cl100k(text, count, 3);
    case PRETOKENIZE_CL100K1: return next_cl100k(text, count, 1);
    case PRETOKENIZE_DIGIT: return digit ? first.length : run_end(text, count, 0, NO_DIGIT);
    case PRETOKENIZE_DIGITS: return run_end(text, count, 0, digit ? DIGIT : NO_DIGIT);
    case PRETOKENIZE_RULES: break;
    }
    ensure_failed("a rule of the list", __FILE__, __LINE__);
}

// ---- the chain

struct words {
    const struct pretokenizer *self;
    pretokenize_word_fn *word;
    void *context;
};

// Cuts the text by the rules of the chain from number `link` on, one inside the other.
static int split(const struct words *words, uint32_t link, const uint8_t *text, size_t count)
{
    int rc = 0;
    if (link == words->self->count) return words->word(words->context, text, count);
    for (size_t at = 0, length; rc == 0 && at < count; at += length) {
        length = pretokenize_next(words->self->chain[link], text + at, count - at);
        rc = split(words, link + 1, text + at, length);
    }
    return rc;
}

int pretokenize_words(const struct pretokenizer *self, const uint8_t *text, size_t count,
                      pretokenize_word_fn *word, void *context)
{
    const struct words words = { self, word, context };
    return count ? split(&words, 0, text, count) : 0;
}

size_t pretokenize_last_cut(const struct pretokenizer *self, const uint8_t *text, size_t count)
{
    bool cuts = false;
    for (uint32_t i = 0; i < self->count; i++) cuts |= self->chain[i] <= PRETOKENIZE_CL100K1;
    for (size_t at = count; cuts && at-- > 1;)
        if (text[at] == '\n' && lower(text[at - 1]) >= 'a' && lower(text[at - 1]) <= 'z') return at;
    return 0;
}
