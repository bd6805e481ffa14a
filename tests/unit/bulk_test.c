// The bulk plane over loopback: a fetcher, servers, and holders that die, lie and are silent.
#include "common/base/failpoint.h"
#include "common/bulk/peers.h"
#include "tests/unit/bulk_counts.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>

enum { PATIENCE_MS = 300, ENOUGH_MS = 30000, BLOB = 5 << 20 };

static struct why why;

static void expect_fetched(struct fixture_fetcher *fetcher, const struct hash *hash)
{
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_non_null(fetched);
    if (!fetched->ok) print_message("%s\n", fetched->reason);
    assert_true(fetched->ok && hash_equal(&fetched->hash, hash));
}

static void expect_failed(struct fixture_fetcher *fetcher, const char *reason)
{
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_non_null(fetched);
    assert_false(fetched->ok);
    assert_string_equal(fetched->reason, reason);
}

static void expect_bytes(blob_store_t *store, const struct hash *hash, const uint8_t *bytes,
                         size_t count)
{
    struct blob_ref ref;
    assert_int_equal(blob_store_get(store, hash, &why, &ref), 0);
    assert_int_equal(ref.count, count);
    assert_memory_equal(ref.bytes, bytes, count);
    blob_store_release(&ref);
}

// ---- blobs ----------------------------------------------------------------------------------

static void test_fetch(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(3000);
    uint8_t *bytes = fixture_bytes(BLOB + 3, 1);
    const uint64_t before = bulk_counts_received();
    const size_t sizes[] = { BLOB + 3, 1, BULK_CHUNK_BYTES, BULK_CHUNK_BYTES + 1, 0 };
    for (int i = 0; i < 5; i++) {
        const struct hash hash = fixture_give(holder.store, bytes, sizes[i]);
        fixture_fetch(fetcher, &hash, sizes[i], &holder.holder, 1);
        expect_fetched(fetcher, &hash);
        expect_bytes(fetcher->store, &hash, bytes, sizes[i]);
        fixture_fetch(fetcher, &hash, sizes[i], NULL, 0); // Is here: answered at once
        expect_fetched(fetcher, &hash);
    }
    assert_int_equal(bulk_counts_received() - before, BLOB + 3 + 1 + 2 * BULK_CHUNK_BYTES + 1);
    assert_int_equal(bulk_counts_of(holder.server).chunk_bytes, bulk_counts_received() - before);
    const struct hash gone = hash_of(bytes, 1);
    blob_store_drop(fetcher->store, &gone);
    fixture_fetch(fetcher, &gone, 1, &holder.holder, 1); // Again over the network
    expect_fetched(fetcher, &gone);
    assert_int_equal(bulk_counts_received() - before, BLOB + 3 + 2 + 2 * BULK_CHUNK_BYTES + 1);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

static void test_many_small_ones(void **state)
{
    (void)state;
    enum { MANY = 600 };
    struct fixture_holder holders[2] = { fixture_holder_new(), fixture_holder_new() };
    struct fixture_fetcher *fetcher = fixture_fetcher_new(ENOUGH_MS); // A slow disk is not silence
    struct wire_blob *blobs = calloc(MANY, sizeof *blobs);
    uint8_t *bytes = fixture_bytes(40000, 2);
    for (uint32_t i = 0; i < MANY; i++) { // Each at one of the two
        memcpy(bytes, &i, sizeof i);
        blobs[i] =
            (struct wire_blob){ fixture_give(holders[i % 2].store, bytes, 40000 - i), 40000 - i };
    }
    const struct wire_holder list[2] = { holders[0].holder, holders[1].holder };
    fixture_job(fetcher, FRAME_FETCH, &(struct wire_fetch){ blobs, MANY, list, 2, 0, false });
    for (int i = 0; i < MANY; i++) {
        const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
        if (!fetched || !fetched->ok)
            fail_msg("%d: %s", i, fetched ? fetched->reason : "no answer");
    }
    assert_int_equal(blob_store_list(fetcher->store, blobs, MANY), MANY);
    free(blobs);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < 2; i++) fixture_holder_destroy(&holders[i]);
}

// ---- on disk --------------------------------------------------------------------------------

static atomic_uint syncs;
static atomic_bool syncs_fail;
static bulk_server_t *_Atomic serves; // The first sync waits until it has sent SMALL blobs
enum { SMALL = 20, SMALL_BYTES = 100 };

int failpoint_reached(const char *name)
{
    if (strcmp(name, "spool_sync") != 0) return 0;
    const uint64_t until_ms = clock_ms() + ENOUGH_MS;
    if (syncs++ == 0)
        while (serves && bulk_counts_of(serves).chunk_bytes < SMALL * SMALL_BYTES &&
               clock_ms() < until_ms)
            sched_yield();
    errno = EIO;
    return syncs_fail ? -1 : 0;
}

static void fetch_small_ones(struct fixture_fetcher *fetcher, const struct fixture_holder *holder,
                             uint64_t seed, const char *reason)
{
    struct wire_blob blobs[SMALL];
    uint8_t *bytes = fixture_bytes(SMALL * SMALL_BYTES, seed);
    for (uint32_t i = 0; i < SMALL; i++) {
        blobs[i].hash = fixture_give(holder->store, bytes + i * SMALL_BYTES, SMALL_BYTES);
        blobs[i].bytes = SMALL_BYTES;
    }
    fixture_job(fetcher, FRAME_FETCH,
                &(struct wire_fetch){ blobs, SMALL, &holder->holder, 1, 0, false });
    for (uint32_t i = 0; i < SMALL; i++) {
        const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
        assert_true(fetched && fetched->ok && syncs > 0); // An answer comes after a sync
        assert_true(*reason ? strstr(fetched->reason, reason) != NULL : !fetched->reason[0]);
    }
    free(bytes);
}

// What comes while the first blob is synced is synced together.
static void test_on_disk(void **state)
{
    (void)state;
    char dir[] = "/tmp/bulk_test.XXXXXX", command[64];
    assert_non_null(mkdtemp(dir));
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher =
        fixture_fetcher_make(3000, NULL, &(struct blob_store_options){ .dir = dir });
    serves = holder.server;
    fetch_small_ones(fetcher, &holder, 1, "");
    serves = NULL;
    assert_in_range(syncs, 1, SMALL / 4);
    syncs_fail = true;
    fetch_small_ones(fetcher, &holder, 2, "is kept in memory alone");
    syncs_fail = false;
    fixture_fetcher_destroy(fetcher);
    blob_store_t *store;
    assert_int_equal(blob_store_new(&(struct blob_store_options){ .dir = dir }, &why, &store), 0);
    struct wire_blob kept[2 * SMALL];
    assert_int_equal(blob_store_list(store, kept, 2 * SMALL), SMALL);
    blob_store_destroy(&store);
    fixture_holder_destroy(&holder);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_killed_holder_is_resumed_from(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(BLOB, 3);
    const uint64_t before = bulk_counts_received();
    const struct hash hash = fixture_give(holder.store, bytes, BLOB);
    struct rogue *rogue = rogue_new(ROGUE_DIES, 10, holder.store);
    const struct wire_holder list[] = { rogue->holder, holder.holder };
    fixture_fetch(fetcher, &hash, BLOB, list, 2);
    expect_fetched(fetcher, &hash);
    expect_bytes(fetcher->store, &hash, bytes, BLOB);
    const uint64_t second = bulk_counts_of(holder.server).chunk_bytes;
    assert_int_equal(bulk_counts_received() - before, BLOB); // Nothing twice
    assert_true(second >= BLOB - 10 * BULK_CHUNK_BYTES && second < BLOB);
    print_message("of %d bytes %d came from the one that died\n", BLOB, BLOB - (int)second);
    free(bytes);
    rogue_destroy(rogue);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

// A rogue is asked first, then an honest holder; the blob comes right whatever the rogue does.
static void test_rogues(void **state)
{
    (void)state;
    static const struct {
        enum rogue_mode mode;
        uint32_t chunks;
        bool is_wasted;
    } cases[] = { { ROGUE_SILENT, 0, false }, { ROGUE_WRONG, 0, true }, { ROGUE_WRONG, 5, true },
                  { ROGUE_LARGER, 0, true },  { ROGUE_SHORT, 0, true }, { ROGUE_OTHER, 0, true },
                  { ROGUE_HUGE, 0, false },   { ROGUE_LONG, 0, false } };
    struct fixture_holder holder = fixture_holder_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *bytes = fixture_bytes(BLOB, 40 + i); // Another one each time: see purse.h
        const struct hash hash = fixture_give(holder.store, bytes, BLOB);
        struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
        struct rogue *rogue = rogue_new(cases[i].mode, cases[i].chunks, holder.store);
        const uint64_t before = bulk_counts_received();
        const struct wire_holder list[] = { rogue->holder, holder.holder };
        fixture_fetch(fetcher, &hash, BLOB, list, 2);
        expect_fetched(fetcher, &hash);
        expect_bytes(fetcher->store, &hash, bytes, BLOB);
        assert_true(rogue->asked > 0);
        assert_int_equal(bulk_counts_received() - before > BLOB, cases[i].is_wasted);
        free(bytes);
        fixture_fetcher_destroy(fetcher);
        rogue_destroy(rogue);
    }
    fixture_holder_destroy(&holder);
}

// A liar dies in between, so that the wrong bytes cannot be traced to a holder: both honest and
// lying holders are asked for all of it, one after the other.
static void test_mixed_lies(void **state)
{
    (void)state;
    struct fixture_holder honest = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    enum { LARGE = 10 << 20 }; // 40 chunks: from two at once
    uint8_t *bytes = fixture_bytes(LARGE, 5);
    const struct hash hash = fixture_give(honest.store, bytes, LARGE);
    struct rogue *liar = rogue_new(ROGUE_WRONG, 4, honest.store);
    const struct wire_holder list[] = { liar->holder, honest.holder }; // Large: both at once
    fixture_fetch(fetcher, &hash, LARGE, list, 2);
    expect_fetched(fetcher, &hash);
    expect_bytes(fetcher->store, &hash, bytes, LARGE);
    assert_true(liar->asked > 0);
    fixture_fetch(fetcher, &(struct hash){ { 9 } }, LARGE, list, 2);
    expect_failed(fetcher, "no holder has it: 2 asked, 2 lack it");
    free(bytes);
    rogue_destroy(liar);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&honest);
}

// "key 3fa2b4c6d8e0f112 at 127.0.0.1:7000"; overwritten by the next call.
static const char *named(const struct wire_holder *holder)
{
    static char text[120];
    char hex[KEY_HEX];
    snprintf(text, sizeof text, "key %.16s at %s", key_to_hex(&holder->key, hex),
             holder->endpoint + strlen("tcp://"));
    return text;
}

static void name_of(void *arg, const struct key *key, char ret_name[ACTOR_NAME_MAX + 1])
{
    (void)key;
    snprintf(ret_name, ACTOR_NAME_MAX + 1, "%s", (const char *)arg);
}

static void test_reasons(void **state)
{
    (void)state;
    struct fixture_holder a = fixture_holder_new(), b = fixture_holder_new(),
                          c = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(70000, 6);
    const struct hash hash = fixture_give(c.store, bytes, 70000), none = { { 0 } };
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, c.store),
                 *liar = rogue_new(ROGUE_WRONG, 0, c.store);
    struct wire_holder list[] = { a.holder,     silent->holder, b.holder,
                                  liar->holder, c.holder,       b.holder };
    char text[200];
    const struct fetch_namer namer = {
        name_of, (void *)(uintptr_t) "trainer.fifteen-letters.3fa2b4c6d8e0f112"
    };
    fixture_fetch(fetcher, &hash, 70000, list, 3);
    snprintf(text, sizeof text, "no holder has it: 3 asked, 2 lack it, 1 silent: %s",
             named(&silent->holder));
    expect_failed(fetcher, text);
    fixture_fetcher_destroy(fetcher);
    fetcher = fixture_fetcher_named(PATIENCE_MS, &namer);
    fixture_fetch(fetcher, &hash, 70000, list, 4);
    snprintf(text, sizeof text,
             "no holder has it: 4 asked, 2 lack it, 1 sent wrong bytes, 1 silent: "
             "trainer.fifteen-letters.3fa2b4c6d8e0f112 at %s",
             silent->holder.endpoint + strlen("tcp://"));
    expect_failed(fetcher, text);
    fixture_fetch(fetcher, &hash, 70000, list + 2, 2);
    expect_failed(fetcher, "no holder has it: 2 asked, 1 lack it, 1 sent wrong bytes");
    fixture_fetch(fetcher, &hash, 70001, list + 4, 2); // Declared with another size
    expect_failed(fetcher, "no holder has it: 2 asked, 1 lack it, 1 of another size");
    fixture_fetch(fetcher, &hash, 70000, list, 0);
    expect_failed(fetcher, "no holder has it: 0 asked");
    fixture_fetch(fetcher, &hash, (size_t)BLOB_BYTES_MAX + 1, list, 1);
    expect_failed(fetcher, "1073741825 bytes, allowed 0..1073741824; not fetched");
    fixture_fetch(fetcher, &hash, 0, list, 1);
    expect_failed(fetcher, "nothing can have this hash and size; not fetched");
    fixture_fetch(fetcher, &none, 5, list, 1);
    expect_failed(fetcher, "nothing can have this hash and size; not fetched");
    const char *bad[] = { "tcp://", "inproc://stop", "", "tcp://127.0.0.1:1", "nonsense" };
    for (int i = 0; i < 5; i++) snprintf(list[i].endpoint, sizeof list[i].endpoint, "%s", bad[i]);
    fixture_fetch(fetcher, &hash, 70000, list, 5);
    expect_failed(fetcher, "no holder has it: 4 asked, 4 silent: "
                           "trainer.fifteen-letters.3fa2b4c6d8e0f112 at  and 3 more");
    list[4] = c.holder;
    fixture_fetch(fetcher, &hash, 70000, list, 5);
    expect_fetched(fetcher, &hash);
    free(bytes);
    rogue_destroy(silent);
    rogue_destroy(liar);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&a), fixture_holder_destroy(&b), fixture_holder_destroy(&c);
}

// Asked for twice while it comes, and forgotten while it comes: an answer for each asking.
static void test_twice_and_forgotten(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(70000, 7);
    const struct hash hash = fixture_give(holder.store, bytes, 70000);
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, holder.store);
    fixture_fetch(fetcher, &hash, 70000, &silent->holder, 1);
    fixture_fetch(fetcher, &hash, 70000, &silent->holder, 1);
    fixture_fetch(fetcher, &hash, 1, &silent->holder, 1); // Another size is another blob
    fixture_forget(fetcher, &hash);
    for (int i = 0; i < 3; i++) expect_failed(fetcher, "forgotten while it was fetched");
    fixture_fetch(fetcher, &hash, 1, &holder.holder, 1);
    fixture_fetch(fetcher, &hash, 70000, &silent->holder, 1);
    expect_failed(fetcher, "no holder has it: 1 asked, 1 of another size");
    fixture_fetch(fetcher, &hash, 70000, &holder.holder, 1); // Joins it and brings a holder
    expect_fetched(fetcher, &hash);
    expect_fetched(fetcher, &hash);
    assert_null(fixture_answer(fetcher, FRAME_FETCHED, 20));
    fixture_fetch(fetcher, &hash, 1, &holder.holder, 1);
    expect_failed(fetcher, "1 bytes, but it has 70000; not fetched");
    free(bytes);
    rogue_destroy(silent);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

// ---- names ----------------------------------------------------------------------------------

enum { LOOKUP_MS = 4000 };
static atomic_uint looked_up;

// libzmq's own, in its I/O thread. A hostile name server takes its time.
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || !strstr(name, "slow.example")) return real(name, service, hints, ret_list);
    looked_up++;
    poll(NULL, 0, LOOKUP_MS);
    return EAI_AGAIN;
}

// All transfers share that thread: a slow name of one holder would stop them all.
static void test_a_slow_name_delays_no_transfer(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(2000, 15);
    const struct hash a = fixture_give(holder.store, bytes, 1000),
                      b = fixture_give(holder.store, bytes + 1000, 1000);
    struct wire_holder list[] = { fixture_at("tcp://slow.example:7000"), holder.holder };
    fixture_fetch(fetcher, &a, 1000, list, 2);
    expect_fetched(fetcher, &a);
    fixture_fetch(fetcher, &b, 1000, list + 1, 1);
    expect_fetched(fetcher, &b);
    assert_int_equal(looked_up, 0);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

static void test_fetch_over_ipv6(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(3000);
    uint8_t *bytes = fixture_bytes(1000, 16);
    const struct hash hash = fixture_give(holder.store, bytes, 1000);
    struct rogue *there = rogue_new_at("tcp://[::1]:0", ROGUE_DIES, UINT32_MAX, holder.store);
    if (there) {
        fixture_fetch(fetcher, &hash, 1000, &there->holder, 1);
        expect_fetched(fetcher, &hash);
        rogue_destroy(there);
    } else print_message("no [::1] on this machine: not tested\n");
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

// ---- models ---------------------------------------------------------------------------------

enum {
    MODEL_LEAVES = 101,
    MODEL_FLOATS = 100 * DIGEST_LEAF_FLOATS + 77,
    HOLDERS = 3,
    LIST_BYTES = MODEL_LEAVES * HASH_BYTES,
    MODEL_BYTES = MODEL_FLOATS * 4
};

static struct hash pin(blob_store_t *store, uint64_t step, const float *params)
{
    return pin_vector(store, step, params, MODEL_FLOATS);
}

static const struct wire_fetched_model *fetch_model(struct fixture_fetcher *fetcher, uint64_t step,
                                                    const struct hash *digest,
                                                    const struct wire_holder *list, uint32_t count)
{
    fixture_fetch_model(fetcher, step, digest, MODEL_FLOATS, list, count);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_non_null(fetched);
    assert_true(fetched->step == step);
    return fetched;
}

static void expect_stage(blob_store_t *store, uint64_t step, const struct hash *digest,
                         const float *params)
{
    struct blob_snapshot got;
    struct state_copy copy;
    assert_true(blob_store_unstage(store, step, &got, &copy));
    assert_true(got.step == step && hash_equal(&got.digest, digest));
    assert_true(got.cut.count == 1 && got.cut.bytes[0] == MODEL_BYTES);
    assert_memory_equal(copy.bytes, params, MODEL_BYTES);
    state_copy_free(&copy);
}

static void test_model_from_three_and_then_what_differs(void **state)
{
    (void)state;
    struct fixture_holder holders[HOLDERS];
    struct wire_holder list[HOLDERS];
    struct fixture_fetcher *fetcher =
        fixture_fetcher_new(ENOUGH_MS); // No holder is late: nothing comes twice
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 8);
    struct hash digest;
    for (int i = 0; i < HOLDERS; i++) {
        holders[i] = fixture_holder_new();
        list[i] = holders[i].holder;
        digest = pin(holders[i].store, 5, params);
    }
    const struct wire_fetched_model *fetched = fetch_model(fetcher, 5, &digest, list, HOLDERS);
    assert_true(fetched->ok);
    assert_int_equal(fetched->bytes, MODEL_BYTES + LIST_BYTES);
    assert_int_equal(fetched->holders, HOLDERS);
    expect_stage(fetcher->store, 5, &digest, params);
    uint64_t chunks[HOLDERS], lists = 0;
    for (int i = 0; i < HOLDERS; i++) {
        const struct bulk_counts counts = bulk_counts_of(holders[i].server);
        chunks[i] = counts.chunks;
        lists += counts.leaf_lists;
        assert_true(counts.chunks > 0);
    }
    assert_true(lists == 1 && chunks[0] + chunks[1] + chunks[2] == MODEL_LEAVES);
    print_message("leaves from each: %d %d %d\n", (int)chunks[0], (int)chunks[1], (int)chunks[2]);

    pin(fetcher->store, 5, params); // As the learner does
    params[0] = params[50 * DIGEST_LEAF_FLOATS] = params[MODEL_FLOATS - 1] = 1.5f;
    for (int i = 0; i < HOLDERS; i++) digest = pin(holders[i].store, 6, params);
    fetched = fetch_model(fetcher, 6, &digest, list, HOLDERS);
    assert_true(fetched->ok);
    assert_int_equal(fetched->bytes, LIST_BYTES + (2 * DIGEST_LEAF_FLOATS + 77) * 4);
    expect_stage(fetcher->store, 6, &digest, params);

    pin(fetcher->store, 6, params); // All of it is here
    fetched = fetch_model(fetcher, 6, &digest, NULL, 0);
    assert_true(fetched->ok && fetched->bytes == 0 && fetched->holders == 0);
    expect_stage(fetcher->store, 6, &digest, params);
    free(params);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < HOLDERS; i++) fixture_holder_destroy(&holders[i]);
}

// Parameters and what AdamW keeps beside them: one digest, and only what differs is moved. Whoever
// thinks of other sizes gets nothing.
static void test_state_of_several_items(void **state)
{
    (void)state;
    enum { COUNT = 3 * DIGEST_LEAF_FLOATS + 9, BYTES = COUNT * 4, LEAVES = 4 + 4 + 4 + 1 };
    struct fixture_holder holders[2] = { fixture_holder_new(), fixture_holder_new() };
    const struct wire_holder list[] = { holders[0].holder, holders[1].holder };
    struct fixture_fetcher *fetcher = fixture_fetcher_new(ENOUGH_MS);
    uint8_t *moments[] = { fixture_bytes(BYTES, 21), fixture_bytes(BYTES, 22) };
    uint8_t *params = fixture_bytes(BYTES, 20);
    uint64_t steps = 9;
    const void *items[] = { params, moments[0], moments[1], &steps };
    const struct state_cut cut = { 4, { BYTES, BYTES, BYTES, sizeof steps } };
    struct hash digest = pin_state(holders[0].store, 5, &cut, items);
    struct blob_snapshot got;
    pin_state(holders[1].store, 5, &cut, items);
    fixture_fetch_state(fetcher, 5, &digest, &cut, list, 2);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_true(fetched && fetched->ok);
    assert_int_equal(fetched->bytes, 3 * BYTES + sizeof steps + LEAVES * HASH_BYTES);
    struct state_copy copy;
    assert_true(blob_store_unstage(fetcher->store, 5, &got, &copy));
    assert_true(state_cut_equal(&got.cut, &cut) && hash_equal(&got.digest, &digest));
    for (uint32_t i = 0; i < cut.count; i++)
        assert_memory_equal(copy.bytes + state_cut_place(&cut, i), items[i], cut.bytes[i]);
    state_copy_free(&copy);

    pin_state(fetcher->store, 5, &cut, items);
    moments[1][2 * STATE_LEAF_BYTES + 3] ^= 4;
    for (int i = 0; i < 2; i++) digest = pin_state(holders[i].store, 6, &cut, items);
    fixture_fetch_state(fetcher, 6, &digest, &cut, list, 2);
    fetched = fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_true(fetched && fetched->ok && fetched->holders == 1);
    assert_int_equal(fetched->bytes, STATE_LEAF_BYTES + LEAVES * HASH_BYTES);
    assert_true(blob_store_unstage(fetcher->store, 6, &got, &copy));
    assert_memory_equal(copy.bytes + state_cut_place(&cut, 2), moments[1], BYTES);
    state_copy_free(&copy);

    const struct state_cut others[] = { { 1, { BYTES } },
                                        { 3, { BYTES, BYTES, BYTES } },
                                        { 4, { BYTES, BYTES, BYTES, STATE_LEAF_BYTES + 1 } },
                                        { 4, { BYTES, BYTES, BYTES, sizeof steps + 4 } } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct fixture_fetcher *other = fixture_fetcher_new(ENOUGH_MS);
        fixture_fetch_state(other, 6, &digest, &others[i], list, 2);
        fetched = fixture_answer(other, FRAME_FETCHED_MODEL, ENOUGH_MS);
        assert_true(fetched && !fetched->ok && strstr(fetched->reason, "2 sent wrong bytes"));
        assert_false(blob_store_unstage(other->store, 6, &got, &copy));
        fixture_fetcher_destroy(other);
    }
    for (int i = 0; i < 2; i++) fixture_holder_destroy(&holders[i]), free(moments[i]);
    free(params);
    fixture_fetcher_destroy(fetcher);
}

static void test_model_goes_on_where_it_stopped(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 9);
    const struct hash digest = pin(holder.store, 5, params), other = { { 3 } };
    struct rogue *dies = rogue_new(ROGUE_DIES, 60, holder.store);
    const struct wire_fetched_model *fetched = fetch_model(fetcher, 5, &digest, &dies->holder, 1);
    assert_false(fetched->ok);
    assert_non_null(strstr(fetched->reason, "no holder has it: 1 asked, 1 silent: key "));
    assert_non_null(strstr(fetched->reason, named(&dies->holder)));
    assert_non_null(strstr(fetched->reason, " of 101 leaves are here"));
    const uint64_t first = fetched->bytes;
    assert_true(first > LIST_BYTES);
    fetched = fetch_model(fetcher, 5, &digest, &holder.holder, 1);
    assert_true(fetched->ok && fetched->holders == 1);
    assert_int_equal(first + fetched->bytes, MODEL_BYTES + LIST_BYTES);
    expect_stage(fetcher->store, 5, &digest, params);
    fetched = fetch_model(fetcher, 9, &other, &holder.holder, 1);
    assert_string_equal(fetched->reason,
                        "no holder has it: 1 asked, 1 lack it; 0 of 101 leaves are here");
    free(params);
    rogue_destroy(dies);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

static void test_model_among_rogues(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 10);
    const struct hash digest = pin(holder.store, 5, params);
    const enum rogue_mode modes[] = { ROGUE_WRONG_LIST, ROGUE_WRONG,  ROGUE_SILENT,
                                      ROGUE_SHORT,      ROGUE_LARGER, ROGUE_OTHER };
    struct rogue *rogues[6];
    struct wire_holder list[7];
    for (int i = 0; i < 6; i++) {
        rogues[i] = rogue_new(modes[i], modes[i] == ROGUE_WRONG ? 3 : 0, holder.store);
        list[i] = rogues[i]->holder;
    }
    list[6] = holder.holder;
    const struct wire_fetched_model *fetched = fetch_model(fetcher, 5, &digest, list, 7);
    assert_true(fetched->ok);
    expect_stage(fetcher->store, 5, &digest, params);
    free(params);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < 6; i++) rogue_destroy(rogues[i]);
    fixture_holder_destroy(&holder);
}

// The root of one leaf is that leaf: a digest that poses as its own list has the right root, and
// no data can fit it.
static void test_model_whose_digest_poses_as_its_list(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(1000);
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 13);
    const struct hash digest = pin(holder.store, 5, params);
    struct rogue *rogue = rogue_new(ROGUE_SHORT_LIST, 0, holder.store);
    const struct wire_holder list[] = { rogue->holder, holder.holder };
    const struct wire_fetched_model *fetched = fetch_model(fetcher, 5, &digest, list, 1);
    assert_string_equal(fetched->reason,
                        "no holder has it: 1 asked, 1 sent wrong bytes; 0 of 101 leaves are here");
    fetched = fetch_model(fetcher, 5, &digest, list, 2);
    assert_true(fetched->ok && fetched->holders == 1 && rogue->asked == 1);
    expect_stage(fetcher->store, 5, &digest, params);
    fixture_fetch_model(fetcher, 5, &digest, 0, list, 2); // Its own program is asked too much
    fetched = fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_true(fetched && !fetched->ok);
    assert_string_equal(fetched->reason,
                        "a state of 0 leaves, allowed 1..524288 and no empty item; not fetched; "
                        "0 of 0 leaves are here");
    free(params);
    rogue_destroy(rogue);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

static void test_list_without_leaves_is_forgotten(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 14);
    const struct hash digest = pin(holder.store, 5, params);
    struct rogue *dies = rogue_new(ROGUE_DIES, 1, holder.store);
    const struct wire_fetched_model *fetched = fetch_model(fetcher, 5, &digest, &dies->holder, 1);
    char text[200];
    snprintf(text, sizeof text, "no holder has it: 1 asked, 1 silent: %s; 0 of 101 leaves are here",
             named(&dies->holder));
    assert_string_equal(fetched->reason, text);
    fetched = fetch_model(fetcher, 5, &digest, &holder.holder, 1);
    assert_true(fetched->ok && bulk_counts_of(holder.server).leaf_lists == 1);
    expect_stage(fetcher->store, 5, &digest, params);
    free(params);
    rogue_destroy(dies);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

// Another digest takes the place of the one on its way.
static void test_model_is_replaced(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 11);
    const struct hash digest = pin(holder.store, 5, params), old = { { 3 } };
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, holder.store);
    fixture_fetch_model(fetcher, 4, &old, MODEL_FLOATS, &silent->holder, 1);
    fixture_fetch_model(fetcher, 5, &digest, MODEL_FLOATS, &holder.holder, 1);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_true(fetched && !fetched->ok && fetched->step == 4);
    assert_non_null(strstr(fetched->reason, "given up for the parameters of step 5"));
    fetched = fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_true(fetched && fetched->ok && fetched->step == 5);
    expect_stage(fetcher->store, 5, &digest, params);
    free(params);
    fixture_fetcher_destroy(fetcher);
    rogue_destroy(silent);
    fixture_holder_destroy(&holder);
}

// More holders than there may be connections: the longest unused give way.
static void test_more_holders_than_connections(void **state)
{
    (void)state;
    enum { NAMES = PEERS_OPEN_MAX + 8 };
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(2000);
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .store = holder.store };
    bulk_server_t *servers[NAMES];
    struct wire_holder list[NAMES];
    uint8_t *bytes = fixture_bytes(MODEL_BYTES, 12);
    for (int i = 0; i < NAMES; i++) {
        assert_int_equal(bulk_server_new(&options, &why, &servers[i]), 0);
        fixture_admit(servers[i]);
        list[i] = fixture_at(bulk_server_endpoint(servers[i]));
    }
    for (int i = 0; i < NAMES; i++) {
        const struct hash hash = fixture_give(holder.store, bytes, 1000 + (size_t)i);
        fixture_fetch(fetcher, &hash, 1000 + (size_t)i, &list[i], 1);
        expect_fetched(fetcher, &hash);
    }
    const struct hash digest = pin(holder.store, 5, (const float *)(const void *)bytes);
    const struct wire_fetched_model *fetched = fetch_model(fetcher, 5, &digest, list, NAMES);
    assert_true(fetched->ok);
    assert_in_range(fetched->holders, 2, NAMES);
    expect_stage(fetcher->store, 5, &digest, (const float *)(const void *)bytes);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < NAMES; i++) bulk_server_destroy(&servers[i]);
    fixture_holder_destroy(&holder);
}

TESTS(TEST(test_fetch), TEST(test_many_small_ones), TEST(test_on_disk),
      TEST(test_killed_holder_is_resumed_from), TEST(test_rogues), TEST(test_mixed_lies),
      TEST(test_reasons), TEST(test_twice_and_forgotten), TEST(test_a_slow_name_delays_no_transfer),
      TEST(test_fetch_over_ipv6), TEST(test_model_from_three_and_then_what_differs),
      TEST(test_state_of_several_items), TEST(test_model_goes_on_where_it_stopped),
      TEST(test_model_among_rogues), TEST(test_model_whose_digest_poses_as_its_list),
      TEST(test_list_without_leaves_is_forgotten), TEST(test_model_is_replaced),
      TEST(test_more_holders_than_connections))
