#include "broker/budget.h"

enum { MILLI = 1000, IDLE_MAX_MS = 60000 };

void bucket_fill(struct bucket *self, const struct budget *budget, uint64_t now_ms)
{
    *self = (struct bucket){ (int64_t)budget->frames_burst * MILLI,
                             (int64_t)budget->bytes_burst * MILLI, now_ms };
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

enum budget_verdict bucket_take(struct bucket *self, const struct budget *budget, uint64_t bytes,
                                uint64_t now_ms)
{
    int64_t frames_full = (int64_t)budget->frames_burst * MILLI;
    int64_t bytes_full = (int64_t)budget->bytes_burst * MILLI;
    int64_t passed_ms = now_ms - self->filled_ms < IDLE_MAX_MS ? (int64_t)(now_ms - self->filled_ms)
                                                               : IDLE_MAX_MS;
    self->filled_ms = now_ms;
    self->frames = least(self->frames + passed_ms * budget->frames_s, frames_full) - MILLI;
    self->bytes = least(self->bytes + passed_ms * budget->bytes_s, bytes_full)
                - least((int64_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX), UINT32_MAX) * MILLI;
    if (self->frames < -BUDGET_DEBT_BURSTS * frames_full ||
        self->bytes < -BUDGET_DEBT_BURSTS * bytes_full) return BUDGET_CUT;
    return self->frames < 0 || self->bytes < 0 ? BUDGET_OVER : BUDGET_WITHIN;
}
