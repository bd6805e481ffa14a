#pragma once
// coordinator -- one run's source of truth: who takes part, which phase it is, what was trained.
//
//     message ─▶ one part hears: records what it says ─▶ settle: does what has ripened, until nothing has
//
//   coordinator.c   hears everything and passes it on; the clock, the heartbeat
//   epoch.[hc]      phases around the steps: waiting, warm-up, cooldown, pause; settles
//   members.[hc]    who comes, stays and goes
//   news.[hc]       what everybody is told
//   common/pace     how steps come to be committed, by the run's pace (pace.h)
//
// Each uses those below it alone, and all of them the turn (common/pace/turn.h): none but coordinator.c
// sees struct coordinator. The durable state and its records are in common/run/run.h.
//
// The transitions (every row has a conversation in tests/golden/coordinator):
//
//   WaitingForMembers → Warmup      init_min_clients pending and the extra time has passed
//   Warmup → RoundTrain             all hold the model, or the time is up and min_clients do
//   Warmup → WaitingForMembers      fewer than min_clients remain (or hold it, when the time is up)
//   RoundTrain ⇄ RoundWitness       as the pace goes (common/pace/rounds/rounds.h)
//   either → Cooldown               the epoch is over, too few members, all steps done, a pause
//   Cooldown → next                 the digest is pinned and checkpointed, or the time is up; Finished only
//                                   while somebody keeps the last parameters
//
// Pure. Everything it says follows, in the outbox, the store of the record that justifies it.

#include "actors/coordinator/epoch.h"
#include "actors/coordinator/news.h"
#include "common/pace/pace.h"
#include "common/pace/presence.h"
#include "common/run/rules.h"
#include "common/run/run.h"

struct coordinator {
    struct rules rules; // Filled by the shell before the first message
    struct run run;     // Durable: filled by replay before the first message

    // All below may be forgotten: it is rebuilt from what members say again.
    bool started;
    uint64_t beat_ms; // The next heartbeat
    struct presence presence;
    struct epoch epoch;
    struct news news;
    struct run_lists lists;
    const struct pace *pace; // The run's, as its rules say
    _Alignas(16) uint8_t live[PACE_LIVE_BYTES];
};

// Prepares zeroed memory. To be followed by `rules`, by the replay of the ledger into `run`, and by
// a START message with the incarnation of this life.
void coordinator_init(struct coordinator *self, const struct rules *rules);

// Hears one message. Never fails: what does not fit is answered REFUSED and changes nothing.
void coordinator_step(void *self, const struct msg *in, struct outbox *out);
