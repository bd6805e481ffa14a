#include "common/optimizer/adamw.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 14 }; // Parameters in a task

struct adamw {
    const struct layout *layout;
    struct adamw_options options;
    pool_t *pool;
    float *m, *v;
    uint64_t steps;
};

static int check(const char *name, double value, bool right, const char *range, struct why *why)
{
    if (right) return 0;
    return why_set(why, FAULT_RANGE, "adamw: %s = %g, allowed %s; nothing is made", name, value,
                   range);
}

static int check_options(const struct adamw_options *options, struct why *why)
{
    const double b1 = options->beta1, b2 = options->beta2, eps = options->eps;
    const double decay = options->weight_decay;
    int rc = check("beta1", b1, b1 >= 0 && b1 < 1, "0 up to but not 1", why);
    if (rc == 0) rc = check("beta2", b2, b2 >= 0 && b2 < 1, "0 up to but not 1", why);
    if (rc == 0) rc = check("eps", eps, eps >= 1e-30 && eps <= 1, "1e-30..1", why);
    if (rc == 0) rc = check("weight_decay", decay, decay >= 0 && decay <= 1000, "0..1000", why);
    return rc;
}

static size_t vector_bytes(uint64_t floats) { return (floats * sizeof(float) + 63) / 64 * 64; }

uint64_t adamw_memory_bytes(uint64_t floats) { return 2 * vector_bytes(floats); }

void adamw_reset(adamw_t *self)
{
    memset(self->m, 0, vector_bytes(self->layout->total));
    memset(self->v, 0, vector_bytes(self->layout->total));
    self->steps = 0;
}

int adamw_new(const struct layout *layout, const struct adamw_options *options, pool_t *pool,
              struct why *why, adamw_t **ret_adamw)
{
    const int rc = check_options(options, why);
    if (rc < 0) return rc;
    adamw_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "an AdamW state");
    *self = (struct adamw){ .layout = layout,
                            .options = *options,
                            .pool = pool,
                            .m = aligned_alloc(64, vector_bytes(layout->total)),
                            .v = aligned_alloc(64, vector_bytes(layout->total)) };
    if (!self->m || !self->v) {
        adamw_destroy(&self);
        return why_set(why, FAULT_MEMORY, "moments of %" PRIu64 " floats", layout->total);
    }
    adamw_reset(self);
    *ret_adamw = self;
    return 0;
}

void adamw_destroy(adamw_t **self)
{
    if (!*self) return;
    free((*self)->m);
    free((*self)->v);
    free(*self);
    *self = NULL;
}

uint64_t adamw_steps(const adamw_t *self) { return self->steps; }
float *adamw_first_moment(adamw_t *self) { return self->m; }
float *adamw_second_moment(adamw_t *self) { return self->v; }

// ---- the step

struct step_job {
    adamw_t *self;
    const float *gradient;
    float *params;
    struct adamw_factors matrix, vector;
};

// Pieces are cut where they please: every parameter is on its own.
static void step_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct step_job *job = arg;
    const adamw_t *self = job->self;
    uint64_t at = (uint64_t)task * PIECE, end = at + PIECE;
    if (end > self->layout->total) end = self->layout->total;
    for (const struct layout_tensor *t = layout_at(self->layout, at); at < end; t++) {
        const uint64_t tensor_end = layout_interval(t).end;
        const uint64_t stop = tensor_end < end ? tensor_end : end;
        kernels_chosen()->adamw(stop - at, t->dims == 2 ? &job->matrix : &job->vector,
                                job->gradient + at, job->params + at, self->m + at, self->v + at);
        at = stop;
    }
}

static double power(double base, uint64_t exponent)
{
    double result = 1.0;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

struct adamw_factors adamw_begin(adamw_t *self, float rate)
{
    ensure(isfinite(rate) && rate >= 0);
    const struct adamw_options *options = &self->options;
    const uint64_t steps = ++self->steps;
    return (struct adamw_factors){
        .keep = (float)(1.0 - (double)rate * options->weight_decay),
        .one_less_beta1 = (float)(1.0 - options->beta1),
        .beta2 = (float)options->beta2,
        .one_less_beta2 = (float)(1.0 - options->beta2),
        .root_factor = (float)(1.0 / sqrt(1.0 - power(options->beta2, steps))),
        .eps = (float)options->eps,
        .step = (float)((double)rate / (1.0 - power(options->beta1, steps))),
    };
}

void adamw_step(adamw_t *self, const float *gradient, float rate, float *params)
{
    struct step_job job = {
        .self = self, .gradient = gradient, .params = params, .matrix = adamw_begin(self, rate)
    };
    job.vector = job.matrix;
    job.vector.keep = 1.0f;
    const uint64_t pieces = (self->layout->total + PIECE - 1) / PIECE;
    ensure(pieces <= UINT32_MAX);
    pool_run(self->pool, (uint32_t)pieces, step_task, &job);
}

// ---- the state

int adamw_add_state(adamw_t *self, struct tags *tags, struct why *why,
                    void *ret_values[ADAMW_ITEMS])
{
    const uint64_t floats = self->layout->total;
    int rc = tags_add(tags, "adamw-m", TAG_RESHARD, floats, sizeof(float), why);
    if (rc == 0) rc = tags_add(tags, "adamw-v", TAG_RESHARD, floats, sizeof(float), why);
    if (rc == 0) rc = tags_add(tags, "adamw-steps", TAG_REPLICATE, 1, sizeof self->steps, why);
    if (rc < 0) return rc;
    ret_values[0] = self->m, ret_values[1] = self->v, ret_values[2] = &self->steps;
    return 0;
}

int adamw_loaded(adamw_t *self, struct why *why)
{
    for (uint64_t i = 0; i < self->layout->total; i++) {
        if (isfinite(self->m[i]) && isfinite(self->v[i]) && self->v[i] >= 0) continue;
        const int rc = why_set(why, FAULT_NAN,
                               "adamw: moments %g and %g of parameter %" PRIu64
                               ", allowed finite ones, the second not negative; they are not taken",
                               (double)self->m[i], (double)self->v[i], i);
        adamw_reset(self);
        return rc;
    }
    return 0;
}
