#pragma once
// payload -- the canonical bytes of a DisTrO result: for each chunk, the coefficients that were
// chosen.
//
//     header, 32 bytes, little-endian             the blocks of all chunks, bits from the lowest of
//       0  "SDP3"                                 a byte up
//       4  u16 chunk limit (compression_chunk)      few places: a number (combination.h)
//       6  u16 top_k as configured                  many: a selection (selection.h)
//       8  u32 flags: 1 = one-bit values          zeros up to a whole byte
//      12  u32 chunks                             unless one-bit: each chunk's k float32 values
//      16  u64 floats in the vector
//      24  u64 floats in the chunks
//
// k is the chunk's share of top_k: what it is to a full chunk in elements, rounded, at least 1 and
// at most all. (A full chunk has limit x limit elements; of a tensor of one row, limit.) So every
// shape of model sends alike per parameter. Numbers of coefficients are strictly ascending
// (chunks.h says which is which); values from `count` on are zero; a value is finite, not zero and
// below 2^64. A coefficient that is zero is not sent: one bit cannot say zero, and an embedding row
// that no sample touched must not move.
//
// Few places: k·⌈log2(elements)⌉ is at most 128. If a chunk has fewer than 2^16 states, up to 8 chunks of
// a tensor, as many as fit 64 bits, share one number: Σ state_i·states^i, in ⌈log2 states^chunks⌉
// bits. Blocks lie back to back, but a tensor whose blocks take 256 bits or more begins at a whole
// byte, with zeros before it.
//
// So one result has one encoding, and its size follows from the form alone: no length from outside
// is ever believed. The entropy of a block is log2 of how many contents its chunk can have,
// Σ C(elements, c)·2^c over c = 0..k, and 32 bits for each of k values that is not one-bit. The size
// of a payload is at most the header and 1.1 times the entropy of its blocks, in whole bytes
// (payload_test.c has the settings). A 64 x 64 chunk with k = 8 takes 89 bits, which is its entropy
// in whole bits; a 32 x 32 chunk with k = 64 takes 428, its entropy is 405.

#include "common/optimizer/chunks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAYLOAD_HEADER_BYTES = 32, PAYLOAD_TOP_K_MAX = 65535, PAYLOAD_FLAG_ONE_BIT = 1 };

typedef struct payload_form payload_form_t;

// Borrows `chunks` for its whole life. `top_k` is 1..PAYLOAD_TOP_K_MAX. FAULT_RANGE or
// FAULT_MEMORY. Immutable once made; any thread.
int payload_form_new(const chunks_t *chunks, uint32_t top_k, bool one_bit, struct why *why,
                     payload_form_t **ret_form);
// The form of a model's payloads, with its chunks, which the caller destroys after it. Every member
// gets the same from the shape and the run's settings; no parameters are needed. Arguments and
// faults are those of chunks_of_model and payload_form_new; after a fault neither is made.
int payload_form_of_model(const struct model_shape *shape, uint32_t limit, uint32_t top_k,
                          bool one_bit, struct why *why, chunks_t **ret_chunks,
                          payload_form_t **ret_form);
void payload_form_destroy(payload_form_t **self); // NULL is allowed

const chunks_t *payload_chunks(const payload_form_t *self);
bool payload_one_bit(const payload_form_t *self);
uint32_t payload_top_k(const payload_form_t *self, uint32_t chunk); // k of that chunk
size_t payload_bytes(const payload_form_t *self);                   // Of every payload of this form

// Total: any bytes give 0 or a fault with the place in *why. FAULT_FORMAT: size, header, or an
// encoding that is not canonical. FAULT_RANGE: a number outside its chunk, or not above the one
// before. FAULT_NAN: a value that is not finite or too large.
int payload_check(const payload_form_t *self, const uint8_t *bytes, size_t count, struct why *why);

// An empty payload: the header, and no coefficient of any chunk.
void payload_clear(const payload_form_t *self, uint8_t *ret_bytes);

// Writes one chunk's block, once after payload_clear. `numbers` ascending, count <= k (ensured);
// values are not zero. Threads may write chunks of different groups of one payload.
void payload_write(const payload_form_t *self, uint32_t chunk, const uint16_t *numbers,
                   const float *values, uint32_t count, uint8_t *bytes);

// The content of one chunk's block in one payload. One-bit values come as +1 and -1.
struct payload_chosen {
    const uint8_t *bytes; // The payload, which payload_check has passed
    uint16_t *numbers;    // Room for payload_top_k of each
    float *values;
    uint32_t count; // How many they are
};

// Reads the block of one chunk in 1..PAYLOAD_READ_MAX payloads: in all at once, which is faster
// than one after the other. `bytes`, `numbers` and `values` are the caller's.
enum { PAYLOAD_READ_MAX = 8 };
void payload_read_each(const payload_form_t *self, uint32_t chunk, struct payload_chosen *chosen,
                       uint32_t count);

// The same of one payload. Returns how many.
uint32_t payload_read(const payload_form_t *self, uint32_t chunk, const uint8_t *bytes,
                      uint16_t *ret_numbers, float *ret_values);

// The sum of the squares of a chunk's values, in a payload that payload_check has passed and that
// is not one-bit (ensured). A square is exact in double; that of place i is added to sum i mod 8,
// then the upper half of the sums to the lower, 4, 2 and 1 of them: the same bits everywhere.
double payload_square_sum(const payload_form_t *self, uint32_t chunk, const uint8_t *bytes);

// Blocks share bytes, but only within a group of chunks, which ends at a whole byte. The first
// chunk of the group that holds `chunk`; chunks_count for chunks_count.
uint32_t payload_group(const payload_form_t *self, uint32_t chunk);
