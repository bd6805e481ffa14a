#pragma once
// quorum -- how many of the K elected witnesses are enough: two thirds, rounded up.
//
//     K       1  2  3  4  5  6  7  9  16  32  64
//     quorum  1  2  2  3  4  4  5  6  11  22  43
//
// Any two quorums share at least a third of K: if fewer than a third lie, an honest witness is in
// both. And a third may be silent.
//
// K is how many were elected, never how many spoke: a single voice is no quorum of many. (Psyche
// rounds down, and counts those who spoke when witness_nodes is 0.) Without witnesses there is no
// quorum.

#include "common/run/limits.h"
#include <stdbool.h>
#include <stdint.h>

enum { QUORUM_NONE = INT32_MAX }; // The quorum of no witnesses: more than there can be

uint32_t quorum_of(uint32_t elected); // elected ≤ WITNESSES_MAX

// How many of `members` may lie, at most: a third, rounded down. One more of the same word, and
// somebody honest has said it.
uint32_t quorum_liars(uint32_t members);
bool quorum_reached(uint32_t votes, uint32_t elected);
