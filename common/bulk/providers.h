#pragma once
// providers -- whom a client asks for samples, in what order, and what it remembers of them.
//
//     who answered in time last ─▶ all others, by their reputation
//
// The list that a client is given names some of the run's providers, and anybody may be a provider: who
// is hostile in numbers fills such lists with keys that never answer. So what was learnt of a provider
// outlives the list. Whose samples passed the proof is kept (the newest of PROVIDERS_KEPT_MAX) and asked
// whether named or not, until it fails: what it sends is proven each time, so nobody need trust it. Who
// failed is asked last for PROVIDERS_FORGIVE_MS: it costs its patience once, as long as there is anybody
// else. Of those neither named nor kept the table forgets who failed longest ago.
//
// Values only: no sockets, no clock.

#include "common/bulk/reputation.h"
#include "common/wire/wire.h"

enum {
    PROVIDERS_NAMED_MAX = 64,
    PROVIDERS_KEPT_MAX = 16,
    PROVIDERS_MAX = 256,
    PROVIDERS_FORGIVE_MS = 300000,
    PROVIDERS_SAID_MAX = 192
};

struct provider_peer {
    struct wire_holder holder;
    struct reputation reputation;
    uint32_t took_ms;              // Its newest answer; 0: not asked yet
    uint32_t times;                // How often it was asked this question
    bool is_named, is_kept;        // If neither, it is only remembered
    char said[PROVIDERS_SAID_MAX]; // To this question, if nothing useful
};

struct providers { // Zero: nobody
    struct provider_peer list[PROVIDERS_MAX];
    uint32_t count;
    struct provider_peer *first; // Asked before all others; NULL: none
};

// From now on these are named, at most PROVIDERS_NAMED_MAX of them, and no others. Copied.
void providers_name(struct providers *self, const struct wire_holder *named, uint32_t count);

// A new question: nobody has been asked, nobody has said anything.
void providers_begin(struct providers *self);

// Whom to ask now, of those who were asked this question fewer than `times` times. NULL: nobody is left.
struct provider_peer *providers_next(const struct providers *self, uint32_t times, uint64_t now_ms);

// Its answer was right, and took so long. If that was `slow_ms` or more, another one is first next time,
// if there is a better: one that was not asked yet, or the fastest seen. Those who were slower are
// given the benefit of the doubt, little by little: they may have had a bad moment.
void providers_succeed(struct providers *self, struct provider_peer *peer, bool is_proven,
                       uint32_t took_ms, uint32_t slow_ms, uint64_t now_ms);

// It gave nothing that was right; that counts as an answer that took so long.
void providers_fail(struct providers *self, struct provider_peer *peer, uint32_t took_ms,
                    uint64_t now_ms);

static inline bool provider_may_be_asked(const struct provider_peer *peer)
{
    return peer->is_named || peer->is_kept;
}
