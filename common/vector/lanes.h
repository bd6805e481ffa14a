#pragma once
// lanes -- the fixed parts in which the gradient of a batch is summed, so that any number of members
// ends in the same bits.
//
//     B samples of a step, L lanes: lane i is the samples [iB/L, (i+1)B/L)
//     W members: member p has lanes [pL/W, (p+1)L/W)
//
//     L = 8        0 1 2 3 4 5 6 7        W = 3: member 0 has lanes 0 1, member 1 has 2 3 4,
//                  └┬┘ └┬┘ └┬┘ └┬┘               member 2 has 5 6 7
//                   └─┬─┘   └─┬─┘         nodes of member 1: (2 3), (4)
//                     └───┬───┘           nodes of member 2: (5), (6 7)
//
// Each lane is summed in order, from its first sample on. The lanes are summed in one binary tree:
// a node [first, end) is the sum of [first, m) and [m, end), m = first + (end - first) / 2, the left
// one first. A member contributes the nodes that lie wholly within its lanes, the largest there are;
// whoever owns an interval of the vector adds them up to the root. A lane without samples (B < L) is
// no leaf: a node with one such half is the other half, never that plus zero.
//
// Divisions round down. B need not be divisible by L, nor L by W. Members beyond L have no lanes.
//
// Pure; any thread.

#include "common/base/interval.h"

enum { LANES_MAX = 64, LANE_NODES_MAX = 12 }; // Of one member: at most 2 * log2(LANES_MAX)

struct lane_node {
    uint32_t first, end; // Lanes [first, end)
};

// The samples of lanes [first, end) of a step, of [0, batch). `lanes` is 1..LANES_MAX.
struct interval lane_samples(uint32_t lanes, uint32_t batch, struct lane_node node);

// The lanes of member `member` of `members` (at least 1). May be empty.
struct lane_node lanes_of_member(uint32_t lanes, uint32_t members, uint32_t member);

// The nodes of the tree of `lanes` lanes that lie wholly within `held`, from left to right, without
// those that have no sample of the batch. Returns how many.
uint32_t lane_nodes(uint32_t lanes, uint32_t batch, struct lane_node held,
                    struct lane_node ret_nodes[LANE_NODES_MAX]);

// The most nodes that a member has, in any group of at least so many members; at least 1.
uint32_t lane_nodes_most(uint32_t lanes, uint32_t members_least);

// The lane that begins the right half of a node of two lanes or more.
static inline uint32_t lane_middle(struct lane_node node)
{
    return node.first + (node.end - node.first) / 2;
}
