#pragma once
// coordinator -- one run's source of truth: its members, its phase, and what was trained.
//
//     message ─▶ one part hears it: records what it says ─▶ settle: decides, until no phase changes
//
//   coordinator.c   receives every message and passes it to one part; the clock, the heartbeat
//   epoch.[hc]      phases around the steps: waiting, warm-up, cooldown, pause; decides the next
//   warmup.[hc]     which trainers a Warmup waits for
//   members.[hc]    members that join, stay, leave or lose their lease
//   news.[hc]       what everybody is told
//   common/pace     how steps come to be committed, by the run's pace (pace.h)
//
// Each part uses only the parts below it in this list. All of them use the turn
// (common/pace/turn.h). Only coordinator.c sees struct coordinator. common/run/run.h has the
// durable state and its records.
//
// The transitions (every row has a conversation in tests/golden/coordinator):
//
//   WaitingForMembers → Warmup      init_min_clients pending and the extra time has passed
//   Warmup → RoundTrain             all that it waits for hold the model, or the time is up; and
//                                   min_clients do
//   Warmup → WaitingForMembers      fewer than min_clients remain (or hold it, when the time is up)
//   RoundTrain ⇄ RoundWitness       the pace decides (common/pace/rounds/rounds.h)
//   either → Cooldown               the epoch is over, too few members, all steps done, a pause
//   Cooldown → next                 the digest is pinned, and a checkpointer holds that step and writes
//                                   it while the next epoch runs; or the time is up. Before Paused and
//                                   Finished the checkpoint is written
//                                   Finished: only if a checkpoint or enough members have the
//                                   last parameters; without a checkpoint, when one of them speaks
//
// Pure: no I/O, no clock; one thread. In the outbox, the store of a record stands before every
// message that rests on it, so no peer learns of a record that is not on disk.

#include "actors/coordinator/epoch.h"
#include "actors/coordinator/news.h"
#include "common/pace/pace.h"
#include "common/pace/presence.h"
#include "common/run/rules.h"
#include "common/run/run.h"

struct coordinator {
    struct rules rules; // Filled by the shell before the first message
    struct run run;     // Durable: filled by replay before the first message

    // A crash may lose everything below: members send it again.
    bool started;     // START has arrived
    uint64_t beat_ms; // When the next heartbeat is due
    struct presence presence;
    struct epoch epoch;
    struct news news;
    struct run_lists lists;
    const struct pace *pace;                    // The pace that the rules name
    _Alignas(16) uint8_t live[PACE_LIVE_BYTES]; // State of that pace that a crash may lose
};

// Prepares zeroed memory and copies `rules`. The caller then replays the ledger into `run`, and
// sends a START message with the incarnation of this life.
void coordinator_init(struct coordinator *self, const struct rules *rules);

// Processes one message: `self` is a struct coordinator. Never fails. A message that does not fit
// is answered with REFUSED and changes nothing. Messages before START are ignored.
void coordinator_step(void *self, const struct msg *in, struct outbox *out);
