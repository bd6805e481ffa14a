#pragma once
// share_list -- which leaves of a state each member of a group keeps, and the list of their hashes.
//
// The state (state_cut.h) is kept in shares, one for each place 0 .. places - 1 of the group. An item that has as
// many bytes as item 0, the parameters, is cut: each place has an interval of its leaves. Every other item is small,
// and each place has all of it; or, where the places do not hold it alike, place 0 alone (SHARE_OF_FIRST).
//
//     item 0   parameters    l0 l1 │ l2 l3 l4 │ l5 l6        places 0, 1, 2
//     item 1   adamw-m       l7 l8 │ l9 .. l11│ l12 l13
//     item 2   adamw-steps   l14                             each place
//
//     list of place 1        l2 l3 l4 l9 l10 l11 l14         32 bytes each: first what is cut, then what all have
//
// The intervals are those of group_interval (common/group/group.h): whole leaves, equal but for one. With more
// places than leaves some are empty.
//
// A struct share_list is a value. Pure; any thread.

#include "common/base/interval.h"
#include "common/vector/state_cut.h"

enum { SHARE_PLACES_MAX = 64 };

struct share_list {
    uint32_t count,
        cut_count; // Runs, one for each item; the first so many are of items that are cut
    struct interval
        runs[STATE_ITEMS_MAX]; // Numbers of leaves, in the order of the list. May be empty
};

// Who has what is not cut.
enum share_rest { SHARE_ALIKE, SHARE_OF_FIRST };

// `place` is less than `places`, which is at most SHARE_PLACES_MAX; the state has an item (ensured).
struct share_list share_list_of(const struct state_cut *cut, uint32_t place, uint32_t places,
                                enum share_rest rest);

uint64_t share_list_leaves(const struct share_list *self); // How many hashes the list has

// ---- from the lists of all places to the hashes of all leaves -----------------------------------

enum share_fit {
    SHARE_FITS,
    SHARE_OTHER_COUNT, // It has another number of bytes than the list of this place must have
    SHARE_DIFFERS      // From the list of place 0, in what each place has
};

// Writes the hashes that the list of one place has to where they belong in `leaves`, which has room for
// state_cut_leaves. Call it for each place in turn, from 0 on: after the last one `leaves` is whole. Of a list that
// does not fit nothing is written. The bytes may come from anybody.
enum share_fit share_list_join(const struct state_cut *cut, uint32_t place, uint32_t places,
                               enum share_rest rest, const uint8_t *bytes, size_t count,
                               struct hash *leaves);
