// state_pieces_test -- the state of a replica, saved in pieces by any number of workers and loaded
// by any other: the parameters, and what the optimizer keeps, by its tags. Training goes on with
// the same bits.

#include "common/crypto/merkle.h"
#include "common/learner/state_pieces.h"
#include "tests/unit/pieces_fixture.h"
#include "tests/unit/replica_fixture.h"

#include <string.h>

enum { WORKERS_MAX = 3 };

struct worker {
    struct world *world;
    struct interval share;
};

static struct worker *worker_new(const struct optimizer_kind *kind, struct interval share)
{
    struct worker *self = calloc(1, sizeof *self);
    assert_non_null(self);
    *self = (struct worker){ world_of(kind, share, true), share };
    return self;
}

static void worker_free(struct worker *self)
{
    world_free(self->world);
    free(self);
}

// Shares end at leaves of the digest; with more workers than leaves the last have none.
static struct interval share_of(uint32_t worker, uint32_t workers)
{
    const uint64_t leaf = DIGEST_LEAF_FLOATS, leaves = (all().end + leaf - 1) / leaf;
    const struct interval at = interval_share(leaves, worker, workers);
    const uint64_t end = at.end * leaf;
    return (struct interval){ at.begin * leaf, end < all().end ? end : all().end };
}

static struct worker *trained(const struct optimizer_kind *kind, int steps)
{
    struct worker *self = worker_new(kind, all());
    run(self->world, steps);
    return self;
}

// Of parameters and all that the optimizer keeps, its own too.
static struct hash bits_of(struct worker *self)
{
    struct state state;
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, compute_host(self->world->compute),
               self->world->layout.total * sizeof(float));
    assert_int_equal(state_save(self->world->optimizer, OPTIMIZER_OWN, NULL, &state), 0);
    for (size_t i = 0; i < state.tags.count; i++)
        hasher_add(&hasher, state.values[i],
                   state.items[i].elements * state.items[i].element_bytes);
    return hasher_end(&hasher);
}

// ---- saving and loading -------------------------------------------------------------------------

static void save(struct worker *const *workers, uint32_t count, uint64_t step)
{
    uint32_t missing = 0;
    for (uint32_t w = 0; w < count; w++) {
        struct worker *self = workers[w];
        struct pieces_part parts[STATE_PARTS_MAX];
        struct state state;
        struct pieces_save as = save_of(step, 1, w, count);
        as.layout = &self->world->layout;
        assert_int_equal(state_save(self->world->optimizer, OPTIMIZER_OWN, &why, &state), 0);
        const size_t parts_count = state_parts(
            self->world->optimizer, &state, compute_host(self->world->compute), self->share, parts);
        uint64_t bytes = 0;
        for (size_t i = 0; i < parts_count; i++)
            bytes += parts[i].elements * parts[i].element_bytes;
        assert_int_equal(bytes, state_parts_bytes(self->world->optimizer, self->share));
        if (pieces_write(&as, parts, parts_count, &why) != 0) fail_msg("%s", why.text);
        if (pieces_seal(&as, &why, &missing) != 0) fail_msg("%s", why.text);
    }
    assert_int_equal(missing, count);
}

// Every worker has all parameters and its share of what the optimizer keeps.
static void load(struct worker *self, uint64_t step, bool is_fresh)
{
    pieces_t *pieces = NULL;
    bool fresh = !is_fresh;
    assert_int_equal(pieces_open(root, step, "a", &why, &pieces), 0);
    if (state_read_params(pieces, &self->world->layout, all(), compute_host(self->world->compute),
                          &why) != 0)
        fail_msg("%s", why.text);
    assert_int_equal(compute_push(self->world->compute, NULL), 0);
    if (state_read_pieces(self->world->optimizer, OPTIMIZER_OWN, pieces, &why, &fresh) != 0)
        fail_msg("%s", why.text);
    assert_int_equal(fresh, is_fresh);
    pieces_close(&pieces);
}

// The digest of the state, from the hashes in the save alone.
static void expect_digest(struct worker *self, uint64_t step)
{
    pieces_t *pieces = NULL;
    struct hash found, digest;
    assert_int_equal(pieces_open(root, step, "a", &why, &pieces), 0);
    if (state_pieces_digest(pieces, &self->world->layout, &why, &found) != 0)
        fail_msg("%s", why.text);
    const struct hash params =
        digest_of(compute_host(self->world->compute), self->world->layout.total);
    assert_int_equal(optimizer_digest(self->world->optimizer, &params, &why, &digest), 0);
    assert_memory_equal(&found, &digest, sizeof digest);
    pieces_close(&pieces);
}

static void a_chain_of_worlds_keeps_every_bit(void **unused)
{
    static const uint32_t worlds[] = { 3, 2, 1, 2 };
    struct worker *one = trained(&optimizer_adamw, 3), *workers[WORKERS_MAX];
    uint64_t step = 3;
    (void)unused;
    save(&one, 1, step);
    for (size_t k = 0; k < 4; k++) {
        for (uint32_t w = 0; w < worlds[k]; w++) {
            workers[w] = worker_new(&optimizer_adamw, share_of(w, worlds[k]));
            load(workers[w], step, false);
        }
        save(workers, worlds[k], ++step);
        expect_digest(one, step);
        for (uint32_t w = 0; w < worlds[k]; w++) worker_free(workers[w]);
    }
    struct worker *again = worker_new(&optimizer_adamw, all());
    load(again, step, false);
    const struct hash before = bits_of(one), after = bits_of(again);
    assert_memory_equal(&before, &after, sizeof before);
    run(one->world, 2);
    run(again->world, 2);
    const struct hash went_on = bits_of(one), resumed = bits_of(again);
    assert_memory_equal(&went_on, &resumed, sizeof resumed);
    worker_free(one);
    worker_free(again);
}

// What belongs to a member is its own again in the same world, and begins with zeros in another.
static void what_is_dropped_begins_anew_in_another_world(void **unused)
{
    (void)unused;
    struct worker *one = trained(&optimizer_distro, 3);
    struct worker *again = worker_new(&optimizer_distro, all());
    save(&one, 1, 3);
    load(again, 3, false);
    const struct hash before = bits_of(one), after = bits_of(again);
    assert_memory_equal(&before, &after, sizeof before);
    struct worker *both[] = { one, again };
    one->share = share_of(0, 2);
    again->share = share_of(1, 2);
    save(both, 2, 4);
    struct worker *third = worker_new(&optimizer_distro, all());
    load(third, 4, true);
    assert_memory_equal(compute_host(third->world->compute), compute_host(one->world->compute),
                        one->world->layout.total * sizeof(float));
    struct state state;
    assert_int_equal(state_save(third->world->optimizer, OPTIMIZER_OWN, NULL, &state), 0);
    const float *residual = state.values[0];
    for (uint64_t i = 0; i < third->world->layout.total; i++) assert_true(residual[i] == 0);
    worker_free(one);
    worker_free(again);
    worker_free(third);
}

static void a_cut_within_a_leaf_has_no_digest(void **unused)
{
    (void)unused;
    pieces_t *pieces = NULL;
    struct hash digest;
    struct worker *both[2];
    for (uint32_t w = 0; w < 2; w++) both[w] = trained(&optimizer_distro, 1);
    both[0]->share.end = both[1]->share.begin = 1000;
    save(both, 2, 3);
    assert_int_equal(pieces_open(root, 3, "a", &why, &pieces), 0);
    assert_int_equal(pieces_root(pieces, pieces_find(pieces, STATE_PARAMETERS), &why, &digest),
                     FAULT_UNSUPPORTED);
    assert_non_null(strstr(why.text, "begins at byte 4000"));
    pieces_close(&pieces);
    for (uint32_t w = 0; w < 2; w++) worker_free(both[w]);
}

static void another_optimizer_or_model_is_refused_by_name(void **unused)
{
    (void)unused;
    pieces_t *pieces = NULL;
    bool fresh;
    struct worker *one = trained(&optimizer_distro, 1);
    struct worker *other = worker_new(&optimizer_adamw, all());
    save(&one, 1, 3);
    assert_int_equal(pieces_open(root, 3, "a", &why, &pieces), 0);
    assert_int_equal(
        state_read_pieces(other->world->optimizer, OPTIMIZER_OWN, pieces, &why, &fresh),
        FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "adamw-m"));
    struct layout_tensor room[TENSORS_MAX];
    struct layout layout;
    struct model_shape wider = shape;
    wider.ffn += 8;
    assert_int_equal(model_tensors_layout(&wider, room, NULL, &layout), 0);
    assert_int_equal(
        state_read_params(pieces, &layout, all(), compute_host(other->world->compute), &why),
        FAULT_FOREIGN);
    assert_non_null(strstr(why.text, "other tensors"));
    struct hash digest;
    assert_int_equal(state_pieces_digest(pieces, &layout, &why, &digest), FAULT_FOREIGN);
    pieces_close(&pieces);
    worker_free(one);
    worker_free(other);
}

// As of a file with holes, which costs its owner nothing: its hashes are not read.
static void an_item_larger_than_the_parameters_has_no_digest(void **unused)
{
    (void)unused;
    static const float numbers[11];
    const struct pieces_part parts[] = { { STATE_PARAMETERS, TAG_RESHARD, 4, 10, numbers },
                                         { "adamw-m", TAG_RESHARD, 4, 11, numbers } };
    const struct pieces_save as = save_of(3, 1, 0, 1);
    pieces_t *pieces = NULL;
    struct hash digest;
    uint32_t missing;
    assert_int_equal(pieces_write(&as, parts, 2, &why), 0);
    assert_int_equal(pieces_seal(&as, &why, &missing), 0);
    assert_int_equal(pieces_open(root, 3, "a", &why, &pieces), 0);
    assert_int_equal(state_pieces_digest(pieces, NULL, &why, &digest), FAULT_FOREIGN);
    assert_non_null(strstr(why.text, "item 'adamw-m' has 44 bytes"));
    pieces_close(&pieces);
}

#define IN_FOLDER(test) TEST_WITH(test, set_up, tear_down)

TESTS(IN_FOLDER(a_chain_of_worlds_keeps_every_bit),
      IN_FOLDER(what_is_dropped_begins_anew_in_another_world),
      IN_FOLDER(a_cut_within_a_leaf_has_no_digest),
      IN_FOLDER(another_optimizer_or_model_is_refused_by_name),
      IN_FOLDER(an_item_larger_than_the_parameters_has_no_digest))
