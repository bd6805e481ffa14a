#pragma once
// quorum -- how many of the K elected witnesses are enough: two thirds, rounded up.
//
//     K       1  2  3  4  5  6  7  9  16  32  64
//     quorum  1  2  2  3  4  4  5  6  11  22  43
//
// Any two quorums share at least a third of K. So if fewer than a third of the witnesses lie, an
// honest one is in both. If exactly a third lie, perhaps none is: with K = 3 two quorums share one
// witness, which may be the liar. A third of the witnesses may be silent.
//
// K counts the elected witnesses, not those that voted: otherwise a single vote could be a quorum.
// (Psyche rounds down, and counts the voters when witness_nodes is 0.) With K = 0 there is no
// quorum. Pure; any thread.

#include "common/run/limits.h"
#include <stdbool.h>
#include <stdint.h>

enum { QUORUM_NONE = INT32_MAX }; // The quorum for K = 0: more votes than there can be

uint32_t quorum_of(uint32_t elected); // elected ≤ WITNESSES_MAX

// An upper bound of the liars among `members`: a third, rounded down. If more members than this say the
// same, an honest one is among them. That two quorums share an honest witness needs fewer liars: less
// than a third (above).
uint32_t quorum_liars(uint32_t members);

bool quorum_reached(uint32_t votes, uint32_t elected);
