// A counter for pushes, a counter for pulls, and a sum with the number of its samples.

#include "common/learner/async_trainer.h"
#include "common/base/ensure.h"
#include "common/kernel/gradient.h"

#include <math.h>
#include <string.h>

void async_trainer_init(struct async_trainer *self, uint32_t push_every, uint32_t pull_every)
{
    ensure(push_every > 0 && pull_every > 0);
    *self = (struct async_trainer){ .push_every = push_every, .pull_every = pull_every };
}

// ---- the sum --------------------------------------------------------------------------------

struct scaled {
    float *sum;
    const float *gradient; // NULL: the sum is multiplied
    float factor;
    uint64_t floats;
};

static void scale_piece(void *arg, uint32_t task, uint32_t worker)
{
    const struct scaled *self = arg;
    const uint64_t first = (uint64_t)task * GRADIENT_PIECE;
    const uint64_t end =
        first + GRADIENT_PIECE < self->floats ? first + GRADIENT_PIECE : self->floats;
    (void)worker;
    for (uint64_t i = first; i < end; i++)
        self->sum[i] = self->gradient ? self->sum[i] + self->factor * self->gradient[i]
                                      : self->sum[i] * self->factor;
}

static void scale(pool_t *pool, float *sum, const float *gradient, double factor, uint64_t floats)
{
    struct scaled scaled = { sum, gradient, (float)factor, floats };
    pool_run(pool, (uint32_t)gradient_piece_count(floats), scale_piece, &scaled);
}

void async_trainer_add(struct async_trainer *self, pool_t *pool, float *sum, const float *gradient,
                       uint64_t floats, uint64_t samples)
{
    ensure(samples > 0 && !self->is_mean);
    if (self->batches == 0) {
        self->first_samples = samples;
        if (sum != gradient) memcpy(sum, gradient, floats * sizeof *sum);
    } else {
        ensure(sum != gradient);
        scale(pool, sum, gradient, (double)samples / (double)self->first_samples, floats);
    }
    self->samples += samples;
    self->batches++;
    self->since_pull++;
}

// ---- the cadence ----------------------------------------------------------------------------

unsigned async_trainer_due(const struct async_trainer *self, bool task_ends)
{
    unsigned due = 0;
    // mutant: async: what is left at the end of a task is not pushed
    if (self->batches >= self->push_every || (task_ends && self->batches > 0))
        due |= ASYNC_PUSH_DUE;
    // mutant: async: a trainer whose push was stale does not pull
    if (self->since_pull >= self->pull_every || self->must_pull) due |= ASYNC_PULL_DUE;
    return due;
}

static void begin_sum(struct async_trainer *self)
{
    // mutant: async: batches until a pull are counted from the last push on
    self->batches = 0;
    self->samples = self->first_samples = 0;
    self->is_mean = false;
}

int async_trainer_mean(struct async_trainer *self, pool_t *pool, float *sum, uint64_t floats,
                       double clip_norm, struct why *why, double *ret_norm)
{
    const double limit = clip_norm > 0 ? clip_norm : INFINITY;
    ensure(self->batches > 0 && !self->is_mean);
    // mutant: async: a push is the sum of its batches
    if (self->samples != self->first_samples)
        scale(pool, sum, NULL, (double)self->first_samples / (double)self->samples, floats);
    const int rc = gradient_clip(pool, sum, floats, limit, why, ret_norm);
    if (rc < 0) {
        begin_sum(self);
        return rc;
    }
    self->is_mean = true;
    self->sequence++;
    return 0;
}

void async_trainer_pushed(struct async_trainer *self, bool stale)
{
    ensure(self->is_mean);
    self->must_pull |= stale;
    begin_sum(self);
}

void async_trainer_pulled(struct async_trainer *self)
{
    self->since_pull = 0;
    self->must_pull = false;
}

void async_trainer_drop(struct async_trainer *self)
{
    begin_sum(self);
    self->must_pull = true;
}
