#pragma once
// distro -- DisTrO on the device: gradient to coefficients (distro.h), a commit to parameters
// (apply.h), and the leaves of a digest (merkle.h).
//
// A commit is applied to the bit as the CPU does it: each number has the order of operations that
// distro_kernels.h writes down, made of __fmaf_rn and its like, and these files are compiled
// without contraction. The choice is exact too. The transform of a gradient has an order of its own
// (folded once), since gradients of a GPU have one anyway. The device chooses coefficients; their
// encoding is the host's (payload.h).

#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/plan.h"

// Coefficients of a range of chunks: what one result sends, or what a compression chose. Slots of a
// chunk from its count on mean nothing.
struct coefficients {
    uint16_t *counts;  // [chunks]
    uint16_t *numbers; // [slots], ascending within a chunk
    float *values;     // [slots]; one-bit values are 1 and -1
};

// Bytes that the two below need as `scratch` (0: shared memory is enough).
size_t distro_scratch_bytes(const struct device *device, const struct plan *plan);

// candidate = decay · residual + rate · DCT(gradient); the top_k largest of each chunk go to
// `chosen` and become zero in the candidate. *largest, zero before, becomes the largest magnitude
// as bits. Everything lies on the device, `plan` and what it points to included.
struct distro_compression {
    const float *gradient, *residual;
    float *candidate;
    float decay, rate;
    struct coefficients chosen;
    uint32_t *largest;
};
void distro_compress(struct device *device, const struct plan *plan,
                     const struct distro_compression *job, void *scratch);

// What a commit does to the chunks [first, end). `results` of them, in the commit's order, each
// with the coefficients of this range: result r has its counts at counts + r · (end - first) and
// its slots at r · slots.
struct distro_application {
    uint32_t first, end, results;
    uint64_t slot, slots; // First slot of the range, and how many
    struct coefficients sent;
    float keep, rate; // p = fma(p, keep, -rate · sign(x))
    float *parameters;
};
void distro_apply(struct device *device, const struct plan *plan,
                  const struct distro_application *job, void *scratch);

// SHA-256 of a zero byte and 64 KiB of floats, for each leaf of a vector: [leaves][32] bytes.
void digest_leaves(struct device *device, uint8_t *ret_leaves, const float *values, uint64_t count);
