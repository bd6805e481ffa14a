// share_fetch_test -- members that keep shares of a state and those of their buddies, over loopback: each makes its own
// whole, and what is left of them brings back the state. Fetchers, stores and servers are those of the product.

#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"

enum { PATIENCE_MS = 400, ENOUGH_MS = 30000, WORLD_MAX = 8, ITEMS = 4 };

// ---- members --------------------------------------------------------------------------------------

struct member {
    struct fixture_fetcher *fetcher; // With the store that the server serves
    bulk_server_t *server;
    struct wire_holder holder;
};

// A state of parameters, two moments and a number of steps, and a group of members.
static struct world {
    struct state_cut cut;
    uint8_t *items[ITEMS];
    uint64_t step;
    struct hash digest, *leaves;
    enum share_rest rest;
    uint32_t count;
    struct member members[WORLD_MAX];
    struct wire_holder holders[WORLD_MAX];
    struct wire_blob lists[WORLD_MAX];
    uint8_t *list_bytes[WORLD_MAX];
} world;

static void fill_state(uint64_t step)
{
    world.step = step;
    for (uint32_t i = 0; i < ITEMS; i++) {
        free(world.items[i]);
        world.items[i] = fixture_bytes(world.cut.bytes[i], step * ITEMS + i + 1);
        state_item_fill(world.items[i], world.cut.bytes[i],
                        world.leaves + state_cut_place(&world.cut, i) / STATE_LEAF_BYTES);
    }
    world.digest = state_cut_root(&world.cut, world.leaves);
}

static const uint8_t *bytes_of(uint64_t leaf)
{
    const struct state_leaf at = state_cut_leaf(&world.cut, leaf);
    return world.items[at.item] + at.offset;
}

// As a learner does.
static void put_share(blob_store_t *store, uint32_t place)
{
    const struct share_list list = share_list_of(&world.cut, place, world.count, world.rest);
    struct hash *hashes = malloc(share_list_leaves(&list) * sizeof *hashes), *at = hashes;
    blob_share_t *share;
    assert_int_equal(blob_store_new_share(store, &world.cut, NULL, &share), 0);
    for (uint32_t i = 0; i < list.count; i++) {
        blob_share_touch(share, list.runs[i]);
        for (uint64_t leaf = list.runs[i].begin; leaf < list.runs[i].end; leaf++) {
            memcpy(blob_share_bytes(share) + leaf * STATE_LEAF_BYTES, bytes_of(leaf),
                   state_cut_leaf(&world.cut, leaf).bytes);
            *at++ = world.leaves[leaf];
        }
    }
    blob_store_put_share(store, &share, world.step, &list, hashes);
    free(world.list_bytes[place]);
    world.list_bytes[place] = (uint8_t *)hashes;
    world.lists[place].bytes = (uint32_t)(share_list_leaves(&list) * HASH_BYTES);
}

// The list of a place, which may be another one than it was, to all.
static void publish(uint32_t place)
{
    for (uint32_t i = 0; i < world.count; i++)
        world.lists[place].hash = fixture_give(world.members[i].fetcher->store,
                                               world.list_bytes[place], world.lists[place].bytes);
}

static void save(uint64_t step)
{
    fill_state(step);
    for (uint32_t i = 0; i < world.count; i++) put_share(world.members[i].fetcher->store, i);
    for (uint32_t i = 0; i < world.count; i++) publish(i);
}

static void begin_as(uint64_t floats, uint32_t count, enum share_rest rest)
{
    world = (struct world){ .cut = { ITEMS, { floats * 4, floats * 4, floats * 4, 8 } },
                            .rest = rest,
                            .count = count };
    world.leaves = malloc(state_cut_leaves(&world.cut) * sizeof *world.leaves);
    for (uint32_t i = 0; i < count; i++) {
        struct member *member = &world.members[i];
        member->fetcher = fixture_fetcher_new(PATIENCE_MS);
        const struct bulk_server_options options = { .identity = fixture_identity(),
                                                     .endpoint = "tcp://127.0.0.1:*",
                                                     .run = FIXTURE_RUN,
                                                     .store = member->fetcher->store };
        assert_int_equal(bulk_server_new(&options, NULL, &member->server), 0);
        fixture_admit(member->server);
        world.holders[i] = fixture_at(bulk_server_endpoint(member->server));
    }
    save(10);
}

static void begin(uint64_t floats, uint32_t count) { begin_as(floats, count, SHARE_ALIKE); }

static void end_server(uint32_t i) { bulk_server_destroy(&world.members[i].server); }

static void end(void)
{
    for (uint32_t i = 0; i < world.count; i++) {
        end_server(i);
        fixture_fetcher_destroy(world.members[i].fetcher);
        free(world.list_bytes[i]);
    }
    for (uint32_t i = 0; i < ITEMS; i++) free(world.items[i]);
    free(world.leaves);
}

// ---- what is asked of a fetcher -------------------------------------------------------------------

static void ask_share(uint32_t place, uint32_t buddies, const struct wire_holder *holders,
                      uint32_t count)
{
    struct wire_state_item items[ITEMS - 1];
    for (uint32_t i = 1; i < ITEMS; i++) items[i - 1].bytes = world.cut.bytes[i];
    const struct wire_fetch_share job = { .turn = world.step + 7,
                                          .step = world.step,
                                          .floats = world.cut.bytes[0] / sizeof(float),
                                          .items = items,
                                          .items_count = ITEMS - 1,
                                          .lists = world.lists,
                                          .lists_count = world.count,
                                          .place = place,
                                          .buddies = buddies,
                                          .apart = world.rest == SHARE_OF_FIRST,
                                          .holders = holders,
                                          .holders_count = count };
    fixture_job(world.members[place].fetcher, FRAME_FETCH_SHARE, &job);
}

static const struct wire_fetched_share *hear_share(uint32_t place)
{
    const struct wire_fetched_share *fetched =
        fixture_answer(world.members[place].fetcher, FRAME_FETCHED_SHARE, ENOUGH_MS);
    assert_non_null(fetched);
    assert_true(fetched->step == world.step && fetched->turn == world.step + 7);
    return fetched;
}

static const struct wire_fetched_share *fetch_share(uint32_t place, uint32_t buddies)
{
    ask_share(place, buddies, world.holders, world.count);
    return hear_share(place);
}

static void expect_share(uint32_t place, uint32_t buddies)
{
    const struct wire_fetched_share *fetched = fetch_share(place, buddies);
    if (!fetched->ok) print_message("%s\n", fetched->reason);
    assert_true(fetched->ok && hash_equal(&fetched->digest, &world.digest));
}

static void expect_failed(uint32_t place, const char *reason)
{
    const struct wire_fetched_share *fetched = fetch_share(place, 1);
    assert_false(fetched->ok);
    if (!strstr(fetched->reason, reason)) fail_msg("%s, not %s", fetched->reason, reason);
}

static bool has_leaf(uint32_t place, uint64_t leaf)
{
    struct blob_ref ref;
    if (blob_store_get(world.members[place].fetcher->store, &world.leaves[leaf], NULL, &ref) < 0)
        return false;
    assert_memory_equal(ref.bytes, bytes_of(leaf), ref.count);
    blob_store_release(&ref);
    return true;
}

// It has its own leaves and those of its buddies, and no others; and the list of all.
static void expect_kept(uint32_t place, uint32_t buddies)
{
    const uint64_t count = state_cut_leaves(&world.cut);
    bool *wanted = calloc(count, sizeof *wanted);
    for (uint32_t back = 0; back <= buddies && back < world.count; back++) {
        const struct share_list list = share_list_of(
            &world.cut, (place + world.count - back) % world.count, world.count, world.rest);
        for (uint32_t i = 0; i < list.count; i++)
            for (uint64_t leaf = list.runs[i].begin; leaf < list.runs[i].end; leaf++)
                wanted[leaf] = true;
    }
    for (uint64_t leaf = 0; leaf < count; leaf++)
        assert_int_equal(has_leaf(place, leaf), wanted[leaf]);
    struct blob_ref ref;
    struct state_cut cut;
    blob_store_t *store = world.members[place].fetcher->store;
    assert_int_equal(blob_store_leaves(store, &world.digest, NULL, &ref, &cut), 0);
    assert_true(ref.count == count * HASH_BYTES && state_cut_equal(&cut, &world.cut));
    assert_memory_equal(ref.bytes, world.leaves, ref.count);
    blob_store_release(&ref);
    free(wanted);
}

static void make_whole(uint32_t buddies)
{
    for (uint32_t i = 0; i < world.count; i++) expect_share(i, buddies);
    for (uint32_t i = 0; i < world.count; i++) expect_kept(i, buddies);
}

// A fetcher with nothing of its own gets the state from these holders.
static const char *fetch_state(const struct wire_holder *holders, uint32_t count)
{
    static char reason[192];
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    struct blob_snapshot got;
    struct state_copy copy;
    fixture_fetch_state(fetcher, world.step, &world.digest, &world.cut, holders, count);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_non_null(fetched);
    snprintf(reason, sizeof reason, "%s", fetched->reason);
    if (fetched->ok) {
        assert_true(blob_store_unstage(fetcher->store, world.step, &got, &copy));
        assert_true(hash_equal(&got.digest, &world.digest));
        for (uint32_t i = 0; i < ITEMS; i++)
            assert_memory_equal(copy.bytes + state_cut_place(&world.cut, i), world.items[i],
                                world.cut.bytes[i]);
        state_copy_free(&copy);
    }
    fixture_fetcher_destroy(fetcher);
    return reason;
}

// ---- shares ---------------------------------------------------------------------------------------

enum { FLOATS = 40 * DIGEST_LEAF_FLOATS + 9 };

static void shares_become_whole(void **state)
{
    (void)state;
    begin(FLOATS, 4);
    make_whole(1);
    // The next one, in memory that the one before leaves; both are there for a moment
    save(20);
    make_whole(1);
    for (uint32_t i = 0; i < 4; i++)
        blob_store_drop_shares(world.members[i].fetcher->store, 20, UINT64_MAX);
    save(30);
    make_whole(1);
    const struct wire_fetched_share *fetched = fetch_share(2, 1); // Again
    assert_true(fetched->ok && fetched->bytes == 0 && hash_equal(&fetched->digest, &world.digest));
    end();
}

static void buddies_and_places_of_any_number(void **state)
{
    (void)state;
    static const struct {
        uint64_t floats;
        uint32_t places, buddies;
    } groups[] = { { FLOATS, 5, 2 },
                   { FLOATS, 1, 1 },
                   { FLOATS, 2, 1 },
                   { FLOATS, 3, 8 }, // More buddies than others
                   { 2 * DIGEST_LEAF_FLOATS + 1, 7, 1 },
                   { 5, 8, 2 } };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        begin(groups[i].floats, groups[i].places);
        make_whole(groups[i].buddies);
        assert_string_equal(fetch_state(world.holders, world.count), "");
        end();
    }
}

// Members that do not hold the number of steps alike: that of the first one counts, and its buddies keep it.
static void what_only_the_first_has(void **state)
{
    (void)state;
    for (uint32_t buddies = 1; buddies <= 2; buddies++) {
        begin_as(FLOATS, 4, SHARE_OF_FIRST);
        make_whole(buddies);
        assert_true(has_leaf(1, state_cut_leaves(&world.cut) - 1));
        assert_false(has_leaf(3, state_cut_leaves(&world.cut) - 1));
        end_server(0);
        assert_string_equal(fetch_state(world.holders + 1, world.count - 1), "");
        end();
    }
}

static void a_holder_lacks_it_and_one_is_silent(void **state)
{
    (void)state;
    begin(FLOATS, 3);
    struct fixture_holder empty = fixture_holder_new();
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, empty.store);
    const struct wire_holder holders[] = { silent->holder, empty.holder, world.holders[0],
                                           world.holders[2] };
    ask_share(1, 1, holders, 4);
    const struct wire_fetched_share *fetched = hear_share(1);
    assert_true(fetched->ok);
    expect_kept(1, 1);
    rogue_destroy(silent);
    fixture_holder_destroy(&empty);
    end();
}

// ---- lists ----------------------------------------------------------------------------------------

static void a_list_of_another_size(void **state)
{
    (void)state;
    begin(FLOATS, 3);
    const uint32_t bytes = world.lists[2].bytes;
    world.list_bytes[2] = realloc(world.list_bytes[2], bytes + HASH_BYTES);
    memset(world.list_bytes[2] + bytes, 7, HASH_BYTES);
    const uint32_t others[] = { 0, bytes - HASH_BYTES, bytes - 1, bytes + HASH_BYTES };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[100];
        world.lists[2].bytes = others[i];
        publish(2);
        snprintf(text, sizeof text, "the list of place 2 has %u bytes, not the %u of its leaves",
                 others[i], bytes);
        expect_failed(0, text);
    }
    end();
}

static void a_list_with_another_hash(void **state)
{
    (void)state;
    begin(FLOATS, 3);
    const uint32_t bytes = world.lists[0].bytes;
    world.list_bytes[0][bytes - 1] ^= 1;
    publish(0);
    expect_failed(1, "the lists of places 0 and 1 differ in what each member has");
    world.list_bytes[0][bytes - 1] ^= 1;
    world.list_bytes[0][0] ^= 1;
    publish(0);
    expect_failed(1, "no holder has leaf 0 of 124, in item 0: 3 asked, 3 lack it; ");
    // A place that is no buddy of ours: the digest is not that of the others
    const struct wire_fetched_share *fetched = fetch_share(2, 1);
    assert_true(fetched->ok && !hash_equal(&fetched->digest, &world.digest));
    // Its own: the leaf is here under another hash
    expect_failed(0, "a leaf of our share of step 10 has another hash");
    world.list_bytes[0][0] ^= 1;
    publish(0);
    expect_share(1, 1); // It goes on with what has come
    expect_kept(1, 1);
    end();
}

static void a_wrong_leaf_is_refused(void **state)
{
    (void)state;
    begin(FLOATS, 3);
    struct rogue *wrong = rogue_new(ROGUE_WRONG, 5, world.members[0].fetcher->store);
    ask_share(1, 1, &wrong->holder, 1);
    const struct wire_fetched_share *fetched = hear_share(1);
    assert_false(fetched->ok);
    assert_non_null(strstr(fetched->reason, "no holder has it: 1 asked, 1 sent wrong bytes; "));
    expect_share(1, 1);
    expect_kept(1, 1);
    rogue_destroy(wrong);
    end();
}

static void what_is_not_here(void **state)
{
    (void)state;
    begin(FLOATS, 3);
    world.step++;
    expect_failed(1, "no share of step 11 of such a state is here");
    world.step--;
    world.cut.bytes[2] += 4;
    expect_failed(1, "no share of step 10 of such a state is here");
    world.cut.bytes[2] -= 4;
    blob_store_drop(world.members[1].fetcher->store, &world.lists[2].hash);
    expect_failed(1, "the list of place 2: no blob and no leaf");
    publish(2);
    world.count = 1;
    ask_share(1, 1, world.holders, 3);
    const struct wire_fetched_share *fetched = hear_share(1);
    assert_string_equal(fetched->reason, "place 1 of 1 members");
    world.count = 3;
    expect_share(1, 1);
    end();
}

// ---- one at a time --------------------------------------------------------------------------------

static void a_newer_share_and_a_model(void **state)
{
    (void)state;
    begin(FLOATS, 3);
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, world.members[0].fetcher->store);
    struct fixture_fetcher *slow =
        fixture_fetcher_new(ENOUGH_MS); // It waits for a silent one as long as this test does
    put_share(slow->store, 1);
    for (uint32_t i = 0; i < 3; i++)
        fixture_give(slow->store, world.list_bytes[i], world.lists[i].bytes);
    struct fixture_fetcher *usual = world.members[1].fetcher;
    world.members[1].fetcher = slow;
    ask_share(1, 1, &silent->holder, 1);
    fixture_fetch_state(slow, 5, &(struct hash){ { 3 } }, &world.cut, &silent->holder, 1);
    ask_share(1, 1, world.holders, 3);
    const struct wire_fetched_share *fetched = hear_share(1);
    assert_false(fetched->ok);
    assert_string_equal(fetched->reason, "given up for the share of step 10");
    fetched = hear_share(1); // While the model waits
    assert_true(fetched->ok && hash_equal(&fetched->digest, &world.digest));
    expect_kept(1, 1);
    world.members[1].fetcher = usual;
    fixture_fetcher_destroy(slow);
    rogue_destroy(silent);
    end();
}

// ---- back to the state ----------------------------------------------------------------------------

static void one_dies_in_the_middle(void **state)
{
    (void)state;
    begin(FLOATS, 4);
    make_whole(1);
    for (uint32_t answers = 1; answers <= 41; answers += 20) {
        struct rogue *dies = rogue_new(ROGUE_DIES, answers, world.members[2].fetcher->store);
        const struct wire_holder holders[] = { world.holders[0], world.holders[1], dies->holder,
                                               world.holders[3] };
        assert_string_equal(fetch_state(holders, 4), "");
        rogue_destroy(dies);
    }
    end_server(2); // Nobody is there
    assert_string_equal(fetch_state(world.holders, 4), "");
    end();
}

static void owner_and_buddy_are_gone(void **state)
{
    (void)state;
    begin(FLOATS, 4);
    make_whole(1);
    const struct share_list list = share_list_of(&world.cut, 1, 4, world.rest);
    const struct wire_holder left[] = { world.holders[0], world.holders[3] };
    unsigned leaf, item;
    const char *reason = fetch_state(left, 2);
    assert_int_equal(sscanf(reason,
                            "no holder has leaf %u of 124, in item %u: 2 asked, 2 lack it; ", &leaf,
                            &item),
                     2);
    assert_true(leaf >= list.runs[item].begin && leaf < list.runs[item].end);
    assert_non_null(strstr(reason, " of 124 leaves are here"));

    // As the others see it: two are silent
    end_server(1), end_server(2);
    reason = fetch_state(world.holders, 4);
    assert_int_equal(
        sscanf(reason, "no holder has leaf %u of 124, in item %u: 4 asked, 2 lack it, 2 silent: ",
               &leaf, &item),
        2);
    assert_true(leaf >= list.runs[item].begin && leaf < list.runs[item].end);
    end();
}

TESTS(TEST(shares_become_whole), TEST(buddies_and_places_of_any_number),
      TEST(what_only_the_first_has), TEST(a_holder_lacks_it_and_one_is_silent),
      TEST(a_list_of_another_size), TEST(a_list_with_another_hash), TEST(a_wrong_leaf_is_refused),
      TEST(what_is_not_here), TEST(a_newer_share_and_a_model), TEST(one_dies_in_the_middle),
      TEST(owner_and_buddy_are_gone))
