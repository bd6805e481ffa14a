// lanes_test -- the cut of a batch into lanes, and the nodes of the tree that each member brings: for every world
// they tile the samples, and added up in the order of the tree they are one and the same expression.

#include "common/vector/lanes.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static void samples_of_lanes_tile_the_batch(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 16; lanes++)
        for (uint32_t batch = 1; batch <= 40; batch++) {
            uint64_t reached = 0;
            for (uint32_t i = 0; i < lanes; i++) {
                const struct interval at =
                    lane_samples(lanes, batch, (struct lane_node){ i, i + 1 });
                assert_int_equal(at.begin, reached);
                assert_true(interval_length(at) <= batch / lanes + 1);
                reached = at.end;
            }
            assert_int_equal(reached, batch);
        }
}

// The sum that an owner forms, as text: "((0+1)+2)". A node that a member brings stands for the sum which that
// member forms, by the same rule.
static void sum_text(uint32_t lanes, uint32_t batch, struct lane_node node, char *text)
{
    char left[600], right[600];
    *text = 0;
    if (interval_empty(lane_samples(lanes, batch, node))) return;
    if (node.end - node.first == 1) {
        sprintf(text, "%u", node.first);
        return;
    }
    sum_text(lanes, batch, (struct lane_node){ node.first, lane_middle(node) }, left);
    sum_text(lanes, batch, (struct lane_node){ lane_middle(node), node.end }, right);
    if (!*left || !*right) strcpy(text, *left ? left : right);
    else sprintf(text, "(%s+%s)", left, right);
}

struct world {
    uint32_t lanes, batch, count;
    struct lane_node nodes[LANES_MAX * LANE_NODES_MAX];
};

// As sum_text, but stops at the nodes that a member brings; counts how many of them it used.
static void owner_text(const struct world *world, struct lane_node node, char *text, uint32_t *used)
{
    char left[600], right[600];
    *text = 0;
    for (uint32_t i = 0; i < world->count; i++)
        if (memcmp(&world->nodes[i], &node, sizeof node) == 0) {
            ++*used;
            sum_text(world->lanes, world->batch, node, text);
            return;
        }
    if (node.end - node.first <= 1) return;
    owner_text(world, (struct lane_node){ node.first, lane_middle(node) }, left, used);
    owner_text(world, (struct lane_node){ lane_middle(node), node.end }, right, used);
    if (!*left || !*right) strcpy(text, *left ? left : right);
    else sprintf(text, "(%s+%s)", left, right);
}

static void every_world_forms_the_same_sum(void **state)
{
    (void)state;
    char alone[600], together[600];
    for (uint32_t lanes = 1; lanes <= 16; lanes++)
        for (uint32_t batch = 1; batch <= 20; batch++)
            for (uint32_t members = 1; members <= 20; members++) {
                struct world world = { .lanes = lanes, .batch = batch };
                uint32_t used = 0;
                for (uint32_t m = 0; m < members; m++)
                    world.count += lane_nodes(lanes, batch, lanes_of_member(lanes, members, m),
                                              world.nodes + world.count);
                sum_text(lanes, batch, (struct lane_node){ 0, lanes }, alone);
                owner_text(&world, (struct lane_node){ 0, lanes }, together, &used);
                assert_string_equal(together, alone);
                assert_int_equal(used, world.count);
            }
}

static void a_member_brings_one_node_where_members_divide_lanes(void **state)
{
    (void)state;
    struct lane_node nodes[LANE_NODES_MAX];
    for (uint32_t members = 1; members <= 8; members *= 2)
        for (uint32_t m = 0; m < members; m++)
            assert_int_equal(lane_nodes(8, 8, lanes_of_member(8, members, m), nodes), 1);
    for (uint32_t first = 0; first < LANES_MAX; first++)
        for (uint32_t end = first + 1; end <= LANES_MAX; end++)
            assert_in_range(lane_nodes(LANES_MAX, 1000, (struct lane_node){ first, end }, nodes), 1,
                            LANE_NODES_MAX);
    assert_int_equal(lane_nodes_most(1, 1), 1);
    assert_int_equal(lane_nodes_most(2, 1), 1);
    assert_int_equal(lane_nodes_most(8, 1), 2);
    assert_int_equal(lane_nodes_most(8, 0), 2);
    assert_int_equal(lane_nodes_most(8, 6), 1); // Three members have two lanes each, of one node
    assert_int_equal(lane_nodes_most(8, 9), 1);
    assert_int_equal(lane_nodes_most(LANES_MAX, 1), 5);
}

TESTS(TEST(samples_of_lanes_tile_the_batch), TEST(every_world_forms_the_same_sum),
      TEST(a_member_brings_one_node_where_members_divide_lanes))
