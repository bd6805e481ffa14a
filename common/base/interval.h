#pragma once
// interval -- a run of elements of the one flat index space [0, N), and the one overlap function
// that re-cuts any layout into any other.
//
//      have   |---- owner 0 ----|---- owner 1 ----|---- owner 2 ----|
//      want            |=============|        |=====|
//      plan            |-- 0 ---|- 1-|        | 1|2 |        four copies
//
// A parameter server's shard, a piece of a checkpoint, a slice fetched from a peer, a chunk of an
// all-reduce and a leaf of the digest are all intervals. They count elements, never bytes: the
// caller that knows the size of an element multiplies.
//
// Pure: no I/O, no clock, no memory taken. Any thread. A *tidy list* is sorted by begin, its
// intervals are not empty and do not overlap (they may touch). A function that asks for a tidy list
// ends the process when it gets another: check what comes from outside with interval_list_tidy
// first.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    uint64_t begin, end;
}; // [begin, end); empty if end <= begin

static inline uint64_t interval_length(struct interval at) { return at.end - at.begin; }
static inline bool interval_empty(struct interval at) { return at.begin >= at.end; }

bool interval_equal(struct interval a, struct interval b);
bool interval_contains(struct interval outer, struct interval inner); // An empty inner: always
struct interval interval_meet(struct interval a, struct interval b);  // Of both; {0, 0} if none

// The part of [0, total) that falls to `rank` of `world` equal shares: [rank*total/world,
// (rank+1)*total/world), rounded down. The shares tile [0, total) exactly; their lengths differ by
// at most one. Needs rank < world.
struct interval interval_share(uint64_t total, uint32_t rank, uint32_t world);

// ---- Lists ----

bool interval_list_tidy(const struct interval *list, size_t count);
uint64_t interval_list_total(const struct interval *list, size_t count); // Elements in it

// Cuts the elements at places [begin, end) out of a tidy list: place 0 is its first element, gaps
// do not count. The piece is a tidy list in `ret_list` (room for `count` always suffices); its
// length is returned. What lies past the end of the list is left out. Cutting many pieces in rising
// order costs one walk along the list if the same `walk`, zeroed before the first, is passed to
// each call; for a single piece, pass NULL.
struct interval_walk {
    size_t index;   // The interval reached
    uint64_t place; // Of its first element
};
size_t interval_list_slice(const struct interval *list, size_t count, uint64_t begin, uint64_t end,
                           struct interval_walk *walk, struct interval *ret_list);

// ---- Re-cutting ----

struct interval_piece {
    struct interval at;
    uint32_t owner; // The holder, as an index of the caller's: a worker or a file
};

struct interval_copy {
    struct interval at;   // What to copy, in the flat index space
    size_t piece;         // Where from: index into `have`
    uint64_t from_offset; // Elements into that piece
    uint64_t to_offset;   // Elements into the wanted intervals laid end to end
};

bool interval_pieces_tidy(const struct interval_piece *pieces, size_t count);

// True if the tidy pieces tile [0, total) without a hole.
bool interval_pieces_cover(const struct interval_piece *pieces, size_t count, uint64_t total);

// The copies that bring every element of `want` (a tidy list) from `have` (tidy pieces), in
// ascending order, and how many wanted elements no piece holds. Room for have_count + want_count
// copies is always enough. Returns the number of copies. Time: have_count + want_count. No caller
// yet: a member that takes over a share will fetch it by this plan.
size_t interval_overlap(const struct interval_piece *have, size_t have_count,
                        const struct interval *want, size_t want_count,
                        struct interval_copy *ret_copies, uint64_t *ret_missing);
