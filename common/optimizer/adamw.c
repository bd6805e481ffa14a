// The options are checked once. A step rounds its factors once; after that every parameter is
// independent of the others.
#include "common/optimizer/adamw.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <math.h>

enum { PIECE = 1 << 14 }; // Parameters in a task

static int check(const char *name, double value, bool right, const char *range, struct why *why)
{
    if (right) return 0;
    return why_set(why, FAULT_RANGE, "adamw: %s = %g, allowed %s; nothing is made", name, value,
                   range);
}

int adamw_check(const struct adamw_options *options, struct why *why)
{
    const double b1 = options->beta1, b2 = options->beta2, eps = options->eps;
    const double decay = options->weight_decay;
    int rc = check("beta1", b1, b1 >= 0 && b1 < 1, "0 up to but not 1", why);
    if (rc == 0) rc = check("beta2", b2, b2 >= 0 && b2 < 1, "0 up to but not 1", why);
    if (rc == 0) rc = check("eps", eps, eps >= 1e-30 && eps <= 1, "1e-30..1", why);
    if (rc == 0) rc = check("weight_decay", decay, decay >= 0 && decay <= 1000, "0..1000", why);
    return rc;
}

struct step_job {
    const struct adamw *self;
    const float *gradient;
    float *params;
    struct adamw_factors matrix, vector;
};

// Parameters are independent, so any cut into pieces gives the same bits.
static void step_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct step_job *job = arg;
    const struct adamw *self = job->self;
    uint64_t at = self->at.begin + (uint64_t)task * PIECE, end = at + PIECE;
    if (end > self->at.end) end = self->at.end;
    for (const struct layout_tensor *t = layout_at(self->layout, at); at < end; t++) {
        const uint64_t tensor_end = layout_interval(t).end;
        const uint64_t stop = tensor_end < end ? tensor_end : end;
        const uint64_t moment = at - self->at.begin;
        kernels_chosen()->adamw(stop - at, t->dims == 2 ? &job->matrix : &job->vector,
                                job->gradient + at, job->params + at, self->m + moment,
                                self->v + moment);
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

struct adamw_factors adamw_begin(struct adamw *self, float rate)
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

void adamw_step(struct adamw *self, const float *gradient, float rate, float *params)
{
    struct step_job job = {
        .self = self, .gradient = gradient, .params = params, .matrix = adamw_begin(self, rate)
    };
    job.vector = job.matrix;
    job.vector.keep = 1.0f;
    const uint64_t pieces = (interval_length(self->at) + PIECE - 1) / PIECE;
    ensure(pieces <= UINT32_MAX);
    if (pieces > 0) pool_run(self->pool, (uint32_t)pieces, step_task, &job);
}
