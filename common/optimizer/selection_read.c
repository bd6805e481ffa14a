// First it reads the words and ranks of all cells: where a cell begins follows from the words before it. Then it
// finds the marks. The marks of one cell do not depend on those of another, so a processor works on several cells at
// once. With more cells it waits less, and guesses better when a round over them ends: so several selections are
// read together.
#include "common/optimizer/selection_step.h"

#include <inttypes.h>

struct cell {          // A cell of which marks are still to be found
    uint64_t rank;     // Among the choices of `count` marks
    uint16_t *numbers; // Of its lowest mark
    uint32_t count;
    uint32_t first; // Mark
};

struct cells { // Of several selections
    struct cell open[SELECTION_CELLS_MAX];
    uint32_t open_count;
};

// Takes the word and the rank at bit *at. Opens the cell if it holds several marks.
static inline int read_cell(const struct selection *self, struct selection_reading *reading,
                            uint64_t *at, uint32_t number, struct why *why, struct cells *cells)
{
    const struct bits *bits = &reading->bits;
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
    if (reading->count + found.count > self->top_k)
        return why_set(why, FAULT_FORMAT, "%u coefficients up to cell %u, it must be 0..%u",
                       reading->count + found.count, number, self->top_k);
    *at += found.bits + rank_bits;
    const uint32_t first = number * self->cell;
    uint16_t *numbers = reading->numbers + reading->count;
    cells->open[cells->open_count] = (struct cell){ rank, numbers, found.count, first };
    cells->open_count += found.count > 1;
    if (found.count > 0) *numbers = (uint16_t)(first + rank); // If it is the only one
    reading->count += found.count;
    return 0;
}

// The greatest a with C(a, i) <= rank, for i > 1. Below SELECTION_CELL_MAX where the rank is a
// cell's.
static inline uint32_t greatest(const struct selection_tables *tables, uint32_t i, uint64_t rank)
{
    const uint32_t a = tables->start[i][selection_step(rank)];
    return a + (tables->binomial[i][a + 1] <= rank);
}

// Finds the greatest missing mark of each open cell, round after round, until each cell lacks one mark: that one is
// the rest of its rank. The list of open cells is rebuilt without branches, so a processor need not guess which
// cells stay open.
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

// Checks the last mark, which has the greatest high: the number of a mark that is too large would not fit 16 bits.
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

static int read_cells(const struct selection *self, struct selection_reading *reading,
                      struct why *why, struct cells *cells)
{
    int rc = 0;
    reading->count = 0;
    reading->signs = reading->at;
    for (uint32_t cell = 0; cell < self->cells && rc == 0; cell++)
        rc = read_cell(self, reading, &reading->signs, cell, why, cells);
    return rc;
}

// Reads what is behind the cells, which end at `signs`, once the marks are found.
static int read_rest(const struct selection *self, struct selection_reading *reading,
                     struct why *why)
{
    const uint32_t count = reading->count;
    const uint16_t *numbers = reading->numbers;
    if (self->shift > 0) {
        int rc = check_highs(self, numbers, count, why);
        if (rc == 0)
            rc = add_lows(self, &reading->bits, reading->signs, count, why, reading->numbers);
        if (rc < 0) return rc;
    }
    reading->signs += (uint64_t)count * self->shift;
    if (count > 0 && numbers[count - 1] >= self->elements)
        return why_set(why, FAULT_RANGE, "coefficient number %u, it must be 0..%u",
                       numbers[count - 1], self->elements - 1);
    if (!bits_are_zero(&reading->bits, reading->signs + count, reading->at + self->bits))
        return why_set(why, FAULT_FORMAT, "bits behind the last sign, they must be 0");
    return 0;
}

// Reads as many selections as `cells` has room for. After a fault the selections before the bad one are still read to
// their end, since one of them may have a fault too, and the first one counts.
static int read_some(const struct selection *self, struct selection_reading *each, uint32_t count,
                     struct why *why, uint32_t *ret_done)
{
    struct cells cells;
    uint32_t end = 0;
    int rc = 0;
    for (cells.open_count = 0;
         rc == 0 && end < count && cells.open_count + self->cells <= SELECTION_CELLS_MAX; end++)
        rc = read_cells(self, &each[end], why, &cells);
    if (rc < 0) end--; // The one with the fault
    find_marks(self->tables, &cells);
    for (*ret_done = 0; *ret_done < end; ++*ret_done) {
        const int rest = read_rest(self, &each[*ret_done], why);
        if (rest < 0) return rest;
    }
    return rc;
}

int selection_read_each(const struct selection *self, struct selection_reading *each,
                        uint32_t count, struct why *why, uint32_t *ret_done)
{
    int rc = 0;
    *ret_done = 0;
    for (uint32_t done; rc == 0 && *ret_done < count; *ret_done += done)
        rc = read_some(self, each + *ret_done, count - *ret_done, why, &done);
    return rc;
}
