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

// Checks the values of a chunk. `signs` has one bit for each place that is used, from bit `at` on.
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

// Checks one or more blocks of a tensor from *first on, and moves *first behind the last sound one: after a fault it
// is the block with the fault.
typedef int check_some(const payload_form_t *self, const struct blocks *blocks, uint32_t *first,
                       const uint8_t *bytes, uint16_t *numbers, struct why *why);

static int check_one_number(const payload_form_t *self, const struct blocks *blocks,
                            uint32_t *first, const uint8_t *bytes, uint16_t *numbers,
                            struct why *why)
{
    const struct block block = block_of(blocks, *first);
    const struct bits bits = bits_in(self, bytes);
    uint32_t count = 0, negative = 0;
    uint8_t signs[4];
    (void)numbers;
    int rc = check_combination(&block, &bits, &count, &negative, why);
    if (rc == 0 && !self->one_bit) {
        le_put(signs, negative, sizeof signs);
        rc = check_values(&block, count, &(struct bits){ signs, sizeof signs }, 0, bytes, why);
    }
    *first += rc == 0;
    return rc;
}

// Several at once. If there are values to check as well, only one selection at a time, so that the first fault of the
// payload is the one that is reported.
static int check_selections(const payload_form_t *self, const struct blocks *blocks,
                            uint32_t *first, const uint8_t *bytes, uint16_t *numbers,
                            struct why *why)
{
    struct selection_reading each[PAYLOAD_READ_MAX];
    const uint32_t room = DISTRO_ELEMENTS_MAX / blocks->top_k; // Selections, in `numbers`
    uint32_t count = self->one_bit ? PAYLOAD_READ_MAX : 1, done;
    if (count > room) count = room;
    if (count > blocks->chunks - *first) count = blocks->chunks - *first;
    for (uint32_t i = 0; i < count; i++)
        each[i] = (struct selection_reading){ .bits = bits_in(self, bytes),
                                              .at = block_of(blocks, *first + i).at,
                                              .numbers = numbers + i * blocks->top_k };
    int rc = selection_read_each(blocks->selection, each, count, why, &done);
    if (rc == 0 && !self->one_bit) {
        const struct block block = block_of(blocks, *first);
        rc = check_values(&block, each->count, &each->bits, each->signs, bytes, why);
        done = rc == 0;
    }
    *first += done;
    return rc;
}

// Checks the blocks of a tensor, and the bits behind them up to the next tensor's blocks.
static int check_tensor(const payload_form_t *self, uint32_t number, const uint8_t *bytes,
                        uint16_t *numbers, struct why *why)
{
    const struct blocks *blocks = &self->blocks[number];
    check_some *check = blocks->combination ? check_one_number : check_selections;
    for (uint32_t i = 0; i < blocks->chunks;) {
        const int rc = check(self, blocks, &i, bytes, numbers, why);
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
