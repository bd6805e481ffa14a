#pragma once
// verdict -- what the findings on record for the open round's audits come to.
//
// Judges of one case stand side by side among the round's audits, and name the same result and
// accuser. A verdict is the word of most of them, and of at least as many as trainers may lie, present
// or not: where one party calls the other's result wrong, one of the two lies, so an honest judge has said
// it. Where the accuser was only shown nothing, both may be honest: there "different" needs one more
// (seed 867).
//
// Pure; every place is below run->audits_count.

#include "actors/coordinator/run.h"

// The judges of a case in a run with so many trainers, if so many can be had. Odd, 3 to 15.
uint32_t verdict_judges(uint32_t trainers, uint8_t accusation);

// SAME, DIFFERENT or WITHHELD, what the judges say of the case at `place`; PENDING: no verdict, or no
// judge stands there.
uint8_t verdict_of(const struct run *run, uint32_t place);

// Whether judges stand at `place`, and none of the same case before.
bool verdict_is_first(const struct run *run, uint32_t place);

// Whether judges of one case stand at both.
bool verdict_same_case(const struct run *run, uint32_t a, uint32_t b);

// Whether who recomputed cannot honestly have said `finding`, given the verdict. Not to have been
// shown something, or not to have been able, contradicts nothing.
bool verdict_contradicts(uint8_t verdict, uint8_t finding);
