// The cut of a batch into lanes, the deal of lanes to members, and the walk through the tree that
// finds a member's nodes.
#include "common/vector/lanes.h"
#include "common/base/ensure.h"

struct interval lane_samples(uint32_t lanes, uint32_t batch, struct lane_node node)
{
    ensure(lanes >= 1 && lanes <= LANES_MAX && node.first <= node.end && node.end <= lanes);
    return (struct interval){ (uint64_t)node.first * batch / lanes,
                              (uint64_t)node.end * batch / lanes };
}

struct lane_node lanes_of_member(uint32_t lanes, uint32_t members, uint32_t member)
{
    ensure(members >= 1 && member < members);
    return (struct lane_node){ (uint32_t)((uint64_t)member * lanes / members),
                               (uint32_t)((uint64_t)(member + 1) * lanes / members) };
}

// Adds the nodes below `node` that lie within `held`.
static uint32_t collect(uint32_t lanes, uint32_t batch, struct lane_node held,
                        struct lane_node node, uint32_t count, struct lane_node *nodes)
{
    if (node.end <= held.first || node.first >= held.end) return count;
    if (interval_empty(lane_samples(lanes, batch, node))) return count;
    if (node.first >= held.first && node.end <= held.end) {
        ensure(count < LANE_NODES_MAX);
        nodes[count] = node;
        return count + 1;
    }
    const uint32_t middle = lane_middle(node);
    count = collect(lanes, batch, held, (struct lane_node){ node.first, middle }, count, nodes);
    return collect(lanes, batch, held, (struct lane_node){ middle, node.end }, count, nodes);
}

uint32_t lane_nodes(uint32_t lanes, uint32_t batch, struct lane_node held,
                    struct lane_node ret_nodes[LANE_NODES_MAX])
{
    return collect(lanes, batch, held, (struct lane_node){ 0, lanes }, 0, ret_nodes);
}

uint32_t lane_nodes_most(uint32_t lanes, uint32_t members_least)
{
    struct lane_node nodes[LANE_NODES_MAX];
    uint32_t most = 1;
    for (uint32_t members = members_least ? members_least : 1; members <= lanes; members++)
        for (uint32_t i = 0; i < members; i++) {
            const uint32_t count =
                lane_nodes(lanes, lanes, lanes_of_member(lanes, members, i), nodes);
            if (count > most) most = count;
        }
    return most;
}
