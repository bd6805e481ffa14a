// A gradient to coefficients, a block of threads per chunk: transform both sides, add to the
// residual, choose the largest, zero them in the candidate.
#include "common/compute/cuda/distro_chunk.cuh"

enum { COMPRESS_BYTES = 2 * sizeof(float), AT_ONCE = 4 }; // Two numbers per element of a chunk

// One direction of the transform. `folded` has the sums of mirrored positions in rows 0..half-1 and
// their differences from row `half` on, each `width` long; out[k][w] is the chain over j of
// C[k][j] · folded. A thread makes AT_ONCE neighbours of one parity: k = 2u, 2u+2, ... or 2u+1, ...
template <typename F>
__device__ inline void transform(const struct plan_table &dct, const float *floats,
                                 const float *folded, uint32_t width, F put)
{
    const uint32_t groups = (dct.half + AT_ONCE - 1) / AT_ONCE;
    for (uint32_t item = threadIdx.x; item < 2 * groups * width; item += DISTRO_THREADS) {
        const uint32_t w = item % width, group = item / width, odd = group >= groups;
        const uint32_t u = (group - odd * groups) * AT_ONCE;
        const uint32_t count = odd ? dct.side / 2 : dct.half;
        const float *table = floats + (odd ? dct.odd : dct.even) + u;
        const float *from = folded + (odd ? dct.half * width : 0) + w;
        float sum[AT_ONCE] = {};
        for (uint32_t j = 0; j < count; j++) {
            float entry[AT_ONCE];
            load<AT_ONCE>(table + (size_t)j * dct.half_stride, entry); // Padded with zeros
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) sum[i] = __fmaf_rn(entry[i], from[j * width], sum[i]);
        }
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const uint32_t k = 2 * (u + i) + odd;
            if (k < dct.side) put(k, w, sum[i]);
        }
    }
}

// folded = sums and differences of the mirrored rows of read(row, w).
template <typename F>
__device__ inline void fold(uint32_t side, uint32_t width, float *folded, F read)
{
    const uint32_t half = (side + 1) / 2;
    for (uint32_t item = threadIdx.x; item < half * width; item += DISTRO_THREADS) {
        const uint32_t j = item / width, w = item % width;
        const float near = read(j, w), far = read(side - 1 - j, w);
        const bool middle = 2 * j + 1 == side;
        folded[item] = middle ? near : __fadd_rn(near, far);
        if (!middle) folded[half * width + item] = __fsub_rn(near, far);
    }
}

// The top_k-th largest magnitude of a chunk, as bits: found from the highest bit down.
__device__ inline uint32_t threshold_of(const float *values, uint32_t elements, uint32_t top_k,
                                        uint32_t *shared)
{
    uint32_t threshold = 0;
    for (int bit = 30; bit >= 0; bit--) {
        const uint32_t higher = threshold | 1u << bit;
        uint32_t count = 0;
        for (uint32_t i = threadIdx.x; i < elements; i += DISTRO_THREADS)
            count += (__float_as_uint(values[i]) & 0x7fffffffu) >= higher;
        if (block_sum(count, shared) >= top_k) threshold = higher;
    }
    return threshold;
}

// Chooses the top_k largest: the lowest number first among equals, never zeros, in ascending order.
// Each thread has one run of numbers; a prefix sum tells it where its choices go.
__device__ inline void choose(const float *values, const struct chunk_place &place, uint32_t chunk,
                              const struct distro_compression &job, uint32_t *shared_counts,
                              uint64_t *shared_sums)
{
    const uint32_t top_k = place.part->top_k;
    const uint32_t threshold = threshold_of(values, place.elements, top_k, shared_counts);
    const uint32_t run = (place.elements + DISTRO_THREADS - 1) / DISTRO_THREADS;
    const uint32_t begin = threadIdx.x * run < place.elements ? threadIdx.x * run : place.elements;
    const uint32_t end = place.elements - begin < run ? place.elements : begin + run;
    uint32_t above = 0, equal = 0;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t key = __float_as_uint(values[i]) & 0x7fffffffu;
        above += key > threshold;
        equal += key == threshold && threshold != 0;
    }
    uint64_t total;
    const uint64_t before = block_prefix((uint64_t)above << 32 | equal, shared_sums, &total);
    const uint32_t need = top_k - (uint32_t)(total >> 32); // Of the equal ones
    above = (uint32_t)(before >> 32), equal = (uint32_t)before;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t key = __float_as_uint(values[i]) & 0x7fffffffu;
        const bool is_equal = key == threshold && threshold != 0;
        if (key > threshold || (is_equal && equal < need)) {
            const uint64_t slot = place.slot + above + (equal < need ? equal : need);
            job.chosen.numbers[slot] = (uint16_t)i;
            job.chosen.values[slot] = values[i];
            job.candidate[place.coefficients + i] = 0.0f;
        }
        above += key > threshold;
        equal += is_equal;
    }
    const uint32_t all_equal = (uint32_t)total;
    if (threadIdx.x == 0)
        job.chosen.counts[chunk] =
            (uint16_t)((uint32_t)(total >> 32) + (all_equal < need ? all_equal : need));
}

__global__ void __launch_bounds__(DISTRO_THREADS)
    compress_kernel(struct plan plan, struct distro_compression job, float *scratch)
{
    __shared__ uint32_t shared_counts[DISTRO_THREADS / WARP];
    __shared__ uint64_t shared_sums[DISTRO_THREADS / WARP];
    DEVICE_SHARED(float, memory);
    if (scratch)
        memory = scratch + (size_t)blockIdx.x * COMPRESS_BYTES / sizeof(float) * plan.elements_max;
    float *first = memory, *second = memory + plan.elements_max;
    uint32_t largest = 0;
    for (uint32_t chunk = blockIdx.x; chunk < plan.chunks; chunk += gridDim.x) {
        const struct chunk_place place = chunk_at(plan, chunk);
        const uint32_t height = place.rows->side, width = place.columns->side;
        const float *x = job.gradient + place.at;
        __syncthreads(); // All threads are done with the previous chunk
        fold(height, width, first,
             [&](uint32_t j, uint32_t w) { return x[(size_t)j * place.part->columns + w]; });
        __syncthreads();
        transform(*place.rows, plan.floats, first, width,
                  [&](uint32_t k, uint32_t w, float y) { second[k * width + w] = y; });
        __syncthreads();
        fold(width, height, first, [&](uint32_t j, uint32_t b) { return second[b * width + j]; });
        __syncthreads();
        transform(*place.columns, plan.floats, first, height, [&](uint32_t d, uint32_t b, float y) {
            const uint32_t i = d * height + b;
            const float old = job.residual[place.coefficients + i];
            const float value = __fmaf_rn(job.rate, y, __fmul_rn(job.decay, old));
            const uint32_t bits = __float_as_uint(value) & 0x7fffffffu;
            largest = bits > largest ? bits : largest;
            job.candidate[place.coefficients + i] = value;
            second[i] = value;
        });
        __syncthreads();
        choose(second, place, chunk, job, shared_counts, shared_sums);
    }
    if (largest != 0) atomicMax(job.largest, largest); // A maximum has no order
}

static size_t blocks_of(const struct device *device, const struct plan *plan)
{
    const size_t most = (size_t)device->processors * DISTRO_BLOCKS_PER_PROCESSOR;
    return plan->chunks < most ? plan->chunks : most;
}

size_t distro_scratch_bytes(const struct device *device, const struct plan *plan)
{
    const size_t block = distro_block_bytes(plan, 16); // distro_apply needs the more of the two
    return block <= DISTRO_SHARED_MAX ? 0 : block * blocks_of(device, plan);
}

void distro_compress(struct device *device, const struct plan *plan,
                     const struct distro_compression *job, void *scratch)
{
    const size_t shared = distro_block_bytes(plan, COMPRESS_BYTES);
    DEVICE_LAUNCH(device, dim3((unsigned)blocks_of(device, plan)), dim3(DISTRO_THREADS),
                  scratch ? 0 : shared, compress_kernel, *plan, *job, (float *)scratch);
}
