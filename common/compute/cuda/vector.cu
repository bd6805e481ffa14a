// Kernels over whole vectors. The norm is summed in VECTOR_PARTS parts and then in order, so its
// bits are fixed.
#include "common/compute/cuda/vector.cuh"

enum { THREADS = 256, AT_ONCE = 4 };

// All kernels here walk the vector AT_ONCE numbers at a time. If the count is no multiple, the last
// few belong to the thread after the last whole pack.
template <typename F> __device__ inline void each_pack(size_t count, F work)
{
    const size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * AT_ONCE;
    if (i < count) work(i, count - i < AT_ONCE ? count - i : (size_t)AT_ONCE);
}

__global__ void narrow_kernel(bf16 *to, const float *from, size_t count)
{
    each_pack(count, [&](size_t i, size_t n) {
        float x[AT_ONCE];
        if (n == AT_ONCE) {
            load<AT_ONCE>(from + i, x);
            store<AT_ONCE>(to + i, x);
        } else {
            for (size_t j = 0; j < n; j++) to[i + j] = from_float<bf16>(from[i + j]);
        }
    });
}

__device__ inline double block_sum_double(double x, double *shared)
{
    shared[threadIdx.x] = x;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    __syncthreads();
    return shared[0];
}

__global__ void square_parts_kernel(double *parts, const float *x, size_t count)
{
    __shared__ double shared[THREADS];
    double sum = 0.0;
    const size_t stride = (size_t)VECTOR_PARTS * THREADS * AT_ONCE;
    for (size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * AT_ONCE; i < count;
         i += stride) {
        float a[AT_ONCE] = {};
        if (count - i >= AT_ONCE) {
            load<AT_ONCE>(x + i, a);
        } else {
            for (size_t j = 0; j < count - i; j++) a[j] = x[i + j];
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) sum += (double)a[j] * (double)a[j];
    }
    sum = block_sum_double(sum, shared);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void square_root_kernel(double *ret_norm, const double *parts)
{
    __shared__ double shared[VECTOR_PARTS];
    const double sum = block_sum_double(parts[threadIdx.x], shared);
    if (threadIdx.x == 0) *ret_norm = sqrt(sum);
}

__global__ void clip_kernel(float *x, const double *norm, double limit, size_t count)
{
    if (!(*norm > limit)) return;
    const float factor = (float)(limit / *norm);
    each_pack(count, [&](size_t i, size_t n) {
        float a[AT_ONCE];
        if (n == AT_ONCE) {
            load<AT_ONCE>(x + i, a);
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) a[j] *= factor;
            store<AT_ONCE>(x + i, a);
        } else {
            for (size_t j = 0; j < n; j++) x[i + j] *= factor;
        }
    });
}

// Whether place i of the interval lies in a bare one.
__device__ inline bool is_bare(const struct adamw_step &step, size_t i)
{
    i += step.begin;
    uint32_t low = 0, high = step.bare_count; // Those before `low` begin at or before i
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (step.bare[2 * middle] <= i) low = middle + 1;
        else high = middle;
    }
    return low > 0 && i < step.bare[2 * low - 1];
}

// As vector_adamw of vector_kernel.h does it: every operation here is rounded to nearest, since the
// Makefile has nothing contracted and nvcc's own quotients and roots are exact (-prec-div,
// -prec-sqrt).
__device__ inline void adamw(float *p, float *m, float *v, float g, const struct adamw_step &step,
                             size_t i)
{
    const struct adamw_factors &by = step.by;
    *m = fmaf(by.one_less_beta1, g - *m, *m);
    *v = fmaf(by.beta2, *v, by.one_less_beta2 * (g * g));
    const float below = fmaf(sqrtf(*v), by.root_factor, by.eps);
    const float kept = is_bare(step, i) ? *p : by.keep * *p;
    *p = fmaf(-by.step, *m / below, kept);
}

__global__ void adamw_kernel(float *p, bf16 *narrow, float *m, float *v, const float *g,
                             struct adamw_step step, size_t count)
{
    each_pack(count, [&](size_t i, size_t n) {
        float ps[AT_ONCE], ms[AT_ONCE], vs[AT_ONCE], gs[AT_ONCE];
        if (n == AT_ONCE) {
            load<AT_ONCE>(p + i, ps);
            load<AT_ONCE>(m + i, ms);
            load<AT_ONCE>(v + i, vs);
            load<AT_ONCE>(g + i, gs);
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) adamw(&ps[j], &ms[j], &vs[j], gs[j], step, i + j);
            store<AT_ONCE>(p + i, ps);
            store<AT_ONCE>(m + i, ms);
            store<AT_ONCE>(v + i, vs);
            if (narrow) store<AT_ONCE>(narrow + i, ps);
        } else {
            for (size_t j = i; j < i + n; j++) {
                adamw(&p[j], &m[j], &v[j], g[j], step, j);
                if (narrow) narrow[j] = from_float<bf16>(p[j]);
            }
        }
    });
}

static dim3 grid_of(size_t count) { return dim3(device_blocks(count, THREADS * AT_ONCE)); }

void vector_narrow(struct device *device, bf16 *to, const float *from, size_t count)
{
    DEVICE_LAUNCH(device, grid_of(count), dim3(THREADS), 0, narrow_kernel, to, from, count);
}

void vector_norm(struct device *device, double *ret_norm, double *parts, const float *x,
                 size_t count)
{
    DEVICE_LAUNCH(device, dim3(VECTOR_PARTS), dim3(THREADS), 0, square_parts_kernel, parts, x,
                  count);
    DEVICE_LAUNCH(device, dim3(1), dim3(VECTOR_PARTS), 0, square_root_kernel, ret_norm,
                  (const double *)parts);
}

void vector_clip(struct device *device, float *x, const double *norm, double limit, size_t count)
{
    DEVICE_LAUNCH(device, grid_of(count), dim3(THREADS), 0, clip_kernel, x, norm, limit, count);
}

void vector_adamw(struct device *device, float *p, bf16 *narrow, float *m, float *v, const float *g,
                  const struct adamw_step *step, size_t count)
{
    DEVICE_LAUNCH(device, grid_of(count), dim3(THREADS), 0, adamw_kernel, p, narrow, m, v, g, *step,
                  count);
}
