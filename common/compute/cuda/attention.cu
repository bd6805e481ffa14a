// Chooses the way: tensor cores where attention_flash_can, plain kernels elsewhere. The backward
// pass first computes delta, which both ways need.
#include "common/compute/cuda/attention_rows.cuh"

// delta[row] = sum of d_out · out: what the softmax takes off every dp of the row.
template <typename T, int N>
__global__ void delta_kernel(float *delta, const T *d_out, const T *out,
                             struct attention_shape shape)
{
    const uint32_t row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= shape.seq) return;
    const uint32_t head = blockIdx.y % shape.heads, sample = blockIdx.y / shape.heads;
    const struct place at = place_of(shape, sample, head);
    float a[N], b[N];
    load_head(d_out + at.out + row * at.out_width, shape.head_dim, a);
    load_head(out + at.out + row * at.out_width, shape.head_dim, b);
    const float sum = dot(a, b);
    if (threadIdx.x % WARP == 0) delta[at.sums + row] = sum;
}

// The same where eight numbers at a time fit: a thread has eight, `group` neighbours a head. A
// power of two, so that no head crosses a warp.
__global__ void delta_wide_kernel(float *delta, const bf16 *d_out, const bf16 *out,
                                  struct attention_shape shape, uint32_t group)
{
    const uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x, place = unit / group;
    const uint32_t row = place / shape.heads, head = place % shape.heads;
    const bool there = row < shape.batch * shape.seq;
    float sum = 0.0f;
    if (there) {
        float a[8], b[8];
        load<8>(d_out + (size_t)unit * 8, a);
        load<8>(out + (size_t)unit * 8, b);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += a[i] * b[i];
    }
    for (uint32_t distance = group / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(~0u, sum, (int)distance);
    if (there && unit % group == 0)
        delta[((size_t)(row / shape.seq) * shape.heads + head) * shape.seq + row % shape.seq] = sum;
}

template <typename T> struct take_delta {
    struct device *device;
    float *delta;
    const T *d_out, *out;
    const struct attention_shape *shape;
    template <int N> void run() const
    {
        DEVICE_LAUNCH(device, grid_of(shape, shape->heads), dim3(WARPS * WARP), 0,
                      (delta_kernel<T, N>), delta, d_out, out, *shape);
    }
};

bool attention_flash_can(const struct attention_shape *shape)
{
    switch (shape->head_dim) {
    case 32:
    case 48:
    case 64:
    case 96:
    case 128: return true;
    default: return false;
    }
}

template <>
void attention_forward<float>(struct device *device, float *out, float *log_sum, const float *qkv,
                              const struct attention_shape *shape)
{
    attention_plain_forward(device, out, log_sum, qkv, shape);
}

template <>
void attention_forward<bf16>(struct device *device, bf16 *out, float *log_sum, const bf16 *qkv,
                             const struct attention_shape *shape)
{
    if (attention_flash_can(shape)) attention_flash_forward(device, out, log_sum, qkv, shape);
    else attention_plain_forward(device, out, log_sum, qkv, shape);
}

template <>
void attention_back<float>(struct device *device, float *d_qkv, float *delta, const float *d_out,
                           const float *out, const float *log_sum, const float *qkv,
                           const struct attention_shape *shape)
{
    by_head_dim(shape->head_dim, take_delta<float>{ device, delta, d_out, out, shape });
    attention_plain_back(device, d_qkv, delta, d_out, log_sum, qkv, shape);
}

template <>
void attention_back<bf16>(struct device *device, bf16 *d_qkv, float *delta, const bf16 *d_out,
                          const bf16 *out, const float *log_sum, const bf16 *qkv,
                          const struct attention_shape *shape)
{
    const uint32_t group = shape->head_dim / 8;
    const size_t units = (size_t)shape->batch * shape->seq * shape->heads * group;
    if (shape->head_dim % 8 == 0 && group <= WARP && (group & (group - 1)) == 0)
        DEVICE_LAUNCH(device, dim3(device_blocks(units, 256)), dim3(256), 0, delta_wide_kernel,
                      delta, d_out, out, *shape, group);
    else by_head_dim(shape->head_dim, take_delta<bf16>{ device, delta, d_out, out, shape });
    if (attention_flash_can(shape))
        attention_flash_back(device, d_qkv, delta, d_out, log_sum, qkv, shape);
    else attention_plain_back(device, d_qkv, delta, d_out, log_sum, qkv, shape);
}
