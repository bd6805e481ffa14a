#pragma once
// dct_definition -- the DCT of a chunk as it is defined, one sequential FMA chain per element: what
// the kernels of distro_kernels.h have to agree with. x and ret_y are [rows->side][columns->side],
// dense, and may not overlap.
//
//     encode: y[b][d] = Σ_h Σ_w x[h][w]·R[b][h]·C[d][w]
//     decode: x[h][w] = Σ_b Σ_d y[b][d]·R[b][h]·C[d][w]

#include "common/optimizer/dct.h"
#include <math.h>
#include <stddef.h>

static inline float dct_entry(const struct dct *dct, uint32_t k, uint32_t j)
{
    return dct->table[(size_t)k * dct->stride + j];
}

static inline void dct_encode(const struct dct *rows, const struct dct *columns, const float *x,
                              float *ret_y)
{
    const uint32_t height = rows->side, width = columns->side;
    for (uint32_t b = 0; b < height; b++) {
        for (uint32_t d = 0; d < width; d++) {
            float sum = 0.0f;
            for (uint32_t w = 0; w < width; w++) {
                float inner = 0.0f;
                for (uint32_t h = 0; h < height; h++)
                    inner = fmaf(dct_entry(rows, b, h), x[h * width + w], inner);
                sum = fmaf(dct_entry(columns, d, w), inner, sum);
            }
            ret_y[b * width + d] = sum;
        }
    }
}

static inline void dct_decode(const struct dct *rows, const struct dct *columns, const float *y,
                              float *ret_x)
{
    const uint32_t height = rows->side, width = columns->side;
    for (uint32_t h = 0; h < height; h++) {
        for (uint32_t w = 0; w < width; w++) {
            float sum = 0.0f;
            for (uint32_t b = 0; b < height; b++) {
                float inner = 0.0f;
                for (uint32_t d = 0; d < width; d++)
                    inner = fmaf(dct_entry(columns, d, w), y[b * width + d], inner);
                sum = fmaf(dct_entry(rows, b, h), inner, sum);
            }
            ret_x[h * width + w] = sum;
        }
    }
}
