#include "common/learn/payload.h"
#include "common/ensure.h"
#include "common/learn/combination.h"
#include "common/learn/distro_kernels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 8 }; // Chunks: their bits are a whole number of bytes, whatever one takes

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
    struct combination *combinations; // One per kind of chunk
    uint32_t combination_count;
    struct blocks blocks[]; // By part of the chunks
};

// ---- the form

static uint32_t bits_for(uint32_t largest)
{
    return largest == 0 ? 0 : 32 - (uint32_t)__builtin_clz(largest);
}

static uint32_t share_of(uint32_t top_k, const struct chunks_part *part, uint32_t limit)
{
    const uint64_t full = part->rows == 1 ? limit : (uint64_t)limit * limit;
    const uint64_t share = (2 * (uint64_t)top_k * part->elements + full) / (2 * full);
    return share < 1 ? 1 : share > part->elements ? part->elements : (uint32_t)share;
}

// The one for such chunks, made when first asked for. There is room for one per tensor.
static const struct combination *combination_for(struct payload_form *self, uint32_t elements,
                                                 uint32_t top_k)
{
    if (!combination_fits(elements, top_k)) return NULL;
    for (uint32_t i = 0; i < self->combination_count; i++)
        if (self->combinations[i].elements == elements && self->combinations[i].top_k == top_k)
            return &self->combinations[i];
    combination_init(&self->combinations[self->combination_count], elements, top_k);
    return &self->combinations[self->combination_count++];
}

static struct blocks blocks_of(struct payload_form *self, const struct chunks_part *part)
{
    struct blocks blocks = { .begin = self->bytes, .elements = part->elements };
    blocks.top_k = share_of(self->top_k, part, chunks_limit(self->chunks));
    blocks.count_bits = bits_for(blocks.top_k);
    blocks.number_bits = bits_for(part->elements - 1);
    blocks.combination = combination_for(self, part->elements, blocks.top_k);
    blocks.bits = blocks.combination ? blocks.combination->bits
                                     : blocks.count_bits + blocks.top_k * (blocks.number_bits + 1);
    blocks.values = blocks.begin + ((uint64_t)part->count * blocks.bits + 7) / 8;
    blocks.end = blocks.values;
    if (!self->one_bit) blocks.end += (size_t)part->count * blocks.top_k * sizeof(float);
    return blocks;
}

int payload_form_new(const chunks_t *chunks, uint32_t top_k, bool one_bit, struct why *why,
                     payload_form_t **ret_form)
{
    if (top_k < 1 || top_k > PAYLOAD_TOP_K_MAX)
        return why_set(why, FAULT_RANGE, "top-k is %u, it must be 1..%d; refused", top_k,
                       PAYLOAD_TOP_K_MAX);
    const uint32_t parts = chunks_parts(chunks);
    struct payload_form *self = calloc(1, sizeof *self + parts * sizeof self->blocks[0]);
    struct combination *combinations = calloc(parts, sizeof *combinations);
    if (!self || !combinations) {
        free(self);
        free(combinations);
        return why_set(why, FAULT_MEMORY, "the form of payloads of %u tensors", parts);
    }
    *self = (struct payload_form){ .chunks = chunks,
                                   .top_k = top_k,
                                   .one_bit = one_bit,
                                   .bytes = PAYLOAD_HEADER_BYTES,
                                   .combinations = combinations };
    for (uint32_t i = 0; i < parts; i++) {
        self->blocks[i] = blocks_of(self, chunks_part(chunks, i));
        self->bytes = self->blocks[i].end;
    }
    *ret_form = self;
    return 0;
}

void payload_form_destroy(payload_form_t **self)
{
    if (!*self) return;
    free((*self)->combinations);
    free(*self);
    *self = NULL;
}

const chunks_t *payload_chunks(const payload_form_t *self) { return self->chunks; }
size_t payload_bytes(const payload_form_t *self) { return self->bytes; }

uint32_t payload_top_k(const payload_form_t *self, uint32_t chunk)
{
    return self->blocks[chunks_part_of(self->chunks, chunk)].top_k;
}

uint32_t payload_group(const payload_form_t *self, uint32_t chunk)
{
    if (chunk == chunks_count(self->chunks)) return chunk;
    const uint32_t first = chunks_part(self->chunks, chunks_part_of(self->chunks, chunk))->first;
    return first + (chunk - first) / GROUP * GROUP;
}

// ---- little-endian integers and bits

static void put(uint8_t *bytes, uint64_t value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

struct bits {    // From some bit on
    uint8_t *to; // Zeros so far, where nothing was written
    const uint8_t *from;
    uint64_t held;
    uint32_t count;
};

static struct bits bits_to(uint8_t *bytes, uint64_t at)
{
    return (struct bits){ .to = bytes + at / 8, .count = at % 8 };
}

static struct bits bits_from(const uint8_t *bytes, uint64_t at)
{
    const uint32_t skipped = at % 8;
    struct bits bits = { .from = bytes + at / 8 };
    if (skipped != 0)
        bits = (struct bits){ NULL, bits.from + 1, *bits.from >> skipped, 8 - skipped };
    return bits;
}

static void bits_write(struct bits *self, uint32_t value, uint32_t width)
{
    self->held |= (uint64_t)value << self->count;
    self->count += width;
    for (; self->count >= 8; self->count -= 8, self->held >>= 8) *self->to++ |= (uint8_t)self->held;
}

static void bits_flush(const struct bits *self)
{
    if (self->count > 0) *self->to |= (uint8_t)self->held;
}

// The caller knows that there are so many bits.
static uint32_t bits_read(struct bits *self, uint32_t width)
{
    for (; self->count < width; self->count += 8)
        self->held |= (uint64_t)*self->from++ << self->count;
    const uint32_t value = (uint32_t)(self->held & ((UINT64_C(1) << width) - 1));
    self->held >>= width;
    self->count -= width;
    return value;
}

static void bits_write_number(struct bits *self, combination_number number, uint32_t width)
{
    for (; width > 32; width -= 32, number >>= 32) bits_write(self, (uint32_t)number, 32);
    bits_write(self, (uint32_t)number, width);
}

static combination_number bits_read_number(struct bits *self, uint32_t width)
{
    combination_number number = 0;
    uint32_t at = 0;
    for (; at + 32 < width; at += 32) number |= (combination_number)bits_read(self, 32) << at;
    return number | (combination_number)bits_read(self, width - at) << at;
}

// ---- where a chunk's block lies

struct block {
    const struct blocks *blocks;
    uint64_t at;   // Its first bit, from blocks->begin
    size_t values; // Its first value
};

static struct block block_of(const struct blocks *blocks, uint32_t number)
{
    return (struct block){ blocks, (uint64_t)number * blocks->bits,
                           blocks->values + (size_t)number * blocks->top_k * sizeof(float) };
}

static struct block block_at(const payload_form_t *self, uint32_t chunk)
{
    const uint32_t part = chunks_part_of(self->chunks, chunk);
    return block_of(&self->blocks[part], chunk - chunks_part(self->chunks, part)->first);
}

// ---- writing

static void write_header(const payload_form_t *self, uint8_t *ret_bytes)
{
    uint64_t covered = 0;
    for (uint32_t i = 0; i < chunks_parts(self->chunks); i++) {
        const struct chunks_part *part = chunks_part(self->chunks, i);
        covered += (uint64_t)part->rows * part->columns;
    }
    memcpy(ret_bytes, "SDP2", 4);
    put(ret_bytes + 4, chunks_limit(self->chunks), 2);
    put(ret_bytes + 6, self->top_k, 2);
    put(ret_bytes + 8, self->one_bit ? PAYLOAD_FLAG_ONE_BIT : 0, 4);
    put(ret_bytes + 12, chunks_count(self->chunks), 4);
    put(ret_bytes + 16, chunks_total(self->chunks), 8);
    put(ret_bytes + 24, covered, 8);
}

void payload_clear(const payload_form_t *self, uint8_t *ret_bytes)
{
    write_header(self, ret_bytes);
    memset(ret_bytes + PAYLOAD_HEADER_BYTES, 0, self->bytes - PAYLOAD_HEADER_BYTES);
}

static void write_combination(const struct combination *combination, const uint16_t *numbers,
                              const float *values, uint32_t count, struct bits *bits)
{
    uint32_t signs = 0;
    for (uint32_t i = 0; i < count; i++) signs |= (uint32_t)(values[i] < 0.0f) << i;
    bits_write_number(bits, combination_encode(combination, numbers, signs, count),
                      combination->bits);
}

static void write_fields(const struct blocks *blocks, const uint16_t *numbers, const float *values,
                         uint32_t count, struct bits *bits)
{
    bits_write(bits, count, blocks->count_bits);
    for (uint32_t i = 0; i < blocks->top_k; i++)
        bits_write(bits, i < count ? numbers[i] : 0, blocks->number_bits);
    for (uint32_t i = 0; i < blocks->top_k; i++) bits_write(bits, i < count && values[i] < 0.0f, 1);
}

void payload_write(const payload_form_t *self, uint32_t chunk, const uint16_t *numbers,
                   const float *values, uint32_t count, uint8_t *bytes)
{
    const struct block block = block_at(self, chunk);
    const struct blocks *blocks = block.blocks;
    ensure(count <= blocks->top_k);
    struct bits bits = bits_to(bytes + blocks->begin, block.at);
    if (blocks->combination) write_combination(blocks->combination, numbers, values, count, &bits);
    else write_fields(blocks, numbers, values, count, &bits);
    bits_flush(&bits);
    if (self->one_bit) return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pattern;
        memcpy(&pattern, &values[i], sizeof pattern);
        put(bytes + block.values + i * sizeof pattern, pattern, sizeof pattern);
    }
}

// ---- reading

static uint32_t value_at(const uint8_t *values, uint32_t i)
{
    const uint8_t *at = values + 4 * (size_t)i;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static float sign_of(uint32_t negative) { return negative ? -1.0f : 1.0f; }

static uint32_t read_combination(const struct combination *combination, struct bits *bits,
                                 uint16_t *ret_numbers, float *ret_values)
{
    uint32_t signs;
    combination_number rank;
    const uint32_t count =
        combination_split(combination, bits_read_number(bits, combination->bits), &signs, &rank);
    combination_decode(combination, rank, count, ret_numbers);
    for (uint32_t i = 0; i < count; i++) ret_values[i] = sign_of(signs >> i & 1);
    return count;
}

static uint32_t read_fields(const struct blocks *blocks, struct bits *bits, uint16_t *ret_numbers,
                            float *ret_values)
{
    const uint32_t count = bits_read(bits, blocks->count_bits);
    for (uint32_t i = 0; i < blocks->top_k; i++) {
        const uint32_t number = bits_read(bits, blocks->number_bits);
        if (i < count) ret_numbers[i] = (uint16_t)number;
    }
    for (uint32_t i = 0; i < count; i++) ret_values[i] = sign_of(bits_read(bits, 1));
    return count;
}

uint32_t payload_read(const payload_form_t *self, uint32_t chunk, const uint8_t *bytes,
                      uint16_t *ret_numbers, float *ret_values)
{
    const struct block block = block_at(self, chunk);
    const struct blocks *blocks = block.blocks;
    struct bits bits = bits_from(bytes + blocks->begin, block.at);
    const uint32_t count =
        blocks->combination ? read_combination(blocks->combination, &bits, ret_numbers, ret_values)
                            : read_fields(blocks, &bits, ret_numbers, ret_values);
    for (uint32_t i = 0; !self->one_bit && i < count; i++) {
        const uint32_t pattern = value_at(bytes + block.values, i);
        memcpy(&ret_values[i], &pattern, sizeof pattern);
    }
    return count;
}

// ---- checking

// Of the blocks' bits: how many coefficients, and where their signs are to be read.
// Of the blocks' bits: how many coefficients, and where their signs are to be read.
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
    write_header(self, header);
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
