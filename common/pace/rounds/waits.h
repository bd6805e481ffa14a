#pragma once
// waits -- whom the rounds wait for: how long of late, as a share of the time.
//
// A round waits by design: for a result as long as min_round_train_time, or three times as long as
// half of them take. A member that lets each round wait almost so long is never late, and costs more
// than one that is dropped for it. So each wait is put down to the member that caused it, and it may
// cause waits of a tenth of all time:
//
//     owed      + each wait beyond what half of the results took, - a tenth of each round's time,
//               never below 0, at most twice the threshold
//     is said   while it owes more than the threshold, min_round_train_time
//
// So a member is not named for a short wait now and then, and no longer named soon after it is quick
// again. A wait of at most LATENESS_TIMES the half is none: members are not equally fast. Nothing is
// decided by it. Volatile. Part of the coordinator's core: pure, a value.

#include "common/pace/rounds/round.h"

struct waits {
    uint32_t owed_ms[MEMBERS_MAX];                          // By member
    uint32_t longest_ms[MEMBERS_MAX], half_ms[MEMBERS_MAX]; // Of its waits; what half took then
};

// The open round waited so long for this member; half of its results took half_ms (0: not known, so
// nobody knows what is long).
void waits_add(struct waits *self, uint32_t member, uint64_t took_ms, uint32_t half_ms,
               uint32_t threshold_ms);

// A round is over that took so long: its clients have paid a tenth of that.
void waits_pass(struct waits *self, const struct round *round, uint64_t round_ms);

// The member of the newest round that owes most, and more than the threshold; or NO_MEMBER.
uint32_t waits_longest(const struct waits *self, const struct round *round, uint32_t threshold_ms);

// Another has its place.
void waits_forget(struct waits *self, uint32_t member);
