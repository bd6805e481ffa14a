// SGD above a device: with momentum a vector of it; and the number of steps, so that each optimizer that sums gradients
// has an item that all members have alike. On a GPU there is no kernel for it yet: refused.
#include "common/optimizer/optimizer_kind.h"
#include "common/optimizer/sgd.h"

#include <float.h>
#include <stdlib.h>

struct descent {
    struct optimizer base;
    struct sgd sgd;
    uint64_t steps;
};

static struct descent *descent_of(optimizer_t *self) { return (struct descent *)(void *)self; }

static bool has_momentum(const struct descent *self) { return self->sgd.options.momentum > 0; }

static void close_descent(optimizer_t *base) { free(base); }

static int open_descent(const struct optimizer_place *place,
                        const struct optimizer_settings *settings, struct why *why,
                        optimizer_t **ret_optimizer)
{
    const struct sgd_options options = { settings->momentum, settings->weight_decay,
                                         settings->nesterov };
    const int rc = sgd_check(&options, why);
    if (rc < 0) return rc;
    struct descent *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "the state of SGD");
    self->sgd = (struct sgd){
        .options = options, .layout = place->layout, .at = place->at, .pool = place->pool
    };
    *ret_optimizer = &self->base;
    return 0;
}

static void ask(const optimizer_t *base, struct compute_config *config)
{
    config->vectors = has_momentum((const struct descent *)(const void *)base);
}

static int begin(optimizer_t *base, struct why *why)
{
    struct descent *self = descent_of(base);
    if (compute_far(base->compute))
        return why_set(why, FAULT_UNSUPPORTED,
                       "SGD computes on the CPU in this version; use --device cpu");
    if (has_momentum(self)) self->sgd.v = compute_at(base->compute, COMPUTE_STATE);
    return 0;
}

static size_t items(optimizer_t *base, struct state_item *ret_items)
{
    struct descent *self = descent_of(base);
    size_t count = 0;
    if (has_momentum(self))
        ret_items[count++] = (struct state_item){ .name = "sgd-v",
                                                  .tag = TAG_RESHARD,
                                                  .at = self->sgd.at,
                                                  .vector = COMPUTE_STATE,
                                                  .element_bytes = sizeof(float),
                                                  .least = -FLT_MAX,
                                                  .most = FLT_MAX };
    ret_items[count++] = (struct state_item){ .name = "sgd-steps",
                                              .tag = TAG_REPLICATE,
                                              .at = { 0, 1 },
                                              .values = &self->steps,
                                              .element_bytes = sizeof self->steps };
    return count;
}

static int step(optimizer_t *base, float rate, struct why *why)
{
    struct descent *self = descent_of(base);
    struct sgd part = self->sgd;
    (void)why; // Cannot fail
    part.at = base->part;
    if (part.v) part.v += part.at.begin - self->sgd.at.begin;
    sgd_step(&part, compute_at(base->compute, COMPUTE_GRADIENT), rate, compute_host(base->compute));
    self->steps++;
    return 0;
}

const struct optimizer_kind optimizer_sgd = {
    .name = "SGD",
    .steps_parts = true,
    .open = open_descent,
    .close = close_descent,
    .ask = ask,
    .begin = begin,
    .items = items,
    .step = step,
};
