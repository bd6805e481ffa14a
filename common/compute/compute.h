#pragma once
// compute -- what a device does for a learner: it holds vectors, computes the gradient of a batch,
// and clips it. An optimizer (common/optimizer/optimizer.h) stands above and decides what becomes
// of the gradient.
//
//     compute_find   "auto" | "cpu" | "cuda" ─▶ the device, and a text about it
//     compute_new    room for parameters, and to train: model, gradient, vectors of state
//
//     COMPUTE_PARAMETERS   N floats      host ─ push ─▶ device ─ pull ─▶ host
//     COMPUTE_GRADIENT     N floats      batch ─ gradient ─▶ clip
//     COMPUTE_STATE + i    of config.state, i < config.vectors: the state of an optimizer
//     any of them          put, get; leaves: those of its digest, computed on the device
//
// There are two devices. The CPU (compute_cpu.c) is the reference, and reproducible: model.h,
// gradient.h. Its vectors are plain memory (compute_at), on which an optimizer works with
// common/kernel. The GPU (compute_cuda.c, and libshoal-cuda.so, loaded at run time) keeps its
// vectors in its own memory and has kernels for what optimizers do with them (compute_far). It
// computes the gradient in bf16, with other bits than a CPU; from equal gradients it makes the same
// parameters as a CPU.
//
// The GPU part has never run on a GPU. It has been compiled, and tested on a device that the
// processor emulates (tests/gpu).
//
// One thread at a time.

#include "common/base/hash.h"
#include "common/base/interval.h"
#include "common/kernel/gemm.h"
#include "common/model/model_layout.h"
#include "common/vector/lanes.h"

struct cuda_plugin;
struct cuda_replica;
struct plan;

enum compute_kind { COMPUTE_CPU, COMPUTE_CUDA };

struct compute_device {
    enum compute_kind kind;
    char text[512];                   // For people: which device it is, or why no other was taken
    const struct cuda_plugin *plugin; // Of COMPUTE_CUDA; loaded once, never unloaded
    uint64_t free_bytes;              // Of a GPU's memory, when it was found; of a CPU 0
};

// "cpu", "cuda", or "auto": the GPU if there is one, else the CPU, and *text says why. FAULT_USAGE
// for another word. With "cuda", FAULT_UNAVAILABLE where library, driver or device are missing,
// with what to do. A plugin that is there and of another version is an error for "auto" too.
int compute_find(const char *name, struct why *why, struct compute_device *ret_device);

enum { COMPUTE_VECTORS_MAX = 4 }; // Of state

struct compute_config {
    struct model_shape shape;  // Has passed model_shape_check
    uint32_t micro_batch, seq; // Sequences at a time, and their length
    uint32_t batch_max;        // The most of a gradient; 0: any number
    uint32_t lanes;            // Of compute_gradient_lanes; 0: it is not called
    uint32_t node_lanes;       // The most of them that a node has; 0: all
    bool trains;               // Else it only holds parameters
    bool serves;               // It trains with gradients that others compute: no compute_gradient
    // Of the products on a CPU (gemm.h). A GPU computes GEMM_FLOAT32 so, and all else in bf16 of its own.
    enum gemm_precision precision;
    bool recompute; // CPU: of model_options
    bool sparse;    // CPU: zeros of the vectors of state take no memory until they are written to
    pool_t *pool;   // Borrowed for the life of the compute_t; NULL: no threads
    // What an optimizer asks for; optimizer_ask fills it in. Borrowed too; zero without an
    // optimizer.
    uint32_t vectors;        // Vectors of state, 0..COMPUTE_VECTORS_MAX
    struct interval state;   // The floats that each of them has
    bool lends;              // The optimizer lends one of them to gradients (compute_lend)
    const struct plan *plan; // GPU: chunks of the parameters (cuda/plan.h); NULL: none
    const uint64_t *bare;    // GPU: intervals that no weight decay touches, sorted
    uint32_t bare_count;     // [bare_count][2]
};

typedef struct compute compute_t;

// The memory that compute_new will take, on the device and beside it on the host.
struct compute_memory {
    uint64_t device, host;
};
struct compute_memory compute_memory(const struct compute_device *device,
                                     const struct compute_config *config);

// Vectors of state are zero. FAULT_RANGE, FAULT_MEMORY with the number needed and the knob,
// FAULT_UNREACHABLE.
int compute_new(const struct compute_device *device, const struct compute_config *config,
                struct why *why, compute_t **ret_compute);
void compute_destroy(compute_t **self); // NULL is allowed

const struct compute_config *compute_config(const compute_t *self); // What it was made with

// ---- vectors

enum compute_vector { COMPUTE_PARAMETERS, COMPUTE_GRADIENT, COMPUTE_STATE };

// The parameters on the host, N floats. Fill them and push, or pull and read them. On a CPU they
// are the parameters themselves: only the optimizer may write to them in between.
float *compute_host(compute_t *self);
int compute_push(compute_t *self, struct why *why);
int compute_pull(compute_t *self, struct why *why);

// The vector's floats, if they lie in memory of this process; NULL on a GPU.
float *compute_at(compute_t *self, uint32_t vector);

// A whole vector to the device (NULL: zeros), and back.
int compute_put(compute_t *self, uint32_t vector, const float *from, struct why *why);
int compute_get(compute_t *self, uint32_t vector, struct why *why, float *ret_floats);

// Lends this vector of state to the gradient: the optimizer does not need its floats while a gradient is computed,
// and the gradient overwrites them. So a gradient of several micro-batches takes no vector of its own for their
// sum. Only with a config that lends (ensured). Call it before the first gradient, and again when the vector to be
// lent is another one. A GPU has a vector of its own.
void compute_lend(compute_t *self, uint32_t vector);

// Gives the memory of a vector's floats outside `part` back to the system: they mean nothing until they are
// written again, which takes that memory again. On a GPU nothing happens.
void compute_release(compute_t *self, uint32_t vector, struct interval part);

// Leaves of the digest of a vector (merkle.h): digest_leaf_count of its floats.
int compute_leaves(compute_t *self, uint32_t vector, struct why *why, struct hash *ret_leaves);

// ---- the gradient

// Mean loss of `count` sequences [count][seq + 1], and its gradient, which stays on the device.
// FAULT_RANGE for a token outside the vocabulary, FAULT_NAN, both with the samples.
int compute_gradient(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                     double *ret_loss);
// From now on `between` is called between two micro-batches of a gradient, on the caller's thread, so that somebody who
// waits meanwhile can be looked at. It changes nothing of this replica. NULL: no more. A GPU never calls it.
void compute_between(compute_t *self, void (*between)(void *arg), void *arg);
// The same at other parameters than it holds, N floats on the host. FAULT_UNSUPPORTED on a GPU: its
// gradients have other bits than a CPU's, so no result may be judged by them.
int compute_gradient_at(compute_t *self, const float *params, const uint32_t *tokens,
                        uint32_t count, struct why *why, double *ret_loss);
// The same loss without the gradient.
int compute_loss(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                 double *ret_loss);
// The part of the mean gradient of a step that a node of its lanes has (common/vector/lanes.h), and
// of each of these lanes the sum of the samples' losses, ret_losses[node.end - node.first]. The
// nodes of all members add up, in the order of the tree, to the gradient of the step; the losses to
// its mean (batch_lanes_loss). On a CPU every cut into nodes ends in the same bits (batch.h).
//
// A GPU computes the node in one sum: its bits depend on the cut, and the losses are the node's
// mean for each lane. It keeps no part of a step as its gradient: FAULT_UNSUPPORTED unless the node
// is the root or `sum` is given.
//
// `final`, if not NULL, is told on the way which numbers of the sum are final: those from `from` on,
// which falls. The first time is in the last backward pass, when nothing can fail any more. A GPU
// never calls it.
struct compute_lanes {
    const uint32_t *tokens; // Of the node's samples only, [..][seq + 1]
    uint32_t batch;         // Of the whole step, 1..config.batch_max
    struct lane_node node;  // Of config.lanes; has at least one sample
    float *sum;             // Where the sum goes, N floats on the host; NULL: COMPUTE_GRADIENT
    void (*final)(void *arg, uint64_t from);
    void *final_arg;
};
int compute_gradient_lanes(compute_t *self, const struct compute_lanes *lanes, struct why *why,
                           double *ret_losses);

// Scales the gradient to `limit` (above 0) if it is longer. FAULT_NAN if it is not finite.
int compute_clip(compute_t *self, double limit, struct why *why, double *ret_norm);

// ---- kernels

// What a GPU offers an optimizer: the calls of plugin.h, on this replica. NULL on a CPU, where
// compute_at gives the vectors.
struct compute_far {
    const struct cuda_plugin *plugin;
    struct cuda_replica *replica;
};
const struct compute_far *compute_far(const compute_t *self);
