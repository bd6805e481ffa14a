// DisTrO as an optimizer above a device: the two residuals are vectors of the device, which change
// places when a candidate is adopted. This file decides what both devices have in common: whether
// there is a candidate, and whether the residual is still the declared zero.
#include "common/optimizer/result.h"
#include "common/base/ensure.h"
#include "common/optimizer/distro_plan.h"
#include "common/optimizer/result_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct results *results_of(optimizer_t *self)
{
    ensure(self->kind == &optimizer_distro);
    return (struct results *)(void *)self;
}

static const struct results *results_in(const optimizer_t *self)
{
    ensure(self->kind == &optimizer_distro);
    return (const struct results *)(const void *)self;
}

// ---- its row

static void close_results(optimizer_t *base)
{
    struct results *self = (struct results *)(void *)base;
    distro_destroy(&self->near);
    result_far_destroy(&self->far);
    plan_destroy(&self->plan);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    free(self->payload);
    free(self);
}

static int open_results(const struct optimizer_place *place,
                        const struct optimizer_settings *settings, struct why *why,
                        optimizer_t **ret_optimizer)
{
    if (!interval_equal(place->at, (struct interval){ 0, place->layout->total }))
        return why_set(why, FAULT_UNSUPPORTED,
                       "DisTrO of the floats %" PRIu64 "..%" PRIu64 "; it takes the whole vector",
                       place->at.begin, place->at.end);
    int rc = distro_check_decay(settings->decay, why);
    if (rc < 0) return rc;
    struct results *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a DisTrO state");
    self->decay = settings->decay;
    self->keeps_former = settings->keeps_former;
    self->weight_decay = (float)settings->weight_decay;
    rc = payload_form_of_model(place->shape, settings->chunk, settings->topk, settings->one_bit,
                               why, &self->chunks, &self->form);
    if (rc == 0) rc = plan_new(self->form, why, &self->plan);
    if (rc < 0) close_results(&self->base);
    else *ret_optimizer = &self->base;
    return rc;
}

static void ask(const optimizer_t *base, struct compute_config *config)
{
    config->vectors = config->trains ? 2 : 0; // A residual belongs to the trainer that made it
    config->lends = config->trains && !results_in(base)->keeps_former;
    config->plan = results_in(base)->plan;
}

// The vector of a candidate residual is free from its adoption until the next candidate is made.
static void lend(struct results *self)
{
    if (self->near && compute_config(self->base.compute)->lends)
        compute_lend(self->base.compute, COMPUTE_STATE + !distro_adopted(self->near));
}

static int begin(optimizer_t *base, struct why *why)
{
    struct results *self = results_of(base);
    if (compute_far(base->compute)) return result_far_new(self, why, &self->far);
    if (!compute_config(base->compute)->trains) return 0;
    float *const residual[2] = { compute_at(base->compute, COMPUTE_STATE),
                                 compute_at(base->compute, COMPUTE_STATE + 1) };
    const int rc =
        distro_new(self->form, self->decay, base->place.pool, residual, why, &self->near);
    if (rc == 0) lend(self);
    return rc;
}

static size_t items(optimizer_t *base, struct state_item *ret_items)
{
    const struct results *self = results_in(base);
    const uint32_t adopted = self->near  ? distro_adopted(self->near)
                             : self->far ? result_far_adopted(self->far)
                                         : 0;
    ret_items[0] = (struct state_item){ .name = "distro-residual",
                                        .tag = TAG_DROP,
                                        .at = base->place.at,
                                        .vector = COMPUTE_STATE + adopted,
                                        .element_bytes = sizeof(float),
                                        .least = -DISTRO_RESIDUAL_MAX,
                                        .most = DISTRO_RESIDUAL_MAX };
    return 1;
}

static void changed(optimizer_t *base, bool zero)
{
    struct results *self = results_of(base);
    self->candidate = false;
    self->adopted = !zero;
    if (self->near) distro_changed(self->near);
    if (self->far) result_far_changed(self->far);
}

// A step of a single trainer: a round with one result, which is adopted.
static int step(optimizer_t *base, float rate, struct why *why)
{
    struct results *self = results_of(base);
    const struct apply_step how = { .rate = rate, .weight_decay = self->weight_decay };
    const size_t bytes = payload_bytes(self->form);
    if (!self->payload) self->payload = malloc(bytes);
    if (!self->payload) return why_set(why, FAULT_MEMORY, "a result of %zu bytes", bytes);
    const struct apply_result result = { .payload = self->payload, .bytes = bytes };
    int rc = result_make(base, rate, why, self->payload);
    if (rc < 0) return rc;
    rc = result_apply(base, &result, 1, &how, why);
    if (rc < 0) result_discard(base);
    else result_adopt(base);
    return rc;
}

const struct optimizer_kind optimizer_distro = {
    .name = "Distro",
    .open = open_results,
    .close = close_results,
    .ask = ask,
    .begin = begin,
    .items = items,
    .changed = changed,
    .step = step,
};

// ---- what a run does with it

const payload_form_t *result_form(const optimizer_t *self) { return results_in(self)->form; }

int result_make(optimizer_t *base, float rate, struct why *why, uint8_t *ret_payload)
{
    struct results *self = results_of(base);
    ensure(compute_config(base->compute)->trains && rate >= 0.0f);
    result_discard(base);
    const int rc = self->near
                       ? distro_compress(self->near, compute_at(base->compute, COMPUTE_GRADIENT),
                                         rate, ret_payload, why)
                       : result_far_make(self, rate, why, ret_payload);
    self->candidate = rc == 0;
    return rc;
}

bool result_has_candidate(const optimizer_t *self) { return results_in(self)->candidate; }

void result_adopt(optimizer_t *base)
{
    struct results *self = results_of(base);
    ensure(self->candidate);
    self->candidate = false;
    self->adopted = true;
    if (self->near) distro_adopt(self->near);
    else result_far_adopt(self->far);
    lend(self);
}

void result_discard(optimizer_t *base)
{
    struct results *self = results_of(base);
    self->candidate = false;
    if (self->near) distro_discard(self->near); // A GPU's is overwritten by the next one
}

int result_hashes(optimizer_t *base, struct why *why, struct hash *ret_from, struct hash *ret_to)
{
    struct results *self = results_of(base);
    int rc = 0;
    ensure(self->candidate);
    if (self->far) rc = result_far_hashes(self, why, ret_from, ret_to);
    else {
        *ret_from = distro_residual_hash(self->near);
        *ret_to = distro_candidate_hash(self->near);
    }
    if (rc == 0 && !self->adopted) *ret_from = (struct hash){ { 0 } };
    return rc;
}

const float *result_residual(optimizer_t *base, const struct hash *digest)
{
    struct results *self = results_of(base);
    return self->near && self->keeps_former ? distro_residual_of(self->near, digest) : NULL;
}

int result_apply(optimizer_t *base, const struct apply_result *results, uint32_t count,
                 const struct apply_step *how, struct why *why)
{
    struct results *self = results_of(base);
    if (self->far) return result_far_apply(self, results, count, how, why);
    return apply_commit(self->form, results, count, how, base->place.pool,
                        compute_host(base->compute), why);
}

// ---- another member's result

int result_gradient_again(optimizer_t *base, const struct result_work *work, struct why *why)
{
    double loss, norm;
    const int rc =
        compute_gradient_at(base->compute, work->params, work->tokens, work->count, why, &loss);
    if (rc < 0 || work->clip <= 0.0) return rc;
    return compute_clip(base->compute, work->clip, why, &norm);
}

// Works on two residuals of its own, so that those of this replica do not change.
static int make_again(struct results *self, const struct result_work *work, float *const vectors[2],
                      struct why *why, uint8_t *ret_payload, struct hash *ret_to)
{
    distro_t *distro = NULL;
    int rc = distro_new(self->form, self->decay, self->base.place.pool, vectors, why, &distro);
    if (rc == 0) rc = distro_set_residual(distro, work->residual, why);
    if (rc == 0)
        rc = distro_compress(distro, compute_at(self->base.compute, COMPUTE_GRADIENT), work->rate,
                             ret_payload, why);
    if (rc == 0) *ret_to = distro_candidate_hash(distro);
    distro_destroy(&distro);
    return rc;
}

int result_again(optimizer_t *base, const struct result_work *work, struct why *why,
                 uint8_t *ret_payload, struct hash *ret_to)
{
    struct results *self = results_of(base);
    const size_t bytes = (base->place.layout->total * sizeof(float) + 63) / 64 * 64;
    float *const vectors[2] = { aligned_alloc(64, bytes), aligned_alloc(64, bytes) };
    const int rc = vectors[0] && vectors[1]
                       ? make_again(self, work, vectors, why, ret_payload, ret_to)
                       : why_set(why, FAULT_MEMORY, "residuals of %zu bytes", bytes);
    free(vectors[0]);
    free(vectors[1]);
    return rc;
}
