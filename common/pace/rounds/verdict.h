#pragma once
// verdict -- what the findings on record for the open round's audits come to.
//
// Judges of one case stand side by side among the round's audits, and name the same result and
// accuser. A verdict is the word of most of them, and of at least as many as trainers may lie, present
// or not: where one party calls the other's result wrong, one of the two lies, so an honest judge has said
// it. Where the accuser was only shown nothing, both may be honest: there "different" needs one more
// (seed 867).
//
// So many judges are dear in a large run, and all but always one is as good as all. So at first there are
// at most 21, and where that is fewer than they should be, all but one must agree: where almost a third of
// all trainers lie, they are that many of 21 once in 200 million draws at most. Else all are asked, at
// most 255: of these they are most once in 60 million.
//
// Who shows one judge what it hides from another is not let go for their disagreeing: as many as decide,
// of whom some found "different" and the others were shown nothing, have been shown nothing.
//
// Pure; every place is below round->audits_count.

#include "common/pace/rounds/round.h"

// The judges of a case in a run with so many trainers, if so many can be had, when it is judged for the
// first time (tries 0) or again. Odd, 3 to 21 or to 255.
uint32_t verdict_judges(uint32_t trainers, uint8_t accusation, uint32_t tries);

// How many of so many judges must say the same of a case; it may be more than there are.
uint32_t verdict_needed(const struct wire_audit *audit, uint32_t trainers, uint32_t judges,
                        uint8_t finding);

// SAME, DIFFERENT or WITHHELD, what the judges say of the case at `place`; PENDING: no verdict, or no
// judge stands there.
uint8_t verdict_of(const struct round *round, uint32_t place);

// Whether judges stand at `place`, and none of the same case before.
bool verdict_is_first(const struct round *round, uint32_t place);

// Whether judges of one case stand at both.
bool verdict_same_case(const struct round *round, uint32_t a, uint32_t b);

// Whether a member that recomputed cannot honestly have said `finding`, given the verdict. Not to have been
// shown something, or not to have been able, contradicts nothing.
bool verdict_contradicts(uint8_t verdict, uint8_t finding);
