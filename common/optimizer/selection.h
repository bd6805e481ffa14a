#pragma once
// selection -- which coefficients of a chunk were chosen, and their signs, as a string of bits that is never longer
// than `bits`. For chunks with too many chosen coefficients for one number (combination.h).
//
//     number   of a coefficient: high·2^shift + low. The shift is the largest that leaves
//              ⌊n/2^shift⌋ >= 8·k, or 0
//     mark     of the coefficient at place i (0..k-1): high + i, so that marks ascend where highs repeat. All
//              marks are below `marks` = ⌈n/2^shift⌉ + k. If the shift is 0 the mark is the number, and
//              `marks` is n
//     cell     a range of `cell` marks. There are ⌈marks/64⌉ cells of equal size; the last may end early
//
//     the bits, from the lowest of a byte up
//       each cell     the word for its count c of chosen marks; then which ones they are (a_0 < a_1 < ..): their
//                     rank Σ C(a_i, i+1) over i < c, in ⌈log2 C(cell, c)⌉ bits (combination.h)
//       each place    the low bits of its number
//       each place    1 bit: negative
//       zeros up to `bits`
//
// The code is a prefix code that follows from n and k. Its word for a count c has
//
//     min(10, ⌊(base + slope·c)/16⌋ - c - ⌈log2 C(cell, c)⌉) bits
//     bits = ⌊(cells·base + k·slope)/16⌋ + k·shift
//
// Of all base and slope, whole numbers, whose lengths have a prefix code (Kraft's inequality), those are taken that
// make `bits` least, and of these the least slope. So k coefficients never take more than `bits`, however they are
// spread over the cells: 64 of 1024 take 428 bits, where log2 of the number of choices is 405. Words are given out in
// order of length, those of one length in order of count; the first bit of a word is its lowest. At last the word
// for 0 is subtracted from the first bits of every word, modulo 2: so a cell without marks is zeros, and so is a
// selection without coefficients.
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
    // [i][octave and step of rank + 1]: the greatest a with C(a, i) <= the least rank of that step. For i > 1
    // C(a + 2, i) is above the step, so a search looks at C(a + 1, i) alone.
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
        uint8_t count, bits; // bits 0: no word begins like this
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
    uint32_t count;    // Written by selection_read_each: how many numbers
    uint64_t signs;    // Written too: the first bit of their signs
};

// Reads several selections of one kind at once, which is faster than one after the other. Total: any bits give 0, or
// the fault of the first bad selection, each[*ret_done]. FAULT_FORMAT: bits that selection_write never writes.
// FAULT_RANGE: a rank or a number that is too large, or numbers that do not ascend.
int selection_read_each(const struct selection *self, struct selection_reading *each,
                        uint32_t count, struct why *why, uint32_t *ret_done);
