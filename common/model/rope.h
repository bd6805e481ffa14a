#pragma once
// rope -- how far each position turns each pair of a head: rotary embedding (Su and others 2021,
// "RoFormer") and its scalings to longer texts, as Hugging Face computes them.
//
//     default  f(i) = theta^(-2i / head_dim), turns per position of pair i, in radians
//     linear   f(i) / factor                   Chen and others 2023, "Extending context window"
//     llama3   f(i) where a whole turn takes fewer than original / high_freq_factor positions,
//              f(i) / factor where it takes more than original / low_freq_factor; between the two,
//              blended in proportion to turns   Llama Team 2024, as published with Llama 3.1
//     yarn     f(i) for pairs that turn more than beta_fast times in `original` positions,
//              f(i) / factor for those that turn less than beta_slow times, between the two blended
//              in proportion to i; sines and cosines times attention_factor
//                                               Peng and others 2023, "YaRN", sections 3.2 to 3.4
//
// Formulas: transformers 5.23, modeling_rope_utils.py; theirs round to float32 on the way, ours are
// double, rounded once. From elementary.h alone, so the bits are the same everywhere. Pure; any
// thread.

#include "common/base/fault.h"

#include <stdbool.h>
#include <stdint.h>

enum rope_type { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_TYPES };
enum { ROPE_POSITIONS_MAX = 1 << 20 };

struct rope_scaling { // All zero: none
    enum rope_type type;
    double factor;     // linear, llama3, yarn: 1..1e6
    uint32_t original; // llama3, yarn: positions it was first trained on, 1..2^20
    double low_freq_factor, high_freq_factor; // llama3: 1e-3..1e6, the high one above the low one
    double beta_fast, beta_slow;              // yarn: 1e-3..1e6, the fast one above the slow one
    double attention_factor;                  // yarn: 1e-3..100
    bool truncate;                            // yarn: the ends of the blend are whole numbers
};

// "default", "linear", "llama3", "yarn": the rope_type of a config.json.
const char *rope_type_name(enum rope_type type);

// 0, or FAULT_RANGE with the field, its value and its range. theta: 1..1e9, with yarn above 1.
int rope_check(const struct rope_scaling *scaling, double theta, struct why *why);

// The default of yarn's attention_factor: 0.1 log(factor) + 1.
double rope_attention_factor(double factor);

// head_dim / 2 frequencies, f(i) after scaling. head_dim is even and at most 512 (ensured).
void rope_fill_frequencies(const struct rope_scaling *scaling, double theta, uint32_t head_dim,
                           double *ret_frequencies);

// Tables [positions][head_dim / 2] of what turns pair i (numbers i and i + head_dim / 2 of a head)
// at position p: the cosine and sine of p f(i), with yarn times attention_factor.
void rope_fill_tables(const struct rope_scaling *scaling, double theta, uint32_t head_dim,
                      uint32_t positions, float *ret_cosine, float *ret_sine);
