// The options are checked once. A step rounds its factors once; after that every parameter is independent of the others.
#include "common/optimizer/sgd.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"
#include "common/optimizer/tensor_pieces.h"

#include <math.h>

int sgd_check(const struct sgd_options *options, struct why *why)
{
    const double momentum = options->momentum, decay = options->weight_decay;
    if (!(momentum >= 0 && momentum < 1))
        return why_set(why, FAULT_RANGE,
                       "sgd: momentum = %g, allowed 0 up to but not 1; nothing is made", momentum);
    if (!(decay >= 0 && decay <= 1000))
        return why_set(why, FAULT_RANGE, "sgd: weight_decay = %g, allowed 0..1000; nothing is made",
                       decay);
    if (options->nesterov && !(momentum > 0))
        return why_set(why, FAULT_RANGE, "sgd: nesterov needs a momentum above 0; nothing is made");
    return 0;
}

struct step {
    const struct sgd *self;
    const float *gradient;
    float *params;
    struct sgd_factors matrix, vector;
};

static void move(const void *arg, bool is_matrix, struct interval at)
{
    const struct step *step = arg;
    const struct sgd *self = step->self;
    kernels_chosen()->sgd(interval_length(at), is_matrix ? &step->matrix : &step->vector,
                          step->gradient + at.begin, step->params + at.begin,
                          self->v ? self->v + (at.begin - self->at.begin) : NULL);
}

void sgd_step(const struct sgd *self, const float *gradient, float rate, float *params)
{
    const struct sgd_options *options = &self->options;
    ensure(isfinite(rate) && rate >= 0 && (self->v != NULL) == (options->momentum > 0));
    struct step step = { .self = self,
                         .gradient = gradient,
                         .params = params,
                         .matrix = { .pull = (float)options->weight_decay,
                                     .momentum = (float)options->momentum,
                                     .nesterov = options->nesterov,
                                     .step = rate } };
    step.vector = step.matrix;
    step.vector.pull = 0.0f;
    tensor_pieces(self->pool, self->layout, self->at, move, &step);
}
