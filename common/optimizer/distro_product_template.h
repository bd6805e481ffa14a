// The products of matrices of distro_kernels_template.h, in tiles of registers. Part of it; no
// #pragma once.

enum { TILE_VECTORS = 2 };

// 0, 1, 2, ...: the list that takes every row.
static const uint8_t every[DCT_SIDE_MAX] = {
#define FOUR(n)       n, n + 1, n + 2, n + 3
#define SIXTEEN(n)    FOUR(n), FOUR(n + 4), FOUR(n + 8), FOUR(n + 12)
#define SIXTY_FOUR(n) SIXTEEN(n), SIXTEEN(n + 16), SIXTEEN(n + 32), SIXTEEN(n + 48)
    SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)
#undef SIXTY_FOUR
#undef SIXTEEN
#undef FOUR
};

// A product of a matrix [count][rows], its rows picked by a list, and rows of numbers. Folded: of
// numbers that are 2·count rows, row q and its mirror are added for the even rows of the result and
// subtracted for the odd ones.
struct product {
    const float *left;
    size_t left_stride;
    const uint8_t *list;
    uint32_t count;
    const float *right;
    size_t right_stride;
    float *out;
    size_t out_stride;
};

// One tile of it: `rows` rows by `vectors` vectors.
ALWAYS void tile(const struct product *of, uint32_t i, uint32_t w, int rows, int vectors,
                 bool folded)
{
    vector sum[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) sum[r][v] = ZERO();
    const float *left = of->left + i, *right = of->right + w;
    const float *mirror = right + (2 * of->count - 1) * of->right_stride;
    for (uint32_t q = 0; q < of->count; q++) {
        const float *scalars = left + of->list[q] * of->left_stride;
        vector row[2][TILE_VECTORS];
        for (int v = 0; v < vectors; v++) {
            row[0][v] = LOAD(right + v * LANES);
            row[1][v] = row[0][v];
            if (!folded) continue;
            row[1][v] = SUB(row[0][v], LOAD(mirror + v * LANES));
            row[0][v] = ADD(row[0][v], LOAD(mirror + v * LANES));
        }
        for (int r = 0; r < rows; r++) {
            const vector scalar = SPREAD(scalars[r]);
            for (int v = 0; v < vectors; v++) sum[r][v] = FMA(scalar, row[r % 2][v], sum[r][v]);
        }
        right += of->right_stride;
        mirror -= of->right_stride;
    }
    float *out = of->out + i * of->out_stride + w;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            STORE(out + (size_t)r * of->out_stride + v * LANES, sum[r][v]);
}

// The same with the number of rows known to the compiler.
ALWAYS void tile_of(const struct product *of, uint32_t i, uint32_t w, uint32_t rows, int vectors,
                    bool folded)
{
    switch (rows) {
    case 1: tile(of, i, w, 1, vectors, folded); break;
    case 2: tile(of, i, w, 2, vectors, folded); break;
    case 3: tile(of, i, w, 3, vectors, folded); break;
#if TILE_ROWS > 4
    case 4: tile(of, i, w, 4, vectors, folded); break;
    case 5: tile(of, i, w, 5, vectors, folded); break;
    case 6: tile(of, i, w, 6, vectors, folded); break;
    case 7: tile(of, i, w, 7, vectors, folded); break;
#endif
    default: tile(of, i, w, TILE_ROWS, vectors, folded);
    }
}

// out[i][w] = chain over q < count of left[list[q]][i] · right[q][w], for i < rows and w < width, a
// multiple of DCT_LANES.
ALWAYS void multiply_as(const struct product *of, uint32_t rows, uint32_t width, bool folded)
{
    for (uint32_t i = 0; i < rows; i += TILE_ROWS) {
        uint32_t w = 0;
        for (; w + TILE_VECTORS * LANES <= width; w += TILE_VECTORS * LANES)
            tile_of(of, i, w, rows - i, TILE_VECTORS, folded);
        for (; w < width; w += LANES) tile_of(of, i, w, rows - i, 1, folded);
    }
}

static void multiply(struct product of, uint32_t rows, uint32_t width)
{
    multiply_as(&of, rows, width, false);
}

static void multiply_folded(struct product of, uint32_t rows, uint32_t width)
{
    multiply_as(&of, rows, width, true);
}
