#pragma once
// batch -- the mean gradient of a batch, `micro_batch` sequences at a time, so that memory is
// needed for those only. The portions are always the same: micro_batch sequences each from the
// first on, the last one with what is left. So the bits depend on micro_batch alone: not on
// threads, and not on how much memory there is.
//
//     batch_gradient         one sum, from the first sample to the last
//     batch_gradient_lanes   lanes, each such a sum, added in a tree (common/vector/lanes.h)

#include "common/model/model.h"
#include "common/vector/lanes.h"

struct batch {
    const uint32_t *tokens; // [count][seq + 1]
    uint32_t count, seq;    // count >= 1
    uint32_t micro_batch;   // 1..the batch of model_new
};

// Mean loss over the batch's targets, and its gradient (N floats, all overwritten). `scratch` is
// room for another N floats; NULL is allowed if count <= micro_batch. FAULT_RANGE and FAULT_NAN as
// model_loss_and_grad, with the samples in *why; *ret_gradient then means nothing.
int batch_gradient(model_t *model, const float *params, const struct batch *batch, pool_t *pool,
                   float *scratch, struct why *why, float *ret_gradient, double *ret_loss);

// The same loss without the gradient.
int batch_loss(model_t *model, const float *params, const struct batch *batch, struct why *why,
               double *ret_loss);

// ---- by lanes

// One node of the tree of a step's batch. A lane's portions are counted from its first sample, and
// each weighs its samples over those of the whole step, so all nodes of a step just add up.
struct batch_node {
    const uint32_t *tokens; // Of the node's samples only, [count][seq + 1]
    uint32_t seq, micro_batch;
    uint32_t lanes, batch; // Of the whole step; lanes is 1..LANES_MAX
    struct lane_node node; // Has at least one sample
    // NULL, or told on the way that the numbers of the result from `from` on, which falls, are final:
    // in the last backward pass, when nothing can fail any more, on the caller's thread.
    void (*final)(void *arg, uint64_t from);
    void *final_arg;
    // NULL, or called between two portions, on the caller's thread: it changes nothing of all this.
    void (*between)(void *arg);
    void *between_arg;
};

// Vectors of N floats that any node of such a step takes as scratch: the depth of the tree, ceil
// (log2 lanes), and one more if a lane can have several portions. At most BATCH_SCRATCH_MAX.
// `batch_max` 0: a step of any size.
enum { BATCH_SCRATCH_MAX = 7 };
uint32_t batch_lanes_scratch(uint32_t lanes, uint32_t batch_max, uint32_t micro_batch);
// The same for nodes of at most so many of its lanes.
uint32_t batch_node_scratch(uint32_t lanes, uint32_t node_lanes, uint32_t batch_max,
                            uint32_t micro_batch);

// The node's part of the mean gradient of the step (N floats, all overwritten), and of each of its
// lanes the sum of the samples' losses, ret_losses[node.end - node.first]; 0 of a lane without
// samples. The root of one lane has the bits of batch_gradient. `scratch`: batch_lanes_scratch
// vectors, one after the other. Faults as of batch_gradient, with the samples of the whole step.
int batch_gradient_lanes(model_t *model, const float *params, const struct batch_node *batch,
                         pool_t *pool, float *scratch, struct why *why, float *ret_gradient,
                         double *ret_losses);

// The mean loss of the step, from the sums of all its lanes: added in the order of the lanes.
double batch_lanes_loss(const double *losses, uint32_t lanes, uint32_t batch);
