#pragma once
// payload_block -- where the blocks of a payload lie. Private to payload.c, payload_form.c and payload_check.c.
// payload.h describes the format.

#include "common/optimizer/bits.h"
#include "common/optimizer/combination.h"
#include "common/optimizer/payload.h"
#include "common/optimizer/selection.h"

struct blocks {      // What the blocks of one tensor's chunks look like
    uint64_t begin;  // First bit of the first one, in the payload
    uint64_t end;    // Behind the last one
    size_t values;   // Where the first chunk's values are
    uint32_t chunks; // Of the tensor
    uint32_t shared; // Chunks in a block; the last block may have fewer
    uint32_t bits;   // Of a block; the last block may have fewer
    uint32_t top_k;
    bool joins;                            // Begins within the group of the chunk before
    const struct combination *combination; // One of these two; the other is NULL
    const struct selection *selection;
};

struct payload_form {
    const chunks_t *chunks;
    uint32_t top_k;
    bool one_bit;
    size_t values; // Where they begin: behind header and blocks
    size_t bytes;
    struct combination **combinations; // One per kind of chunk that needs one
    struct selection **selections;
    uint32_t combination_count, selection_count;
    struct selection_tables *tables; // NULL: no selection yet
    struct blocks blocks[];          // By part of the chunks
};

struct block { // As one chunk sees it
    const struct blocks *blocks;
    uint64_t at; // Its first bit
    uint32_t bits;
    uint32_t place; // Of the chunk in it
    bool last;      // It is the last chunk of the block
    size_t values;  // The chunk's first value
};

static inline struct block block_of(const struct blocks *blocks, uint32_t number)
{
    const uint32_t place = number % blocks->shared;
    const uint64_t at = blocks->begin + (uint64_t)(number / blocks->shared) * blocks->bits;
    const uint64_t left = blocks->end - at;
    return (struct block){ .blocks = blocks,
                           .at = at,
                           .bits = left < blocks->bits ? (uint32_t)left : blocks->bits,
                           .place = place,
                           .last = place + 1 == blocks->shared || number + 1 == blocks->chunks,
                           .values =
                               blocks->values + (size_t)number * blocks->top_k * sizeof(float) };
}

static inline struct bits bits_in(const payload_form_t *self, const uint8_t *bytes)
{
    return (struct bits){ bytes, self->values };
}

// The 32 bytes at the front of every payload of a form.
void payload_write_header(const payload_form_t *self, uint8_t *ret_bytes);

// How many states a chunk of a combination has.
static inline combination_number states_of(const struct combination *self)
{
    return self->first[self->top_k + 1];
}

// The factor of the chunk's state in the number of its block: states^place.
static inline uint64_t worth_of(const struct block *block)
{
    uint64_t worth = 1;
    for (uint32_t i = 0; i < block->place; i++)
        worth *= (uint64_t)states_of(block->blocks->combination);
    return worth;
}

// The chunk's state. If the number of the block is too large, the state of its last chunk is: it takes the rest.
static inline combination_number state_in(const struct block *block, const struct bits *bits)
{
    const combination_number number = bits_number_at(bits, block->at, block->bits);
    if (block->blocks->shared == 1) return number;
    const uint64_t above = (uint64_t)number / worth_of(block);
    return block->last ? above : above % (uint64_t)states_of(block->blocks->combination);
}

// The bits of value i of a block.
static inline uint32_t value_at(const uint8_t *values, uint32_t i)
{
    return (uint32_t)le_get(values + 4 * (size_t)i, 4);
}
