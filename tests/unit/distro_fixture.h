#pragma once
// What the tests of DisTrO share: a small vector with every kind of tensor, and seeded numbers.

#include <stdint.h>

#include "common/optimizer/payload.h"
#include "tests/test.h"

enum {
    FIXTURE_TENSORS = 7,
    FIXTURE_TOTAL = 19002,
    FIXTURE_END = 18997,
    FIXTURE_HOLE = 96,
    FIXTURE_HOLE_END = 101
};

// Sides that are powers of two, odd, and 1; a hole behind the first tensor.
static const struct chunks_tensor fixture_tensors[FIXTURE_TENSORS] = {
    { 0, 1, 96 },      { 101, 64, 128 },  { 8293, 40, 64 },   { 10853, 1, 7 },
    { 10860, 63, 33 }, { 12939, 13, 16 }, { 13147, 45, 130 },
};
_Static_assert(FIXTURE_END == 13147 + 45 * 130, "the tensors fit");

static inline uint64_t fixture_random(uint64_t *seed) // xorshift64*
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 0x2545f4914f6cdd1dULL;
}

// In [-1, 1), multiples of 2^-23.
static inline float fixture_float(uint64_t *seed)
{
    return (float)(int32_t)(fixture_random(seed) >> 40) / 8388608.0f - 1.0f;
}

static inline chunks_t *fixture_chunks(uint32_t limit)
{
    struct why why = { "" };
    chunks_t *chunks = NULL;
    if (chunks_new(fixture_tensors, FIXTURE_TENSORS, FIXTURE_TOTAL, limit, &why, &chunks) < 0)
        fail_msg("%s", why.text);
    return chunks;
}

static inline payload_form_t *fixture_form(const chunks_t *chunks, uint32_t top_k, bool one_bit)
{
    struct why why = { "" };
    payload_form_t *form = NULL;
    if (payload_form_new(chunks, top_k, one_bit, &why, &form) < 0) fail_msg("%s", why.text);
    return form;
}
