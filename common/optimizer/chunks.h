#pragma once
// chunks -- how the parameter vector is cut into the small blocks that DisTrO transforms.
//
//     vector [0, N) ⊃ tensor [rows, columns] = grid of chunks [n1, n2],  n = dct_side(size, limit)
//
// A tensor of one row is a row of chunks [1, n]. Chunks are numbered through: tensors in the order
// of the vector, in each tensor row by row of the grid. Between tensors the vector may have holes
// (padding); what lies there belongs to no chunk and is never changed.
//
// A chunk's coefficients are kept dense, one chunk after the other, at the tensor's own place in a
// vector of N. Coefficient (b, d), b the frequency down the rows and d along the columns, is number
// d·n1 + b of its chunk. Immutable once made; any thread.

#include "common/base/fault.h"
#include "common/model/model_layout.h"
#include "common/optimizer/dct.h"

#include <stdint.h>

enum { CHUNKS_TENSORS_MAX = 1 << 16 };
#define CHUNKS_VECTOR_MAX ((uint64_t)1 << 40) // Floats in the vector

struct chunks_tensor {
    uint64_t begin;         // Where it starts in the vector
    uint32_t rows, columns; // At least 1; rows == 1 for a tensor of one dimension
};

struct chunks_part { // One tensor, cut
    uint64_t begin;
    uint32_t rows, columns;
    uint32_t first;    // Number of its first chunk
    uint32_t count;    // Of its chunks
    uint32_t elements; // In each of its chunks: n1·n2
    const struct dct *row_dct, *column_dct;
};

struct chunk {
    const struct chunks_part *part;
    uint64_t at;           // Of its first element, in the vector; rows are part->columns apart
    uint64_t coefficients; // Of its first coefficient, in a vector of coefficients
};

typedef struct chunks chunks_t;

// Cuts tensors that lie in ascending order without overlap inside [0, total). `limit` is Psyche's
// compression_chunk, 1..DCT_SIDE_MAX. FAULT_RANGE with the place in *why, or FAULT_MEMORY.
// Keeps: `tensors` is yours again at once.
int chunks_new(const struct chunks_tensor *tensors, uint32_t tensor_count, uint64_t total,
               uint32_t limit, struct why *why, chunks_t **ret_chunks);
// The same for the tensors of a model. `shape` has passed model_shape_check (ensured).
int chunks_of_model(const struct model_shape *shape, uint32_t limit, struct why *why,
                    chunks_t **ret_chunks);
void chunks_destroy(chunks_t **self); // NULL is allowed

uint64_t chunks_total(const chunks_t *self); // N
uint32_t chunks_limit(const chunks_t *self); // Longest side asked for
uint32_t chunks_count(const chunks_t *self);
uint32_t chunks_parts(const chunks_t *self); // Tensors
const struct chunks_part *chunks_part(const chunks_t *self, uint32_t number);

uint32_t chunks_part_of(const chunks_t *self, uint32_t chunk); // Number of the part that holds it
struct chunk chunks_at(const chunks_t *self, uint32_t chunk);  // `chunk` < chunks_count (ensured)

// Prefetches a part of a chunk's rows in `vector`: every parts-th from row `part` on. Rows lie far
// apart, which no processor predicts. Prefetched one chunk ahead, and in parts between the work
// (all at once would stall it), they are in the cache in time.
void chunks_prefetch(const struct chunk *chunk, const float *vector, uint32_t part, uint32_t parts);
void chunks_prefetch_floats(const float *at, uint64_t count); // The same of what lies together
