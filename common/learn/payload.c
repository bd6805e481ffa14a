#include "common/learn/payload.h"
#include "common/ensure.h"
#include "common/learn/distro_kernels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct block {    // What the blocks of one tensor's chunks look like
    size_t begin; // Of the first one, in the payload
    size_t bytes; // Of each
    uint32_t top_k, elements;
    uint32_t count_bits, number_bits;
    uint32_t packed_bytes; // Of count, numbers and signs; values come behind
};

struct payload_form {
    const chunks_t *chunks;
    uint32_t top_k;
    bool one_bit;
    size_t bytes;
    struct block block[]; // By part of the chunks
};

static uint32_t bits_for(uint32_t largest)
{
    return largest == 0 ? 0 : 32 - (uint32_t)__builtin_clz(largest);
}

static struct block block_of(const struct chunks_part *part, uint32_t top_k, bool one_bit,
                             size_t begin)
{
    struct block block = {.begin = begin, .elements = part->elements};
    block.top_k = top_k < part->elements ? top_k : part->elements;
    block.count_bits = bits_for(block.top_k);
    block.number_bits = bits_for(part->elements - 1);
    block.packed_bytes = (block.count_bits + block.top_k * (block.number_bits + 1) + 7) / 8;
    block.bytes = block.packed_bytes + (one_bit ? 0 : block.top_k * sizeof(float));
    return block;
}

int payload_form_new(const chunks_t *chunks, uint32_t top_k, bool one_bit, struct why *why,
                     payload_form_t **ret_form)
{
    if (top_k < 1 || top_k > PAYLOAD_TOP_K_MAX)
        return why_set(why, FAULT_RANGE, "top-k is %u, it must be 1..%d; refused", top_k,
                       PAYLOAD_TOP_K_MAX);
    const uint32_t parts = chunks_parts(chunks);
    struct payload_form *self = calloc(1, sizeof *self + parts * sizeof self->block[0]);
    if (!self) return why_set(why, FAULT_MEMORY, "the form of payloads of %u tensors", parts);
    *self = (struct payload_form){
        .chunks = chunks, .top_k = top_k, .one_bit = one_bit, .bytes = PAYLOAD_HEADER_BYTES};
    for (uint32_t i = 0; i < parts; i++) {
        const struct chunks_part *part = chunks_part(chunks, i);
        self->block[i] = block_of(part, top_k, one_bit, self->bytes);
        self->bytes += part->count * self->block[i].bytes;
    }
    *ret_form = self;
    return 0;
}

void payload_form_destroy(payload_form_t **self)
{
    free(*self);
    *self = NULL;
}

const chunks_t *payload_chunks(const payload_form_t *self) { return self->chunks; }
size_t payload_bytes(const payload_form_t *self) { return self->bytes; }

uint32_t payload_top_k(const payload_form_t *self, uint32_t chunk)
{
    return self->block[chunks_part_of(self->chunks, chunk)].top_k;
}

// ---- little-endian integers and bits

static void put(uint8_t *bytes, uint64_t value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

struct bits {
    uint8_t *to;
    const uint8_t *from;
    uint64_t held;
    uint32_t count;
};

static void bits_write(struct bits *self, uint32_t value, uint32_t width)
{
    self->held |= (uint64_t)value << self->count;
    self->count += width;
    for (; self->count >= 8; self->count -= 8, self->held >>= 8) *self->to++ = (uint8_t)self->held;
}

// The caller knows that the block has so many bits.
static uint32_t bits_read(struct bits *self, uint32_t width)
{
    for (; self->count < width; self->count += 8)
        self->held |= (uint64_t)*self->from++ << self->count;
    const uint32_t value = (uint32_t)(self->held & ((UINT64_C(1) << width) - 1));
    self->held >>= width;
    self->count -= width;
    return value;
}

// ---- writing

void payload_write_header(const payload_form_t *self, uint8_t *ret_bytes)
{
    uint64_t covered = 0;
    for (uint32_t i = 0; i < chunks_parts(self->chunks); i++) {
        const struct chunks_part *part = chunks_part(self->chunks, i);
        covered += (uint64_t)part->rows * part->columns;
    }
    memcpy(ret_bytes, "SDP1", 4);
    put(ret_bytes + 4, chunks_limit(self->chunks), 2);
    put(ret_bytes + 6, self->top_k, 2);
    put(ret_bytes + 8, self->one_bit ? PAYLOAD_FLAG_ONE_BIT : 0, 4);
    put(ret_bytes + 12, chunks_count(self->chunks), 4);
    put(ret_bytes + 16, chunks_total(self->chunks), 8);
    put(ret_bytes + 24, covered, 8);
}

// Where a chunk's block begins, and what it looks like.
static size_t block_at(const payload_form_t *self, uint32_t chunk, const struct block **ret_block)
{
    const uint32_t part = chunks_part_of(self->chunks, chunk);
    *ret_block = &self->block[part];
    return (*ret_block)->begin +
           (chunk - chunks_part(self->chunks, part)->first) * (*ret_block)->bytes;
}

void payload_write(const payload_form_t *self, uint32_t chunk, const uint16_t *numbers,
                   const float *values, uint32_t count, uint8_t *bytes)
{
    const struct block *block;
    uint8_t *begin = bytes + block_at(self, chunk, &block);
    ensure(count <= block->top_k);
    memset(begin, 0, block->bytes);
    struct bits bits = {.to = begin};
    bits_write(&bits, count, block->count_bits);
    for (uint32_t i = 0; i < block->top_k; i++)
        bits_write(&bits, i < count ? numbers[i] : 0, block->number_bits);
    for (uint32_t i = 0; i < block->top_k; i++) bits_write(&bits, i < count && values[i] < 0.0f, 1);
    bits_write(&bits, 0, (8 - bits.count) % 8);
    if (self->one_bit) return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pattern;
        memcpy(&pattern, &values[i], sizeof pattern);
        put(begin + block->packed_bytes + i * sizeof pattern, pattern, sizeof pattern);
    }
}

// ---- reading

static uint32_t value_at(const uint8_t *values, uint32_t i)
{
    const uint8_t *at = values + 4 * (size_t)i;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t payload_read(const payload_form_t *self, uint32_t chunk, const uint8_t *bytes,
                      uint16_t *ret_numbers, float *ret_values)
{
    const struct block *block;
    const uint8_t *begin = bytes + block_at(self, chunk, &block);
    struct bits bits = {.from = begin};
    const uint32_t count = bits_read(&bits, block->count_bits);
    for (uint32_t i = 0; i < block->top_k; i++) {
        const uint32_t number = bits_read(&bits, block->number_bits);
        if (i < count) ret_numbers[i] = (uint16_t)number;
    }
    for (uint32_t i = 0; i < count; i++) {
        const float signs[2] = {1.0f, -1.0f};
        ret_values[i] = signs[bits_read(&bits, 1)];
        const uint32_t pattern = self->one_bit ? 0 : value_at(begin + block->packed_bytes, i);
        if (!self->one_bit) memcpy(&ret_values[i], &pattern, sizeof pattern);
    }
    return count;
}

// ---- checking

static int check_numbers(const struct block *block, struct bits *bits, uint32_t count,
                         struct why *why)
{
    uint32_t floor = 0; // The lowest number that may come next
    for (uint32_t i = 0; i < block->top_k; i++) {
        const uint32_t number = bits_read(bits, block->number_bits);
        if (i >= count) {
            if (number != 0)
                return why_set(why, FAULT_FORMAT, "place %u is unused and holds %u, it must hold 0",
                               i, number);
            continue;
        }
        if (number >= block->elements || number < floor)
            return why_set(why, FAULT_RANGE, "coefficient number %u at place %u, it must be %u..%u",
                           number, i, floor, block->elements - 1);
        floor = number + 1;
    }
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

static int check_values(const payload_form_t *self, const struct block *block, struct bits *bits,
                        const uint8_t *values, uint32_t count, struct why *why)
{
    for (uint32_t i = 0; i < block->top_k; i++) {
        const uint32_t negative = bits_read(bits, 1);
        if (i >= count && negative)
            return why_set(why, FAULT_FORMAT, "place %u is unused and has a sign, it must be 0", i);
        const int rc =
            self->one_bit ? 0 : check_value(value_at(values, i), i < count, negative, i, why);
        if (rc < 0) return rc;
    }
    if (bits->held != 0)
        return why_set(why, FAULT_FORMAT, "bits behind the last sign, they must be 0");
    return 0;
}

static int check_block(const payload_form_t *self, const struct block *block, const uint8_t *begin,
                       struct why *why)
{
    struct bits bits = {.from = begin};
    const uint32_t count = bits_read(&bits, block->count_bits);
    if (count > block->top_k)
        return why_set(why, FAULT_FORMAT, "%u coefficients, it must be 0..%u", count, block->top_k);
    const int rc = check_numbers(block, &bits, count, why);
    if (rc < 0) return rc;
    return check_values(self, block, &bits, begin + block->packed_bytes, count, why);
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
    uint32_t chunk = 0;
    for (uint32_t p = 0; p < chunks_parts(self->chunks); p++) {
        const struct block *block = &self->block[p];
        for (uint32_t i = 0; i < chunks_part(self->chunks, p)->count; i++, chunk++) {
            const int rc = check_block(self, block, bytes + block->begin + i * block->bytes, why);
            if (rc < 0)
                return why_wrap(why, rc, "payload refused at chunk %u (tensor %u)", chunk, p);
        }
    }
    return 0;
}
