#pragma once
// holder -- decides when a member of a window may apply a step, so that whatever dies, all who live
// can end at the same step, each from its own memory.
//
//     everything for step k is here ─▶ HAVE k to all others ─▶ HAVE k of all ─▶ apply k ─▶ step k + 1
//                                            │
//     freeze: where do you stand? ───────────┴─▶ (step, has): nothing is applied any more
//     close at `end` ─▶ at it already, one step from memory, or out of reach
//
// A *holder* is a member whose state a step changes. It keeps three promises:
//
//   1. It sends nothing of step k + 1 before it has applied k. (The caller's, by asking for
//      nothing of a later step.)
//   2. It applies k when every holder of the group, itself included, has said HAVE k; until then no
//      float of its state changes. So if one has applied k, every other one has all that k needs.
//   3. After holder_freeze it says no HAVE and applies nothing of this window until it is closed.
//
// The coordinator closes a window by the answers of the frozen ones (window_end): a step that
// anybody has applied is kept, because all others can apply it from memory.
//
// Each HAVE of step k has a *check* of the state before it: a hash of those leaves whose turn it is
// (common/vector/state_cut.h). A step is applied only if all its checks are equal. Each holder sees
// the same checks before it may apply; so if two differ, nobody applies the step, and whoever has
// seen that takes its "has" back. The window then ends before that step.
//
// The learner and the simulator use the same code. Pure; a value; any thread, one at a time.

#include "common/base/hash.h"
#include <stdbool.h>
#include <stdint.h>

enum { HOLDERS_MAX = 64 };

struct holder {
    uint64_t window, step; // It has applied all steps before `step`
    uint64_t have;         // Bit i: holder i has said HAVE of `step`
    uint32_t me, count;    // Our place, and how many there are
    bool frozen;
    bool asks_stop;                 // Our next HAVE says `stop`
    bool stop;                      // Some HAVE of `step` said it
    bool stopped;                   // The group has ended at `step`
    bool differs;                   // Two of the checks that came before the freeze are not equal
    struct hash check[HOLDERS_MAX]; // Of each HAVE of `step`
};

// Takes up a window at `step`, which is held. count is 1..HOLDERS_MAX, me < count.
void holder_begin(struct holder *self, uint64_t window, uint64_t step, uint32_t me, uint32_t count);

// The window is done, and the next one of the same group follows it. It stays frozen or stopped.
void holder_follow(struct holder *self, uint64_t window);

// All that `step` needs is here; `check` is that of our state. True: say HAVE (window, step,
// asks_stop, check) to the others. False: it is frozen or has ended, say nothing; the step stays
// here for holder_close.
bool holder_complete(struct holder *self, const struct hash *check);

// Another one said HAVE. A word of another window or step is too late, and ignored.
void holder_hear_have(struct holder *self, uint32_t from, uint64_t window, uint64_t step, bool stop,
                      const struct hash *check);

bool holder_may_apply(const struct holder *self);
void holder_applied(struct holder *self); // `step` is applied: it stands at the next one

// All have said HAVE of `step`, and their checks differ: the places, as bits, outside the largest set
// of equal ones (of two sets that are equally large, the one with the lowest place counts). 0: not so.
uint64_t holder_outsiders(const struct holder *self);

// Whether `outsiders` of a group of `count` leave a majority: more than half of all are equal.
bool holder_is_minority(uint64_t outsiders, uint32_t count);

// A majority is equal, and we are not of it: our state must be fetched.
bool holder_is_outside(const struct holder *self);

// The group ends after the step in hand: whoever of it asks, all end at the same one (`stopped`).
void holder_stop(struct holder *self);

// From now on nothing is applied. The answer to the coordinator is `step`, holder_has.
void holder_freeze(struct holder *self);
// All that `step` needs is here, and no check that is known forbids it.
bool holder_has(const struct holder *self);

enum holder_close {
    HOLDER_IS_THERE,    // `end` is held
    HOLDER_MUST_APPLY,  // One step from memory, then holder_applied
    HOLDER_CANNOT_REACH // The state must be fetched
};
enum holder_close holder_close(const struct holder *self, uint64_t end);

// ---- the coordinator's rule ---------------------------------------------------------------------

// Where a frozen holder stands.
struct holder_answer {
    uint64_t step;
    bool has;
};

// The step at which a window is closed, by the answers of all holders that live: the newest step
// that one of them holds; or one more, if all of them hold that one and have all that the next
// needs. `committed`: without an answer it is closed there.
uint64_t holder_window_end(const struct holder_answer *answers, uint32_t count, uint64_t committed);
