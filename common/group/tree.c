// The tree is cut down to what the members bring: a walk from the root ends at the first node that a
// member holds whole. A node with one half that nobody brings (no sample) is its other half.
//
// A segment is added block by block, each block up the whole tree while it lies in the first cache.

#include "common/group/tree.h"
#include "common/base/ensure.h"

#include <stdbool.h>
#include <string.h>

enum { BLOCK = 1024, DEPTH_MAX = 8, NOTHING = 255 };

_Static_assert((int)TREE_NODES_MAX < (int)NOTHING, "an index of a node fits in a byte");

struct brought {
    struct lane_node nodes[TREE_MEMBERS_MAX][LANE_NODES_MAX];
};

static uint8_t put(struct tree *self, struct tree_node node)
{
    ensure(self->count < TREE_NODES_MAX);
    self->nodes[self->count] = node;
    return (uint8_t)self->count++;
}

static uint8_t find(struct tree *self, const struct brought *brought, struct lane_node at)
{
    for (uint32_t m = 0; m < self->members; m++)
        for (uint32_t k = 0; k < self->brings[m]; k++)
            if (brought->nodes[m][k].first == at.first && brought->nodes[m][k].end == at.end) {
                const uint8_t own = (uint8_t)self->count;
                return put(self, (struct tree_node){ own, own, (uint8_t)m, (uint8_t)k });
            }
    return NOTHING;
}

static uint8_t walk(struct tree *self, const struct brought *brought, struct lane_node at)
{
    const uint8_t leaf = find(self, brought, at);
    if (leaf != NOTHING || at.end - at.first <= 1) return leaf;
    const uint32_t middle = lane_middle(at);
    const uint8_t left = walk(self, brought, (struct lane_node){ at.first, middle });
    const uint8_t right = walk(self, brought, (struct lane_node){ middle, at.end });
    if (left == NOTHING || right == NOTHING) return left == NOTHING ? right : left;
    return put(self, (struct tree_node){ left, right, 0, 0 });
}

void tree_make(struct tree *self, uint32_t lanes, uint32_t batch, uint32_t members)
{
    struct brought brought;
    ensure(batch >= 1 && members <= TREE_MEMBERS_MAX);
    *self = (struct tree){ .lanes = lanes, .batch = batch, .members = members };
    for (uint32_t m = 0; m < members; m++) {
        self->brings[m] =
            lane_nodes(lanes, batch, lanes_of_member(lanes, members, m), brought.nodes[m]);
        self->total += self->brings[m];
    }
    walk(self, &brought, (struct lane_node){ 0, lanes });
    ensure(self->count == 2 * self->total - 1);
}

// Four floats at a time, sixteen a turn: the compiler's vectors, so that -O2 uses them, too.
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static void add(const float *a, const float *b, size_t count, float *to)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const four *x = (const four *)(const void *)(a + i),
                   *y = (const four *)(const void *)(b + i);
        const four s0 = x[0] + y[0], s1 = x[1] + y[1], s2 = x[2] + y[2], s3 = x[3] + y[3];
        four *z = (four *)(void *)(to + i);
        z[0] = s0, z[1] = s1, z[2] = s2, z[3] = s3;
    }
    for (; i < count; i++) to[i] = a[i] + b[i];
}

struct block {
    const struct tree *tree;
    const struct tree_leaves *leaves;
    size_t at, count;
};

// The block of a node: where it lies, or its sum written to `to`. `room`: two blocks for each level.
static const float *sum_of(const struct block *block, uint8_t index, float *to,
                           float (*room)[BLOCK])
{
    const struct tree_node node = block->tree->nodes[index];
    if (node.left == index) return block->leaves->of[node.member][node.index] + block->at;
    const float *left = sum_of(block, node.left, room[0], room + 2);
    const float *right = sum_of(block, node.right, room[1], room + 2);
    add(left, right, block->count, to);
    return to;
}

void tree_add(const struct tree *self, const struct tree_leaves *leaves, size_t count, float *to)
{
    float room[2 * DEPTH_MAX][BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        const struct block block = { self, leaves, at, n };
        const float *sum = sum_of(&block, (uint8_t)(self->count - 1), to + at, room);
        if (sum != to + at) memmove(to + at, sum, n * sizeof *to);
    }
}
