#include "common/learner/solo.h"
#include "common/base/ensure.h"

#include <math.h>
#include <stdlib.h>

struct solo {
    struct solo_options options;
    compute_t *compute;
    chunks_t *chunks; // SOLO_DISTRO, from here on
    payload_form_t *form;
    uint8_t *payload;
};

static int new_form(const struct solo_place *place, const struct solo_options *options,
                    struct why *why, chunks_t **ret_chunks, payload_form_t **ret_form)
{
    if (options->kind != SOLO_DISTRO) return 0;
    return payload_form_of_model(place->shape, options->chunk, options->topk, options->one_bit, why,
                                 ret_chunks, ret_form);
}

static struct compute_config config_of(const struct solo_place *place,
                                       const struct solo_options *options,
                                       const payload_form_t *form)
{
    return (struct compute_config){
        .shape = *place->shape,
        .micro_batch = options->micro_batch,
        .seq = options->seq,
        .batch_max = options->batch_max,
        .form = form,
        .adamw = options->kind == SOLO_ADAMW ? &options->adamw : NULL,
        .layout = place->layout,
        .decay = options->compression_decay,
        .trains = true,
        .float32 = options->precision == GEMM_FLOAT32,
        .recompute = options->recompute,
        .pool = place->pool,
    };
}

int solo_memory(const struct solo_place *place, const struct solo_options *options, struct why *why,
                struct compute_memory *ret_memory)
{
    chunks_t *chunks = NULL;
    payload_form_t *form = NULL;
    const int rc = new_form(place, options, why, &chunks, &form);
    const struct compute_config config = config_of(place, options, form);
    if (rc == 0) *ret_memory = compute_memory(place->device, &config);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
    return rc;
}

int solo_new(const struct solo_place *place, const struct solo_options *options, struct why *why,
             solo_t **ret_solo)
{
    ensure(place->layout->total == model_parameter_count(place->shape) && options->batch_max >= 1);
    solo_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a trainer");
    self->options = *options;
    int rc = new_form(place, options, why, &self->chunks, &self->form);
    if (rc == 0 && self->form) self->payload = malloc(payload_bytes(self->form));
    if (rc == 0 && self->form && !self->payload)
        rc = why_set(why, FAULT_MEMORY, "a result of %zu bytes", payload_bytes(self->form));
    const struct compute_config config = config_of(place, &self->options, self->form);
    if (rc == 0) rc = compute_new(place->device, &config, why, &self->compute);
    if (rc < 0) solo_destroy(&self);
    else *ret_solo = self;
    return rc;
}

void solo_destroy(solo_t **self_p)
{
    solo_t *self = *self_p;
    if (!self) return;
    compute_destroy(&self->compute);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    free(self->payload);
    free(self);
    *self_p = NULL;
}

float *solo_params(solo_t *self) { return compute_host(self->compute); }
int solo_push(solo_t *self, struct why *why) { return compute_push(self->compute, why); }
int solo_pull(solo_t *self, struct why *why) { return compute_pull(self->compute, why); }

// As a run does it with the one result of a round.
static int step_distro(solo_t *self, float rate, struct why *why)
{
    const struct apply_step step = { .rate = rate,
                                     .weight_decay = (float)self->options.adamw.weight_decay };
    const struct apply_result result = { .payload = self->payload,
                                         .bytes = payload_bytes(self->form) };
    int rc = compute_compress(self->compute, rate, why, self->payload);
    if (rc < 0) return rc;
    rc = compute_apply(self->compute, &result, 1, &step, why);
    if (rc < 0) compute_discard(self->compute);
    else compute_adopt(self->compute);
    return rc;
}

int solo_step(solo_t *self, const uint32_t *tokens, uint32_t count, float rate, struct why *why,
              struct solo_result *ret_result)
{
    struct solo_result result;
    int rc = compute_gradient(self->compute, tokens, count, why, &result.loss);
    const double limit = self->options.clip_norm > 0 ? self->options.clip_norm : INFINITY;
    if (rc == 0) rc = compute_clip(self->compute, limit, why, &result.norm);
    if (rc == 0 && limit == INFINITY && !(result.norm < ADAMW_GRADIENT_LIMIT))
        rc = why_set(why, FAULT_NAN,
                     "gradient: its norm is %g, allowed up to 2^63; "
                     "the gradient is unusable",
                     result.norm);
    if (rc == 0)
        rc = self->form ? step_distro(self, rate, why) : compute_adamw(self->compute, rate, why);
    if (rc == 0) *ret_result = result;
    return rc;
}

int solo_loss(solo_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
              double *ret_loss)
{
    return compute_loss(self->compute, tokens, count, why, ret_loss);
}

// ---- state by tag

int solo_pull_state(solo_t *self, struct tags *tags, struct why *why,
                    const void *ret_values[SOLO_ITEMS])
{
    void *values[SOLO_ITEMS] = { NULL };
    const int rc = compute_pull_state(self->compute, tags, why, values);
    for (size_t i = 0; i < SOLO_ITEMS && rc == 0; i++) ret_values[i] = values[i];
    return rc;
}

int solo_load_state(solo_t *self, const checkpoint_t *checkpoint, struct why *why)
{
    struct tags_item room[SOLO_ITEMS];
    struct tags tags;
    void *values[SOLO_ITEMS];
    tags_init(&tags, room, SOLO_ITEMS);
    int rc = compute_pull_state(self->compute, &tags, why, values);
    for (size_t i = 0; i < tags.count && rc == 0; i++) {
        const struct interval whole = { 0, tags.items[i].elements };
        rc = checkpoint_load_state(checkpoint, &tags.items[i], whole, values[i], why);
    }
    if (rc == 0) rc = compute_push_state(self->compute, why);
    if (rc < 0) compute_push(self->compute, NULL); // What had gone wrong counts
    return rc;
}
