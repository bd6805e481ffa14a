// AdamW and Adam above a device: two vectors of moments and a count. On a CPU the moments are plain memory
// and the step is that of adamw.h; on a GPU that of AdamW is a kernel (cuda/vector.cu), which gets the
// factors, and Adam is refused.
#include "common/compute/cuda/plugin.h"
#include "common/optimizer/adamw.h"
#include "common/optimizer/optimizer_kind.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

enum { FIRST_MOMENT = COMPUTE_STATE, SECOND_MOMENT };

struct moments {
    struct optimizer base;
    struct adamw adamw;
    const char *names[3]; // Of its items
    uint64_t *bare;       // Intervals that do not decay, [bare_count][2]
    uint32_t bare_count;
};

static struct moments *moments_of(optimizer_t *self) { return (struct moments *)(void *)self; }

static void close_moments(optimizer_t *base)
{
    free(moments_of(base)->bare);
    free(base);
}

// The tensors of one dimension, which are the weights of norms.
static uint32_t list_bare(const struct layout *layout, uint64_t *ret_bare)
{
    uint32_t count = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const struct interval at = layout_interval(&layout->tensors[i]);
        if (layout->tensors[i].dims == 2) continue;
        ret_bare[2 * count] = at.begin, ret_bare[2 * count + 1] = at.end;
        count++;
    }
    return count;
}

static int open_moments(const struct optimizer_place *place,
                        const struct optimizer_settings *settings, bool coupled, struct why *why,
                        struct moments **ret_moments)
{
    const struct adamw_options options = { settings->beta1, settings->beta2, settings->eps,
                                           settings->weight_decay, coupled };
    const int rc = adamw_check(&options, why);
    if (rc < 0) return rc;
    struct moments *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "the state of an optimizer");
    self->adamw = (struct adamw){
        .options = options, .layout = place->layout, .at = place->at, .pool = place->pool
    };
    self->bare = calloc(place->layout->count, 2 * sizeof *self->bare);
    if (!self->bare) {
        close_moments(&self->base);
        return why_set(why, FAULT_MEMORY, "intervals of %zu tensors", place->layout->count);
    }
    self->bare_count = list_bare(place->layout, self->bare);
    *ret_moments = self;
    return 0;
}

static int open_adamw(const struct optimizer_place *place,
                      const struct optimizer_settings *settings, struct why *why,
                      optimizer_t **ret_optimizer)
{
    struct moments *self;
    const int rc = open_moments(place, settings, false, why, &self);
    if (rc < 0) return rc;
    self->names[0] = "adamw-m", self->names[1] = "adamw-v", self->names[2] = "adamw-steps";
    *ret_optimizer = &self->base;
    return 0;
}

static int open_adam(const struct optimizer_place *place, const struct optimizer_settings *settings,
                     struct why *why, optimizer_t **ret_optimizer)
{
    struct moments *self;
    const int rc = open_moments(place, settings, true, why, &self);
    if (rc < 0) return rc;
    self->names[0] = "adam-m", self->names[1] = "adam-v", self->names[2] = "adam-steps";
    *ret_optimizer = &self->base;
    return 0;
}

static void ask(const optimizer_t *base, struct compute_config *config)
{
    const struct moments *self = (const struct moments *)(const void *)base;
    config->vectors = 2;
    config->bare = self->bare, config->bare_count = self->bare_count;
}

static int begin(optimizer_t *base, struct why *why)
{
    struct moments *self = moments_of(base);
    if (self->adamw.options.coupled && compute_far(base->compute))
        return why_set(why, FAULT_UNSUPPORTED,
                       "Adam computes on the CPU in this version; use --device cpu, or AdamW");
    self->adamw.m = compute_at(base->compute, FIRST_MOMENT);
    self->adamw.v = compute_at(base->compute, SECOND_MOMENT);
    return 0;
}

static size_t items(optimizer_t *base, struct state_item *ret_items)
{
    struct moments *self = moments_of(base);
    ret_items[0] = (struct state_item){ .name = self->names[0],
                                        .tag = TAG_RESHARD,
                                        .at = self->adamw.at,
                                        .vector = FIRST_MOMENT,
                                        .element_bytes = sizeof(float),
                                        .least = -FLT_MAX,
                                        .most = FLT_MAX };
    ret_items[1] = ret_items[0];
    ret_items[1].name = self->names[1], ret_items[1].vector = SECOND_MOMENT, ret_items[1].least = 0;
    ret_items[2] = (struct state_item){ .name = self->names[2],
                                        .tag = TAG_REPLICATE,
                                        .at = { 0, 1 },
                                        .values = &self->adamw.steps,
                                        .element_bytes = sizeof self->adamw.steps };
    return 3;
}

static int step(optimizer_t *base, float rate, struct why *why)
{
    struct moments *self = moments_of(base);
    const struct compute_far *far = compute_far(base->compute);
    if (!far) {
        struct adamw part = self->adamw;
        part.at = base->part;
        part.m += part.at.begin - self->adamw.at.begin;
        part.v += part.at.begin - self->adamw.at.begin;
        adamw_step(&part, compute_at(base->compute, COMPUTE_GRADIENT), rate,
                   compute_host(base->compute));
        self->adamw.steps = part.steps;
        return 0;
    }
    const struct adamw_factors by = adamw_begin(&self->adamw, rate);
    return far->plugin->adamw(far->replica, &by, FIRST_MOMENT, SECOND_MOMENT, why);
}

const struct optimizer_kind optimizer_adamw = {
    .name = "AdamW",
    .steps_parts = true,
    .open = open_adamw,
    .close = close_moments,
    .ask = ask,
    .begin = begin,
    .items = items,
    .step = step,
};

const struct optimizer_kind optimizer_adam = {
    .name = "Adam",
    .steps_parts = true,
    .open = open_adam,
    .close = close_moments,
    .ask = ask,
    .begin = begin,
    .items = items,
    .step = step,
};
