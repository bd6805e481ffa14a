#pragma once
// rounds_evidence -- verifies the records of rounds, for anyone who has all of them and the run's
// configuration:
//
//     each ROUND      its seed, clients, witnesses, auditors and judges follow from the records
//                     before it: draw_round draws them again, and the record must say the same
//     each COMMIT     the hash of the key that it reveals is the lock of its round
//     each FINDING    the auditor that was drawn has signed it
//     each EJECTION   for equivocation: the ejected member signed two different claims of a round;
//                     otherwise: the recorded findings of the judges lead to that verdict
//
// The simulator and the live tests verify every run, so a draw that uses anything beside the ledger
// fails there. It does not verify votes: a commit counts them, but they are not recorded. Pure; one
// thread.

#include "common/pace/evidence.h"
#include "common/pace/rounds/draw.h"

// What was verified: rounds drawn again, keys of commits, audits in these rounds, signed findings,
// ejections for equivocation, all ejections.
// clang-format off
#define ROUNDS_COUNTS(C)                                                                           \
    C(DRAWS, "draws") C(KEYS, "keys") C(AUDITS, "audits") C(FINDINGS, "findings")                  \
    C(EQUIVOCATIONS, "equivocations") C(EJECTIONS, "ejections")
// clang-format on
#define ROUNDS_COUNT(NAME, text) ROUNDS_COUNT_##NAME,
enum rounds_count { ROUNDS_COUNTS(ROUNDS_COUNT) };
#undef ROUNDS_COUNT

struct rounds_evidence {
    struct round round;
    struct draw draw;
    struct wire_debt debts[MEMBERS_MAX]; // As the findings on record leave them
};

// The function `verifies` of struct pace.
bool rounds_verifies(struct evidence *evidence, uint16_t kind, const void *record);
