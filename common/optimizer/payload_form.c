// The form is computed first: where each tensor's blocks lie and how many bits a block has. Writing
// and reading go block by block from there and read no length from the payload.
#include "common/optimizer/payload_block.h"

#include <stdlib.h>

enum {
    GROUP = 8,          // Blocks that fill whole bytes together, for any size
    ALIGNED_BITS = 256, // A tensor whose blocks have that many bits or more begins at a whole byte
    SHARED_MAX = 8,     // Chunks in a block
    SHARED_BITS = 16,   // Chunks with fewer than 2^SHARED_BITS states share a block
};

static uint32_t share_of(uint32_t top_k, const struct chunks_part *part, uint32_t limit)
{
    const uint64_t full = part->rows == 1 ? limit : (uint64_t)limit * limit;
    const uint64_t share = (2 * (uint64_t)top_k * part->elements + full) / (2 * full);
    return share < 1 ? 1 : share > part->elements ? part->elements : (uint32_t)share;
}

// ---- the code of a kind of chunk, made when first asked for. There is room for one per tensor

static int combination_for(struct payload_form *self, uint32_t elements, uint32_t top_k,
                           const struct combination **ret_combination)
{
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

static int tables_for(struct payload_form *self)
{
    if (self->tables) return 0;
    self->tables = malloc(sizeof *self->tables);
    if (!self->tables) return FAULT_MEMORY;
    selection_tables_init(self->tables);
    return 0;
}

static int selection_for(struct payload_form *self, uint32_t elements, uint32_t top_k,
                         const struct selection **ret_selection)
{
    uint32_t i = 0;
    while (i < self->selection_count &&
           (self->selections[i]->elements != elements || self->selections[i]->top_k != top_k))
        i++;
    if (i == self->selection_count) {
        if (tables_for(self) < 0) return FAULT_MEMORY;
        self->selections[i] = malloc(sizeof *self->selections[i]);
        if (!self->selections[i]) return FAULT_MEMORY;
        selection_init(self->selections[i], self->tables, elements, top_k);
        self->selection_count++;
    }
    *ret_selection = self->selections[i];
    return 0;
}

// ---- where blocks lie

// How many chunks with that many states share a block: as many as fit 64 bits.
static uint32_t shared_by(combination_number states)
{
    uint32_t shared = 1;
    if (states >> SHARED_BITS != 0) return 1;
    for (combination_number all = states * states; shared < SHARED_MAX && all >> 64 == 0;
         all *= states)
        shared++;
    return shared;
}

// The bits of a block that `chunks` chunks with that many states share.
static uint32_t bits_shared(combination_number states, uint32_t chunks)
{
    uint64_t all = 1;
    for (; chunks > 0; chunks--) all *= (uint64_t)states;
    return 64 - (uint32_t)__builtin_clzll(all - 1);
}

static uint64_t lay_combinations(struct blocks *self)
{
    const combination_number states = states_of(self->combination);
    self->shared = shared_by(states);
    self->bits = self->shared == 1 ? self->combination->bits : bits_shared(states, self->shared);
    const uint32_t rest = self->chunks % self->shared;
    return (uint64_t)(self->chunks / self->shared) * self->bits +
           (rest ? bits_shared(states, rest) : 0);
}

static uint64_t lay_selections(struct blocks *self)
{
    self->shared = 1;
    self->bits = self->selection->bits;
    return (uint64_t)self->chunks * self->bits;
}

// Lays the blocks of one tensor from bit `at` on.
static int lay_blocks(struct payload_form *self, const struct chunks_part *part, uint64_t at,
                      struct blocks *ret_blocks)
{
    struct blocks blocks = { .chunks = part->count };
    blocks.top_k = share_of(self->top_k, part, chunks_limit(self->chunks));
    const int rc = combination_fits(part->elements, blocks.top_k)
                       ? combination_for(self, part->elements, blocks.top_k, &blocks.combination)
                       : selection_for(self, part->elements, blocks.top_k, &blocks.selection);
    if (rc < 0) return rc;
    const uint64_t bits = blocks.combination ? lay_combinations(&blocks) : lay_selections(&blocks);
    blocks.joins = bits < ALIGNED_BITS && at > 8 * PAYLOAD_HEADER_BYTES;
    blocks.begin = blocks.joins ? at : (at + 7) / 8 * 8;
    blocks.end = blocks.begin + bits;
    *ret_blocks = blocks;
    return 0;
}

static int lay_all(struct payload_form *self)
{
    const uint32_t parts = chunks_parts(self->chunks);
    uint64_t at = 8 * PAYLOAD_HEADER_BYTES;
    for (uint32_t i = 0; i < parts; i++) {
        const int rc = lay_blocks(self, chunks_part(self->chunks, i), at, &self->blocks[i]);
        if (rc < 0) return rc;
        at = self->blocks[i].end;
    }
    self->values = self->bytes = (at + 7) / 8;
    for (uint32_t i = 0; i < parts && !self->one_bit; i++) {
        struct blocks *blocks = &self->blocks[i];
        blocks->values = self->bytes;
        self->bytes += (size_t)blocks->chunks * blocks->top_k * sizeof(float);
    }
    return 0;
}

// ---- its life

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
                                       .combinations = calloc(parts, sizeof(void *)),
                                       .selections = calloc(parts, sizeof(void *)) };
        if (!self->combinations || !self->selections) rc = FAULT_MEMORY;
    }
    if (rc == 0) rc = lay_all(self);
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
    for (uint32_t i = 0; i < (*self)->selection_count; i++) free((*self)->selections[i]);
    free((*self)->combinations);
    free((*self)->selections);
    free((*self)->tables);
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

// The chunks of a tensor that joins belong to the last group of the tensor before it.
uint32_t payload_group(const payload_form_t *self, uint32_t chunk)
{
    if (chunk == chunks_count(self->chunks)) return chunk;
    uint32_t part = chunks_part_of(self->chunks, chunk);
    for (; self->blocks[part].joins; part--) chunk = chunks_part(self->chunks, part)->first - 1;
    const uint32_t first = chunks_part(self->chunks, part)->first;
    const uint32_t group = GROUP * self->blocks[part].shared;
    return first + (chunk - first) / group * group;
}
