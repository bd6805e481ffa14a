// One forward pass over a prompt, and the head on its last row alone.
#include "common/model/model_state.h"

#include <inttypes.h>
#include <string.h>

static int check_prompt(const model_t *self, const uint32_t *tokens, uint32_t count,
                        struct why *why)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tokens[i] >= self->shape.vocab)
            return why_set(why, FAULT_RANGE,
                           "model: token %" PRIu32 " at position %" PRIu32 " of the prompt, "
                           "allowed 0..%" PRIu32 "; nothing is computed",
                           tokens[i], i, self->shape.vocab - 1);
    }
    return 0;
}

// Logits after the last of the `count` tokens in self->inputs.
static void logits_after(model_t *self, const float *params, uint32_t count, float *ret_logits)
{
    const struct model_shape *shape = &self->shape;
    self->batch = 1;
    self->seq = count;
    self->rows = count;
    self->params = params;
    self->grad = NULL;
    self->kernels = kernels_chosen();
    model_forward(self);
    const float *last = self->last_norm + (size_t)(count - 1) * shape->dim;
    model_product(self, GEMM_NT, false, 1, shape->vocab, shape->dim, last,
                  params + model_head_offset(shape), ret_logits);
}

int model_logits_last(model_t *self, const float *params, const uint32_t *tokens, uint32_t count,
                      struct why *why, float *ret_logits)
{
    if (count < 1 || count > self->options.seq_max)
        return why_set(why, FAULT_RANGE,
                       "model: %" PRIu32 " tokens, allowed 1..%" PRIu32 "; nothing is computed",
                       count, self->options.seq_max);
    const int rc = check_prompt(self, tokens, count, why);
    if (rc < 0) return rc;
    memcpy(self->inputs, tokens, count * sizeof *tokens);
    logits_after(self, params, count, ret_logits);
    return 0;
}
