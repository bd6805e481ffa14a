#pragma once
// rounds_evidence -- what the records of rounds prove to anyone who has them all and the run's configuration:
//
//     every ROUND     its seed, clients, witnesses, auditors and judges follow from the records
//                     before it: draw_round draws again, and the record must say the same
//     every COMMIT    the key that it reveals is that of the lock its round was opened under
//     every FINDING   was said by the auditor that was drawn, and bears its signature
//     every EJECTION  of an equivocation: two claims of one round, both signed by the member that is ejected;
//                     else the judges' findings on record come to that verdict
//
// A draw that used more than the ledger has would be found out here, in every simulated and every
// live run. Not shown: that a vote was cast (commits count votes, which are not kept). Pure.

#include "common/pace/evidence.h"
#include "common/pace/rounds/draw.h"

// Drawn again; that fit; auditors and judges among them; whose signatures verify; that were justified.
#define ROUNDS_COUNTS(C)                                                                           \
    C(DRAWS, "draws")                                                                              \
    C(KEYS, "keys")                                                                                \
    C(AUDITS, "audits")                                                                            \
    C(FINDINGS, "findings") C(EQUIVOCATIONS, "equivocations") C(EJECTIONS, "ejections")
#define ROUNDS_COUNT(NAME, text) ROUNDS_COUNT_##NAME,
enum rounds_count { ROUNDS_COUNTS(ROUNDS_COUNT) };
#undef ROUNDS_COUNT

struct rounds_evidence {
    struct round round;
    struct draw draw;
    struct wire_debt debts[MEMBERS_MAX]; // As the findings on record leave them
};

bool rounds_bears_out(struct evidence *evidence, uint16_t kind, const void *record);
