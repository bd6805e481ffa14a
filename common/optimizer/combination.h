#pragma once
// combination -- which few coefficients of a chunk were chosen, and their signs, as one number.
//
//     state    count c of 0..k, c numbers below n in ascending order, c signs
//     number   first[c] + rank·2^c + signs          0 <= number < first[k+1], every one is a state
//     rank     Σ C(a_i, i+1) over i < c             the combinatorial number system (Knuth,
//     first    first[c+1] = first[c] + C(n,c)·2^c   The Art of Computer Programming, 7.2.1.3 L)
//
// Bit i of `signs` is set where the value at place i is negative. So a state has one number and a
// number one state, and no code of a fixed size is shorter: 8 of 4096 take 89 bits, where 8 numbers
// of 12 bits, 8 signs and a count take 108. Exact integers throughout, 128 bits wide: for that
// k·⌈log2 n⌉ must not exceed 128.
//
// Pure; a struct combination is immutable once initialised, any thread.

#include <stdbool.h>
#include <stdint.h>

enum { COMBINATION_COUNT_MAX = 25 }; // No k above has k·⌈log2 n⌉ <= 128 with n >= k

__extension__ typedef unsigned __int128 combination_number;

struct combination_divisor {    // Of a multiple of it: odd part and power of two apart
    combination_number inverse; // Of the odd part, modulo 2^128
    uint32_t shift;
};

// What brings a decoder close to a root at once: x^(1/i) of x = (1 + q/64)·2^e is about
// mantissa[q]·octave[e].
enum { COMBINATION_ROOT_STEPS = 64 };
struct combination_root {
    float octave[128], mantissa[COMBINATION_ROOT_STEPS + 1];
};

struct combination {
    uint32_t elements, top_k;                            // n and k
    uint32_t bits;                                       // ⌈log2 states⌉, at most 128
    combination_number first[COMBINATION_COUNT_MAX + 2]; // By count; [k+1] is how many states
    combination_number factorial[COMBINATION_COUNT_MAX + 1];
    struct combination_divisor by[COMBINATION_COUNT_MAX + 1];           // Divides by i
    struct combination_divisor by_factorial[COMBINATION_COUNT_MAX + 1]; // Divides by i!
    struct combination_root root[COMBINATION_COUNT_MAX + 1];
};

// Whether `top_k` of `elements` are few enough; 1 <= top_k <= elements <= 65536 (ensured).
bool combination_fits(uint32_t elements, uint32_t top_k);

void combination_init(struct combination *self, uint32_t elements,
                      uint32_t top_k); // Fits (ensured)

// `numbers` ascending and below n, count <= k (ensured), no sign at or above `count`.
combination_number combination_encode(const struct combination *self, const uint16_t *numbers,
                                      uint32_t signs, uint32_t count);

// Splits a number below first[k+1] (ensured) into count, signs and rank.
uint32_t combination_split(const struct combination *self, combination_number number,
                           uint32_t *ret_signs, combination_number *ret_rank);

// The parts that combination_split gave, to be decoded.
struct combination_state {
    combination_number rank; // combination_decode overwrites it
    uint32_t count;
    uint16_t *numbers; // Room for `count`
};

// The numbers of 1..COMBINATION_STATES_MAX states. One depends on the one before it, so a processor
// gets ahead only with several states at once: eight take little longer than three.
enum { COMBINATION_STATES_MAX = 8 };
void combination_decode(const struct combination *self, struct combination_state *states,
                        uint32_t count);
