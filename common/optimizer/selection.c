// selection -- selection_init makes the code of a kind of chunk in three steps: it cuts the marks into cells (cut),
// finds the lengths of the words (lowest_line), then the words. selection_write writes the word and the rank of each
// cell, then the low bits and the signs. selection_read.c reads them.
#include "common/base/ensure.h"
#include "common/optimizer/selection_step.h"
#include <string.h>

enum {
    HIGHS_MIN = 8, // For each place
    PARTS = 16,    // Of a bit, in base and slope
    SLOPE_MAX = 16 * PARTS,
};

static uint32_t bits_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(value);
}

// ---- tables

static void fill_start(struct selection_tables *self, uint32_t i)
{
    const uint64_t *binomial = self->binomial[i];
    for (uint32_t a = i - 1; a < SELECTION_CELL_MAX; a++) {
        // The step in which C(a, i) lies may begin below C(a, i): it belongs to a - 1
        const uint32_t from = a < i ? 0 : selection_step(binomial[a] - 1) + 1;
        const uint32_t end = selection_step(binomial[a + 1] - 1) + 1;
        memset(self->start[i] + from, (int)a, end > from ? end - from : 0);
    }
}

void selection_tables_init(struct selection_tables *self)
{
    memset(self, 0, sizeof *self);
    for (uint32_t a = 0; a <= SELECTION_CELL_MAX; a++) {
        self->binomial[0][a] = 1;
        for (uint32_t i = 1; i <= a; i++)
            self->binomial[i][a] = self->binomial[i - 1][a - 1] + self->binomial[i][a - 1];
    }
    for (uint32_t i = 1; i <= SELECTION_CELL_MAX; i++) fill_start(self, i);
}

// ---- the code

// The shift, the marks and their cells, and the bits of a rank for each count.
static void cut(struct selection *self)
{
    while (self->elements >> (self->shift + 1) >= HIGHS_MIN * self->top_k) self->shift++;
    const uint32_t unit = 1u << self->shift;
    self->marks = (self->elements + unit - 1) / unit + (self->shift > 0 ? self->top_k : 0);
    self->cells = (self->marks + SELECTION_CELL_MAX - 1) / SELECTION_CELL_MAX;
    self->cell = (self->marks + self->cells - 1) / self->cells;
    self->count_max = self->cell < self->top_k ? self->cell : self->top_k;
    for (uint32_t c = 0; c <= self->count_max; c++)
        self->words[c].rank_bits = (uint8_t)bits_of(self->tables->binomial[c][self->cell] - 1);
}

struct line { // What a cell of count c may take in all: (base + slope·c)/PARTS
    uint32_t base, slope;
};

// The length of the word for a count; negative if the line is too low for it.
static int32_t length_of(const struct selection *self, struct line line, uint32_t c)
{
    const int32_t most = (int32_t)((line.base + line.slope * c) / PARTS);
    const int32_t length = most - (int32_t)c - self->words[c].rank_bits;
    return length < SELECTION_WORD_BITS ? length : SELECTION_WORD_BITS;
}

static bool is_code(const struct selection *self, struct line line)
{
    uint32_t taken = 0;
    for (uint32_t c = 0; c <= self->count_max; c++) {
        const int32_t length = length_of(self, line, c);
        if (length < 0) return false;
        taken += 1u << (SELECTION_WORD_BITS - length);
    }
    return taken <= 1u << SELECTION_WORD_BITS;
}

static uint32_t bits_under(const struct selection *self, struct line line)
{
    return (self->cells * line.base + self->top_k * line.slope) / PARTS + self->top_k * self->shift;
}

// A steeper line allows a lower base. So the base only falls while the slope rises, and each base is tried once.
static struct line lowest_line(const struct selection *self)
{
    struct line line = { .base = PARTS * (2 * SELECTION_CELL_MAX + SELECTION_WORD_BITS) };
    struct line best = line;
    for (; line.slope <= SLOPE_MAX; line.slope++) {
        while (line.base > 0 && is_code(self, (struct line){ line.base - 1, line.slope }))
            line.base--;
        if (bits_under(self, line) < bits_under(self, best)) best = line;
    }
    return best;
}

static uint32_t reversed(uint32_t word, uint32_t bits)
{
    uint32_t result = 0;
    for (; bits > 0; bits--, word >>= 1) result = result << 1 | (word & 1);
    return result;
}

static void fill_words(struct selection *self, struct line line)
{
    uint32_t next = 0;
    for (uint32_t length = 1; length <= SELECTION_WORD_BITS; length++, next <<= 1) {
        for (uint32_t c = 0; c <= self->count_max; c++) {
            if (length_of(self, line, c) != (int32_t)length) continue;
            self->words[c].word = (uint16_t)reversed(next++, length);
            self->words[c].bits = (uint8_t)length;
        }
    }
}

// Makes the word for 0 marks all zeros. To flip the same bits in all words leaves the code a prefix code.
static void make_none_zero(struct selection *self)
{
    const uint32_t none = self->words[0].word;
    for (uint32_t c = 0; c <= self->count_max; c++)
        self->words[c].word ^= (uint16_t)bits_low(none, self->words[c].bits);
}

static void fill_found(struct selection *self)
{
    for (uint32_t c = 0; c <= self->count_max; c++) {
        const struct selection_word word = self->words[c];
        for (uint32_t bits = word.word; bits < 1u << SELECTION_WORD_BITS; bits += 1u << word.bits)
            self->found[bits] = (struct selection_found){ (uint8_t)c, word.bits };
    }
}

void selection_init(struct selection *self, const struct selection_tables *tables,
                    uint32_t elements, uint32_t top_k)
{
    ensure(top_k >= 1 && top_k <= elements && elements <= 65536);
    *self = (struct selection){ .tables = tables, .elements = elements, .top_k = top_k };
    cut(self);
    const struct line line = lowest_line(self);
    self->bits = bits_under(self, line);
    fill_words(self, line);
    make_none_zero(self);
    fill_found(self);
}

// ---- writing

static inline uint32_t mark_of(const struct selection *self, uint32_t number, uint32_t i)
{
    return self->shift > 0 ? (number >> self->shift) + i : number;
}

void selection_write(const struct selection *self, const uint16_t *numbers, const float *values,
                     uint32_t count, struct bits_writer *bits)
{
    ensure(count <= self->top_k);
    uint32_t place = 0;
    for (uint32_t cell = 0, first = 0; cell < self->cells; cell++, first += self->cell) {
        uint64_t rank = 0;
        uint32_t c = 0;
        for (; place < count; place++) {
            const uint32_t mark = mark_of(self, numbers[place], place) - first;
            if (mark >= self->cell) break;
            rank += self->tables->binomial[++c][mark];
        }
        bits_write(bits, self->words[c].word, self->words[c].bits);
        bits_write_number(bits, rank, self->words[c].rank_bits);
    }
    ensure(place == count);
    struct bits_row row = { 0, 0 };
    const uint32_t lows = (1u << self->shift) - 1;
    for (uint32_t i = 0; i < count && lows; i++)
        bits_collect(&row, numbers[i] & lows, self->shift, bits);
    for (uint32_t i = 0; i < count; i++) bits_collect(&row, values[i] < 0.0f, 1, bits);
    bits_write(bits, (uint32_t)row.held, row.count);
}
