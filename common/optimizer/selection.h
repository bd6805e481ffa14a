#pragma once
// selection -- which coefficients of a chunk were chosen, and their signs, where they are too many
// for one number (combination.h): a string of bits that is never longer than `bits`.
//
//     number   of a coefficient: high·2^shift + low. The shift is the largest that leaves
//              ⌊n/2^shift⌋ >= 8·k, or 0
//     mark     of place i: high + i, so that marks ascend where highs repeat; all lie below `marks`,
//              ⌈n/2^shift⌉ + k. With a shift of 0 the mark is the number, and `marks` is n
//     cell     of `cell` marks: there are ⌈marks/64⌉ of equal size, the last may end early
//
//     the bits, from the lowest of a byte up
//       each cell     the code of its count c of chosen marks, then which ones they are: the rank
//                     Σ C(a_i, i+1) over i < c, in ⌈log2 C(cell, c)⌉ bits (combination.h)
//       each place    the low bits of its number
//       each place    1 bit: negative
//       zeros up to `bits`
//
// The code is a prefix code that follows from n and k. Its word for a count c has
//
//     min(10, ⌊(base + slope·c)/16⌋ - c - ⌈log2 C(cell, c)⌉) bits
//     bits = ⌊(cells·base + k·slope)/16⌋ + k·shift
//
// where base and slope are the whole numbers that make `bits` least (the least slope of several)
// among those whose lengths are a prefix code's (Kraft's inequality). So whatever the cells hold,
// k places take no more than `bits`: 64 of 1024 take 428, where log2 of their number is 405. Of two
// words the shorter comes first, then that of the lower count; a word's first bit is the lowest.
// Then each word is added to the first bits of that of 0, modulo 2: a cell without marks is zeros,
// and so is a selection of none.
//
// Whole numbers throughout: the same on every machine. Pure; immutable once made, any thread.

#include "common/base/fault.h"
#include "common/optimizer/bits.h"

enum {
    SELECTION_CELL_MAX = 64, // Marks: a rank fits 64 bits
    SELECTION_CELLS_MAX = 65536 / SELECTION_CELL_MAX,
    SELECTION_WORD_BITS = 10, // Of the longest word
    SELECTION_STEPS = 32,     // Of an octave
    SELECTION_OCTAVES = 61,   // Of C(64, 32)
};

// What selections of every n and k share.
struct selection_tables {
    uint64_t binomial[SELECTION_CELL_MAX + 1][SELECTION_CELL_MAX + 1]; // [i][a]: C(a, i)
    // [i][octave and step of rank + 1]: the greatest a with C(a, i) <= the least rank of that step.
    // For i > 1 the next binomial but one lies above the step.
    uint8_t start[SELECTION_CELL_MAX + 1][SELECTION_OCTAVES * SELECTION_STEPS];
};

void selection_tables_init(struct selection_tables *self);

struct selection {
    const struct selection_tables *tables;
    uint32_t elements, top_k; // n and k
    uint32_t bits;
    uint32_t shift, marks, cells, cell;
    uint32_t count_max;     // Of one cell
    struct selection_word { // By count
        uint16_t word;
        uint8_t bits, rank_bits;
    } words[SELECTION_CELL_MAX + 1];
    struct selection_found { // By the next SELECTION_WORD_BITS bits
        uint8_t count, bits; // No bits: no word begins like this
    } found[1 << SELECTION_WORD_BITS];
};

// Borrows `tables` for its life. 1 <= top_k <= elements <= 65536 (ensured).
void selection_init(struct selection *self, const struct selection_tables *tables,
                    uint32_t elements, uint32_t top_k);

// `numbers` ascending and below n, count <= k (ensured); their signs are those of `values`.
void selection_write(const struct selection *self, const uint16_t *numbers, const float *values,
                     uint32_t count, struct bits_writer *bits);

struct selection_reading {
    struct bits bits;
    uint64_t at;       // Its first bit
    uint16_t *numbers; // Room for k
    uint32_t count;    // The rest is written by selection_read_each
    uint64_t signs;    // Their first bit
};

// Reads selections of one kind: several at once, which is faster than one after the other. Total: any
// bits give 0 or the first fault, which is in each[*ret_done]. FAULT_FORMAT: bits that selection_write
// does not write. FAULT_RANGE: a rank or a number beyond the last, or a number not above the one
// before.
int selection_read_each(const struct selection *self, struct selection_reading *each,
                        uint32_t count, struct why *why, uint32_t *ret_done);
