// The masks of one step. have has our own bit once the step is complete here; the step may be applied when
// all bits are there and all checks are equal.

#include "common/run/holder.h"
#include "common/base/ensure.h"

static uint64_t bit(uint32_t place) { return (uint64_t)1 << place; }

static uint64_t all_of(const struct holder *self)
{
    return bit(self->count - 1) | (bit(self->count - 1) - 1);
}

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

// The places whose check is that of `place`, of those that have said HAVE.
static uint64_t equal_to(const struct holder *self, uint32_t place)
{
    uint64_t equal = 0;
    for (uint32_t i = 0; i < self->count; i++)
        if (self->have & bit(i) && hash_equal(&self->check[i], &self->check[place]))
            equal |= bit(i);
    return equal;
}

// What comes after the freeze does not change the answer that was given.
static void take_check(struct holder *self, uint32_t from, const struct hash *check)
{
    self->have |= bit(from);
    self->check[from] = *check;
    // mutant: windows: a check that differs is not seen
    if (!self->frozen && equal_to(self, from) != self->have) self->differs = true;
}

bool holder_complete(struct holder *self, const struct hash *check)
{
    if (self->stopped) return false;
    take_check(self, self->me, check);
    self->stop |= self->asks_stop;
    // mutant: windows: HAVE is said after the freeze
    return !self->frozen;
}

void holder_hear_have(struct holder *self, uint32_t from, uint64_t window, uint64_t step, bool stop,
                      const struct hash *check)
{
    // mutant: windows: a word of another window is taken for one of this
    if (from >= self->count || window != self->window || step != self->step) return;
    take_check(self, from, check);
    self->stop |= stop;
}

bool holder_may_apply(const struct holder *self)
{
    const uint64_t all = all_of(self);
    // mutant: windows: a step is applied before all have it
    const bool all_have = self->have == all;
    // mutant: windows: LEVEL does not freeze
    const bool goes_on = !self->frozen && !self->stopped;
    // mutant: windows: a step whose checks differ is applied
    return all_have && goes_on && !self->differs;
}

void holder_applied(struct holder *self)
{
    self->step++;
    self->have = 0;
    self->differs = false;
    self->stopped |= self->stop;
    self->stop = false;
}

void holder_stop(struct holder *self) { self->asks_stop = true; }

void holder_freeze(struct holder *self) { self->frozen = true; }

bool holder_has(const struct holder *self)
{
    // mutant: windows: a step whose checks differ is applied from memory
    return self->have & bit(self->me) && !self->differs;
}

uint64_t holder_outsiders(const struct holder *self)
{
    uint64_t largest = 0, seen = 0;
    if (!self->differs || self->have != all_of(self)) return 0;
    for (uint32_t i = 0; i < self->count; i++) {
        const uint64_t equal = seen & bit(i) ? 0 : equal_to(self, i);
        seen |= equal;
        if (__builtin_popcountll(equal) > __builtin_popcountll(largest)) largest = equal;
    }
    return self->have & ~largest;
}

bool holder_is_minority(uint64_t outsiders, uint32_t count)
{
    return outsiders != 0 && 2 * (uint32_t)__builtin_popcountll(outsiders) < count;
}

bool holder_is_outside(const struct holder *self)
{
    const uint64_t outsiders = holder_outsiders(self);
    return holder_is_minority(outsiders, self->count) && outsiders & bit(self->me);
}

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
