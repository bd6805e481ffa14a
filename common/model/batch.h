#pragma once
// batch -- the mean gradient of a batch, `micro_batch` sequences at a time, so that memory is
// needed for those only. The portions are always the same: micro_batch sequences each from the
// first on, the last one with what is left. So the bits depend on micro_batch alone: not on
// threads, and not on how much memory there is.

#include "common/model/model.h"

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
