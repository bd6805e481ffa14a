#pragma once
// generate -- text from a model: the next token chosen from its logits, again and again.
//
//     logits ─▶ / temperature ─▶ the top_k likeliest ─▶ of them the likeliest that make up top_p
//            ─▶ one of those, in proportion to its probability
//
// As transformers does it (Fan and others 2018, "Hierarchical Neural Story Generation"; Holtzman
// and others 2020, "The Curious Case of Neural Text Degeneration"). The same seed, parameters and
// prompt give the same tokens on every machine: no bit depends on a C library. Of equal
// logits the lowest token counts as the likelier.

#include "common/model/decoder.h"

enum { GENERATE_MAX = 1 << 20 }; // Tokens of prompt and of text, each

struct generate_options {
    uint64_t seed;
    float temperature;    // 0: always the likeliest; else 0.01..10
    uint32_t top_k;       // 0: all
    float top_p;          // Above 0; 1: all
    const uint32_t *ends; // Tokens that end a text, `ends_count` of them; borrowed
    uint32_t ends_count;
};

// FAULT_RANGE with the option, its value and its range.
int generate_check(const struct generate_options *options, struct why *why);

// A token, from `vocab` finite logits. `scratch` is memory for as many candidates; `state` begins with the seed
// and goes on from draw to draw.
struct generate_candidate {
    float logit;
    uint32_t token;
};
uint32_t generate_choose(const struct generate_options *options, const float *logits,
                         uint32_t vocab, struct generate_candidate *scratch, uint64_t *state);

// Writes `count` tokens that follow the prompt of 1 or more; fewer if one of `ends` comes, which is
// not among them. *ret_count, which may be NULL, is their number. What the decoder holds of the prompt's
// beginning already is not read again. When its window is full, the older half is forgotten and
// the newer half is read again: on average a token then costs about two tokens' work. FAULT_RANGE,
// FAULT_NAN, FAULT_MEMORY.
int generate(decoder_t *decoder, const uint32_t *prompt, uint32_t prompt_count,
             const struct generate_options *options, uint32_t count, struct why *why,
             uint32_t *ret_tokens, uint32_t *ret_count);
