#pragma once
// roster -- the members of a run: their keys, roles, states, and when they joined or were dropped.
//
//     index     0      1      2      A member keeps its index for the life of the run. If the run
//              bob   alice  carol    is full, a newcomer gets the index of a member that left
//     by_key    1      0      2      The indices in order of key: all draws use this order
//
// The coordinator changes it by its records (run.h), the verifier of a ledger by the same records
// (evidence.h). An observer takes it whole from a ROSTER, then its changes from MEMBERS. A struct roster is a value
// of about 4 MiB, most of it never touched: allocate it zeroed (calloc). Pure: no I/O, no clock. One thread.

#include "common/run/limits.h"
#include "common/wire/wire.h"

#define NO_MEMBER UINT32_MAX
// mutant: audit: a member that went long ago counts for ever
enum { ROSTER_DROPPED_ROUNDS = 64 }; // For so many rounds a dropped member may still come back

struct roster {
    uint64_t version; // Rises with every change below
    uint32_t count;   // Members
    struct wire_member members[MEMBERS_MAX];
    uint64_t changed[MEMBERS_MAX]; // By index: the version that last changed or loaded the line
    uint32_t by_key[MEMBERS_MAX];
    uint32_t counts[ACTOR_COUNT][MEMBER_COUNT]; // By role and state
};

// Whether members of this role take part in the run's steps: they compute them, or hold the state that they change. They
// are pending until an epoch begins, have all of the state when it does, and a run cannot do without them.
static inline bool role_takes_steps(uint8_t role)
{
    return role == ACTOR_TRAINER || role == ACTOR_SERVER;
}

// Takes a whole roster. False, and nothing changed, if members[i].index is not i for each i, or if
// there are too many. Cost: up to count² / 2 moves of four bytes.
bool roster_load(struct roster *self, uint64_t version, const struct wire_member *members,
                 uint32_t count);

// Applies a MEMBERS. False, and nothing changes, if our version is below its `from` (a gap) or not below its `version`
// (old), or if an index would leave a gap between the lines.
bool roster_change(struct roster *self, const struct wire_members *change);

// Copies the lines that have changed since version `since` to `lines`, in order of index, and returns how many. If
// there are more than `max`, it returns max + 1, and what `lines` then has is of no use.
uint32_t roster_changes(const struct roster *self, uint64_t since, struct wire_member *lines,
                        uint32_t max);

// Writes a member at its index: the next free one, or one that is in use by the same key or by a
// member that it replaces.
void roster_put(struct roster *self, const struct wire_member *member);

void roster_set_state(struct roster *self, uint32_t index, uint8_t state);

// Changes the state of all that take steps and are in `from` to `to`: when an epoch begins or ends.
void roster_move_trainers(struct roster *self, uint8_t from, uint8_t to);

// Whether the member is here: healthy, or pending until an epoch takes it.
static inline bool roster_is_here(const struct wire_member *member)
{
    return member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING;
}

// Index of the member with this key, or NO_MEMBER. O(log count).
uint32_t roster_find(const struct roster *self, const struct key *key);

// How many members of this role are in this state.
uint32_t roster_count(const struct roster *self, uint8_t role, uint8_t state);

// The trainers of which a third may lie: the healthy and the pending ones, and those that were
// dropped within ROSTER_DROPPED_ROUNDS before `round`. A dropped trainer still counts for a while,
// because otherwise an attacker that cuts off most of the others would be the majority. It does not
// count for ever, because otherwise a run of strangers could soon reach no verdict. O(count).
uint32_t roster_trainers(const struct roster *self, uint64_t round);
