// The transform of a chunk: part of distro_kernels_template.h; no #pragma once. One side after the
// other, each in strips of columns, so that intermediate numbers stay in the nearest cache.

// Sums to rows 0.. of out, differences to rows `half`.. of it. x has n rows.
static void fold(uint32_t n, uint32_t width, const float *x, size_t stride, float *out)
{
    const uint32_t half = (n + 1) / 2;
    for (uint32_t j = 0; j < n / 2; j++) {
        const float *near = x + j * stride, *far = x + (n - 1 - j) * stride;
        float *sum = out + j * DISTRO_STRIP, *difference = out + (half + j) * DISTRO_STRIP;
        for (uint32_t w = 0; w < width; w += LANES) {
            const vector a = LOAD(near + w), b = LOAD(far + w);
            STORE(sum + w, ADD(a, b));
            STORE(difference + w, SUB(a, b));
        }
    }
    if (n % 2 != 0)
        memcpy(out + (half - 1) * DISTRO_STRIP, x + (half - 1) * stride, width * sizeof *x);
}

static void transform_folded(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                             struct distro_scratch *scratch, float *out, size_t out_stride)
{
    const uint32_t n = dct->side, half = dct->half;
    float *folded = scratch->strip[0];
    fold(n, width, x, stride, folded);
    multiply((struct product){ dct->even, dct->half_stride, every, half, folded, DISTRO_STRIP, out,
                               2 * out_stride },
             half, width);
    multiply((struct product){ dct->odd, dct->half_stride, every, n / 2,
                               folded + half * DISTRO_STRIP, DISTRO_STRIP, out + out_stride,
                               2 * out_stride },
             n / 2, width);
}

// A rotation of a DCT-IV, of two rows that mirror each other.
struct rotation {
    vector near_u, far_u, near_w, far_w;
};
struct turned {
    vector u, w;
};

ALWAYS struct rotation rotation_at(const float *turn)
{
    return (struct rotation){ SPREAD(turn[DCT_NEAR_U]), SPREAD(turn[DCT_FAR_U]),
                              SPREAD(turn[DCT_NEAR_W]), SPREAD(turn[DCT_FAR_W]) };
}

ALWAYS struct turned turn_pair(vector near, vector far, struct rotation by)
{
    return (struct turned){ FMA(far, by.far_u, MUL(near, by.near_u)),
                            FMA(far, by.far_w, MUL(near, by.near_w)) };
}

// Row i of n = 4m and the three that mirror it.
struct mirrors {
    const float *a, *b, *c, *d;
    struct rotation by;
};
struct quarter {
    vector sum, difference;
    struct turned turned;
};

ALWAYS struct mirrors mirrors_of(const struct dct *dct, uint32_t i, const float *x, size_t stride)
{
    const uint32_t n = dct->side;
    return (struct mirrors){ x + i * stride, x + (n - 1 - i) * stride, x + (n / 2 - 1 - i) * stride,
                             x + (n / 2 + i) * stride, rotation_at(dct->turn[0] + i * DCT_TURN) };
}

// The even part, folded twice; the odd part, folded once and turned.
ALWAYS struct quarter quarter_of(const struct mirrors *rows, uint32_t w)
{
    const vector a = LOAD(rows->a + w), b = LOAD(rows->b + w);
    const vector c = LOAD(rows->c + w), d = LOAD(rows->d + w);
    const vector near = ADD(a, b), far = ADD(c, d);
    return (struct quarter){ ADD(near, far), SUB(near, far),
                             turn_pair(SUB(a, b), SUB(c, d), rows->by) };
}

// Eight rows become one row in each of eight blocks of n/8: what the leaves transform.
static void split(const struct dct *dct, uint32_t width, const float *x, size_t stride, float *out)
{
    const uint32_t eighth = dct->eighth;
    const size_t block = eighth * DISTRO_STRIP;
    for (uint32_t j = 0; j < eighth; j++) {
        const struct mirrors outer = mirrors_of(dct, j, x, stride);
        const struct mirrors inner = mirrors_of(dct, 2 * eighth - 1 - j, x, stride);
        const struct rotation by = rotation_at(dct->turn[1] + j * DCT_TURN);
        float *low = out + j * DISTRO_STRIP, *high = low + 4 * block;
        for (uint32_t w = 0; w < width; w += LANES) {
            const struct quarter near = quarter_of(&outer, w), far = quarter_of(&inner, w);
            const struct turned turned = turn_pair(near.difference, far.difference, by);
            STORE(low + w, ADD(near.sum, far.sum));
            STORE(low + block + w, SUB(near.sum, far.sum));
            STORE(low + 2 * block + w, turned.u);
            STORE(low + 3 * block + w, turned.w);
            STORE(high + w, ADD(near.turned.u, far.turned.u));
            STORE(high + block + w, SUB(near.turned.u, far.turned.u));
            STORE(high + 2 * block + w, ADD(near.turned.w, far.turned.w));
            STORE(high + 3 * block + w, SUB(near.turned.w, far.turned.w));
        }
    }
}

// A DCT-IV of 2·count points from its two DCT-II: frequency q to row q of out, `step` apart.
//     Y[0] = U[0], Y[2p] = U[p] + V[count-p], Y[2p-1] = U[p] - V[count-p], Y[2count-1] = -V[0]
static void combine(uint32_t count, uint32_t width, const float *u, const float *v, float *out,
                    size_t step)
{
    for (uint32_t w = 0; w < width; w += LANES) {
        STORE(out + w, LOAD(u + w));
        STORE(out + (2 * count - 1) * step + w, SUB(ZERO(), LOAD(v + w)));
    }
    for (uint32_t p = 1; p < count; p++) {
        const float *near = u + p * DISTRO_STRIP, *far = v + (count - p) * DISTRO_STRIP;
        for (uint32_t w = 0; w < width; w += LANES) {
            const vector a = LOAD(near + w), b = LOAD(far + w);
            STORE(out + 2 * p * step + w, ADD(a, b));
            STORE(out + (2 * p - 1) * step + w, SUB(a, b));
        }
    }
}

// A DCT-II of an even number of points folds once more.
static void leaf(struct product product, enum dct_leaf kind, uint32_t count, uint32_t width)
{
    product.count = count;
    if (kind == DCT_FOURTH || count % 2 != 0) {
        multiply(product, count, width);
        return;
    }
    product.count = count / 2;
    multiply_folded(product, count, width);
}

static void transform_split(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                            struct distro_scratch *scratch, float *out, size_t out_stride)
{
    const uint32_t eighth = dct->eighth;
    const size_t rows = eighth * DISTRO_STRIP;
    float *blocks = scratch->strip[0];
    float *u = scratch->strip[1], *v = u + 2 * rows, *odd_u = v + 2 * rows, *odd_v = odd_u + rows;
    split(dct, width, x, stride, blocks);
    const struct {
        enum dct_leaf leaf;
        float *to;
        size_t step;
    } leaves[8] = {
        { DCT_FIRST, out, 8 * out_stride }, { DCT_FOURTH, out + 4 * out_stride, 8 * out_stride },
        { DCT_PLAIN, odd_u, DISTRO_STRIP }, { DCT_PLAIN, odd_v, DISTRO_STRIP },
        { DCT_PLAIN, u, 2 * DISTRO_STRIP }, { DCT_FOURTH, u + DISTRO_STRIP, 2 * DISTRO_STRIP },
        { DCT_PLAIN, v, 2 * DISTRO_STRIP }, { DCT_FOURTH, v + DISTRO_STRIP, 2 * DISTRO_STRIP },
    };
    for (uint32_t i = 0; i < 8; i++) {
        const struct product product = { .left = dct->leaf[leaves[i].leaf],
                                         .left_stride = eighth,
                                         .list = every,
                                         .right = blocks + i * rows,
                                         .right_stride = DISTRO_STRIP,
                                         .out = leaves[i].to,
                                         .out_stride = leaves[i].step };
        leaf(product, leaves[i].leaf, eighth, width);
    }
    combine(eighth, width, odd_u, odd_v, out + 2 * out_stride, 4 * out_stride);
    combine(2 * eighth, width, u, v, out + out_stride, 2 * out_stride);
}

// The transform of the columns of x [n][width] into out, rows in the order of frequency. `width` is
// a multiple of DCT_LANES, at most a strip.
static void transform(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                      struct distro_scratch *scratch, float *out, size_t out_stride)
{
    if (dct->eighth) transform_split(dct, width, x, stride, scratch, out, out_stride);
    else transform_folded(dct, width, x, stride, scratch, out, out_stride);
}

static uint32_t strip_of(uint32_t width) { return width < DISTRO_STRIP ? width : DISTRO_STRIP; }

typedef float quad __attribute__((vector_size(16)));

// out[j][i] = x[i][j], in squares of four; whole squares, so up to 3 rows and columns too many.
static void turn(uint32_t rows, uint32_t columns, const float *x, size_t stride, float *out,
                 size_t out_stride)
{
    for (uint32_t i = 0; i < rows; i += 4) {
        for (uint32_t j = 0; j < columns; j += 4) {
            quad a, b, c, d;
            const float *from = x + i * stride + j;
            memcpy(&a, from, sizeof a);
            memcpy(&b, from + stride, sizeof b);
            memcpy(&c, from + 2 * stride, sizeof c);
            memcpy(&d, from + 3 * stride, sizeof d);
            const quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            const quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
            b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
            c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
            d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
            float *to = out + j * out_stride + i;
            memcpy(to, &a, sizeof a);
            memcpy(to + out_stride, &b, sizeof b);
            memcpy(to + 2 * out_stride, &c, sizeof c);
            memcpy(to + 3 * out_stride, &d, sizeof d);
        }
    }
}

// Rows of whole vectors: the chunk itself, or a copy of it.
static const float *whole_rows(uint32_t height, const struct dct *columns, const float *x,
                               size_t *stride, float *copy)
{
    const uint32_t width = columns->side;
    if (width == columns->stride) return x;
    for (uint32_t h = 0; h < height; h++) {
        float *row = copy + h * columns->stride;
        memcpy(row, x + h * *stride, width * sizeof *row);
        memset(row + width, 0, (columns->stride - width) * sizeof *row);
    }
    *stride = columns->stride;
    return copy;
}

// Dense rows from padded ones. Writes whole vectors as long as a later row overwrites the surplus.
static void close_rows(uint32_t rows, uint32_t width, const float *x, size_t stride, float *ret)
{
    for (uint32_t row = 0; row < rows; row++, x += stride, ret += width) {
        if ((rows - row) * width < stride) memcpy(ret, x, width * sizeof *ret);
        else
            for (uint32_t w = 0; w < width; w += LANES) STORE(ret + w, LOAD(x + w));
    }
}

static void encode(const struct dct *rows, const struct dct *columns, const float *x, size_t stride,
                   struct distro_scratch *scratch, float *ret_y)
{
    const uint32_t height = rows->side, width = columns->side;
    const size_t turned_stride = rows->stride;
    x = whole_rows(height, columns, x, &stride, scratch->fold);
    for (uint32_t w = 0; w < width; w += DISTRO_STRIP) {
        const uint32_t strip = strip_of(columns->stride - w);
        transform(rows, strip, x + w, stride, scratch, scratch->middle, DISTRO_STRIP);
        turn(height, strip, scratch->middle, DISTRO_STRIP, scratch->turned + w * turned_stride,
             turned_stride);
    }
    float *to = height == turned_stride ? ret_y : scratch->middle;
    for (uint32_t b = 0; b < height; b += DISTRO_STRIP)
        transform(columns, strip_of(rows->stride - b), scratch->turned + b, turned_stride, scratch,
                  to + b, turned_stride);
    if (to == ret_y) return;
    close_rows(width, height, scratch->middle, turned_stride, ret_y);
}
