// One step is gradient, clip, optimizer, in this order. Destroyed in the order device, optimizer:
// the device borrows from the optimizer.
#include "common/learner/solo.h"
#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/kernel/gradient.h"
#include "common/model/batch.h"

#include <math.h>
#include <stdlib.h>

struct solo {
    struct solo_options options;
    optimizer_t *optimizer;
    compute_t *compute;
};

static int new_optimizer(const struct solo_place *place, const struct solo_options *options,
                         struct why *why, optimizer_t **ret_optimizer)
{
    const struct optimizer_place where = { .shape = place->shape,
                                           .layout = place->layout,
                                           .at = { 0, place->layout->total },
                                           .pool = place->pool };
    return optimizer_new(options->optimizer, &where, &options->settings, why, ret_optimizer);
}

static struct compute_config config_of(const struct solo_place *place,
                                       const struct solo_options *options,
                                       const optimizer_t *optimizer)
{
    struct compute_config config = { .shape = *place->shape,
                                     .micro_batch = options->micro_batch,
                                     .seq = options->seq,
                                     .batch_max = options->batch_max,
                                     .lanes = options->lanes,
                                     .trains = true,
                                     .precision = options->precision,
                                     .recompute = options->recompute,
                                     .pool = place->pool };
    optimizer_ask(optimizer, &config);
    return config;
}

int solo_memory(const struct solo_place *place, const struct solo_options *options, struct why *why,
                struct compute_memory *ret_memory)
{
    optimizer_t *optimizer = NULL;
    const int rc = new_optimizer(place, options, why, &optimizer);
    if (rc < 0) return rc;
    const struct compute_config config = config_of(place, options, optimizer);
    *ret_memory = compute_memory(place->device, &config);
    ret_memory->host += optimizer_memory(optimizer, place->device);
    optimizer_destroy(&optimizer);
    return 0;
}

int solo_new(const struct solo_place *place, const struct solo_options *options, struct why *why,
             solo_t **ret_solo)
{
    ensure(place->layout->total == model_parameter_count(place->shape) && options->batch_max >= 1);
    ensure(options->lanes >= 1 && options->lanes <= LANES_MAX);
    solo_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a trainer");
    self->options = *options;
    int rc = new_optimizer(place, options, why, &self->optimizer);
    if (rc == 0) {
        const struct compute_config config = config_of(place, options, self->optimizer);
        rc = compute_new(place->device, &config, why, &self->compute);
    }
    if (rc == 0) rc = optimizer_begin(self->optimizer, self->compute, why);
    if (rc < 0) solo_destroy(&self);
    else *ret_solo = self;
    return rc;
}

void solo_destroy(solo_t **self_p)
{
    solo_t *self = *self_p;
    if (!self) return;
    compute_destroy(&self->compute);
    optimizer_destroy(&self->optimizer);
    free(self);
    *self_p = NULL;
}

float *solo_params(solo_t *self) { return compute_host(self->compute); }
int solo_pull(solo_t *self, struct why *why) { return compute_pull(self->compute, why); }

int solo_push(solo_t *self, struct why *why)
{
    const int rc = compute_push(self->compute, why);
    return rc < 0 ? rc : optimizer_forget(self->optimizer, why);
}

int solo_step(solo_t *self, const uint32_t *tokens, uint32_t count, float rate, struct why *why,
              struct solo_result *ret_result)
{
    const uint32_t lanes = self->options.lanes;
    const struct compute_lanes root = { .tokens = tokens, .batch = count, .node = { 0, lanes } };
    struct solo_result result;
    double losses[LANES_MAX];
    int rc = compute_gradient_lanes(self->compute, &root, why, losses);
    if (rc == 0) result.loss = batch_lanes_loss(losses, lanes, count);
    const double limit = self->options.clip_norm > 0 ? self->options.clip_norm : INFINITY;
    if (rc == 0) rc = compute_clip(self->compute, limit, why, &result.norm);
    if (rc == 0 && limit == INFINITY && !(result.norm < GRADIENT_LIMIT))
        rc = why_set(why, FAULT_NAN,
                     "gradient: its norm is %g, allowed up to 2^63; "
                     "the gradient is unusable",
                     result.norm);
    if (rc == 0) rc = optimizer_step(self->optimizer, rate, why);
    if (rc == 0) *ret_result = result;
    return rc;
}

int solo_loss(solo_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
              double *ret_loss)
{
    return compute_loss(self->compute, tokens, count, why, ret_loss);
}

int solo_digest(solo_t *self, struct why *why, struct hash *ret_params, struct hash *ret_state)
{
    const size_t count =
        digest_leaf_count(model_parameter_count(&compute_config(self->compute)->shape));
    struct hash *leaves = malloc(count * sizeof *leaves);
    if (!leaves) return why_set(why, FAULT_MEMORY, "%zu leaves of the parameters", count);
    int rc = compute_leaves(self->compute, COMPUTE_PARAMETERS, why, leaves);
    if (rc == 0) *ret_params = merkle_root(leaves, count);
    free(leaves);
    return rc < 0 ? rc : optimizer_digest(self->optimizer, ret_params, why, ret_state);
}

int solo_save_state(solo_t *self, struct why *why, struct state *ret_state)
{
    return state_save(self->optimizer, OPTIMIZER_OWN, why, ret_state);
}

int solo_load_state(solo_t *self, const checkpoint_t *checkpoint, struct why *why)
{
    return state_load(self->optimizer, OPTIMIZER_OWN, checkpoint, why);
}

int solo_parts(solo_t *self, struct why *why, struct pieces_part ret_parts[STATE_PARTS_MAX],
               size_t *ret_count)
{
    struct state state;
    const uint64_t floats = model_parameter_count(&compute_config(self->compute)->shape);
    int rc = solo_pull(self, why);
    if (rc == 0) rc = solo_save_state(self, why, &state);
    if (rc < 0) return rc;
    *ret_count = state_parts(self->optimizer, &state, solo_params(self),
                             (struct interval){ 0, floats }, ret_parts);
    return 0;
}

uint64_t solo_parts_bytes(solo_t *self)
{
    const uint64_t floats = model_parameter_count(&compute_config(self->compute)->shape);
    return state_parts_bytes(self->optimizer, (struct interval){ 0, floats });
}

int solo_load_pieces(solo_t *self, const pieces_t *pieces, const struct layout *layout,
                     struct why *why, bool *ret_is_fresh)
{
    const struct interval all = { 0, layout->total };
    int rc = state_read_params(pieces, layout, all, solo_params(self), why);
    if (rc == 0) rc = solo_push(self, why);
    return rc < 0 ? rc
                  : state_read_pieces(self->optimizer, OPTIMIZER_OWN, pieces, why, ret_is_fresh);
}
