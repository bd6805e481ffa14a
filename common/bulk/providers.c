// providers -- one table. The order of the next question is computed when it is asked (is_before):
// the first one, then those that did not fail lately, proven ones before others. An answer moves a
// provider to the front if it was fast enough; a failure puts it behind all others for a while. A
// trial moves it to the front only if it was faster than the one that is there.

#include "common/base/ensure.h"
#include "common/bulk/providers.h"
#include <string.h>

// ---- the table ------------------------------------------------------------------------------

static struct provider_peer *find(struct providers *self, const struct wire_holder *holder)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (strcmp(self->list[i].holder.endpoint, holder->endpoint) == 0 &&
            key_equal(&self->list[i].holder.key, &holder->key))
            return &self->list[i];
    return NULL;
}

_Static_assert(PROVIDERS_NAMED_MAX + PROVIDERS_KEPT_MAX < PROVIDERS_MAX,
               "somebody can be forgotten");

static struct provider_peer *find_room(struct providers *self)
{
    struct provider_peer *oldest = NULL;
    if (self->count < PROVIDERS_MAX) return &self->list[self->count++];
    for (uint32_t i = 0; i < self->count; i++) {
        struct provider_peer *peer = &self->list[i];
        if (!provider_may_be_asked(peer) &&
            (!oldest || peer->reputation.failed_ms < oldest->reputation.failed_ms))
            oldest = peer;
    }
    ensure(oldest);
    return oldest;
}

void providers_name(struct providers *self, const struct wire_holder *named, uint32_t count)
{
    if (count > PROVIDERS_NAMED_MAX) count = PROVIDERS_NAMED_MAX;
    for (uint32_t i = 0; i < self->count; i++) self->list[i].is_named = false;
    for (uint32_t i = 0; i < count; i++) { // Before find_room forgets a provider
        struct provider_peer *peer = find(self, &named[i]);
        if (peer) peer->is_named = true;
    }
    if (self->first && !provider_may_be_asked(self->first)) self->first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (find(self, &named[i])) continue;
        *find_room(self) = (struct provider_peer){ .holder = named[i], .is_named = true };
    }
}

// ---- the next one to ask --------------------------------------------------------------------

// What failed before that is forgiven.
static uint64_t since_ms(uint64_t now_ms)
{
    return now_ms > PROVIDERS_FORGIVE_MS ? now_ms - PROVIDERS_FORGIVE_MS : 0;
}

static bool is_before(const struct providers *self, const struct provider_peer *a,
                      const struct provider_peer *b, uint64_t now_ms)
{
    if (a == self->first || b == self->first) return a == self->first;
    return reputation_is_before(&a->reputation, &b->reputation, since_ms(now_ms));
}

void providers_begin(struct providers *self)
{
    self->questions++;
    for (uint32_t i = 0; i < self->count; i++) {
        self->list[i].times = 0;
        self->list[i].refused = false;
        self->list[i].said[0] = 0;
    }
}

struct provider_peer *providers_next(const struct providers *self, uint32_t times, uint64_t now_ms)
{
    const struct provider_peer *next = NULL;
    for (uint32_t i = 0; i < self->count; i++) {
        const struct provider_peer *peer = &self->list[i];
        if (provider_may_be_asked(peer) && peer->times < times &&
            (!next || is_before(self, peer, next, now_ms)))
            next = peer;
    }
    return (struct provider_peer *)next;
}

// ---- trials ---------------------------------------------------------------------------------

static bool is_tried_before(const struct provider_peer *a, const struct provider_peer *b)
{
    if (!a->took_ms != !b->took_ms) return !a->took_ms;
    return a->tried < b->tried;
}

// How many questions lie between the trial before and one of this peer.
static uint32_t pause_before(const struct providers *self, const struct provider_peer *peer)
{
    if (peer->took_ms) return PROVIDERS_TRY;
    return self->first->took_ms >= PROVIDERS_LEAST_MS ? 1 : PROVIDERS_TRY_NEW;
}

struct provider_peer *providers_try(struct providers *self, uint64_t now_ms, uint32_t *ret_ms)
{
    struct provider_peer *next = NULL;
    if (!self->first) return NULL; // One is looked for anyhow
    for (uint32_t i = 0; i < self->count; i++) {
        struct provider_peer *peer = &self->list[i];
        if (peer != self->first && provider_may_be_asked(peer) &&
            !reputation_has_failed(&peer->reputation, since_ms(now_ms)) &&
            (!next || is_tried_before(peer, next)))
            next = peer;
    }
    // mutant: data: no other provider is tried
    if (!next || self->questions < self->tried + pause_before(self, next)) return NULL;
    next->tried = self->tried = self->questions;
    *ret_ms = self->first->took_ms > PROVIDERS_LEAST_MS ? self->first->took_ms : PROVIDERS_LEAST_MS;
    return next;
}

// ---- outcomes -------------------------------------------------------------------------------

static void keep(struct providers *self, struct provider_peer *peer, uint64_t now_ms)
{
    struct provider_peer *oldest = NULL;
    uint32_t count = 0;
    peer->reputation.proven_ms = now_ms;
    // mutant: data: a good provider is forgotten with the list
    peer->is_kept = true;
    for (uint32_t i = 0; i < self->count; i++) {
        struct provider_peer *other = &self->list[i];
        count += other->is_kept;
        if (other->is_kept &&
            (!oldest || other->reputation.proven_ms < oldest->reputation.proven_ms))
            oldest = other;
    }
    if (count > PROVIDERS_KEPT_MAX) oldest->is_kept = false;
}

// The fastest provider by remembered time; one that was not asked yet has time 0. The remembered
// times shrink here, so that every provider is tried again some day.
static struct provider_peer *find_faster(struct providers *self, struct provider_peer *than,
                                         uint64_t now_ms)
{
    struct provider_peer *best = than;
    for (uint32_t i = 0; i < self->count; i++) {
        struct provider_peer *peer = &self->list[i];
        if (peer == than || !provider_may_be_asked(peer)) continue;
        peer->took_ms -= peer->took_ms / 16;
        if (peer->took_ms < best->took_ms &&
            !reputation_has_failed(&peer->reputation, since_ms(now_ms)))
            best = peer;
    }
    return best;
}

// From when on an answer of this peer is slow, compared with its own before and with those of the
// others, without those that failed. If there is nothing to compare with, no answer is slow.
static uint32_t slow_beside_ms(const struct providers *self, const struct provider_peer *than,
                               uint64_t now_ms)
{
    uint32_t least_ms = UINT32_MAX / PROVIDERS_TIMES;
    for (uint32_t i = 0; i < self->count; i++) {
        const struct provider_peer *peer = &self->list[i];
        if (provider_may_be_asked(peer) && peer->took_ms && peer->took_ms < least_ms &&
            (peer == than || !reputation_has_failed(&peer->reputation, since_ms(now_ms))))
            least_ms = peer->took_ms;
    }
    least_ms *= PROVIDERS_TIMES;
    return least_ms > PROVIDERS_LEAST_MS ? least_ms : PROVIDERS_LEAST_MS;
}

void providers_succeed(struct providers *self, struct provider_peer *peer, bool is_proven,
                       uint32_t took_ms, uint32_t slow_ms, uint64_t now_ms)
{
    const uint32_t beside_ms = slow_beside_ms(self, peer, now_ms);
    peer->reputation.failed_ms = 0;
    // mutant: data: a provider is slow by the patience alone
    peer->reputation.is_slow = took_ms >= slow_ms || took_ms >= beside_ms;
    peer->took_ms = took_ms ? took_ms : 1;
    if (is_proven) keep(self, peer, now_ms);
    // mutant: data: a slow provider is never left
    self->first = peer->reputation.is_slow ? find_faster(self, peer, now_ms) : peer;
}

void providers_end_trial(struct providers *self, struct provider_peer *peer, bool is_ok,
                         bool is_proven, uint32_t took_ms, uint64_t now_ms)
{
    peer->took_ms = took_ms ? took_ms : 1;
    peer->reputation.is_slow = !is_ok;
    if (!is_ok) return;
    peer->reputation.failed_ms = 0;
    if (is_proven) keep(self, peer, now_ms);
    if (!self->first || peer->took_ms < self->first->took_ms) self->first = peer;
}

void providers_fail(struct providers *self, struct provider_peer *peer, uint32_t took_ms,
                    uint64_t now_ms)
{
    peer->reputation.failed_ms = now_ms;
    peer->took_ms = took_ms;
    peer->is_kept = false;
    if (self->first == peer) self->first = NULL;
}
