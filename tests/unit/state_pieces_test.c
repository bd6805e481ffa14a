// state_pieces_test -- the state of a replica, saved in pieces by any number of workers and loaded
// by any other: the parameters, and what the optimizer keeps, by its tags. Training goes on with
// the same bits.

#include "common/crypto/merkle.h"
#include "common/learner/state_pieces.h"
#include "tests/unit/pieces_fixture.h"
#include "tests/unit/replica_fixture.h"

#include <fcntl.h>
#include <math.h>
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

// ---- a view of a save ---------------------------------------------------------------------------

static struct state_cut cut_of(struct worker *self)
{
    struct state_cut cut = state_cut_of_floats(self->world->layout.total);
    optimizer_cut(self->world->optimizer, &cut);
    return cut;
}

// A save of step 3 by two workers.
static pieces_t *saved_by_two(struct worker *one)
{
    pieces_t *pieces = NULL;
    struct worker *both[] = { one, trained(&optimizer_adamw, 3) };
    both[0]->share = share_of(0, 2), both[1]->share = share_of(1, 2);
    save(both, 2, 3);
    worker_free(both[1]);
    assert_int_equal(pieces_open(root, 3, "a", &why, &pieces), 0);
    return pieces;
}

static struct state_item item_named(struct worker *self, const char *name)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->world->optimizer, items);
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i].name, name) == 0) return items[i];
    fail_msg("no item %s", name);
    return items[0];
}

static void flip(const char *name, off_t at)
{
    char path[400];
    uint8_t byte;
    snprintf(path, sizeof path, "%s/step-00000003/%s", root, name);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void a_view_is_the_state_of_a_save(void **unused)
{
    (void)unused;
    struct worker *one = trained(&optimizer_adamw, 3);
    const struct state_cut cut = cut_of(one);
    pieces_t *pieces = saved_by_two(one);
    struct state_copy view;
    struct state state;
    uint8_t *room = calloc(1, state_cut_room(&cut));
    assert_non_null(room);
    assert_int_equal(state_view_pieces(&pieces, one->world->optimizer, &cut, &why, &view), 0);
    assert_null(pieces);
    assert_int_equal(state_copy_get(&view, 0, room, state_cut_room(&cut), &why), 0);
    assert_memory_equal(room, compute_host(one->world->compute), cut.bytes[0]);
    assert_int_equal(state_save(one->world->optimizer, OPTIMIZER_SHARED, NULL, &state), 0);
    for (uint32_t i = 1; i < cut.count; i++)
        assert_memory_equal(room + state_cut_place(&cut, i), state.values[i - 1], cut.bytes[i]);
    // A part that lies in the pieces of both workers
    float part[8];
    const uint64_t at = share_of(0, 2).end - 4;
    assert_int_equal(state_copy_get(&view, state_cut_place(&cut, 1) + at * sizeof(float), part,
                                    sizeof part, &why),
                     0);
    assert_memory_equal(part, (const float *)state.values[0] + at, sizeof part);
    free(room);
    state_copy_free(&view);
    worker_free(one);
}

// Somebody gave the items the names of another optimizer, or it is the save of one: the digest does not tell.
static void a_view_of_another_optimizer_is_refused(void **unused)
{
    (void)unused;
    struct worker *one = trained(&optimizer_adamw, 3), *other = trained(&optimizer_adam, 0);
    const struct state_cut cut = cut_of(other);
    pieces_t *pieces = saved_by_two(one);
    struct state_copy view;
    assert_int_equal(state_view_pieces(&pieces, other->world->optimizer, &cut, &why, &view),
                     FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "'adam-m'"));
    pieces_close(&pieces); // It was not taken
    worker_free(other);
    worker_free(one);
}

static void a_view_gives_nothing_that_was_changed_or_removed(void **unused)
{
    (void)unused;
    char line[300];
    float part[8];
    struct worker *one = trained(&optimizer_adamw, 3);
    const struct state_cut cut = cut_of(one);
    pieces_t *pieces = saved_by_two(one);
    struct state_copy view;
    snprintf(line, sizeof line, "adamw-v.0-%" PRIu64, share_of(0, 2).end);
    flip(line, 100);
    assert_int_equal(state_view_pieces(&pieces, one->world->optimizer, &cut, &why, &view), 0);
    const uint64_t place = state_cut_place(&cut, 2);
    assert_int_equal(state_copy_get(&view, place, part, sizeof part, &why), FAULT_DIGEST);
    assert_int_equal(state_copy_get(&view, state_cut_place(&cut, 1), part, sizeof part, &why), 0);
    snprintf(line, sizeof line, "rm -r %s/step-00000003", root);
    assert_int_equal(system(line), 0);
    assert_int_equal(state_copy_get(&view, place, part, sizeof part, &why), FAULT_CORRUPT);
    state_copy_free(&view);
    worker_free(one);
}

static void all_of_an_item_is_compared_with_the_hashes_of_a_save(void **unused)
{
    (void)unused;
    char name[64];
    struct worker *one = trained(&optimizer_adamw, 3);
    pieces_t *pieces = saved_by_two(one);
    const struct state_item item = item_named(one, "adamw-v");
    const struct state_cut cut = cut_of(one);
    const size_t count = (size_t)state_item_leaves(cut.bytes[2]);
    struct hash *leaves = calloc(count, sizeof *leaves), *wanted = calloc(count, sizeof *wanted);
    assert_true(leaves && wanted && count > 2);
    assert_int_equal(state_check_pieces(pieces, &item, &why, leaves), 0);
    state_item_fill(compute_at(one->world->compute, item.vector), cut.bytes[2], wanted);
    assert_memory_equal(leaves, wanted, count * sizeof *leaves);
    snprintf(name, sizeof name, "adamw-v.%" PRIu64 "-%" PRIu64, share_of(1, 2).begin, all().end);
    flip(name, 5);
    assert_int_equal(state_check_pieces(pieces, &item, &why, leaves), FAULT_DIGEST);
    pieces_close(&pieces);
    free(leaves);
    free(wanted);
    worker_free(one);
}

static void a_save_with_moments_that_no_optimizer_leaves_is_refused(void **unused)
{
    (void)unused;
    struct worker *one = trained(&optimizer_adamw, 3);
    const struct state_item item = item_named(one, "adamw-v");
    struct hash leaves[64];
    ((float *)compute_at(one->world->compute, item.vector))[all().end - 1] = NAN;
    save(&one, 1, 3);
    pieces_t *pieces = NULL;
    assert_int_equal(pieces_open(root, 3, "a", &why, &pieces), 0);
    assert_true(state_item_leaves(all().end * sizeof(float)) <= 64);
    assert_int_equal(state_check_pieces(pieces, &item, &why, leaves), FAULT_NAN);
    assert_non_null(strstr(why.text, "state item 'adamw-v': float "));
    pieces_close(&pieces);
    worker_free(one);
}

#define IN_FOLDER(test) TEST_WITH(test, set_up, tear_down)

TESTS(IN_FOLDER(a_chain_of_worlds_keeps_every_bit),
      IN_FOLDER(what_is_dropped_begins_anew_in_another_world),
      IN_FOLDER(a_cut_within_a_leaf_has_no_digest),
      IN_FOLDER(another_optimizer_or_model_is_refused_by_name),
      IN_FOLDER(an_item_larger_than_the_parameters_has_no_digest),
      IN_FOLDER(a_view_is_the_state_of_a_save), IN_FOLDER(a_view_of_another_optimizer_is_refused),
      IN_FOLDER(a_view_gives_nothing_that_was_changed_or_removed),
      IN_FOLDER(all_of_an_item_is_compared_with_the_hashes_of_a_save),
      IN_FOLDER(a_save_with_moments_that_no_optimizer_leaves_is_refused))
