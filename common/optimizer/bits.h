#pragma once
// bits -- strings of bits in bytes, from the lowest bit of a byte up. Private to the payload's
// sources.

#include "common/base/bytes.h"

#include <stdbool.h>

__extension__ typedef unsigned __int128 bits_number; // Up to 128 of them

// ---- reading, from any bit on: the caller says where, so a reader has no state

struct bits {
    const uint8_t *bytes;
    size_t size; // Bits behind it are read as zeros
};

// Nine bytes hold any 64 bits.
static inline uint64_t bits_window(const uint8_t bytes[9], uint32_t skipped)
{
    return le_get(bytes, 8) >> skipped | (uint64_t)bytes[8] << 1 << (63 - skipped);
}

static inline uint64_t bits_window_at_end(const struct bits *self, size_t byte, uint32_t skipped)
{
    uint8_t rest[9] = { 0 };
    for (size_t i = 0; i < sizeof rest && byte + i < self->size; i++)
        rest[i] = self->bytes[byte + i];
    return bits_window(rest, skipped);
}

// The 64 bits from bit `at` on.
static inline uint64_t bits_at(const struct bits *self, uint64_t at)
{
    const size_t byte = at / 8;
    return byte + 9 <= self->size ? bits_window(self->bytes + byte, at % 8)
                                  : bits_window_at_end(self, byte, at % 8);
}

// The lowest `width` bits, 0..63.
static inline uint64_t bits_low(uint64_t bits, uint32_t width)
{
    return bits & ((UINT64_C(1) << width) - 1);
}

// A number of `width` bits, 1..128.
static inline bits_number bits_number_at(const struct bits *self, uint64_t at, uint32_t width)
{
    const uint64_t low = bits_at(self, at);
    if (width <= 64) return width == 64 ? low : bits_low(low, width);
    const uint64_t high = bits_at(self, at + 64);
    return (bits_number)(width == 128 ? high : bits_low(high, width - 64)) << 64 | low;
}

// Whether the bits from `at` to `end` are all zero.
static inline bool bits_are_zero(const struct bits *self, uint64_t at, uint64_t end)
{
    for (; at + 64 <= end; at += 64)
        if (bits_at(self, at) != 0) return false;
    return at >= end || bits_low(bits_at(self, at), (uint32_t)(end - at)) == 0;
}

// ---- writing, one after the other. Only bytes that get a bit are touched. A bit is added, modulo 2, to the one that
// is there: the bytes must be zero where bits are to be set.

struct bits_writer {
    uint8_t *to;
    uint64_t held;
    uint32_t count; // Of held bits, below 8 between writes
};

static inline struct bits_writer bits_writer_at(uint8_t *bytes, uint64_t at)
{
    return (struct bits_writer){ .to = bytes + at / 8, .count = at % 8 };
}

static inline void bits_write(struct bits_writer *self, uint32_t value, uint32_t width)
{
    self->held |= (uint64_t)value << self->count;
    self->count += width;
    for (; self->count >= 8; self->count -= 8, self->held >>= 8) *self->to++ ^= (uint8_t)self->held;
}

// Bits of several places, collected before they are written.
struct bits_row {
    uint64_t held;
    uint32_t count;
};

static inline void bits_collect(struct bits_row *self, uint32_t value, uint32_t width,
                                struct bits_writer *to)
{
    self->held |= (uint64_t)value << self->count;
    self->count += width;
    if (self->count < 32) return;
    bits_write(to, (uint32_t)self->held, 32);
    self->held >>= 32;
    self->count -= 32;
}

static inline void bits_write_number(struct bits_writer *self, bits_number number, uint32_t width)
{
    for (; width > 32; width -= 32, number >>= 32) bits_write(self, (uint32_t)number, 32);
    bits_write(self, (uint32_t)number, width);
}

static inline void bits_flush(const struct bits_writer *self)
{
    if (self->count > 0) *self->to ^= (uint8_t)self->held;
}
