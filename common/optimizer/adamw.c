// The options are checked once. A step rounds its factors once; after that every parameter is
// independent of the others.
#include "common/optimizer/adamw.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"
#include "common/optimizer/tensor_pieces.h"

#include <math.h>

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

struct step {
    const struct adamw *self;
    const float *gradient;
    float *params;
    struct adamw_factors matrix, vector;
};

static void move(const void *arg, bool is_matrix, struct interval at)
{
    const struct step *step = arg;
    const struct adamw *self = step->self;
    const struct kernels *kernels = kernels_chosen();
    const struct adamw_factors *by = is_matrix ? &step->matrix : &step->vector;
    const uint64_t count = interval_length(at), moment = at.begin - self->at.begin;
    const float *gradient = step->gradient + at.begin;
    float *params = step->params + at.begin, *m = self->m + moment, *v = self->v + moment;
    if (self->options.coupled) kernels->adam(count, by, gradient, params, m, v);
    else kernels->adamw(count, by, gradient, params, m, v);
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
        .keep = options->coupled ? 1.0f : (float)(1.0 - (double)rate * options->weight_decay),
        .one_less_beta1 = (float)(1.0 - options->beta1),
        .beta2 = (float)options->beta2,
        .one_less_beta2 = (float)(1.0 - options->beta2),
        .root_factor = (float)(1.0 / sqrt(1.0 - power(options->beta2, steps))),
        .eps = (float)options->eps,
        .step = (float)((double)rate / (1.0 - power(options->beta1, steps))),
        .pull = options->coupled ? (float)options->weight_decay : 0.0f,
    };
}

void adamw_step(struct adamw *self, const float *gradient, float rate, float *params)
{
    struct step step = {
        .self = self, .gradient = gradient, .params = params, .matrix = adamw_begin(self, rate)
    };
    step.vector = step.matrix;
    step.vector.keep = 1.0f;
    step.vector.pull = 0.0f;
    tensor_pieces(self->pool, self->layout, self->at, move, &step);
}
