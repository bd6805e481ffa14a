#pragma once
// verdict -- decides cases: what the findings of a case's judges amount to.
//
// The judges of one case are those audits of the open round that name the same result and accuser.
//
// How many must agree. A verdict is a finding that most judges of the case share. They must also be
// at least as many as trainers may lie, whether or not these are judges; in a run of more than 384
// trainers 128 are enough, the majority of 255 judges. If the accuser says "different", one of the
// two parties lies, and parties do not judge; so among that many judges one is honest. If the
// accuser says "withheld", both parties may be honest; so there "different" needs one judge more.
// (Seed 867 of the simulator found that case.)
//
// How many judges. With enough of them most are honest even if all liars are among them. That many
// cost much in a large run, and a few are nearly always right. So at first there are at most 21. If
// more would be needed, all but one of the 21 must agree: when almost a third of all trainers lie,
// 20 of 21 judges are liars at most once in 200 million draws. If they do not agree, the next round
// appoints as many as are needed, at most 255; liars are most of 255 at most once in 60 million
// draws.
//
// A trainer that reveals its starting residual to some judges only does not escape: if the judges
// that found "different" and those that found "withheld" are together enough for a verdict, it is
// "withheld". That verdict waits as long as the judges without a finding could still make
// "different" enough.
//
// Pure; any thread. Every `place` is an index into round->audits, below round->audits_count.

#include "common/pace/rounds/round.h"

// How many judges a case should have in a run with this many trainers: odd, 3 to 21 at the first
// try (`tries` 0), 3 to 255 later. The round may have fewer clients.
uint32_t verdict_judges(uint32_t trainers, uint8_t accusation, uint32_t tries);

// How many of the case's `judges` must share this finding. It may be more than there are.
uint32_t verdict_needed(const struct wire_audit *audit, uint32_t trainers, uint32_t judges,
                        uint8_t finding);

// The verdict on the case at `place`: SAME, DIFFERENT or WITHHELD. PENDING: there is no verdict
// yet, or the audit at `place` is not that of a judge.
uint8_t verdict_of(const struct round *round, uint32_t place);

// Whether the audit at `place` is the first of a judge of its case.
bool verdict_is_first(const struct round *round, uint32_t place);

// Whether both audits are of judges of one case.
bool verdict_same_case(const struct round *round, uint32_t a, uint32_t b);

// Whether no honest judge can have `finding`, given the verdict. "Withheld" and "unable" contradict
// no verdict.
bool verdict_contradicts(uint8_t verdict, uint8_t finding);
