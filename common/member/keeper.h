#pragma once
// keeper -- a member's part of a memory save (common/run/memory_save.h): fetches the copies of its predecessors.
//
//     LISTED ─▶ keeper_take ─▶ the lists of all places are here ─▶ FETCH_SHARE ─▶ FETCHED_SHARE ─▶ keeper_hear: whole
//                   ▲                                                  ▲ again, later ◀──── it failed
//                   └──── the next one takes its place                 keeper_recorded: on record; the lists are released
//
// The lists are blobs with the hashes of the leaves of each share (common/vector/share_list.h). Ours is here; the
// others are fetched from their members. From all lists each member computes the digest of the state.
//
// `in`: the number of the window or group in which the copies were made.
//
// Part of a core: pure, one thread. All zeros: no save is being made.

#include "common/member/parts.h"

enum { KEEPER_PLACES_MAX = 64 };

struct keeper {
    // The one that is being made. step 0: none is.
    uint64_t in, step;
    uint32_t place, count, buddies;
    bool apart;                                // As in FETCH_SHARE
    struct wire_blob lists[KEEPER_PLACES_MAX]; // By place
    uint32_t members[KEEPER_PLACES_MAX];       // By index in the roster
    uint64_t turn;                             // Of the newest FETCH_SHARE
    bool fetching;                             // It has not been answered yet
    bool whole;                                // All is here. Others may still want our list
    uint64_t retry_ms;
    uint32_t failures; // In a row
    // The newest on record, as far as we have heard.
    uint64_t kept_in, kept_step;
};

// Whose shares the lists are of, by place.
struct keeper_group {
    uint32_t count, buddies;
    bool apart; // As in FETCH_SHARE
    uint32_t members[KEEPER_PLACES_MAX];
};

// The learner has the lists of all places. Ends the save before. They must be as many as the group has (ensured).
void keeper_take(struct keeper *self, const struct member_turn *turn,
                 const struct wire_listed *said, const struct keeper_group *group);

// Nobody waits for the one that is being made any more. A late answer of the fetcher is ignored.
void keeper_drop(struct keeper *self, const struct member_turn *turn);

// Asks for what is missing: after half a second, then twice as long each time, 16 seconds at most.
void keeper_look(struct keeper *self, const struct member_turn *turn);

// Takes FETCHED_SHARE. True: the share of `in` and `step` is whole, and *ret_digest is that of the state.
bool keeper_hear(struct keeper *self, const struct member_turn *turn, struct hash *ret_digest);

// The coordinator says which save is on record. If it is news, the learner is told (KEPT): it drops older copies.
void keeper_recorded(struct keeper *self, const struct member_turn *turn, uint64_t in,
                     uint64_t step);
