#pragma once
// decoder -- a model that keeps what it has read: the keys and values of every token stay in a
// cache, so that the next token costs one token's work.
//
//     read 5 tokens ──▶ cache [0, 5)   logits of each, if wanted
//     read 1        ──▶ cache [0, 6)
//     rewind to 5   ──▶ cache [0, 5)   for another continuation of the same beginning
//
// The arithmetic is model.h's forward pass, with sums in another order: logits agree within 1e-4,
// not to the bit. Each number is one chain of its own, so the logits after a sequence have the same
// bits however it was read (all at once, one by one, after a rewind), for every number of threads
// and instruction set.
//
// Yardstick: for one token at a time, moving the parameters once through memory.

#include "common/kernel/pool.h"
#include "common/model/model_layout.h"

typedef struct decoder decoder_t;

// What decoder_new takes: the cache of seq_max positions, and scratch. seq_max is
// 1..model_seq_len (ensured).
uint64_t decoder_memory_bytes(const struct model_shape *shape, uint32_t seq_max, uint32_t threads);

// Borrows `params` (N floats) and `pool` (NULL: no threads) for its life. FAULT_RANGE for a shape
// or a length out of bounds, FAULT_MEMORY.
int decoder_new(const struct model_shape *shape, const float *params, uint32_t seq_max,
                pool_t *pool, struct why *why, decoder_t **ret_decoder);
void decoder_destroy(decoder_t **self); // NULL is allowed

const struct model_shape *decoder_shape(const decoder_t *self);
uint32_t decoder_seq_max(const decoder_t *self);
uint32_t decoder_count(const decoder_t *self);        // Tokens read: the cache is [0, count)
void decoder_rewind(decoder_t *self, uint32_t count); // Forgets all after the first `count`

// Rewinds to the longest common beginning of what was read and `tokens`; returns its length. A
// caller with many texts in turn thus reads a shared beginning once.
uint32_t decoder_keep(decoder_t *self, const uint32_t *tokens, uint32_t count);

// Reads `count` tokens more. ret_logits gets [wanted][vocab], those after each of the last `wanted`
// (0..count) tokens. FAULT_RANGE, and nothing read, for a token outside the vocabulary or more
// tokens than fit; FAULT_NAN, and nothing read, if a logit is not finite.
int decoder_read(decoder_t *self, const uint32_t *tokens, uint32_t count, uint32_t wanted,
                 struct why *why, float *ret_logits);
