// budget -- counts amounts in thousandths, so that a rate per second is a whole number per
// millisecond. For each frame, time first refills the bucket and lowers the excess. If the bucket
// has enough, the frame takes its cost from it. Otherwise the frame adds to the excess, and too
// much excess cuts the connection.

#include "broker/budget.h"

enum { MILLI = 1000, IDLE_MAX_MS = 60000 };

static struct amount full(const struct budget *budget)
{
    return (struct amount){ (int64_t)budget->frames_burst * MILLI,
                            (int64_t)budget->bytes_burst * MILLI };
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

void bucket_fill(struct bucket *self, const struct budget *budget, uint64_t now_ms)
{
    const struct amount max = full(budget), size = { most(self->size.frames, max.frames),
                                                     most(self->size.bytes, max.bytes) };
    self->left.frames = least(self->left.frames + size.frames - self->size.frames, max.frames);
    self->left.bytes = least(self->left.bytes + size.bytes - self->size.bytes, max.bytes);
    self->size = size;
    self->filled_ms = now_ms;
}

static void refill(struct bucket *self, const struct budget *budget, struct amount more)
{
    const struct amount max = full(budget);
    self->left.frames = least(self->left.frames + more.frames, max.frames);
    self->left.bytes = least(self->left.bytes + more.bytes, max.bytes);
    // mutant: budget: what a round adds takes no excess back
    self->excess.frames = most(self->excess.frames - more.frames, 0);
    self->excess.bytes = most(self->excess.bytes - more.bytes, 0);
}

void bucket_give(struct bucket *self, const struct budget *budget, uint64_t frames)
{
    const int64_t burst = budget->frames_burst;
    const int64_t more = frames < budget->frames_burst ? (int64_t)frames : burst;
    refill(self, budget, (struct amount){ more * MILLI, 0 });
}

static void let_time_pass(struct bucket *self, const struct budget *budget, uint64_t now_ms)
{
    const uint64_t passed_ms = now_ms - self->filled_ms;
    const int64_t ms = passed_ms < IDLE_MAX_MS ? (int64_t)passed_ms : IDLE_MAX_MS;
    refill(self, budget, (struct amount){ ms * budget->frames_s, ms * budget->bytes_s });
    self->filled_ms = now_ms;
}

enum budget_verdict bucket_take(struct bucket *self, const struct budget *budget, uint32_t frames,
                                uint64_t bytes, uint64_t now_ms)
{
    const struct amount max = full(budget),
                        cost = { (int64_t)frames * MILLI,
                                 (int64_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX) * MILLI };
    let_time_pass(self, budget, now_ms);
    if (cost.frames <= self->left.frames && cost.bytes <= self->left.bytes) {
        self->left.frames -= cost.frames;
        self->left.bytes -= cost.bytes;
        return BUDGET_WITHIN;
    }
    self->excess.frames += cost.frames;
    self->excess.bytes += cost.bytes;
    return self->excess.frames > BUDGET_EXCESS_BURSTS * max.frames ||
                   self->excess.bytes > BUDGET_EXCESS_BURSTS * max.bytes
               ? BUDGET_CUT
               : BUDGET_OVER;
}
