// The form is computed first: where each tensor's blocks lie and how many bits a block has. Writing
// and reading go block by block from there and read no length from the payload.
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/optimizer/payload_block.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)PAYLOAD_READ_MAX == (int)COMBINATION_STATES_MAX, "read as many as decode");

enum { GROUP = 8 }; // Blocks that fill whole bytes together, for any size

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

// The combination for chunks of this kind, made when first asked for; NULL if they do not fit one.
// There is room for one per tensor.
static int combination_for(struct payload_form *self, uint32_t elements, uint32_t top_k,
                           const struct combination **ret_combination)
{
    *ret_combination = NULL;
    if (!combination_fits(elements, top_k)) return 0;
    uint32_t i = 0;
    while (i < self->combination_count &&
           (self->combinations[i]->elements != elements || self->combinations[i]->top_k != top_k))
        i++;
    if (i == self->combination_count) {
        self->combinations[i] = malloc(sizeof *self->combinations[i]);
        if (!self->combinations[i]) return FAULT_MEMORY;
        combination_init(self->combinations[i], elements, top_k);
        self->combination_count++;
    }
    *ret_combination = self->combinations[i];
    return 0;
}

static int lay_blocks(struct payload_form *self, const struct chunks_part *part,
                      struct blocks *ret_blocks)
{
    struct blocks blocks = { .begin = self->bytes, .elements = part->elements };
    blocks.top_k = share_of(self->top_k, part, chunks_limit(self->chunks));
    blocks.count_bits = bits_for(blocks.top_k);
    blocks.number_bits = bits_for(part->elements - 1);
    if (combination_for(self, part->elements, blocks.top_k, &blocks.combination) < 0)
        return FAULT_MEMORY;
    blocks.bits = blocks.combination ? blocks.combination->bits
                                     : blocks.count_bits + blocks.top_k * (blocks.number_bits + 1);
    blocks.values = blocks.begin + ((uint64_t)part->count * blocks.bits + 7) / 8;
    blocks.end = blocks.values;
    if (!self->one_bit) blocks.end += (size_t)part->count * blocks.top_k * sizeof(float);
    self->bytes = blocks.end;
    *ret_blocks = blocks;
    return 0;
}

int payload_form_new(const chunks_t *chunks, uint32_t top_k, bool one_bit, struct why *why,
                     payload_form_t **ret_form)
{
    if (top_k < 1 || top_k > PAYLOAD_TOP_K_MAX)
        return why_set(why, FAULT_RANGE, "top-k is %u, it must be 1..%d; refused", top_k,
                       PAYLOAD_TOP_K_MAX);
    const uint32_t parts = chunks_parts(chunks);
    struct payload_form *self = calloc(1, sizeof *self + parts * sizeof self->blocks[0]);
    int rc = self ? 0 : FAULT_MEMORY;
    if (rc == 0) {
        *self = (struct payload_form){ .chunks = chunks,
                                       .top_k = top_k,
                                       .one_bit = one_bit,
                                       .bytes = PAYLOAD_HEADER_BYTES,
                                       .combinations = calloc(parts, sizeof(void *)) };
        if (!self->combinations) rc = FAULT_MEMORY;
    }
    for (uint32_t i = 0; rc == 0 && i < parts; i++)
        rc = lay_blocks(self, chunks_part(chunks, i), &self->blocks[i]);
    if (rc < 0) {
        payload_form_destroy(&self);
        return why_set(why, rc, "the form of payloads of %u tensors", parts);
    }
    *ret_form = self;
    return 0;
}

int payload_form_of_model(const struct model_shape *shape, uint32_t limit, uint32_t top_k,
                          bool one_bit, struct why *why, chunks_t **ret_chunks,
                          payload_form_t **ret_form)
{
    chunks_t *chunks = NULL;
    int rc = chunks_of_model(shape, limit, why, &chunks);
    if (rc == 0) rc = payload_form_new(chunks, top_k, one_bit, why, ret_form);
    if (rc < 0) chunks_destroy(&chunks);
    else *ret_chunks = chunks;
    return rc;
}

void payload_form_destroy(payload_form_t **self)
{
    if (!*self) return;
    for (uint32_t i = 0; i < (*self)->combination_count; i++) free((*self)->combinations[i]);
    free((*self)->combinations);
    free(*self);
    *self = NULL;
}

const chunks_t *payload_chunks(const payload_form_t *self) { return self->chunks; }
size_t payload_bytes(const payload_form_t *self) { return self->bytes; }
bool payload_one_bit(const payload_form_t *self) { return self->one_bit; }

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

// ---- writing

static struct bits bits_to(uint8_t *bytes, uint64_t at)
{
    return (struct bits){ .to = bytes + at / 8, .count = at % 8 };
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

static void bits_write_number(struct bits *self, combination_number number, uint32_t width)
{
    for (; width > 32; width -= 32, number >>= 32) bits_write(self, (uint32_t)number, 32);
    bits_write(self, (uint32_t)number, width);
}

static struct block block_at(const payload_form_t *self, uint32_t chunk)
{
    const uint32_t part = chunks_part_of(self->chunks, chunk);
    return block_of(&self->blocks[part], chunk - chunks_part(self->chunks, part)->first);
}

void payload_write_header(const payload_form_t *self, uint8_t *ret_bytes)
{
    uint64_t covered = 0;
    for (uint32_t i = 0; i < chunks_parts(self->chunks); i++) {
        const struct chunks_part *part = chunks_part(self->chunks, i);
        covered += (uint64_t)part->rows * part->columns;
    }
    memcpy(ret_bytes, "SDP2", 4);
    le_put(ret_bytes + 4, chunks_limit(self->chunks), 2);
    le_put(ret_bytes + 6, self->top_k, 2);
    le_put(ret_bytes + 8, self->one_bit ? PAYLOAD_FLAG_ONE_BIT : 0, 4);
    le_put(ret_bytes + 12, chunks_count(self->chunks), 4);
    le_put(ret_bytes + 16, chunks_total(self->chunks), 8);
    le_put(ret_bytes + 24, covered, 8);
}

void payload_clear(const payload_form_t *self, uint8_t *ret_bytes)
{
    payload_write_header(self, ret_bytes);
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
        le_put(bytes + block.values + i * sizeof pattern, pattern, sizeof pattern);
    }
}

// ---- reading

static float sign_of(uint32_t negative) { return negative ? -1.0f : 1.0f; }

static void read_combinations(const struct block *block, struct payload_chosen *chosen,
                              uint32_t count)
{
    const struct combination *combination = block->blocks->combination;
    struct combination_state states[PAYLOAD_READ_MAX];
    for (uint32_t i = 0; i < count; i++) {
        struct bits bits = bits_from(chosen[i].bytes + block->blocks->begin, block->at);
        uint32_t signs;
        states[i].numbers = chosen[i].numbers;
        states[i].count = combination_split(combination, bits_read_number(&bits, combination->bits),
                                            &signs, &states[i].rank);
        chosen[i].count = states[i].count;
        for (uint32_t place = 0; place < chosen[i].count; place++)
            chosen[i].values[place] = sign_of(signs >> place & 1);
    }
    combination_decode(combination, states, count);
}

static void read_fields(const struct block *block, struct payload_chosen *chosen)
{
    const struct blocks *blocks = block->blocks;
    struct bits bits = bits_from(chosen->bytes + blocks->begin, block->at);
    chosen->count = bits_read(&bits, blocks->count_bits);
    for (uint32_t i = 0; i < blocks->top_k; i++) {
        const uint32_t number = bits_read(&bits, blocks->number_bits);
        if (i < chosen->count) chosen->numbers[i] = (uint16_t)number;
    }
    for (uint32_t i = 0; i < chosen->count; i++) chosen->values[i] = sign_of(bits_read(&bits, 1));
}

static float float_at(const uint8_t *values, uint32_t i)
{
    const uint32_t pattern = value_at(values, i);
    float value;
    memcpy(&value, &pattern, sizeof value);
    return value;
}

static void read_values(const struct block *block, struct payload_chosen *chosen)
{
    for (uint32_t i = 0; i < chosen->count; i++)
        chosen->values[i] = float_at(chosen->bytes + block->values, i);
}

void payload_read_each(const payload_form_t *self, uint32_t chunk, struct payload_chosen *chosen,
                       uint32_t count)
{
    ensure(count <= PAYLOAD_READ_MAX);
    const struct block block = block_at(self, chunk);
    if (block.blocks->combination) read_combinations(&block, chosen, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!block.blocks->combination) read_fields(&block, &chosen[i]);
        if (!self->one_bit) read_values(&block, &chosen[i]);
    }
}

uint32_t payload_read(const payload_form_t *self, uint32_t chunk, const uint8_t *bytes,
                      uint16_t *ret_numbers, float *ret_values)
{
    struct payload_chosen chosen = { .bytes = bytes, .numbers = ret_numbers, .values = ret_values };
    payload_read_each(self, chunk, &chosen, 1);
    return chosen.count;
}

// Unused places hold 0, which changes no sum.
double payload_square_sum(const payload_form_t *self, uint32_t chunk, const uint8_t *bytes)
{
    ensure(!self->one_bit);
    enum { LANES = 8 };
    const struct block block = block_at(self, chunk);
    double sums[LANES] = { 0 };
    for (uint32_t i = 0; i < block.blocks->top_k; i++) {
        const double value = (double)float_at(bytes + block.values, i);
        sums[i % LANES] += value * value;
    }
    for (uint32_t width = LANES / 2; width > 0; width /= 2)
        for (uint32_t lane = 0; lane < width; lane++) sums[lane] += sums[lane + width];
    return sums[0];
}
