// A commit on the device, a block of threads per chunk: add up what the results sent, take the
// means, transform back, move the parameters. Each number has the CPU's order of operations.
#include "common/compute/cuda/distro_chunk.cuh"

#include <string.h>

// Per element of a chunk: a sum, how many sent it, a middle value of the transform, its place in
// the list of those sent.
enum { APPLY_BYTES = 16 };

struct memory {
    float *sums;
    uint32_t *hits;
    float *middle;  // [height][width]: t[b][w]
    uint16_t *sent; // Numbers that at least one result sent, ascending
};

// Adds up what the results sent, in their order. Numbers within a result differ, so no two threads
// write the same place.
__device__ inline void add_results(const struct distro_application &job,
                                   const struct chunk_place &place, uint32_t chunk,
                                   const struct memory &memory)
{
    for (uint32_t i = threadIdx.x; i < place.elements; i += DISTRO_THREADS) {
        memory.sums[i] = 0.0f;
        memory.hits[i] = 0;
    }
    for (uint32_t r = 0; r < job.results; r++) {
        __syncthreads();
        const uint32_t count =
            job.sent.counts[(size_t)r * (job.end - job.first) + chunk - job.first];
        const size_t slot = r * job.slots + (place.slot - job.slot);
        for (uint32_t i = threadIdx.x; i < count; i += DISTRO_THREADS) {
            const uint32_t number = job.sent.numbers[slot + i];
            memory.sums[number] = __fadd_rn(memory.sums[number], job.sent.values[slot + i]);
            memory.hits[number]++;
        }
    }
    __syncthreads();
}

// Puts the means in place of the sums and lists the coefficients that have one. Returns the length
// of the list.
__device__ inline uint32_t take_means(const struct chunk_place &place, const struct memory &memory,
                                      uint64_t *shared_sums)
{
    const uint32_t run = (place.elements + DISTRO_THREADS - 1) / DISTRO_THREADS;
    const uint32_t begin = threadIdx.x * run < place.elements ? threadIdx.x * run : place.elements;
    const uint32_t end = place.elements - begin < run ? place.elements : begin + run;
    uint32_t mine = 0;
    for (uint32_t i = begin; i < end; i++) mine += memory.hits[i] != 0;
    uint64_t total;
    uint32_t at = (uint32_t)block_prefix(mine, shared_sums, &total);
    for (uint32_t i = begin; i < end; i++) {
        if (memory.hits[i] == 0) continue;
        memory.sums[i] = __fdiv_rn(memory.sums[i], (float)memory.hits[i]);
        memory.sent[at++] = (uint16_t)i;
    }
    __syncthreads();
    return (uint32_t)total;
}

// t[b][w] = chain over ascending d of mean[d][b] · C[d][w]. A thread has one w and every groups-th
// b.
__device__ inline void decode_columns(const struct chunk_place &place, const float *floats,
                                      const struct memory &memory, uint32_t sent, uint8_t *live)
{
    const uint32_t height = place.rows->side, width = place.columns->side;
    for (uint32_t i = threadIdx.x; i < place.elements; i += DISTRO_THREADS) memory.middle[i] = 0.0f;
    for (uint32_t b = threadIdx.x; b < height; b += DISTRO_THREADS) live[b] = 0;
    __syncthreads();
    const uint32_t groups = DISTRO_THREADS / width, group = threadIdx.x / width;
    const uint32_t w = threadIdx.x % width;
    for (uint32_t i = 0; i < sent && group < groups; i++) {
        const uint32_t number = memory.sent[i], d = number / height, b = number % height;
        if (b % groups != group) continue;
        const float entry = floats[place.columns->table + (size_t)d * place.columns->stride + w];
        float *t = &memory.middle[b * width + w];
        *t = __fmaf_rn(memory.sums[number], entry, *t);
        if (w == 0) live[b] = 1;
    }
    __syncthreads();
}

__device__ inline void update(float *p, float x, float keep, float rate)
{
    const float move = x > 0.0f ? -rate : x < 0.0f ? rate : 0.0f;
    *p = __fmaf_rn(*p, keep, move);
}

// E[h] over even b and O[h] over odd b; x[h] = E + O and x[n-1-h] = E - O move the parameters.
__device__ inline void decode_rows(const struct distro_application &job,
                                   const struct chunk_place &place, const float *floats,
                                   const struct memory &memory, const uint8_t *live)
{
    const uint32_t height = place.rows->side, width = place.columns->side;
    const float *table = floats + place.rows->table;
    for (uint32_t item = threadIdx.x; item < place.rows->half * width; item += DISTRO_THREADS) {
        const uint32_t h = item / width, w = item % width, far = height - 1 - h;
        float chain[2] = { 0.0f, 0.0f };
        for (uint32_t b = 0; b < height; b++)
            if (live[b])
                chain[b % 2] = __fmaf_rn(table[(size_t)b * place.rows->stride + h],
                                         memory.middle[b * width + w], chain[b % 2]);
        float *p = job.parameters + place.at + w;
        if (far != h)
            update(p + (size_t)far * place.part->columns, __fsub_rn(chain[0], chain[1]), job.keep,
                   job.rate);
        update(p + (size_t)h * place.part->columns, __fadd_rn(chain[0], chain[1]), job.keep,
               job.rate);
    }
}

__global__ void __launch_bounds__(DISTRO_THREADS)
    apply_kernel(struct plan plan, struct distro_application job, unsigned char *scratch)
{
    __shared__ uint64_t shared_sums[DISTRO_THREADS / WARP];
    __shared__ uint8_t live[256];
    DEVICE_SHARED(unsigned char, bytes);
    if (scratch) bytes = scratch + (size_t)blockIdx.x * APPLY_BYTES * plan.elements_max;
    struct memory memory;
    memory.sums = reinterpret_cast<float *>(bytes);
    memory.hits = reinterpret_cast<uint32_t *>(memory.sums + plan.elements_max);
    memory.middle = reinterpret_cast<float *>(memory.hits + plan.elements_max);
    memory.sent = reinterpret_cast<uint16_t *>(memory.middle + plan.elements_max);
    for (uint32_t chunk = job.first + blockIdx.x; chunk < job.end; chunk += gridDim.x) {
        const struct chunk_place place = chunk_at(plan, chunk);
        __syncthreads(); // All threads are done with the previous chunk
        add_results(job, place, chunk, memory);
        const uint32_t sent = take_means(place, memory, shared_sums);
        decode_columns(place, plan.floats, memory, sent, live);
        decode_rows(job, place, plan.floats, memory, live);
    }
}

void distro_apply(struct device *device, const struct plan *plan,
                  const struct distro_application *job, void *scratch)
{
    const size_t most = (size_t)device->processors * DISTRO_BLOCKS_PER_PROCESSOR;
    const size_t chunks = job->end - job->first, blocks = chunks < most ? chunks : most;
    DEVICE_LAUNCH(device, dim3((unsigned)blocks), dim3(DISTRO_THREADS),
                  scratch ? 0 : distro_block_bytes(plan, APPLY_BYTES), apply_kernel, *plan, *job,
                  (unsigned char *)scratch);
}
