#pragma once
// plugin -- what libshoal-cuda.so offers to a program that loads it at run time. Plain C and plain
// data: the program links no GPU library, and the library nothing of the program.
//
//     struct cuda_plugin   found by dlsym under the name "shoal_cuda_plugin"
//       find ─▶ what device there is
//       open ─▶ a replica: parameters, vectors of state, and, if it trains, model and gradient
//       loss, clip, put, get, leaves            what compute.h promises (compute_cuda.c)
//       compress, apply                         kernels of DisTrO (common/optimizer/result_cuda.c)
//       adamw                                   kernel of AdamW (its host side: optimizer_adamw.c)
//
// NEVER RUN ON A GPU. No machine with one has been at hand. The sources are compiled as CUDA where
// there is an nvcc, and their tests pass on a device that the processor emulates one thread after
// the other (tests/gpu/emulated): that shows the arithmetic and the indices, and shows nothing of
// how a real device schedules, synchronises, captures graphs or fails. Nor has any speed been
// measured. With a GPU, begin with `make gpu-test`.
//
// Calls return 0 or a fault with its place in *why; after a fault of the device (FAULT_UNREACHABLE)
// the replica answers every call with it. One thread at a time per replica. Arguments are borrowed
// for the call only.

#include "common/base/fault.h"
#include "common/compute/cuda/plan.h"
#include "common/kernel/optimizer_factors.h"
#include "common/model/model_layout.h"

#include <stdbool.h>
#include <stdint.h>

#define CUDA_PLUGIN_NAME   "libshoal-cuda.so"
#define CUDA_PLUGIN_SYMBOL "shoal_cuda_plugin"
enum { CUDA_PLUGIN_VERSION = 3, CUDA_SAMPLES_MAX = 65536, CUDA_DEVICE_NAME_MAX = 255 };

struct cuda_device {
    char name[CUDA_DEVICE_NAME_MAX + 1];
    uint64_t memory_bytes, free_bytes;
    int32_t major, minor, driver, processors; // driver: 13000 is 13.0
};

struct cuda_config {
    int32_t device;
    struct model_shape shape;
    uint32_t micro_batch, seq;
    const float *cosine, *sine; // [seq][head_dim/2]
    const struct plan *plan;    // Of payloads; NULL: nothing is compressed or applied
    bool trains;                // Otherwise parameters alone: to apply, and to compute a loss
    bool float32;               // Products and activations in float32, to be held against the CPU
    bool graph;                 // Capture the step
    uint32_t vectors;           // Of state, 0..CUDA_STATE_MAX, zero at first
    uint64_t state_begin, state_floats; // Interval of the parameters that each of them is for
    const uint64_t *bare; // Intervals that adamw does not decay, sorted [bare_count][2]
    uint32_t bare_count;
};

struct cuda_coefficients { // As struct coefficients in distro.cuh, on the host
    uint16_t *counts, *numbers;
    float *values;
};

struct cuda_commit { // A range of chunks of the results of a commit: distro.cuh
    uint32_t first, end, results;
    uint64_t slot, slots;
    struct cuda_coefficients sent;
    float keep, rate;
};

// Vectors by number, as in compute.h: two of N floats, then those of state.
enum { CUDA_PARAMETERS, CUDA_GRADIENT, CUDA_STATE, CUDA_STATE_MAX = 4 };

struct cuda_compression { // candidate = decay · residual + rate · DCT(gradient): distro.cuh
    uint32_t residual, candidate; // Vectors of state, of N floats
    float decay, rate;
};

struct cuda_replica;

struct cuda_plugin {
    uint32_t version;
    int (*find)(int32_t device, struct why *why, struct cuda_device *ret_device);
    uint64_t (*memory_bytes)(const struct cuda_config *config); // That `open` will take
    int (*open)(const struct cuda_config *config, struct why *why, struct cuda_replica **ret);
    void (*close)(struct cuda_replica **self);
    // Whole vectors to the device (NULL: zeros) and back.
    int (*put)(struct cuda_replica *self, uint32_t vector, const float *from, struct why *why);
    int (*get)(struct cuda_replica *self, uint32_t vector, float *to, struct why *why);
    int (*leaves)(struct cuda_replica *self, uint32_t vector, uint8_t *ret_leaves, struct why *why);
    // Mean loss of `count` sequences [count][seq + 1], 1..CUDA_SAMPLES_MAX; with `gradient`, its
    // gradient in CUDA_GRADIENT. Tokens have been checked.
    int (*loss)(struct cuda_replica *self, const uint32_t *tokens, uint32_t count, bool gradient,
                struct why *why, double *ret_loss);
    // The norm of the gradient, which is scaled down to `limit` if longer; limit 0: only measured.
    int (*clip)(struct cuda_replica *self, double limit, struct why *why, double *ret_norm);
    // FAULT_NAN if the gradient or the candidate is not finite or reaches 2^64.
    int (*compress)(struct cuda_replica *self, const struct cuda_compression *job,
                    const struct cuda_coefficients *ret, struct why *why);
    int (*apply)(struct cuda_replica *self, const struct cuda_commit *commit, struct why *why);
    // A step of AdamW on the interval of the state: parameters, and moments in two of its vectors.
    int (*adamw)(struct cuda_replica *self, const struct adamw_factors *by, uint32_t first_moment,
                 uint32_t second_moment, struct why *why);
    int (*wait)(struct cuda_replica *self, struct why *why); // For all work that was begun
};
