// waits -- clients only: a witness of its own is named if its vote is missing (missed.h).

#include "common/pace/rounds/waits.h"
#include "common/run/lateness.h"

enum { SHARE = 10 }; // A tenth of the time

void waits_add(struct waits *self, uint32_t member, uint64_t took_ms, uint32_t half_ms,
               uint32_t threshold_ms)
{
    const uint64_t most_ms = 2 * (uint64_t)threshold_ms;
    // mutant: waits: a member that is a little slower is waited for
    if (half_ms == 0 || took_ms <= (uint64_t)LATENESS_TIMES * half_ms) return;
    const uint64_t waited_ms = took_ms - half_ms, owed_ms = self->owed_ms[member] + waited_ms;
    if (self->owed_ms[member] == 0 || waited_ms > self->longest_ms[member]) {
        self->longest_ms[member] = waited_ms < UINT32_MAX ? (uint32_t)waited_ms : UINT32_MAX;
        self->half_ms[member] = half_ms;
    }
    self->owed_ms[member] = (uint32_t)(owed_ms < most_ms ? owed_ms : most_ms);
}

void waits_pass(struct waits *self, const struct round *round, uint64_t round_ms)
{
    for (uint32_t i = 0; i < round->clients_count; i++) {
        uint32_t *owed_ms = &self->owed_ms[round->clients[i].member];
        // mutant: waits: what was waited for once is said for ever
        *owed_ms -= (uint32_t)(*owed_ms < round_ms / SHARE ? *owed_ms : round_ms / SHARE);
    }
}

uint32_t waits_longest(const struct waits *self, const struct round *round, uint32_t threshold_ms)
{
    uint32_t member = NO_MEMBER, most_ms = threshold_ms;
    for (uint32_t i = 0; i < round->clients_count; i++) {
        const uint32_t at = round->clients[i].member;
        if (self->owed_ms[at] <= most_ms) continue;
        most_ms = self->owed_ms[at];
        member = at;
    }
    return member;
}

void waits_forget(struct waits *self, uint32_t member) { self->owed_ms[member] = 0; }
