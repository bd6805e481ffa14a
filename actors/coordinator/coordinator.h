#pragma once
// coordinator -- one run's source of truth: who takes part, which phase it is, what was trained.
//
//     message ─▶ one part hears: records what it says ─▶ settle: does what has ripened, until nothing has
//
//   coordinator.c   hears everything and passes it on; the clock, the heartbeat
//   epoch.[hc]      phases around the rounds: waiting, warm-up, cooldown, pause; settles
//   rounds.[hc]     a round: opened as it was drawn, proved by its witnesses, committed
//   audit.[hc]      results recomputed by chance, and liars ejected
//   tally.[hc]      the votes of one round
//   members.[hc]    who comes, stays and goes
//   news.[hc]       what everybody is told
//   evidence.[hc]   what the records of a run prove to others
//
// Each uses those below it alone, and all of them the turn (common/pace/turn.h): none but coordinator.c
// sees struct coordinator.
//
// What it keeps are values of common/run: run.h (the durable state and its records), roster.h, round.h;
// draw.h draws a round, verdict.h says what judges come to.
//
// The transitions (every row has a conversation in tests/golden/coordinator):
//
//   WaitingForMembers → Warmup      init_min_clients pending and the extra time has passed
//   Warmup → RoundTrain             all hold the model, or the time is up and min_clients do
//   Warmup → WaitingForMembers      fewer than min_clients remain (or hold it, when the time is up)
//   RoundTrain → RoundWitness       a quorum of votes lacks nothing, or the time is up
//   RoundWitness → commit           a quorum of votes and nothing left to wait for, or the time is up
//   commit → RoundTrain | Cooldown  Cooldown: epoch over, too few members or votes, all steps done, pause
//   Cooldown → next                 the digest is pinned and checkpointed, or the time is up; Finished only
//                                   while somebody keeps the last parameters
//
// Pure. Everything it says follows, in the outbox, the store of the record that justifies it.

#include "actors/coordinator/epoch.h"
#include "actors/coordinator/news.h"
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
    struct rounds rounds;
    struct news news;
    struct interval scratch[TABLE_INTERVALS_MAX];
};

// Prepares zeroed memory. To be followed by `rules`, by the replay of the ledger into `run`, and by
// a START message with the incarnation of this life.
void coordinator_init(struct coordinator *self, const struct rules *rules);

// Hears one message. Never fails: what does not fit is answered REFUSED and changes nothing.
void coordinator_step(void *self, const struct msg *in, struct outbox *out);
