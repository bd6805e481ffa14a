// A payload is valid if it is the only encoding of what it says. So the check covers size, header,
// each number, each sign and value, and that every unused bit is zero. The first fault names its
// place.
#include "common/optimizer/distro_kernels.h"
#include "common/optimizer/payload_block.h"

#include <inttypes.h>

// Gives the number of coefficients of one block, and their signs.
static int check_combination(const struct block *block, const struct bits *bits,
                             uint32_t *ret_count, uint32_t *ret_signs, struct why *why)
{
    const struct combination *combination = block->blocks->combination;
    const combination_number number = state_in(block, bits);
    const combination_number states = states_of(combination);
    if (number >= states)
        return why_set(
            why, FAULT_RANGE,
            "a combination 0x%" PRIx64 "%016" PRIx64 ", it must be below 0x%" PRIx64 "%016" PRIx64,
            (uint64_t)(number >> 64), (uint64_t)number, (uint64_t)(states >> 64), (uint64_t)states);
    combination_number rank;
    *ret_count = combination_split(combination, number, ret_signs, &rank);
    return 0;
}

// The value must agree with its sign bit, so that there is one encoding.
static int check_value(uint32_t pattern, bool used, uint32_t negative, uint32_t place,
                       struct why *why)
{
    const uint32_t magnitude = pattern & 0x7fffffffu;
    if (!used) {
        if (pattern == 0) return 0;
        return why_set(why, FAULT_FORMAT, "place %u is unused and has a value, it must be 0",
                       place);
    }
    if (magnitude >= DISTRO_VALUE_LIMIT_BITS)
        return why_set(why, FAULT_NAN,
                       "value 0x%08" PRIx32 " at place %u, it must be finite and below 2^64",
                       pattern, place);
    if (magnitude == 0 || pattern >> 31 != negative)
        return why_set(why, FAULT_FORMAT,
                       "value 0x%08" PRIx32 " at place %u with sign bit %u, it must not be zero"
                       " and must have that sign",
                       pattern, place, negative);
    return 0;
}

// `signs` has a bit for each place that is used, from bit `at` on.
static int check_values(const struct block *block, uint32_t count, const struct bits *signs,
                        uint64_t at, const uint8_t *bytes, struct why *why)
{
    for (uint32_t i = 0; i < block->blocks->top_k; i++) {
        const uint32_t negative = i < count && bits_at(signs, at + i) & 1;
        const int rc = check_value(value_at(bytes + block->values, i), i < count, negative, i, why);
        if (rc < 0) return rc;
    }
    return 0;
}

static int check_block(const payload_form_t *self, const struct block *block, const uint8_t *bytes,
                       uint16_t *numbers, struct why *why)
{
    const struct bits bits = bits_in(self, bytes);
    uint32_t count = 0, few = 0;
    uint64_t at = 0;
    const int rc =
        block->blocks->combination
            ? check_combination(block, &bits, &count, &few, why)
            : selection_read(block->blocks->selection, &bits, block->at, why, numbers, &count, &at);
    if (rc < 0 || self->one_bit) return rc;
    uint8_t signs[4];
    le_put(signs, few, sizeof signs);
    const struct bits of_few = { signs, sizeof signs };
    return check_values(block, count, block->blocks->combination ? &of_few : &bits, at, bytes, why);
}

// Of the blocks of a tensor and the bits behind them, up to the next one's.
static int check_tensor(const payload_form_t *self, uint32_t number, const uint8_t *bytes,
                        uint16_t *numbers, struct why *why)
{
    const struct blocks *blocks = &self->blocks[number];
    for (uint32_t i = 0; i < blocks->chunks; i++) {
        const struct block block = block_of(blocks, i);
        const int rc = check_block(self, &block, bytes, numbers, why);
        if (rc < 0)
            return why_wrap(why, rc, "payload refused at chunk %u (tensor %u)",
                            chunks_part(self->chunks, number)->first + i, number);
    }
    const bool ends = number + 1 == chunks_parts(self->chunks);
    const uint64_t next = ends ? 8 * (uint64_t)self->values : blocks[1].begin;
    const struct bits bits = bits_in(self, bytes);
    if (!bits_are_zero(&bits, blocks->end, next))
        return why_set(why, FAULT_FORMAT,
                       "bits behind the last block of tensor %u, they must be 0; refused", number);
    return 0;
}

int payload_check(const payload_form_t *self, const uint8_t *bytes, size_t count, struct why *why)
{
    if (count != self->bytes)
        return why_set(why, FAULT_FORMAT, "a payload of %zu bytes, it must be %zu; refused", count,
                       self->bytes);
    uint8_t header[PAYLOAD_HEADER_BYTES];
    payload_write_header(self, header);
    for (size_t i = 0; i < sizeof header; i++)
        if (bytes[i] != header[i])
            return why_set(why, FAULT_FORMAT,
                           "byte %zu of the header is 0x%02x, it must be 0x%02x; refused", i,
                           bytes[i], header[i]);
    uint16_t numbers[DISTRO_ELEMENTS_MAX];
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < chunks_parts(self->chunks); i++)
        rc = check_tensor(self, i, bytes, numbers, why);
    return rc;
}
