// Tensors are checked and cut one by one; a table of parts, one per tensor, is all that is kept. A
// chunk is found from its number by bisection over the parts and a division within the part.
#include "common/optimizer/chunks.h"
#include "common/base/ensure.h"

#include <inttypes.h>
#include <stdlib.h>

struct chunks {
    uint64_t total;
    uint32_t limit, count, parts;
    struct dct dcts[DCT_SIDE_MAX + 1]; // By side; those in use are filled
    struct chunks_part part[];
};

static int check_tensor(const struct chunks_tensor *tensor, uint32_t number, uint64_t floor,
                        uint64_t total, struct why *why)
{
    if (tensor->rows == 0 || tensor->columns == 0)
        return why_set(why, FAULT_RANGE, "tensor %u is %u x %u, both must be at least 1; not cut",
                       number, tensor->rows, tensor->columns);
    const uint64_t elements = (uint64_t)tensor->rows * tensor->columns;
    if (tensor->begin < floor || tensor->begin > total || elements > total - tensor->begin)
        return why_set(why, FAULT_RANGE,
                       "tensor %u lies at %" PRIu64 "+%" PRIu64 ", it must lie within %" PRIu64
                       "..%" PRIu64 "; not cut",
                       number, tensor->begin, elements, floor, total);
    return 0;
}

static int dct_of(struct chunks *self, uint32_t size, const struct dct **ret_dct)
{
    struct dct *dct = &self->dcts[dct_side(size, self->limit)];
    if (dct->side == 0) {
        const int rc = dct_init(dct, dct_side(size, self->limit));
        if (rc < 0) return rc;
    }
    *ret_dct = dct;
    return 0;
}

// Appends one tensor that check_tensor has passed.
static int cut(struct chunks *self, const struct chunks_tensor *tensor, struct why *why)
{
    struct chunks_part *part = &self->part[self->parts];
    *part = (struct chunks_part){ .begin = tensor->begin,
                                  .rows = tensor->rows,
                                  .columns = tensor->columns,
                                  .first = self->count };
    if (dct_of(self, tensor->rows, &part->row_dct) < 0 ||
        dct_of(self, tensor->columns, &part->column_dct) < 0)
        return why_set(why, FAULT_MEMORY, "the tables of tensor %u; not cut", self->parts);
    part->elements = part->row_dct->side * part->column_dct->side;
    const uint64_t count = (uint64_t)tensor->rows * tensor->columns / part->elements;
    if (count > UINT32_MAX - self->count)
        return why_set(why, FAULT_RANGE, "more than %u chunks at tensor %u; not cut", UINT32_MAX,
                       self->parts);
    part->count = (uint32_t)count;
    self->count += part->count;
    self->parts++;
    return 0;
}

int chunks_new(const struct chunks_tensor *tensors, uint32_t tensor_count, uint64_t total,
               uint32_t limit, struct why *why, chunks_t **ret_chunks)
{
    if (limit < 1 || limit > DCT_SIDE_MAX)
        return why_set(why, FAULT_RANGE, "a chunk side of %u, it must be 1..%d; not cut", limit,
                       DCT_SIDE_MAX);
    if (tensor_count < 1 || tensor_count > CHUNKS_TENSORS_MAX)
        return why_set(why, FAULT_RANGE, "%u tensors, it must be 1..%d; not cut", tensor_count,
                       CHUNKS_TENSORS_MAX);
    if (total > CHUNKS_VECTOR_MAX)
        return why_set(why, FAULT_RANGE, "a vector of %" PRIu64 ", at most %" PRIu64 "; not cut",
                       total, CHUNKS_VECTOR_MAX);
    struct chunks *self = calloc(1, sizeof *self + tensor_count * sizeof self->part[0]);
    if (!self) return why_set(why, FAULT_MEMORY, "the cut of %u tensors", tensor_count);
    self->total = total;
    self->limit = limit;
    int rc = 0;
    uint64_t floor = 0;
    for (uint32_t i = 0; i < tensor_count && rc == 0; i++) {
        rc = check_tensor(&tensors[i], i, floor, total, why);
        if (rc == 0) rc = cut(self, &tensors[i], why);
        floor = tensors[i].begin + (uint64_t)tensors[i].rows * tensors[i].columns;
    }
    if (rc < 0) chunks_destroy(&self);
    else *ret_chunks = self;
    return rc;
}

int chunks_of_model(const struct model_shape *shape, uint32_t limit, struct why *why,
                    chunks_t **ret_chunks)
{
    const uint32_t count = model_tensor_count(shape);
    struct chunks_tensor *tensors = malloc(count * sizeof *tensors);
    if (!tensors) return why_set(why, FAULT_MEMORY, "the list of %u tensors", count);
    for (uint32_t i = 0; i < count; i++) {
        const struct model_tensor tensor = model_tensor_at(shape, i);
        const bool matrix = tensor.cols != 0;
        tensors[i] = (struct chunks_tensor){ tensor.offset, matrix ? tensor.rows : 1,
                                             matrix ? tensor.cols : tensor.rows };
    }
    const int rc = chunks_new(tensors, count, model_parameter_count(shape), limit, why, ret_chunks);
    free(tensors);
    return rc;
}

void chunks_destroy(chunks_t **self)
{
    if (!*self) return;
    for (uint32_t side = 0; side <= DCT_SIDE_MAX; side++) dct_free(&(*self)->dcts[side]);
    free(*self);
    *self = NULL;
}

uint64_t chunks_total(const chunks_t *self) { return self->total; }
uint32_t chunks_limit(const chunks_t *self) { return self->limit; }
uint32_t chunks_count(const chunks_t *self) { return self->count; }
uint32_t chunks_parts(const chunks_t *self) { return self->parts; }

const struct chunks_part *chunks_part(const chunks_t *self, uint32_t number)
{
    ensure(number < self->parts);
    return &self->part[number];
}

uint32_t chunks_part_of(const chunks_t *self, uint32_t chunk)
{
    ensure(chunk < self->count);
    uint32_t low = 0, high = self->parts; // part[low].first <= chunk < part[high].first
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (self->part[middle].first <= chunk) low = middle;
        else high = middle;
    }
    return low;
}

struct chunk chunks_at(const chunks_t *self, uint32_t chunk)
{
    const struct chunks_part *part = &self->part[chunks_part_of(self, chunk)];
    const uint32_t local = chunk - part->first;
    const uint32_t height = part->row_dct->side, width = part->column_dct->side;
    const uint32_t across = part->columns / width;
    const uint64_t row = (uint64_t)(local / across) * height,
                   column = (uint64_t)(local % across) * width;
    return (struct chunk){ .part = part,
                           .at = part->begin + row * part->columns + column,
                           .coefficients = part->begin + (uint64_t)local * part->elements };
}

void chunks_prefetch_floats(const float *at, uint64_t count)
{
    enum { LINE = 64, SECOND_LEVEL = 2 }; // The first level has work of its own
    const uintptr_t end = (uintptr_t)(at + count);
    for (uintptr_t line = (uintptr_t)at / LINE * LINE; line < end; line += LINE)
        __builtin_prefetch((const void *)line, 0, SECOND_LEVEL);
}

void chunks_prefetch(const struct chunk *chunk, const float *vector, uint32_t part, uint32_t parts)
{
    const struct chunks_part *tensor = chunk->part;
    for (uint32_t row = part; row < tensor->row_dct->side; row += parts)
        chunks_prefetch_floats(vector + chunk->at + (uint64_t)row * tensor->columns,
                               tensor->column_dct->side);
}
