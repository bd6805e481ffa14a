#pragma once
// providers -- the providers that a client asks for samples: their order, and what it remembers of
// them.
//
//     answered in time last ─▶ all others, by their reputation
//
// The first one is left when it is slow: by the client's patience, or compared with its own answer
// before and with the fastest of the others. It is slow if it took PROVIDERS_TIMES as long, and
// PROVIDERS_LEAST_MS at least. So that there is something to compare with, another one is tried now
// and then: one that was not asked yet at once if the first took PROVIDERS_LEAST_MS or more, else
// after PROVIDERS_TRY_NEW questions; and after PROVIDERS_TRY questions the one that was tried
// longest ago. It comes first from then on if it was faster than the first, and a trial lasts no
// longer than that. Thus a provider that answers late, but in time, costs a question or two, and
// later one in PROVIDERS_TRY at most, since it may be quick in its trial.
//
// The list that a client is given names some of the run's providers. Anybody may be a provider, so
// an attacker can fill such lists with keys that never answer. Therefore the client remembers
// providers longer than the list. A provider whose samples passed the proof is kept (the newest
// PROVIDERS_KEPT_MAX of them) and asked, named or not, until it fails; its samples are proved each
// time, so it need not be trusted. A provider that failed is asked last for PROVIDERS_FORGIVE_MS:
// while there are others, it costs one time-out. If the table is full, it forgets a provider that
// is neither named nor kept: first those that have not failed, then the one that failed longest ago.
//
// Values only: no sockets, no clock.

#include "common/bulk/reputation.h"
#include "common/wire/wire.h"

enum {
    PROVIDERS_NAMED_MAX = 64,
    PROVIDERS_KEPT_MAX = 16,
    PROVIDERS_MAX = 256,
    PROVIDERS_FORGIVE_MS = 300000,
    PROVIDERS_SAID_MAX = 192,
    PROVIDERS_TRY_NEW = 8,
    PROVIDERS_TRY = 64,
    PROVIDERS_TIMES = 4,
    PROVIDERS_LEAST_MS = 50
};

struct provider_peer {
    struct wire_holder holder;
    struct reputation reputation;
    uint32_t took_ms;              // Its newest answer; 0: not asked yet
    uint32_t times;                // How often it was asked this question
    uint64_t tried;                // The question of its newest trial
    bool is_named, is_kept;        // If neither, it is remembered but not asked
    bool refused;                  // It has answered this question, and gave nothing right
    char said[PROVIDERS_SAID_MAX]; // Its reply to this question, if it was of no use
};

struct providers { // All zero: no provider
    struct provider_peer list[PROVIDERS_MAX];
    uint32_t count;
    struct provider_peer *first; // Asked before all others; NULL: none
    uint64_t questions, tried;   // How many there were; that of the newest trial
};

// Replaces the list of named providers, at most PROVIDERS_NAMED_MAX of them. Copied.
void providers_name(struct providers *self, const struct wire_holder *named, uint32_t count);

// A new question: no provider has been asked yet.
void providers_begin(struct providers *self);

// The provider to ask next, of those that were asked this question fewer than `times` times. NULL:
// none.
struct provider_peer *providers_next(const struct providers *self, uint32_t times, uint64_t now_ms);

// A provider that is to be tried with this question before the others are asked; NULL: none now.
// The trial ends with providers_end_trial or providers_fail, after *ret_ms at most.
struct provider_peer *providers_try(struct providers *self, uint64_t now_ms, uint32_t *ret_ms);

// It gave a right answer (is_ok) after took_ms, or nothing until took_ms were over: then it is
// slow, but has not failed.
void providers_end_trial(struct providers *self, struct provider_peer *peer, bool is_ok,
                         bool is_proven, uint32_t took_ms, uint64_t now_ms);

// Its answer was right and took `took_ms`. If that is slow, which `slow_ms` or more always is,
// another provider comes first next time: one that was not asked yet, or the fastest so far. Each
// such time the remembered times of the others shrink by a sixteenth, because a slow answer may
// have been an exception.
void providers_succeed(struct providers *self, struct provider_peer *peer, bool is_proven,
                       uint32_t took_ms, uint32_t slow_ms, uint64_t now_ms);

// It gave no right answer. That counts as an answer that took `took_ms`.
void providers_fail(struct providers *self, struct provider_peer *peer, uint32_t took_ms,
                    uint64_t now_ms);

static inline bool provider_may_be_asked(const struct provider_peer *peer)
{
    return peer->is_named || peer->is_kept;
}
