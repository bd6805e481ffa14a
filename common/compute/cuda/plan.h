#pragma once
// plan -- how the vector is cut into chunks (chunks.h), and their DCT tables (dct.h), as plain data
// that can be copied to a device.
//
// Chunks are numbered through; each has `top_k` slots for coefficients, numbered through likewise:
// chunk c of a part has the slots part.slot + (c - part.first) · top_k and so on.

#include <stdint.h>

struct plan_part {
    uint64_t begin;         // Of the tensor in the vector; its coefficients lie at the same place
    uint64_t slot;          // Of its first chunk
    uint32_t rows, columns; // Of the tensor
    uint32_t first, count;  // Its chunks
    uint32_t top_k;         // Slots of each: 1..its elements
    uint32_t row_table, column_table; // Numbers of its tables
};

struct plan_table { // A struct dct; the three begin at these places in `floats`
    uint32_t side, half, stride, half_stride;
    uint64_t table, even, odd;
};

struct plan {
    const struct plan_part *parts;
    const struct plan_table *tables;
    const float *floats;
    uint64_t floats_count, slots, total; // total: floats in the vector
    uint32_t parts_count, tables_count, chunks;
    uint32_t elements_max; // Of the largest chunk
};
