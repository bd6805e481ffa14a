#pragma once
// roster -- the members of a run: who they are, in which state, since when.
//
//     place      0       1       2          a member keeps its place for the life of the run; the place
//              alice    bob    carol        of one that is gone may be handed on
//     by_key     1       0       2          the places in order of identity: the order of all draws
//
// The coordinator changes it by its records (run.h), the verifier of a ledger by the same records
// (evidence.h), an observer takes it whole from a ROSTER. A struct roster is a value of about 4 MiB,
// most of it never touched: take it zeroed from the system. Pure: no I/O, no clock. One thread.

#include "common/run/limits.h"
#include "common/wire/wire.h"

#define NO_MEMBER UINT32_MAX
// mutant: audit: a member that went long ago counts for ever
enum { ROSTER_DROPPED_ROUNDS = 64 }; // A dropped member may be cut off and come back within so many

struct roster {
    uint64_t version; // Rises with every change below
    uint32_t count;
    struct wire_member members[MEMBERS_MAX];
    uint32_t by_key[MEMBERS_MAX];
    uint32_t counts[ACTOR_COUNT][MEMBER_COUNT]; // By role and state
};

// Takes a whole roster. False, and nothing changed, if its members do not stand in order of their
// places. Cost: up to count² / 2 moves of four bytes.
bool roster_load(struct roster *self, uint64_t version, const struct wire_member *members,
                 uint32_t count);

// Puts a member at its place, which is taken (by itself, or by one whose place is handed on) or the next.
void roster_put(struct roster *self, const struct wire_member *member);

void roster_set_state(struct roster *self, uint32_t index, uint8_t state);

// All trainers of one state change to another: at the borders of an epoch.
void roster_move_trainers(struct roster *self, uint8_t from, uint8_t to);

// Index of the member with this key, or NO_MEMBER. O(log count).
uint32_t roster_find(const struct roster *self, const struct key *key);

// How many members of this role are in this state.
uint32_t roster_count(const struct roster *self, uint8_t role, uint8_t state);

// The trainers of which a third may lie: those that take part or wait, and those that were dropped within
// ROSTER_DROPPED_ROUNDS before `round`. Were they left out at once, whoever cuts most of the others off
// would be the majority; were they never, in a run of strangers no verdict could be reached any more.
// O(count).
uint32_t roster_trainers(const struct roster *self, uint64_t round);
