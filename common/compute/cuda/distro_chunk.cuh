#pragma once
// distro_chunk -- where a block finds its chunk, its tables and its memory.

#include "common/compute/cuda/distro.cuh"
#include "common/compute/cuda/numbers.cuh"

enum { DISTRO_THREADS = 256, DISTRO_SHARED_MAX = 64 << 10, DISTRO_BLOCKS_PER_PROCESSOR = 8 };

struct chunk_place {
    const struct plan_part *part;
    const struct plan_table *rows, *columns;
    uint64_t at;           // Of its upper left element in the vector
    uint64_t coefficients; // Of its first coefficient
    uint64_t slot;         // Its first
    uint32_t elements;
};

__device__ inline struct chunk_place chunk_at(const struct plan &plan, uint32_t chunk)
{
    uint32_t low = 0, high = plan.parts_count; // parts[low].first <= chunk < parts[high].first
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (plan.parts[middle].first <= chunk) low = middle;
        else high = middle;
    }
    struct chunk_place place;
    place.part = &plan.parts[low];
    place.rows = &plan.tables[place.part->row_table];
    place.columns = &plan.tables[place.part->column_table];
    const uint32_t local = chunk - place.part->first;
    const uint32_t across = place.part->columns / place.columns->side;
    place.elements = place.rows->side * place.columns->side;
    place.at = place.part->begin +
               (uint64_t)(local / across) * place.rows->side * place.part->columns +
               (uint64_t)(local % across) * place.columns->side;
    place.coefficients = place.part->begin + (uint64_t)local * place.elements;
    place.slot = place.part->slot + (uint64_t)local * place.part->top_k;
    return place;
}

// Memory of a block for one chunk: in shared memory if it fits there, else its own piece of
// scratch.
static inline size_t distro_block_bytes(const struct plan *plan, size_t bytes_per_element)
{
    return (plan->elements_max * bytes_per_element + 127) / 128 * 128;
}

// All prefix sums of a block's threads at once: returns the sum over the threads before this one,
// *ret_total over all. `shared` [DISTRO_THREADS / WARP + 1].
__device__ inline uint64_t block_prefix(uint64_t x, uint64_t *shared, uint64_t *ret_total)
{
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint64_t sum = x; // Of this and the lanes before it
#pragma unroll
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const uint64_t before = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += before;
    }
    __syncthreads();
    if (lane == WARP - 1) shared[warp] = sum;
    __syncthreads();
    uint64_t total = 0, begin = 0;
    for (unsigned i = 0; i < DISTRO_THREADS / WARP; i++) {
        if (i == warp) begin = total;
        total += shared[i];
    }
    *ret_total = total;
    return begin + sum - x;
}
