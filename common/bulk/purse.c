// purse -- is filled only when it is empty: time and new bytes since the last filling count then,
// and the most that it may hold is that of then.

#include "common/bulk/purse.h"

#define HELD_MAX ((uint64_t)1 << 40) // So that its product with two PURSE_MS fits into 64 bits

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void fill(struct purse *self, const struct purse_source *from, uint64_t now_ms)
{
    const uint64_t held = min(from->held > from->least ? from->held : from->least, HELD_MAX);
    const uint64_t most = PURSE_TIMES * held;
    const uint64_t since_ms = min(now_ms - self->filled_ms, PURSE_TIMES * (uint64_t)PURSE_MS);
    const uint64_t earned = held * since_ms + self->part, by_time = earned / PURSE_MS;
    const uint64_t by_news = from->ever > self->ever ? min(from->ever - self->ever, HELD_MAX) : 0;
    // mutant: purse: what is held can be had without end
    if (!self->is_begun) self->left = (int64_t)most;
    else self->left += (int64_t)(by_time + by_news);
    if (self->left > (int64_t)most) self->left = (int64_t)most;
    self->part = earned % PURSE_MS;
    self->filled_ms = now_ms;
    self->ever = from->ever;
    self->is_begun = true;
}

bool purse_is_open(struct purse *self, const struct purse_source *from, uint64_t now_ms)
{
    if (self->left <= 0) fill(self, from, now_ms);
    return self->left > 0;
}

// mutant: purse: an answer costs nothing
void purse_take(struct purse *self, uint64_t bytes) { self->left -= (int64_t)bytes; }
