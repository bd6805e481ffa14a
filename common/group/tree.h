#pragma once
// tree -- adds what the members bring of a segment in the order of the lanes' tree (lanes.h), so that
// the result has the same bits for every number of members.
//
// Pure; any thread.

#include "common/vector/lanes.h"

enum { TREE_MEMBERS_MAX = 64, TREE_NODES_MAX = 2 * LANES_MAX };

struct tree {
    uint32_t lanes, batch, members;
    uint32_t brings[TREE_MEMBERS_MAX]; // How many nodes each member brings
    uint32_t total;                    // Of all members
    // The nodes of the tree, children before their parent; the last is the root. A leaf has
    // left == right == its own index, and is node `index` of `member`.
    uint32_t count;
    struct tree_node {
        uint8_t left, right, member, index;
    } nodes[TREE_NODES_MAX];
};

void tree_make(struct tree *self, uint32_t lanes, uint32_t batch, uint32_t members);

struct tree_leaves {
    const float *of[TREE_MEMBERS_MAX][LANE_NODES_MAX];
};

// to[0, count) = the sum of leaves->of[member][index][0, count). `to` may be one of them.
void tree_add(const struct tree *self, const struct tree_leaves *leaves, size_t count, float *to);
