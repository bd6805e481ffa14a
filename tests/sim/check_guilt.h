#pragma once
// check_guilt -- who may be audited, judged and ejected, by the records alone: the audits of a round
// are fair, a verdict is that of most of the judges who were appointed, and it is carried out before
// the next round; nobody honest is ejected, and nobody stays who was caught. Between check_records.c
// and check_words.c.

#include "tests/sim/sim.h"

void check_audits(struct sim *sim, const struct wire_round *round); // Of a round's record
void check_finding(struct sim *sim, const struct wire_record_finding *record);
void check_ejection(struct sim *sim, const struct wire_record_ejection *record);

// A wrong result was committed: once all else is healed, and all is audited, not often.
void check_wrong(struct sim *sim, const struct ghost_claim *claim);

// Two claims of one author for one round. Who is honest and hears both, or hears that another one was
// committed, shows what it has to the coordinator at once; which asks those who may hold the committed one,
// and once it was shown both by members, ejects their author at once.
// Letters may be lost between the two: where all is healed they are not, and two rounds are enough.
void check_claim_heard(struct sim *sim, uint8_t id, const struct msg *in);
void check_shown(struct sim *sim, uint8_t id, const struct msg *in); // After a claim, or a commit
void check_claim_copy_heard(struct sim *sim, const struct msg *in);  // By the coordinator
void check_claim_copy(struct sim *sim);                              // After it
