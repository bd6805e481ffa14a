// The checks of a push stand in the order in which they mean something: who says it, to whom, and under which task;
// then whether it was dealt with before, since a retry is told what was done then; then the versions, and last the
// numbers themselves, which takes the longest.

#include "common/learner/async_server.h"
#include "common/base/ensure.h"

#include <string.h>

enum { THOUSAND = 1000 };

_Static_assert(sizeof(struct async_line) == 9 * 8 + ASYNC_LAGS * 8 + 8, "no padding");
_Static_assert(sizeof(struct async_server) ==
                   3 * 8 + ASYNC_TRAINERS_MAX * sizeof(struct async_line),
               "no padding");

// ---- the lines ------------------------------------------------------------------------------

void async_server_init(struct async_server *self, uint32_t staleness_thousandths)
{
    *self = (struct async_server){ .staleness = staleness_thousandths };
}

static struct async_line *line_of(struct async_server *self, uint32_t member)
{
    for (uint32_t i = 0; i < ASYNC_TRAINERS_MAX; i++)
        if (self->lines[i].instance && self->lines[i].member == member) return &self->lines[i];
    return NULL;
}

const struct async_line *async_server_line(const struct async_server *self, uint32_t member)
{
    return line_of((struct async_server *)(uintptr_t)self, member);
}

static bool is_sound(const struct async_server *self, const struct async_line *line)
{
    return line->live <= 1 && line->discarded <= 1 && line->seen <= self->version &&
           (line->pulled <= self->version || line->pulled == ASYNC_NEVER) &&
           async_server_line(self, line->member) == line;
}

bool async_server_is_sound(const struct async_server *self)
{
    if (self->staleness > UINT32_MAX || self->version == ASYNC_NEVER) return false;
    for (uint32_t i = 0; i < ASYNC_TRAINERS_MAX; i++)
        if (self->lines[i].instance && !is_sound(self, &self->lines[i])) return false;
    return true;
}

static bool goes_before(const struct async_line *a, const struct async_line *b)
{
    if ((a->instance == 0) != (b->instance == 0)) return a->instance == 0;
    return a->seen < b->seen;
}

// A free line, or that of the trainer that was seen longest ago. Those of this group stay.
static struct async_line *take_line(struct async_server *self)
{
    struct async_line *best = NULL;
    for (uint32_t i = 0; i < ASYNC_TRAINERS_MAX; i++) {
        struct async_line *line = &self->lines[i];
        if (!line->live && (!best || goes_before(line, best))) best = line;
    }
    ensure(best);
    return best;
}

static void begin_process(struct async_line *line, uint64_t instance)
{
    line->instance = instance;
    // mutant: async: a new process begins where the old one stood
    line->sequence = 0;
    line->lease = 0;
    line->pulled = ASYNC_NEVER;
    line->discarded = 0;
}

static void admit(struct async_server *self, const struct async_member *trainer)
{
    struct async_line *line = line_of(self, trainer->member);
    if (!line) {
        line = take_line(self);
        *line = (struct async_line){ .member = trainer->member };
    }
    ensure(trainer->instance && !line->live);
    if (line->instance != trainer->instance) begin_process(line, trainer->instance);
    line->live = 1;
    line->seen = self->version;
}

void async_server_begin(struct async_server *self, uint64_t place_number,
                        const struct async_member *trainers, uint32_t count)
{
    ensure(count <= ASYNC_TRAINERS_MAX);
    const bool is_new = place_number != self->place_number;
    self->place_number = place_number;
    for (uint32_t i = 0; i < ASYNC_TRAINERS_MAX; i++) {
        self->lines[i].live = 0;
        // mutant: async: versions of a lost server are taken for those of its successor
        if (is_new) self->lines[i].pulled = ASYNC_NEVER;
    }
    // Those that are known first, so that none of them loses its line to one that is new
    for (int known = 1; known >= 0; known--)
        for (uint32_t i = 0; i < count; i++)
            if ((line_of(self, trainers[i].member) != NULL) == known) admit(self, &trainers[i]);
}

// ---- a push ---------------------------------------------------------------------------------

uint64_t async_server_limit(const struct async_server *self)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < ASYNC_TRAINERS_MAX; i++) live += self->lines[i].live;
    const uint64_t limit = live * self->staleness / THOUSAND;
    // mutant: async: the limit falls to nothing
    return limit > 0 ? limit : 1;
}

// Lease numbers rise and are never used again: a trainer has one after the other, and no two have the same.
static bool may_use_lease(const struct async_server *self, const struct async_push *push,
                          const struct async_line *own)
{
    if (push->lease == 0 || push->lease < own->lease) return false;
    for (uint32_t i = 0; i < ASYNC_TRAINERS_MAX; i++)
        if (&self->lines[i] != own && self->lines[i].instance &&
            self->lines[i].lease == push->lease)
            return false;
    return true;
}

// The exponent of a float that is infinite or no number has all bits set.
static bool are_finite(const float *values, uint64_t count)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t bad = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bad |= (bits & exponent) == exponent;
    }
    return bad == 0;
}

static bool is_known(const struct async_line *line, uint64_t instance)
{
    return line && line->live && line->instance == instance;
}

enum async_verdict async_server_judge(const struct async_server *self,
                                      const struct async_push *push, const float *gradient,
                                      uint64_t floats)
{
    const struct async_line *line = async_server_line(self, push->member);
    // mutant: async: a push of an older process is applied
    if (!is_known(line, push->instance)) return ASYNC_OTHER_INSTANCE;
    // mutant: async: a push that was meant for a lost server is applied
    if (push->place_number != self->place_number) return ASYNC_OTHER_PLACE;
    if (push->sequence == 0) return ASYNC_NO_SEQUENCE;
    // mutant: async: a retry of a discarded push is said to be applied
    if (push->sequence == line->sequence && line->discarded) return ASYNC_STALE;
    // mutant: async: a retry is applied twice
    if (push->sequence <= line->sequence) return ASYNC_APPLIED_BEFORE;
    // mutant: async: a push under the lease of another trainer is applied
    if (!may_use_lease(self, push, line)) return ASYNC_OTHER_LEASE;
    if (line->pulled == ASYNC_NEVER) return ASYNC_STALE;
    // mutant: async: a push names parameters that its trainer was never given
    if (push->version > line->pulled) return ASYNC_NO_VERSION;
    // mutant: async: a stale push is applied
    if (self->version - push->version >= async_server_limit(self)) return ASYNC_STALE;
    // mutant: async: a gradient that is not finite is applied
    if (!are_finite(gradient, floats)) return ASYNC_NOT_FINITE;
    return ASYNC_APPLY;
}

static void count_lag(const struct async_server *self, struct async_line *line, uint64_t version)
{
    const bool is_compared = line->pulled != ASYNC_NEVER && version <= self->version;
    const uint64_t lag = is_compared ? self->version - version : ASYNC_LAGS;
    line->lags[lag < ASYNC_LAGS ? lag : ASYNC_LAGS - 1]++;
}

void async_server_settle(struct async_server *self, const struct async_push *push,
                         enum async_verdict verdict)
{
    struct async_line *line = line_of(self, push->member);
    if (async_is_refusal(verdict) && line) line->refusals++;
    if (verdict != ASYNC_APPLY && verdict != ASYNC_STALE) return;
    // mutant: async: a retry of a discarded push counts again
    if (push->sequence == line->sequence) return;
    count_lag(self, line, push->version);
    line->sequence = push->sequence;
    line->lease = push->lease;
    line->discarded = verdict == ASYNC_STALE;
    line->pushes++;
    line->discards += line->discarded;
    self->version += verdict == ASYNC_APPLY;
    line->seen = self->version;
}

// ---- a pull ---------------------------------------------------------------------------------

enum async_verdict async_server_judge_pull(const struct async_server *self, uint32_t member,
                                           uint64_t instance, uint64_t place_number)
{
    if (!is_known(async_server_line(self, member), instance)) return ASYNC_OTHER_INSTANCE;
    return place_number == self->place_number ? ASYNC_TAKEN : ASYNC_OTHER_PLACE;
}

// By its first pull a process gets what it begins with: that is no pull of its cadence.
void async_server_pulled(struct async_server *self, uint32_t member)
{
    struct async_line *line = line_of(self, member);
    ensure(line);
    line->pulls += line->pulled != ASYNC_NEVER;
    line->pulled = self->version;
    line->seen = self->version;
}

const char *async_verdict_text(enum async_verdict verdict)
{
    static const char *const texts[] = {
        [ASYNC_APPLY] = "applied",
        [ASYNC_APPLIED_BEFORE] = "applied before",
        [ASYNC_STALE] = "stale: discarded",
        [ASYNC_TAKEN] = "taken",
        [ASYNC_OTHER_INSTANCE] = "its process is not the one in the group",
        [ASYNC_OTHER_PLACE] = "it was meant for another server in this place",
        [ASYNC_OTHER_LEASE] = "its lease is another trainer's, or an old one",
        [ASYNC_NO_SEQUENCE] = "it has no sequence number",
        [ASYNC_NO_VERSION] = "it names a version that it was never given",
        [ASYNC_NOT_FINITE] = "it has a number that is not finite",
        [ASYNC_UNREADABLE] = "it is no question of this version",
    };
    return verdict < ASYNC_VERDICTS ? texts[verdict] : "no verdict";
}
