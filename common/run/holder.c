// The masks of one step. have has our own bit once the step is complete here; the step may be applied when
// all bits are there.

#include "common/run/holder.h"
#include "common/base/ensure.h"

static uint64_t bit(uint32_t place) { return (uint64_t)1 << place; }

void holder_begin(struct holder *self, uint64_t window, uint64_t step, uint32_t me, uint32_t count)
{
    ensure(count > 0 && count <= HOLDERS_MAX && me < count);
    *self = (struct holder){ .window = window, .step = step, .me = me, .count = count };
}

void holder_follow(struct holder *self, uint64_t window)
{
    ensure(window > self->window && self->have == 0);
    self->window = window;
}

bool holder_complete(struct holder *self)
{
    if (self->stopped) return false;
    self->have |= bit(self->me);
    self->stop |= self->asks_stop;
    // mutant: windows: HAVE is said after the freeze
    return !self->frozen;
}

void holder_hear_have(struct holder *self, uint32_t from, uint64_t window, uint64_t step, bool stop)
{
    // mutant: windows: a word of another window is taken for one of this
    if (from >= self->count || window != self->window || step != self->step) return;
    self->have |= bit(from);
    self->stop |= stop;
}

bool holder_may_apply(const struct holder *self)
{
    const uint64_t all = bit(self->count - 1) | (bit(self->count - 1) - 1);
    // mutant: windows: a step is applied before all have it
    const bool all_have = self->have == all;
    // mutant: windows: LEVEL does not freeze
    const bool goes_on = !self->frozen && !self->stopped;
    return all_have && goes_on;
}

void holder_applied(struct holder *self)
{
    self->step++;
    self->have = 0;
    self->stopped |= self->stop;
    self->stop = false;
}

void holder_stop(struct holder *self) { self->asks_stop = true; }

void holder_freeze(struct holder *self) { self->frozen = true; }

bool holder_has(const struct holder *self) { return self->have & bit(self->me); }

enum holder_close holder_close(const struct holder *self, uint64_t end)
{
    if (self->step == end) return HOLDER_IS_THERE;
    // mutant: windows: the last step is not applied from memory
    return self->step + 1 == end && holder_has(self) ? HOLDER_MUST_APPLY : HOLDER_CANNOT_REACH;
}

uint64_t holder_window_end(const struct holder_answer *answers, uint32_t count, uint64_t committed)
{
    uint64_t newest = committed;
    bool all_have = count > 0;
    for (uint32_t i = 0; i < count; i++)
        if (answers[i].step > newest) newest = answers[i].step;
    // mutant: windows: a window is closed where the slowest stands
    for (uint32_t i = 0; i < count; i++) all_have &= answers[i].step == newest && answers[i].has;
    return newest + all_have;
}
