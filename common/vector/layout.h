#pragma once
// layout -- where each named tensor lies in the flat vector.
//
//      0            offset of b       offset of c                       total
//      |--- a: rows x cols ---|-- b: cols --|-------- c: rows x cols -------|
//
// Tensors stand in the order they were added, without holes: the next begins where the last ended,
// so the offsets follow from the shapes and [0, total) is covered. In memory the vector is float32
// throughout; `dtype` is the type in which a tensor is written (LAYOUT_F32 for every checkpoint
// from which a run may be restored). A matrix is stored as PyTorch stores a Linear: [out, in], by
// rows.
//
//     struct layout_tensor tensors[200];
//     struct layout layout;
//     layout_init(&layout, tensors, 200);
//     rc = layout_add_matrix(&layout, "model.embed_tokens.weight", 32000, 512, LAYOUT_F32, &why);
//
// Pure: no I/O, no clock, no memory taken. Readers on any thread once it is filled.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include "common/base/interval.h"

enum { LAYOUT_NAME_MAX = 127 };
#define LAYOUT_TOTAL_MAX ((uint64_t)1 << 48) // Elements: no product with a size overflows

enum layout_dtype { LAYOUT_F32, LAYOUT_BF16, LAYOUT_F16, LAYOUT_DTYPES };

struct layout_tensor {
    char name[LAYOUT_NAME_MAX + 1]; // 1 to 127 printable ASCII; no space, quote, backslash
    uint64_t offset;                // Of its first element in the vector
    uint64_t rows, cols;            // A vector has rows = 1; elements are always rows * cols
    uint8_t dims;                   // 1: shape [cols]; 2: shape [rows, cols]
    uint8_t dtype;                  // enum layout_dtype
};

struct layout {
    struct layout_tensor *tensors; // The caller's memory
    size_t count, capacity;
    uint64_t total; // N
};

// Keeps the pointer to `tensors` (memory for `capacity` of them), which must outlive the layout.
void layout_init(struct layout *self, struct layout_tensor *tensors, size_t capacity);

// Appends a tensor. Refuses, and changes nothing: a name that is bad or taken, a size of zero or
// beyond LAYOUT_TOTAL_MAX (FAULT_RANGE), more than `capacity` (FAULT_LIMIT).
int layout_add_matrix(struct layout *self, const char *name, uint64_t rows, uint64_t cols,
                      enum layout_dtype dtype, struct why *why);
int layout_add_vector(struct layout *self, const char *name, uint64_t count,
                      enum layout_dtype dtype, struct why *why);

// Fills `self` (room for from->count) with the same tensors, all written as `dtype`.
void layout_copy_as(struct layout *self, const struct layout *from, enum layout_dtype dtype);

// NULL if there is none. By name: time grows with count. By element: binary search.
const struct layout_tensor *layout_find(const struct layout *self, const char *name);
const struct layout_tensor *layout_at(const struct layout *self, uint64_t element);

struct interval layout_interval(const struct layout_tensor *tensor);

// FAULT_NAN if one of values[total] is NaN or infinite: its tensor, and its place in it.
int layout_check_finite(const struct layout *self, const float *values, struct why *why);

// SHA-256 of the line "shoal layout 1\n", then per tensor in order: name, a zero byte, and five
// little-endian 64-bit numbers: offset, rows, cols, dims, dtype. Equal hashes: equal layouts.
struct hash layout_hash(const struct layout *self);

bool layout_name_valid(const char *name); // And not "__metadata__": safetensors keeps it
const char *layout_dtype_name(enum layout_dtype dtype); // "F32", "BF16", "F16"
unsigned layout_dtype_bytes(enum layout_dtype dtype);
