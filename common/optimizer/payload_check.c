// A payload is valid if it is the only encoding of what it says. So the check covers size, header,
// each number, each sign and value, and that every unused bit is zero. The first fault names its
// place.
#include "common/optimizer/distro_kernels.h"
#include "common/optimizer/payload_block.h"

#include <inttypes.h>

// Reads the combination of one block. Gives the number of coefficients, and a reader of their
// signs.
static int check_combination(const struct combination *combination, struct bits *bits,
                             uint32_t *ret_count, struct bits *ret_signs, struct why *why)
{
    const combination_number number = bits_read_number(bits, combination->bits);
    const combination_number states = combination->first[combination->top_k + 1];
    if (number >= states)
        return why_set(
            why, FAULT_RANGE,
            "a combination 0x%" PRIx64 "%016" PRIx64 ", it must be below 0x%" PRIx64 "%016" PRIx64,
            (uint64_t)(number >> 64), (uint64_t)number, (uint64_t)(states >> 64), (uint64_t)states);
    combination_number rank;
    uint32_t signs;
    *ret_count = combination_split(combination, number, &signs, &rank);
    *ret_signs = (struct bits){ .held = signs, .count = 64 };
    return 0;
}

static int check_fields(const struct blocks *blocks, struct bits *bits, uint32_t *ret_count,
                        struct bits *ret_signs, struct why *why)
{
    const uint32_t count = bits_read(bits, blocks->count_bits);
    if (count > blocks->top_k)
        return why_set(why, FAULT_FORMAT, "%u coefficients, it must be 0..%u", count,
                       blocks->top_k);
    uint32_t floor = 0; // The lowest number that may come next
    for (uint32_t i = 0; i < blocks->top_k; i++) {
        const uint32_t number = bits_read(bits, blocks->number_bits);
        if (i >= count) {
            if (number != 0)
                return why_set(why, FAULT_FORMAT, "place %u is unused and holds %u, it must hold 0",
                               i, number);
            continue;
        }
        if (number >= blocks->elements || number < floor)
            return why_set(why, FAULT_RANGE, "coefficient number %u at place %u, it must be %u..%u",
                           number, i, floor, blocks->elements - 1);
        floor = number + 1;
    }
    *ret_count = count;
    *ret_signs = *bits;
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

static int check_values(const payload_form_t *self, uint32_t top_k, uint32_t count,
                        struct bits *signs, const uint8_t *values, struct why *why)
{
    for (uint32_t i = 0; i < top_k; i++) {
        const uint32_t negative = bits_read(signs, 1);
        if (i >= count && negative)
            return why_set(why, FAULT_FORMAT, "place %u is unused and has a sign, it must be 0", i);
        const int rc =
            self->one_bit ? 0 : check_value(value_at(values, i), i < count, negative, i, why);
        if (rc < 0) return rc;
    }
    return 0;
}

static int check_block(const payload_form_t *self, const struct block *block, const uint8_t *bytes,
                       struct why *why)
{
    const struct blocks *blocks = block->blocks;
    struct bits bits = bits_from(bytes + blocks->begin, block->at), signs = bits;
    uint32_t count = 0;
    const int rc = blocks->combination
                       ? check_combination(blocks->combination, &bits, &count, &signs, why)
                       : check_fields(blocks, &bits, &count, &signs, why);
    if (rc < 0 || (self->one_bit && blocks->combination)) return rc;
    return check_values(self, blocks->top_k, count, &signs, bytes + block->values, why);
}

static int check_tensor(const payload_form_t *self, uint32_t number, const uint8_t *bytes,
                        struct why *why)
{
    const struct blocks *blocks = &self->blocks[number];
    const struct chunks_part *part = chunks_part(self->chunks, number);
    for (uint32_t i = 0; i < part->count; i++) {
        const struct block block = block_of(blocks, i);
        const int rc = check_block(self, &block, bytes, why);
        if (rc < 0)
            return why_wrap(why, rc, "payload refused at chunk %u (tensor %u)", part->first + i,
                            number);
    }
    const uint64_t used = (uint64_t)part->count * blocks->bits;
    if (used % 8 != 0 && bytes[blocks->values - 1] >> used % 8 != 0)
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
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < chunks_parts(self->chunks); i++)
        rc = check_tensor(self, i, bytes, why);
    return rc;
}
