// Holders that answer right and late cost a bounded time, however many they are and however early
// they are named.
#include "common/base/clock.h"
#include "common/bulk/fetch.h"
#include "tests/unit/bulk_counts.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"

enum {
    PATIENCE_MS = 400,
    ENOUGH_MS = 60000,
    LEAVES = 512,
    FLOATS = LEAVES * DIGEST_LEAF_FLOATS,
    BLOB = 48 << 20
};

static struct hash pin(blob_store_t *store, const float *params)
{
    return pin_vector(store, 1, params, FLOATS);
}

static uint64_t fetch_model(const struct hash *digest, const struct wire_holder *list,
                            uint32_t count)
{
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    const uint64_t begun_ms = clock_ms();
    struct blob_snapshot got;
    struct state_copy copy;
    fixture_fetch_model(fetcher, 1, digest, FLOATS, list, count);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    const uint64_t took_ms = clock_ms() - begun_ms;
    assert_true(fetched && fetched->ok);
    assert_true(blob_store_unstage(fetcher->store, 1, &got, &copy));
    state_copy_free(&copy);
    fixture_fetcher_destroy(fetcher);
    return took_ms;
}

// One rogue under as many names as there shall be slow holders, and an honest one behind them.
static struct rogue *fill_list(struct wire_holder *list, uint32_t slow, uint32_t quick,
                               const struct fixture_holder *honest)
{
    list[slow] = honest->holder;
    return rogue_new_of_names(ROGUE_SLOW, quick, honest->store, list, slow);
}

// They are quick with their first answers. Of the others one in `part` at least must come from the honest one: of a
// few slow ones most, then it takes about as long as from that one alone, and a time limit or two. Of many, each of
// which has a connection of its own, less: they all answer while this machine does other work.
static void expect_model_behind(uint32_t slow, uint32_t quick, uint32_t part)
{
    struct fixture_holder honest = fixture_holder_new();
    float *params = (float *)(void *)fixture_bytes(FLOATS * sizeof *params, slow);
    const struct hash digest = pin(honest.store, params);
    struct wire_holder *list = calloc(slow + 1, sizeof *list);
    struct rogue *rogue = fill_list(list, slow, quick, &honest);
    const uint64_t alone_ms = fetch_model(&digest, list + slow, 1);
    const uint64_t before = bulk_counts_of(honest.server).chunks;
    const uint64_t took_ms = fetch_model(&digest, list, slow + 1);
    const uint64_t served = bulk_counts_of(honest.server).chunks - before;
    print_message(
        "behind %u slow ones: %d ms, alone %d ms; the honest one served %d of %d leaves, they %u\n",
        slow, (int)took_ms, (int)alone_ms, (int)served, LEAVES, rogue->answered - 1);
    assert_true(rogue->answered - 1 >= slow);
    assert_true(part * served > LEAVES - slow * quick);
    free(list);
    free(params);
    rogue_destroy(rogue);
    fixture_holder_destroy(&honest);
}

static void test_model_behind_slow_ones(void **state)
{
    (void)state;
    expect_model_behind(8, 8, 2); // Trusted with all that one peer may be
}

// More than there may be connections.
static void test_model_behind_more_than_can_be_asked(void **state)
{
    (void)state;
    expect_model_behind(PEERS_OPEN_MAX + 8, 2, 8);
}

static void test_blob_behind_slow_ones(void **state)
{
    (void)state;
    enum { SLOW = 10 };
    struct fixture_holder honest = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(BLOB, 3);
    const struct hash hash = fixture_give(honest.store, bytes, BLOB);
    struct wire_holder list[SLOW + 1];
    struct rogue *rogue = fill_list(list, SLOW, 0, &honest);
    const uint64_t begun_ms = clock_ms();
    fixture_fetch(fetcher, &hash, BLOB, list, SLOW + 1);
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_true(fetched && fetched->ok);
    const uint64_t served = bulk_counts_of(honest.server).chunks;
    print_message("behind %d slow ones: %d ms; the honest one served %d of %d chunks, they %u\n",
                  SLOW, (int)(clock_ms() - begun_ms), (int)served, BLOB / BULK_CHUNK_BYTES,
                  rogue->answered);
    assert_true(2 * served > BLOB / BULK_CHUNK_BYTES);
    free(bytes);
    rogue_destroy(rogue);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&honest);
}

// ---- credit, by a clock of our own ------------------------------------------------------------

enum { ASKERS = 9, T = 10000 };

static bool ask(struct peers *peers, struct peer *peer, struct fetch *fetch, uint32_t piece,
                uint32_t bytes, uint64_t now_ms)
{
    static const struct hash hash;
    return peers_ask_piece(peers, peer, fetch, piece, &hash, 0, bytes, now_ms);
}

// However many take all that they can get, one more gets half as much, and then as much.
static void expect_left_for_one_more(uint32_t bytes)
{
    struct wire_holder names[ASKERS];
    struct rogue *silent = rogue_new_of_names(ROGUE_SILENT, 0, NULL, names, ASKERS);
    struct peers *peers = peers_new(fixture_identity(), FIXTURE_RUN, PATIENCE_MS);
    struct peer *list[ASKERS];
    struct fetch fetch = { .peers = peers };
    uint32_t most = 0;
    for (uint32_t i = 0; i < ASKERS; i++) {
        list[i] = peers_find(peers, &names[i]);
        list[i]->window = PEER_WINDOW_MAX;
    }
    for (bool asked = true; asked;) {
        asked = false;
        for (uint32_t i = 0; i < ASKERS - 1; i++) asked |= ask(peers, list[i], &fetch, i, bytes, T);
    }
    for (uint32_t i = 0; i < ASKERS - 1; i++) most = list[i]->wants > most ? list[i]->wants : most;
    while (ask(peers, list[ASKERS - 1], &fetch, ASKERS, bytes, T)) {
    }
    print_message(
        "8 peers have %u requests of %u bytes at most on their way, the ninth may have %u\n", most,
        bytes, list[ASKERS - 1]->wants);
    assert_true(2 * list[ASKERS - 1]->wants >= most - 1);
    for (uint32_t i = 0; i < ASKERS; i++) peers_leave(peers, list[i]);
    peers_destroy(&peers);
    rogue_destroy(silent);
}

static void test_no_peer_takes_what_the_others_need(void **state)
{
    (void)state;
    expect_left_for_one_more(1);
    expect_left_for_one_more(BULK_CHUNK_BYTES / 2);
}

static void test_a_late_peer_gets_less_and_others_are_asked(void **state)
{
    (void)state;
    struct wire_holder names[4];
    struct rogue *silent = rogue_new_of_names(ROGUE_SILENT, 0, NULL, names, 4);
    struct peers *peers = peers_new(fixture_identity(), FIXTURE_RUN, PATIENCE_MS);
    struct fetch fetch = { .peers = peers };
    struct answer answer;
    struct peer *list[4];
    for (uint32_t i = 0; i < 4; i++) list[i] = peers_find(peers, &names[i]);
    assert_true(ask(peers, list[0], &fetch, 7, 1, T) && ask(peers, list[0], &fetch, 8, 1, T + 150));
    assert_false(peers_next(peers, T + 200, &answer) || list[0]->reputation.is_slow);
    assert_false(peers_ask_again(peers, list[1], &fetch, 0, T + 200));
    for (int i = 1; i <= 2; i++) assert_false(peers_next(peers, T + 200 + (uint64_t)i, &answer));
    assert_true(list[0]->reputation.is_slow && list[0]->window == PEER_WINDOW_BEGIN / 2); // Once
    assert_false(peers_ask_again(peers, list[0], &fetch, 0, T + 202));
    assert_true(peers_ask_again(peers, list[1], &fetch, 0, T + 202));
    assert_false(peers_ask_again(peers, list[1], &fetch, 0, T + 202)); // It is asked
    assert_true(peers_ask_again(peers, list[2], &fetch, 0, T + 202));
    assert_false(peers_ask_again(peers, list[3], &fetch, 0, T + 202)); // Two have been
    assert_true(peers_await(peers, &fetch, 7) && !peers_await(peers, &fetch, 9));
    assert_int_equal(peers_forget_piece(peers, &fetch, 7), 3);
    assert_false(peers_await(peers, &fetch, 7));
    for (uint32_t i = 0; i < 4; i++) peers_leave(peers, list[i]);
    peers_destroy(&peers);
    rogue_destroy(silent);
}

// All connections are taken, by peers that have answers to give. One more is needed: a slow one's.
static void test_a_slow_peer_gives_its_connection_to_another(void **state)
{
    (void)state;
    enum { ALL = PEERS_OPEN_MAX + 1, SLOW = 5 };
    struct wire_holder names[ALL];
    struct rogue *silent = rogue_new_of_names(ROGUE_SILENT, 0, NULL, names, ALL);
    struct peers *peers = peers_new(fixture_identity(), FIXTURE_RUN, PATIENCE_MS);
    struct fetch fetch = { .peers = peers };
    struct answer answer;
    struct peer *list[ALL];
    for (uint32_t i = 0; i < ALL; i++) list[i] = peers_find(peers, &names[i]);
    for (uint32_t i = 0; i < ALL - 1; i++) assert_true(ask(peers, list[i], &fetch, i, 1, T));
    list[SLOW]->reputation.is_slow = true;
    assert_false(peers_next(peers, T, &answer)); // Nobody needs it yet
    assert_false(ask(peers, list[ALL - 1], &fetch, ALL - 1, 1, T));
    assert_true(peers_next(peers, T, &answer));
    assert_ptr_equal(answer.peer, list[SLOW]);
    assert_false(peers_next(peers, T, &answer) ||
                 list[SLOW]->is_open); // Behind the last of its requests
    assert_true(ask(peers, list[ALL - 1], &fetch, ALL - 1, 1, T));
    for (uint32_t i = 0; i < ALL; i++) peers_leave(peers, list[i]);
    peers_destroy(&peers);
    rogue_destroy(silent);
}

// The author is silent towards us alone. Once a commit names its payload, others have it, behind some that
// lack it; the author is asked first, and its patience is long.
static void expect_urgent(size_t count, bool is_known_before)
{
    enum { LONG_MS = 20000, LACKING = 4 };
    struct wire_holder list[LACKING + 2];
    struct fixture_holder lacking[LACKING], honest = fixture_holder_new();
    struct rogue *author = rogue_new(ROGUE_SILENT, 0, NULL);
    struct fixture_fetcher *fetcher = fixture_fetcher_new(LONG_MS);
    uint8_t *bytes = fixture_bytes(count, 5);
    const struct hash hash = fixture_give(honest.store, bytes, count);
    list[0] = author->holder;
    for (int i = 0; i < LACKING; i++) {
        lacking[i] = fixture_holder_new();
        list[i + 1] = lacking[i].holder;
    }
    list[LACKING + 1] = honest.holder;
    if (is_known_before) {
        fixture_fetch(fetcher, &hash, count, list, 1);
        while (!author->asked) fixture_answer(fetcher, FRAME_FETCHED, 10);
    }
    const uint64_t begun_ms = clock_ms();
    fixture_fetch_urgently(fetcher, &hash, count, list, LACKING + 2);
    for (int n = 0; n <= is_known_before; n++) {
        const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, LONG_MS / 4);
        assert_true(fetched && fetched->ok);
    }
    print_message("%zu bytes behind a silent author: %d ms\n", count, (int)(clock_ms() - begun_ms));
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    rogue_destroy(author);
    for (int i = 0; i < LACKING; i++) fixture_holder_destroy(&lacking[i]);
    fixture_holder_destroy(&honest);
}

static void test_an_author_that_is_silent_to_us_alone(void **state)
{
    (void)state;
    for (int known = 0; known <= 1; known++) {
        expect_urgent(1000, known);
        expect_urgent(5 * BULK_CHUNK_BYTES, known);
    }
}

// It delays us once. After that its requests are repeated at once, and those of others as before.
static void test_a_doubtful_peer_is_not_waited_for(void **state)
{
    (void)state;
    struct wire_holder names[3];
    struct rogue *silent = rogue_new_of_names(ROGUE_SILENT, 0, NULL, names, 3);
    struct peers *peers = peers_new(fixture_identity(), FIXTURE_RUN, PATIENCE_MS);
    struct fetch fetch = { .peers = peers };
    struct peer *list[3];
    for (uint32_t i = 0; i < 3; i++) list[i] = peers_find(peers, &names[i]);
    assert_true(ask(peers, list[0], &fetch, 7, 1, T));
    assert_false(peers_ask_again(peers, list[1], &fetch, 0, T + PEERS_URGENT_MS));
    assert_false(peers_ask_again(peers, list[1], &fetch, T + 10, T + 9 + PEERS_URGENT_MS));
    list[0]->reputation.failed_ms = 1;
    assert_false(peers_ask_again(peers, list[1], &fetch, 0, T + 10));
    assert_true(peers_ask_again(peers, list[1], &fetch, T + 10, T + 10));
    list[0]->reputation.failed_ms = 0;
    assert_false(peers_ask_again(peers, list[2], &fetch, T + 10, T + 9 + PEERS_URGENT_MS));
    assert_true(peers_ask_again(peers, list[2], &fetch, T + 10, T + 10 + PEERS_URGENT_MS));
    for (uint32_t i = 0; i < 3; i++) peers_leave(peers, list[i]);
    peers_destroy(&peers);
    rogue_destroy(silent);
}

TESTS(TEST(test_an_author_that_is_silent_to_us_alone), TEST(test_a_doubtful_peer_is_not_waited_for),
      TEST(test_model_behind_slow_ones), TEST(test_model_behind_more_than_can_be_asked),
      TEST(test_blob_behind_slow_ones), TEST(test_no_peer_takes_what_the_others_need),
      TEST(test_a_late_peer_gets_less_and_others_are_asked),
      TEST(test_a_slow_peer_gives_its_connection_to_another))
