// Writes and reads a payload block by block. Where a block lies follows from the form
// (payload_form.c): no length is read from the payload.
#include "common/base/ensure.h"
#include "common/optimizer/payload_block.h"

#include <string.h>

_Static_assert((int)PAYLOAD_READ_MAX == (int)COMBINATION_STATES_MAX, "read as many as decode");

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
    memcpy(ret_bytes, "SDP3", 4);
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

// In a shared block it adds the chunk's state to the number that the earlier chunks have written. It reads only bytes
// of this block, since another thread may be writing those behind it.
static void write_combination(const struct block *block, const uint16_t *numbers,
                              const float *values, uint32_t count, uint8_t *bytes)
{
    const struct combination *combination = block->blocks->combination;
    struct bits_writer writer = bits_writer_at(bytes, block->at);
    uint32_t signs = 0;
    for (uint32_t i = 0; i < count; i++) signs |= (uint32_t)(values[i] < 0.0f) << i;
    combination_number number = combination_encode(combination, numbers, signs, count);
    if (block->place > 0) {
        const struct bits bits = { bytes, (block->at + block->bits + 7) / 8 };
        const combination_number before = bits_number_at(&bits, block->at, block->bits);
        number = before ^ (before + number * worth_of(block));
    }
    bits_write_number(&writer, number, block->bits);
    bits_flush(&writer);
}

static void write_selection(const struct block *block, const uint16_t *numbers, const float *values,
                            uint32_t count, uint8_t *bytes)
{
    struct bits_writer writer = bits_writer_at(bytes, block->at);
    selection_write(block->blocks->selection, numbers, values, count, &writer);
    bits_flush(&writer);
}

void payload_write(const payload_form_t *self, uint32_t chunk, const uint16_t *numbers,
                   const float *values, uint32_t count, uint8_t *bytes)
{
    const struct block block = block_at(self, chunk);
    ensure(count <= block.blocks->top_k);
    if (block.blocks->combination) write_combination(&block, numbers, values, count, bytes);
    else write_selection(&block, numbers, values, count, bytes);
    if (self->one_bit) return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pattern;
        memcpy(&pattern, &values[i], sizeof pattern);
        le_put(bytes + block.values + i * sizeof pattern, pattern, sizeof pattern);
    }
}

// ---- reading

static float sign_of(uint32_t negative)
{
    const uint32_t pattern = 0x3f800000u | negative << 31;
    float value;
    memcpy(&value, &pattern, sizeof value);
    return value;
}

static void read_combinations(const payload_form_t *self, const struct block *block,
                              struct payload_chosen *chosen, uint32_t count)
{
    const struct combination *combination = block->blocks->combination;
    struct combination_state states[PAYLOAD_READ_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct bits bits = bits_in(self, chosen[i].bytes);
        uint32_t signs;
        states[i].numbers = chosen[i].numbers;
        states[i].count =
            combination_split(combination, state_in(block, &bits), &signs, &states[i].rank);
        chosen[i].count = states[i].count;
        for (uint32_t place = 0; place < chosen[i].count; place++)
            chosen[i].values[place] = sign_of(signs >> place & 1);
    }
    combination_decode(combination, states, count);
}

static void read_signs(const struct bits *bits, uint64_t at, uint32_t count, float *ret_values)
{
    uint64_t signs = 0;
    for (uint32_t i = 0; i < count; i++, signs >>= 1) {
        if (i % 64 == 0) signs = bits_at(bits, at + i);
        ret_values[i] = sign_of((uint32_t)signs & 1);
    }
}

static void read_selections(const payload_form_t *self, const struct block *block,
                            struct payload_chosen *chosen, uint32_t count)
{
    struct selection_reading each[PAYLOAD_READ_MAX];
    uint32_t done;
    for (uint32_t i = 0; i < count; i++)
        each[i] = (struct selection_reading){ .bits = bits_in(self, chosen[i].bytes),
                                              .at = block->at,
                                              .numbers = chosen[i].numbers };
    ensure(selection_read_each(block->blocks->selection, each, count, NULL, &done) == 0);
    for (uint32_t i = 0; i < count; i++) {
        chosen[i].count = each[i].count;
        if (self->one_bit)
            read_signs(&each[i].bits, each[i].signs, each[i].count, chosen[i].values);
    }
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
    if (block.blocks->combination) read_combinations(self, &block, chosen, count);
    else read_selections(self, &block, chosen, count);
    for (uint32_t i = 0; i < count && !self->one_bit; i++) read_values(&block, &chosen[i]);
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
