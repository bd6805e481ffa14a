#include "common/learn/solo.h"
#include "common/ensure.h"
#include "common/learn/apply.h"
#include "common/learn/distro.h"
#include "common/learn/gradient.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct solo {
    struct solo_options options;
    const struct layout *layout;
    float *params, *gradient;
    float *scratch;                     // NULL if a batch is one portion
    pool_t *pool;
    model_t *model;
    adamw_t *adamw;                     // SOLO_ADAMW
    chunks_t *chunks;                   // SOLO_DISTRO, from here on
    payload_form_t *form;
    distro_t *distro;
    uint8_t *payload;
};

static uint64_t vector_bytes(uint64_t floats) { return (floats * sizeof(float) + 63) / 64 * 64; }

static bool is_portioned(const struct solo_options *options)
{
    return options->batch_max > options->micro_batch;
}

static struct model_options model_options_of(const struct solo_options *options)
{
    return (struct model_options){ options->micro_batch, options->seq, options->precision,
                                   options->recompute };
}

struct solo_memory solo_memory(const struct model_shape *shape, const struct solo_options *options,
                               uint32_t threads)
{
    const uint64_t floats = model_parameter_count(shape), vector = vector_bytes(floats);
    const struct model_options model = model_options_of(options);
    struct solo_memory memory = {
        .parameters = vector,
        .gradient = is_portioned(options) ? 2 * vector : vector,
        .optimizer = options->kind == SOLO_ADAMW ? adamw_memory_bytes(floats) : 2 * vector,
        .activations = model_memory_bytes(shape, &model, threads),
    };
    memory.total =
        memory.parameters + memory.gradient + memory.optimizer + memory.activations;
    return memory;
}

static int new_distro(solo_t *self, const struct model_shape *shape, struct why *why)
{
    const struct solo_options *options = &self->options;
    int rc = chunks_of_model(shape, options->chunk, why, &self->chunks);
    if (rc == 0)
        rc = payload_form_new(self->chunks, options->topk, options->one_bit, why, &self->form);
    if (rc == 0)
        rc = distro_new(self->form, options->compression_decay, self->pool, why, &self->distro);
    if (rc < 0) return rc;
    self->payload = malloc(payload_bytes(self->form));
    return self->payload ? 0 : why_set(why, FAULT_MEMORY, "a result of %zu bytes",
                                       payload_bytes(self->form));
}

static int take_vectors(solo_t *self, struct why *why)
{
    const size_t bytes = (size_t)vector_bytes(self->layout->total);
    const bool portioned = is_portioned(&self->options);
    self->gradient = aligned_alloc(64, bytes);
    if (portioned) self->scratch = aligned_alloc(64, bytes);
    if (self->gradient && (self->scratch || !portioned)) return 0;
    return why_set(why, FAULT_MEMORY, "a gradient of %" PRIu64 " floats", self->layout->total);
}

int solo_new(const struct model_shape *shape, const struct layout *layout, float *params,
             const struct solo_options *options, pool_t *pool, struct why *why, solo_t **ret_solo)
{
    ensure(layout->total == model_parameter_count(shape) && options->batch_max >= 1);
    solo_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a trainer");
    *self = (struct solo){ .options = *options, .layout = layout, .params = params, .pool = pool };
    const struct model_options model = model_options_of(options);
    int rc = take_vectors(self, why);
    if (rc == 0) rc = model_new(shape, &model, pool, why, &self->model);
    if (rc == 0)
        rc = options->kind == SOLO_ADAMW
                 ? adamw_new(layout, &options->adamw, pool, why, &self->adamw)
                 : new_distro(self, shape, why);
    if (rc < 0) solo_destroy(&self);
    else *ret_solo = self;
    return rc;
}

void solo_destroy(solo_t **self_p)
{
    solo_t *self = *self_p;
    if (!self) return;
    distro_destroy(&self->distro);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    adamw_destroy(&self->adamw);
    model_destroy(&self->model);
    free(self->gradient);
    free(self->scratch);
    free(self->payload);
    free(self);
    *self_p = NULL;
}

static struct batch batch_of(const solo_t *self, const uint32_t *tokens, uint32_t count)
{
    ensure(count >= 1 && count <= self->options.batch_max);
    return (struct batch){ tokens, count, self->options.seq, self->options.micro_batch };
}

// As a run does it with the one result of a round.
static int step_distro(solo_t *self, float rate, struct why *why)
{
    const struct apply_step step = { .rate = rate,
                                     .weight_decay = (float)self->options.adamw.weight_decay };
    const struct apply_result result = { .payload = self->payload,
                                         .bytes = payload_bytes(self->form) };
    int rc = distro_compress(self->distro, self->gradient, rate, self->payload, why);
    if (rc < 0) return rc;
    rc = apply_commit(self->form, &result, 1, &step, self->pool, self->params, why);
    if (rc < 0) distro_discard(self->distro);
    else distro_adopt(self->distro);
    return rc;
}

int solo_step(solo_t *self, const uint32_t *tokens, uint32_t count, float rate, struct why *why,
              struct solo_result *ret_result)
{
    const struct batch batch = batch_of(self, tokens, count);
    const uint64_t floats = self->layout->total;
    struct solo_result result;
    int rc = batch_gradient(self->model, self->params, &batch, self->pool, self->scratch, why,
                            self->gradient, &result.loss);
    const double limit = self->options.clip_norm > 0 ? self->options.clip_norm : INFINITY;
    if (rc == 0)
        rc = gradient_clip(self->pool, self->gradient, floats, limit, why, &result.norm);
    if (rc == 0 && limit == INFINITY && !(result.norm < ADAMW_GRADIENT_LIMIT))
        rc = why_set(why, FAULT_NAN, "gradient: its norm is %g, allowed up to 2^63; "
                     "the gradient is unusable", result.norm);
    if (rc == 0 && self->adamw) adamw_step(self->adamw, self->gradient, rate, self->params);
    else if (rc == 0) rc = step_distro(self, rate, why);
    if (rc == 0) *ret_result = result;
    return rc;
}

int solo_loss(solo_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
              double *ret_loss)
{
    const struct batch batch = { tokens, count, self->options.seq, self->options.micro_batch };
    return batch_loss(self->model, self->params, &batch, why, ret_loss);
}

// ---- state by tag

int solo_add_state(const solo_t *self, struct tags *tags, struct why *why,
                   const void *ret_values[SOLO_ITEMS])
{
    if (self->adamw) return adamw_add_state(self->adamw, tags, why, ret_values);
    ret_values[0] = distro_residual(self->distro);
    return tags_add(tags, "distro-residual", TAG_DROP, self->layout->total, sizeof(float), why);
}

static int load_items(solo_t *self, const checkpoint_t *checkpoint, struct why *why)
{
    struct tags_item room[SOLO_ITEMS];
    struct tags tags;
    const void *values[SOLO_ITEMS];
    tags_init(&tags, room, SOLO_ITEMS);
    int rc = solo_add_state(self, &tags, why, values);
    for (size_t i = 0; i < tags.count && rc == 0; i++) {
        const struct interval whole = { 0, tags.items[i].elements };
        // The residual is its owner's to set: it comes by way of the gradient's room
        void *to = self->adamw ? (void *)(uintptr_t)values[i] : self->gradient;
        rc = checkpoint_load_state(checkpoint, &tags.items[i], whole, to, why);
    }
    return rc;
}

int solo_load_state(solo_t *self, const checkpoint_t *checkpoint, struct why *why)
{
    int rc = load_items(self, checkpoint, why);
    if (self->adamw) {
        if (rc == 0) return adamw_loaded(self->adamw, why);
        adamw_reset(self->adamw);
        return rc;
    }
    return rc < 0 ? rc : distro_set_residual(self->distro, self->gradient, why);
}
