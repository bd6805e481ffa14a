#pragma once
// payload_block -- where the blocks of a payload lie and how their bits are read. Private to
// payload.c and payload_check.c. payload.h describes the format.

#include "common/base/bytes.h"
#include "common/optimizer/combination.h"
#include "common/optimizer/payload.h"

struct blocks {    // What the blocks of one tensor's chunks look like
    size_t begin;  // Of the first one, in the payload
    size_t values; // Where the first one's values are
    size_t end;    // Of all
    uint32_t bits; // Of each
    uint32_t top_k, elements;
    uint32_t count_bits, number_bits;      // Of fields
    const struct combination *combination; // NULL: fields
};

struct payload_form {
    const chunks_t *chunks;
    uint32_t top_k;
    bool one_bit;
    size_t bytes;
    struct combination **combinations; // One per kind of chunk
    uint32_t combination_count;
    struct blocks blocks[]; // By part of the chunks
};

struct block {
    const struct blocks *blocks;
    uint64_t at;   // Its first bit, from blocks->begin
    size_t values; // Its first value
};

static inline struct block block_of(const struct blocks *blocks, uint32_t number)
{
    return (struct block){ blocks, (uint64_t)number * blocks->bits,
                           blocks->values + (size_t)number * blocks->top_k * sizeof(float) };
}

// The 32 bytes at the front of every payload of a form.
void payload_write_header(const payload_form_t *self, uint8_t *ret_bytes);

// ---- bits, from the lowest of a byte up

struct bits {    // From some bit on
    uint8_t *to; // Zeros so far, where nothing was written
    const uint8_t *from;
    uint64_t held;
    uint32_t count;
};

static inline struct bits bits_from(const uint8_t *bytes, uint64_t at)
{
    const uint32_t skipped = at % 8;
    struct bits bits = { .from = bytes + at / 8 };
    if (skipped != 0)
        bits = (struct bits){ NULL, bits.from + 1, *bits.from >> skipped, 8 - skipped };
    return bits;
}

// The caller makes sure that `width` bits are left.
static inline uint32_t bits_read(struct bits *self, uint32_t width)
{
    for (; self->count < width; self->count += 8)
        self->held |= (uint64_t)*self->from++ << self->count;
    const uint32_t value = (uint32_t)(self->held & ((UINT64_C(1) << width) - 1));
    self->held >>= width;
    self->count -= width;
    return value;
}

static inline combination_number bits_read_number(struct bits *self, uint32_t width)
{
    combination_number number = 0;
    uint32_t at = 0;
    for (; at + 32 < width; at += 32) number |= (combination_number)bits_read(self, 32) << at;
    return number | (combination_number)bits_read(self, width - at) << at;
}

// The bits of value i of a block.
static inline uint32_t value_at(const uint8_t *values, uint32_t i)
{
    return (uint32_t)le_get(values + 4 * (size_t)i, 4);
}
