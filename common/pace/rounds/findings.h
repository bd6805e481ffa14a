#pragma once
// findings -- which findings of auditors are late, and whom that is put down to.
//
//     late    later after the opening than min_round_train_time, than three times what half of the
//             round's results took, and than three times what is usual for findings
//
// What is usual is the lower quartile of the newest findings, not the median: of four trainers one is a
// party to half of all audits, and it could make slow usual. Where all residuals are long on their way, that
// is usual: nobody that needs one is late until FINDINGS_FIRST are known.
//
// A late finding is the auditor's doing, or that of the author, which revealed its starting residual
// late; nobody else knows which. Of a liar all audits are late, of an honest member those with a liar
// alone, which are fewer than the others. So for each member, as auditor and as author apart:
//
//     suspicion    + 1 for each late finding, - 1 for each other one, never below 0
//     is too much  SUSPICION_TIMES unhealthy_rounds
//
// A result that began from zero needs nothing from its author: if its finding is late, it is not waited
// for, and the auditor has missed the round (rounds.c). Nothing of this is stored. Part of the
// coordinator's core: pure, a value.

#include "common/pace/rounds/round.h"

enum { FINDINGS_KEPT = 16, FINDINGS_FIRST = 4, SUSPICION_TIMES = 2 };

enum party { PARTY_AUDITOR, PARTY_AUTHOR, PARTIES };

struct findings {
    uint64_t took_ms[AUDITS_MAX];   // Of the open round, by audit; 0: not heard
    uint32_t newest[FINDINGS_KEPT]; // A ring: what findings with a residual took
    uint64_t known;                 // All of them; the next goes to known % FINDINGS_KEPT
    uint8_t suspicion[PARTIES][MEMBERS_MAX];
};

// A round was opened, or the coordinator has restarted in it.
void findings_begin(struct findings *self);

// The finding of this audit came so long after the opening. The first one counts.
void findings_hear(struct findings *self, uint32_t place, uint64_t took_ms);

// From when on a finding is late. half_ms: of the round's results, 0: not known. UINT64_MAX: none is.
uint64_t findings_limit_ms(const struct findings *self, uint32_t least_ms, uint32_t half_ms,
                           bool needs_author);

// Whether the finding of this audit needs its author: it began with a residual.
bool findings_need_author(const struct wire_audit *audit);

// At the commit, so long after the opening: what each audit of the round with a residual took. 0: not
// known, as the coordinator restarted meanwhile.
uint64_t findings_took_ms(const struct findings *self, const struct round *round, uint32_t place,
                          uint64_t round_ms);

// Counts that audit: it was late, or not. True if that is too much for a party, whose index in the
// roster is then in ret_members, else NO_MEMBER; half of its suspicion is forgiven. `most`: what is too
// much.
bool findings_suspect(struct findings *self, const struct round *round, uint32_t place,
                      bool is_late, uint8_t most, uint32_t ret_members[PARTIES]);

// The round is over: learns what is usual.
void findings_learn(struct findings *self, const struct round *round);

// Another has its place.
void findings_forget(struct findings *self, uint32_t member);
