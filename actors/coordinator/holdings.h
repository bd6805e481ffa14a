#pragma once
// holdings -- which member holds which parameters: what members report (HOLDS), what PINGs say, and the
// digest to which the run is bound by it.
//
//     HOLDS step 312, digest d ─▶ enough reports name d ─▶ holdings_pin: EPOCH_END is recorded and told
//                             └─▶ members trust one another and no majority does: holdings_are_split
//
// A crash may lose all of it: members report again. Part of the coordinator's core: pure, one thread;
// it borrows the turn for the call.

#include "common/pace/pace.h"

// The parameters that a member reports to hold.
struct holding {
    uint64_t step;
    struct hash digest;
    bool known;   // False: no report yet
    uint64_t seq; // Of that report: one that comes later and was said before changes nothing
};

struct holdings {
    struct holding of[MEMBERS_MAX]; // By index in the roster
    uint64_t pinned_ms;             // When this life of the coordinator last pinned a digest
};

void holdings_hear(struct holdings *self, const struct turn *turn, const struct msg *in); // HOLDS
void holdings_forget(struct holdings *self); // All reports

// Binds the run to the digest of the present step, if enough members name one. True: it has a digest.
bool holdings_pin(struct holdings *self, const struct turn *turn);

// Members that report the present step, whether it counts or not.
uint32_t holdings_reports(const struct holdings *self, const struct run *run);

// Whether this member reports this digest for the present step.
bool holdings_have(const struct holdings *self, const struct turn *turn, uint32_t member,
                   const struct hash *digest);

// Members that do, whose report counts, and that sent something since `since_ms`.
uint32_t holdings_count(const struct holdings *self, const struct turn *turn,
                        const struct hash *digest, uint64_t since_ms);

// Members trust one another, all that are waited for have reported, and no majority of them holds the same
// state: nobody can say which is right. _print_sides: "no majority holds the same state of step 312:
// t1, t3 | t2; ..." as far as `max` bytes go.
bool holdings_are_split(const struct holdings *self, const struct turn *turn);
void holdings_print_sides(const struct holdings *self, const struct turn *turn, char *text,
                          size_t max);

// ---- does the newest step live on?

// The newest checkpoint or save is of the present step and digest.
bool holdings_saved(const struct turn *turn);

// The same, and other tools read it: it is not a save in pieces.
bool holdings_checkpointed(const struct turn *turn);

// A checkpointer reports the present step: it has a copy of it and is writing that.
bool holdings_are_saved_soon(const struct holdings *self, const struct turn *turn);

// More than half of the trainers and servers that are here, and have said what they hold, hold the present step by their
// newest PINGs.
bool holdings_most_have(const struct turn *turn);

// The newest PINGs of members that keep parameters report the present step: of more of them than may lie.
bool holdings_somebody_has(const struct turn *turn);

// The same by PINGs and reports: at the end of an epoch members report the newest step before they PING it. The report of
// a member that has only its part again does not count.
bool holdings_somebody_says(const struct holdings *self, const struct turn *turn);

// The same by reports alone.
bool holdings_somebody_reports(const struct holdings *self, const struct turn *turn);

// A member whose process may still live, and took part in the newest step, or said that it holds it, or has not said
// yet what it holds; or it can make that step. It is here, or its lease ran out and nothing has taken its place. The
// first one by index; NO_MEMBER: there is none.
uint32_t holdings_who_may(const struct turn *turn);

// The pinned parameters survive: holdings_checkpointed, or more members than may lie report them. Only
// members that sent something within two heartbeats count, as a lease runs on after its member died.
bool holdings_are_kept(const struct holdings *self, const struct turn *turn);
