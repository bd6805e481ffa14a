#pragma once
// rounds -- a pace for strangers, the coordinator's half: it opens each round as drawn, counts the
// votes of its witnesses, and commits the results that a quorum of them has seen.
//
//     open ─▶ votes, findings ─▶ RoundWitness ─▶ commit ─▶ the next round, or the epoch is over
//
//   rounds.[hc]            counts votes, settles; the table of functions that pace.h asks for
//   rounds_run.[hc]        the durable state
//   round, draw, verdict   the newest round; the draw of the next one; verdicts of the judges
//   tally, audit           the votes of one round; recomputed results and ejections
//   missed                 whose results were missing when the time was up, as a sentence
//   findings               which findings are late, and whom that is put down to
//   waits                  whom the rounds wait for, late or not
//   health                 puts waits down to members, and drops who missed too many rounds
//   rounds_evidence.[hc]   verifies the records of rounds
//   rounds_member.[hc]     the member's half, and all parts of it
//
//   RoundTrain → RoundWitness   a quorum of votes is complete, or the time is up
//   RoundWitness → commit       a quorum of votes and nothing left to wait for, or the time is up
//   commit → RoundTrain         the next round
//   commit → Cooldown           epoch over, too few members or votes, all steps done, a pause
//
// The functions that hear a message only record what it says; settle decides what follows. Part of
// the coordinator's core: pure, one thread.

#include "common/pace/pace.h"
#include "common/pace/rounds/audit.h"
#include "common/pace/rounds/bloom.h"
#include "common/pace/rounds/findings.h"
#include "common/pace/rounds/missed.h"
#include "common/pace/rounds/rounds_run.h"
#include "common/pace/rounds/waits.h"
#include "common/run/assignment.h"

// A crash may lose all of it: members send their votes and claims again.
struct rounds {
    uint64_t round_began_ms, trained_ms; // When RoundTrain began, and when it ended
    bool lacked_quorum;                  // The newest round had no quorum of votes
    bool lacked_data;                    // It had no result, and no data-provider was there
    bool is_late;                        // The open round's time was up, for results or for votes
    char missed[MISSED_BYTES];           // What it lacked then, of the newest round that has ended
    struct tally tally;
    struct wire_accepted accepted[MEMBERS_MAX]; // Of the commit that is being made
    struct hash items[MEMBERS_MAX]; // SHA-256 of each client's key: the items of the votes' blooms
    uint64_t bloom_words[BLOOM_WORDS(MEMBERS_MAX)];
    uint32_t trainers[MEMBERS_MAX];
    struct share shares[MEMBERS_MAX];
    uint32_t by_trainer[MEMBERS_MAX];
    struct deal deal; // Which client trains which samples of the open round
    struct audit audit;
    struct waits waits;
    struct findings findings;
};

extern const struct pace pace_rounds;

// The state of this pace in the memory that the coordinator keeps for it (struct coordinator,
// `live`).
static inline const struct rounds *rounds_live(const void *live) { return live; }
