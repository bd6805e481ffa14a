// schedule -- first sine and cosine by Taylor's series, then the two curves between two rates, then
// the kinds, then the cold start as a factor.

#include "common/run/schedule.h"
#include "common/base/ensure.h"

__extension__ typedef unsigned __int128 u128; // 2 · 2^32 · 2^64 must fit

// Taylor's series for |t| ≤ π/4, by Horner's scheme from the smallest term; the error is below
// 2^-60.
static double sine(double t)
{
    double sum = 1;
    for (int i = 16; i >= 2; i -= 2) sum = 1 - t * t / (i * (i + 1)) * sum;
    return t * sum;
}

static double cosine(double t)
{
    double sum = 1;
    for (int i = 17; i >= 1; i -= 2) sum = 1 - t * t / (i * (i + 1)) * sum;
    return sum;
}

// cos πx for x in [0, 1]. The subtractions are exact, and so are the values at 0, ½ and 1.
static double cosine_of_pi(double x)
{
    const double pi = 3.14159265358979323846;
    if (x > 0.5) return -cosine_of_pi(1 - x);
    return x > 0.25 ? sine(pi * (0.5 - x)) : cosine(pi * x);
}

// From `from` to `to` along half a cosine; `progress` in [0, 1].
static double cosine_between(double from, double to, double progress)
{
    return to + (from - to) * (0.5 * (1 + cosine_of_pi(progress)));
}

static double line_between(double from, double to, double progress)
{
    return from + (to - from) * progress;
}

// `into`: steps of the decay before this one; the first has none.
static double decayed_to_final(const struct schedule *self, uint32_t into)
{
    if (self->total_steps <= self->warmup_steps) return self->final_lr;
    const uint32_t steps = self->total_steps - self->warmup_steps;
    if (into >= steps) return self->final_lr;
    const double progress = (double)into / steps;
    return self->kind == SCHEDULE_LINEAR ? line_between(self->base_lr, self->final_lr, progress)
                                         : cosine_between(self->base_lr, self->final_lr, progress);
}

static double stable_then_decayed(const struct schedule *self, uint32_t into)
{
    if (into < self->stable_steps) return self->base_lr;
    into -= self->stable_steps;
    if (into < self->cosine_decay_steps)
        return cosine_between(self->base_lr, self->cosine_decay_final_lr,
                              (double)into / self->cosine_decay_steps);
    into -= self->cosine_decay_steps;
    if (into < self->linear_decay_steps)
        return line_between(self->cosine_decay_final_lr, self->linear_decay_final_lr,
                            (double)into / self->linear_decay_steps);
    return self->linear_decay_final_lr;
}

static double rate(const struct schedule *self, uint32_t step)
{
    if (step <= self->warmup_steps)
        return line_between(self->warmup_init_lr, self->base_lr, (double)step / self->warmup_steps);
    const uint32_t into = step - self->warmup_steps - 1;
    if (self->kind == SCHEDULE_CONSTANT) return self->base_lr;
    if (self->kind == SCHEDULE_WARMUP_STABLE_DECAY) return stable_then_decayed(self, into);
    ensure(self->kind == SCHEDULE_LINEAR || self->kind == SCHEDULE_COSINE);
    return decayed_to_final(self, into);
}

float schedule_rate(const struct schedule *self, uint32_t step, const struct cold_start *cold)
{
    double factor = 1;
    ensure(step > 0);
    if (cold && step >= cold->start && step - cold->start < cold->steps)
        factor = (double)(step - cold->start) / cold->steps;
    return (float)(rate(self, step) * factor);
}

uint32_t schedule_batch_size(uint32_t start, uint32_t end, uint64_t warmup_tokens, uint64_t tokens)
{
    ensure(start <= end);
    if (tokens >= warmup_tokens) return end;
    const u128 twice = (u128)2 * (end - start) * tokens + warmup_tokens;
    return start + (uint32_t)(twice / ((u128)2 * warmup_tokens));
}
