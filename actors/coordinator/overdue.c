// Steps since the newest save are compared with those between two saves. A save may be late by itself: one is written
// while the next steps are made, and one may be skipped for it. And where steps take a millisecond three saves are due
// within a few. So both count: how many were due, and how old the newest one is.

#include "actors/coordinator/overdue.h"

enum { SAVES_MISSED = 3 };

// 0: none is due.
static uint64_t steps_between(const struct overdue_rules *rules, const struct wire_run *now)
{
    if (rules->steps || !rules->passes || !now->pass_samples || !rules->batch) return rules->steps;
    return (rules->passes * now->pass_samples + rules->batch - 1) / rules->batch;
}

uint64_t overdue_steps(struct overdue *self, const struct overdue_rules *rules,
                       const struct wire_run *now, uint64_t now_ms)
{
    if (!self->since_ms || self->saved_step != now->checkpoint_step)
        *self = (struct overdue){ now->checkpoint_step, now_ms };
    const uint64_t begin = rules->first_step;
    const uint64_t saved = now->checkpoint_step > begin ? now->checkpoint_step : begin;
    const uint64_t since = now->step > saved ? now->step - saved : 0;
    const uint64_t between = steps_between(rules, now);
    const bool is_old = now_ms - self->since_ms >= OVERDUE_MS;
    return is_old && between && since > SAVES_MISSED * between ? since : 0;
}
