// The code of a selection is laid out first: cells, then lengths, then words. Writing sums the
// binomials of each cell. Reading takes all words and ranks first, since a cell's place follows
// from the words before it alone, and then finds the marks: ranks of different cells do not depend
// on each other, and a processor works on several at once.
#include "common/optimizer/selection.h"
#include "common/base/ensure.h"

#include <inttypes.h>
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

// Octave and step of rank + 1: exponent and first five bits of it as a double. Conversion is one
// instruction everywhere; that which counts zeros is a slow one on many processors. The six bits
// from the first 1 on are kept and the seventh is cleared, so no rounding reaches them.
static inline uint32_t step_of(uint64_t rank)
{
    const uint64_t next = rank + 1;
    const double kept = (double)(int64_t)(next & ~(next >> 6));
    uint64_t bits;
    memcpy(&bits, &kept, sizeof bits);
    return (uint32_t)(bits >> 47) - 1023 * SELECTION_STEPS;
}

static void fill_start(struct selection_tables *self, uint32_t i)
{
    const uint64_t *binomial = self->binomial[i];
    for (uint32_t a = i - 1; a < SELECTION_CELL_MAX; a++) {
        // The step that C(a, i) itself begins within still begins below it
        const uint32_t from = a < i ? 0 : step_of(binomial[a] - 1) + 1;
        const uint32_t end = step_of(binomial[a + 1] - 1) + 1;
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

// Of the word for a count, negative if the line is too low for it.
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

// A steeper line allows a lower base, so one walk down finds the least base of every slope.
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

// The same bits turned over in all words leave a prefix code what it is.
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

// ---- reading

struct cell {          // What is chosen in it, where more than one mark is still to be found
    uint64_t rank;     // Among the choices of `count` marks
    uint16_t *numbers; // Of its lowest mark
    uint32_t count;
    uint32_t first; // Mark
};

struct cells {
    struct cell open[SELECTION_CELLS_MAX];
    uint32_t open_count;
    uint32_t count; // Of marks, in all cells
};

// Takes the word and the rank at bit *at. Opens the cell if it holds several marks.
static inline int read_cell(const struct selection *self, const struct bits *bits, uint64_t *at,
                            uint32_t number, struct why *why, uint16_t *numbers,
                            struct cells *cells)
{
    const uint64_t next = bits_at(bits, *at);
    const struct selection_found found = self->found[bits_low(next, SELECTION_WORD_BITS)];
    const uint32_t rank_bits = self->words[found.count].rank_bits;
    const uint64_t rank = found.bits + rank_bits <= 64
                              ? bits_low(next >> found.bits, rank_bits)
                              : bits_low(bits_at(bits, *at + found.bits), rank_bits);
    const uint64_t ranks = self->tables->binomial[found.count][self->cell];
    if (found.bits == 0)
        return why_set(why, FAULT_FORMAT, "cell %u begins with no word of the code", number);
    if (rank >= ranks)
        return why_set(why, FAULT_RANGE,
                       "a rank of %" PRIu64 " in cell %u, it must be below %" PRIu64, rank, number,
                       ranks);
    if (cells->count + found.count > self->top_k)
        return why_set(why, FAULT_FORMAT, "%u coefficients up to cell %u, it must be 0..%u",
                       cells->count + found.count, number, self->top_k);
    *at += found.bits + rank_bits;
    const uint32_t first = number * self->cell;
    cells->open[cells->open_count] =
        (struct cell){ rank, numbers + cells->count, found.count, first };
    cells->open_count += found.count > 1;
    if (found.count > 0) numbers[cells->count] = (uint16_t)(first + rank); // If it is the only one
    cells->count += found.count;
    return 0;
}

// The greatest a with C(a, i) <= rank, for i > 1. Below SELECTION_CELL_MAX where the rank is a
// cell's.
static inline uint32_t greatest(const struct selection_tables *tables, uint32_t i, uint64_t rank)
{
    const uint32_t a = tables->start[i][step_of(rank)];
    return a + (tables->binomial[i][a + 1] <= rank);
}

// Finds the greatest mark that is left in each open cell, until each has one mark left: that is
// what is left of its rank. No mark depends on those of another cell, so a processor works on
// several at once; which cells stay open it need not guess.
static void find_marks(const struct selection_tables *tables, struct cells *cells)
{
    while (cells->open_count > 0) {
        uint32_t open = 0;
        for (uint32_t i = 0; i < cells->open_count; i++) {
            struct cell cell = cells->open[i];
            const uint32_t a = greatest(tables, cell.count, cell.rank);
            cell.rank -= tables->binomial[cell.count][a];
            cell.count--;
            cell.numbers[cell.count] = (uint16_t)(cell.first + a);
            cell.numbers[0] = (uint16_t)(cell.first + cell.rank); // Right in the end
            cells->open[open] = cell;
            open += cell.count > 1;
        }
        cells->open_count = open;
    }
}

// The greatest high is the last one. One of a mark beyond the last would not fit 16 bits.
static int check_highs(const struct selection *self, const uint16_t *marks, uint32_t count,
                       struct why *why)
{
    const uint32_t highs = self->marks - self->top_k;
    if (count == 0 || marks[count - 1] - (count - 1) < highs) return 0;
    return why_set(why, FAULT_RANGE, "mark %u at place %u, it must be below %u", marks[count - 1],
                   count - 1, highs + count - 1);
}

// Makes numbers of the marks. Highs ascend; where two are equal, lows must.
static int add_lows(const struct selection *self, const struct bits *bits, uint64_t at,
                    uint32_t count, struct why *why, uint16_t *numbers)
{
    const uint32_t shift = self->shift;
    uint64_t lows = 0;
    uint32_t left = 0;  // In `lows`
    uint32_t floor = 0; // The lowest number that may come next
    bool ascend = true;
    for (uint32_t i = 0; i < count; i++, lows >>= shift, left -= shift) {
        if (left < shift) lows = bits_at(bits, at + (uint64_t)i * shift), left = 64;
        const uint32_t number = (numbers[i] - i) << shift | (uint32_t)bits_low(lows, shift);
        ascend &= number >= floor;
        floor = number + 1;
        numbers[i] = (uint16_t)number;
    }
    if (ascend) return 0;
    return why_set(why, FAULT_RANGE, "coefficient numbers that do not ascend");
}

int selection_read(const struct selection *self, const struct bits *bits, uint64_t at,
                   struct why *why, uint16_t *ret_numbers, uint32_t *ret_count, uint64_t *ret_signs)
{
    const uint64_t end = at + self->bits;
    struct cells cells;
    cells.open_count = cells.count = 0;
    int rc = 0;
    for (uint32_t cell = 0; cell < self->cells && rc == 0; cell++)
        rc = read_cell(self, bits, &at, cell, why, ret_numbers, &cells);
    if (rc < 0) return rc;
    find_marks(self->tables, &cells);
    const uint32_t count = cells.count;
    if (self->shift > 0) {
        rc = check_highs(self, ret_numbers, count, why);
        if (rc == 0) rc = add_lows(self, bits, at, count, why, ret_numbers);
        if (rc < 0) return rc;
    }
    at += (uint64_t)count * self->shift;
    if (count > 0 && ret_numbers[count - 1] >= self->elements)
        return why_set(why, FAULT_RANGE, "coefficient number %u, it must be 0..%u",
                       ret_numbers[count - 1], self->elements - 1);
    if (!bits_are_zero(bits, at + count, end))
        return why_set(why, FAULT_FORMAT, "bits behind the last sign, they must be 0");
    *ret_count = count;
    *ret_signs = at;
    return 0;
}
