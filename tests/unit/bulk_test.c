// The bulk plane over loopback: server, fetcher and sample client, with holders that die, lie and are silent.
#include "common/bulk/bulk_client.h"
#include "tests/unit/bulk_fixture.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { PATIENCE_MS = 250, ENOUGH_MS = 8000, BLOB = 5 << 20 };

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

static void expect_bytes(blob_store_t *store, const struct hash *hash, const uint8_t *bytes, size_t count)
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
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(BLOB + 3, 1);
    const size_t sizes[] = { BLOB + 3, 1, BULK_CHUNK_BYTES, BULK_CHUNK_BYTES + 1, 0 };
    for (int i = 0; i < 5; i++) {
        const struct hash hash = fixture_give(holder.store, bytes, sizes[i]);
        fixture_fetch(fetcher, &hash, sizes[i], &holder.holder, 1);
        expect_fetched(fetcher, &hash);
        expect_bytes(fetcher->store, &hash, bytes, sizes[i]);
        fixture_fetch(fetcher, &hash, sizes[i], NULL, 0);           // Is here: answered at once
        expect_fetched(fetcher, &hash);
    }
    assert_int_equal(fetcher->stats.got_bytes, BLOB + 3 + 1 + 2 * BULK_CHUNK_BYTES + 1);
    assert_int_equal(fetcher->stats.kept_bytes, fetcher->stats.got_bytes);
    assert_int_equal(bulk_server_stats(holder.server).chunk_bytes, fetcher->stats.got_bytes);
    const struct hash gone = hash_of(bytes, 1);
    fixture_job(fetcher, FRAME_FORGET, &(struct wire_forget){ 1, &(struct wire_blob){ gone, 1 }, 1 });
    fixture_fetch(fetcher, &gone, 1, &holder.holder, 1);            // Again over the network
    expect_fetched(fetcher, &gone);
    assert_int_equal(fetcher->stats.got_bytes, BLOB + 3 + 2 + 2 * BULK_CHUNK_BYTES + 1);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

static void test_many_small_ones(void **state)
{
    (void)state;
    enum { MANY = 600 };
    struct fixture_holder holders[2] = { fixture_holder_new(), fixture_holder_new() };
    struct fixture_fetcher *fetcher = fixture_fetcher_new(2000);
    struct wire_blob *blobs = calloc(MANY, sizeof *blobs);
    uint8_t *bytes = fixture_bytes(40000, 2);
    for (uint32_t i = 0; i < MANY; i++) {                   // Each at one of the two
        memcpy(bytes, &i, sizeof i);
        blobs[i] = (struct wire_blob){ fixture_give(holders[i % 2].store, bytes, 40000 - i), 40000 - i };
    }
    const struct wire_holder list[2] = { holders[0].holder, holders[1].holder };
    fixture_job(fetcher, FRAME_FETCH, &(struct wire_fetch){ blobs, MANY, list, 2 });
    for (int i = 0; i < MANY; i++) {
        const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
        assert_true(fetched && fetched->ok);
    }
    assert_int_equal(blob_store_count(fetcher->store), MANY);
    free(blobs);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < 2; i++) fixture_holder_destroy(&holders[i]);
}

static void test_killed_holder_is_resumed_from(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(BLOB, 3);
    const struct hash hash = fixture_give(holder.store, bytes, BLOB);
    struct rogue *rogue = rogue_new(ROGUE_DIES, 10, holder.store);
    const struct wire_holder list[] = { rogue->holder, holder.holder };
    fixture_fetch(fetcher, &hash, BLOB, list, 2);
    expect_fetched(fetcher, &hash);
    expect_bytes(fetcher->store, &hash, bytes, BLOB);
    const uint64_t second = bulk_server_stats(holder.server).chunk_bytes;
    assert_int_equal(fetcher->stats.got_bytes, BLOB);       // Nothing twice
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
    static const struct { enum rogue_mode mode; uint32_t chunks; bool is_wasted; } cases[] = {
        { ROGUE_SILENT, 0, false }, { ROGUE_WRONG, 0, true }, { ROGUE_WRONG, 5, true },
        { ROGUE_LARGER, 0, true }, { ROGUE_SHORT, 0, true }, { ROGUE_OTHER, 0, true },
        { ROGUE_HUGE, 0, false } };
    struct fixture_holder holder = fixture_holder_new();
    uint8_t *bytes = fixture_bytes(BLOB, 4);
    const struct hash hash = fixture_give(holder.store, bytes, BLOB);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
        struct rogue *rogue = rogue_new(cases[i].mode, cases[i].chunks, holder.store);
        const struct wire_holder list[] = { rogue->holder, holder.holder };
        fixture_fetch(fetcher, &hash, BLOB, list, 2);
        expect_fetched(fetcher, &hash);
        expect_bytes(fetcher->store, &hash, bytes, BLOB);
        assert_true(rogue->asked > 0);
        assert_int_equal(fetcher->stats.got_bytes > BLOB, cases[i].is_wasted);
        fixture_fetcher_destroy(fetcher);
        rogue_destroy(rogue);
    }
    free(bytes);
    fixture_holder_destroy(&holder);
}

// A liar dies in between, so that nobody can say whose bytes were wrong: both honest and lying holders
// are asked for all of it, one after the other.
static void test_mixed_lies(void **state)
{
    (void)state;
    struct fixture_holder honest = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    enum { LARGE = 10 << 20 };                              // 40 chunks: from two at once
    uint8_t *bytes = fixture_bytes(LARGE, 5);
    const struct hash hash = fixture_give(honest.store, bytes, LARGE);
    struct rogue *liar = rogue_new(ROGUE_WRONG, 4, honest.store);
    const struct wire_holder list[] = { liar->holder, honest.holder };      // Large: both at once
    fixture_fetch(fetcher, &hash, LARGE, list, 2);
    expect_fetched(fetcher, &hash);
    expect_bytes(fetcher->store, &hash, bytes, LARGE);
    assert_true(liar->asked > 0);
    assert_true(fetcher->stats.got_bytes >= 2 * LARGE);
    fixture_fetch(fetcher, &(struct hash){ { 9 } }, LARGE, list, 2);
    expect_failed(fetcher, "no holder has it: 2 asked, 2 lack it");
    free(bytes);
    rogue_destroy(liar);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&honest);
}

static void test_reasons(void **state)
{
    (void)state;
    struct fixture_holder a = fixture_holder_new(), b = fixture_holder_new(), c = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    uint8_t *bytes = fixture_bytes(70000, 6);
    const struct hash hash = fixture_give(c.store, bytes, 70000), none = { { 0 } };
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, c.store), *liar = rogue_new(ROGUE_WRONG, 0, c.store);
    struct wire_holder list[] = { a.holder, silent->holder, b.holder, liar->holder, c.holder, b.holder };
    fixture_fetch(fetcher, &hash, 70000, list, 3);
    expect_failed(fetcher, "no holder has it: 3 asked, 2 lack it, 1 silent");
    fixture_fetch(fetcher, &hash, 70000, list + 2, 2);
    expect_failed(fetcher, "no holder has it: 2 asked, 1 lack it, 1 sent wrong bytes");
    fixture_fetch(fetcher, &hash, 70001, list + 4, 2);      // Declared with another size; b lacks it
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
    expect_failed(fetcher, "no holder has it: 4 asked, 4 silent");
    list[4] = c.holder;
    fixture_fetch(fetcher, &hash, 70000, list, 5);
    expect_fetched(fetcher, &hash);
    assert_int_equal(fetcher->stats.failures, 8);
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
    fixture_fetch(fetcher, &hash, 1, &silent->holder, 1);
    expect_failed(fetcher, "1 bytes, but it is being fetched with 70000; not fetched");
    fixture_job(fetcher, FRAME_FORGET, &(struct wire_forget){ 1, &(struct wire_blob){ hash, 70000 }, 1 });
    expect_failed(fetcher, "forgotten while it was fetched");
    expect_failed(fetcher, "forgotten while it was fetched");
    fixture_fetch(fetcher, &hash, 70000, &silent->holder, 1);
    fixture_fetch(fetcher, &hash, 70000, &holder.holder, 1);        // Joins it and brings a holder
    expect_fetched(fetcher, &hash);
    expect_fetched(fetcher, &hash);
    assert_null(fixture_answer(fetcher, FRAME_FETCHED, 20));
    free(bytes);
    rogue_destroy(silent);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

// ---- models ---------------------------------------------------------------------------------

enum { MODEL_LEAVES = 101, MODEL_FLOATS = 100 * DIGEST_LEAF_FLOATS + 77, HOLDERS = 3,
       LIST_BYTES = MODEL_LEAVES * HASH_BYTES, MODEL_BYTES = MODEL_FLOATS * 4 };

static struct hash pin(blob_store_t *store, uint64_t step, const float *params)
{
    static struct hash leaves[MODEL_LEAVES];
    digest_fill_leaves(params, MODEL_FLOATS, 0, MODEL_LEAVES, leaves);
    const struct hash digest = merkle_root(leaves, MODEL_LEAVES);
    assert_int_equal(blob_store_pin(store, step, &digest, params, MODEL_FLOATS, leaves, MODEL_LEAVES, &why), 0);
    return digest;
}

static const struct wire_fetched_model *fetch_model(struct fixture_fetcher *fetcher, uint64_t step,
                                                    const struct hash *digest,
                                                    const struct wire_holder *list, uint32_t count)
{
    fixture_job(fetcher, FRAME_FETCH_MODEL, &(struct wire_fetch_model){ step, *digest, list, count });
    const struct wire_fetched_model *fetched = fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
    assert_non_null(fetched);
    assert_true(fetched->step == step && hash_equal(&fetched->digest, digest));
    return fetched;
}

static void expect_stage(blob_store_t *store, uint64_t step, const struct hash *digest, const float *params)
{
    struct hash got;
    uint64_t floats = 0;
    float *vector = blob_store_unstage(store, step, &got, &floats);
    assert_non_null(vector);
    assert_true(floats == MODEL_FLOATS && hash_equal(&got, digest));
    assert_memory_equal(vector, params, MODEL_BYTES);
    free(vector);
}

static void test_model_from_three_and_then_what_differs(void **state)
{
    (void)state;
    struct fixture_holder holders[HOLDERS];
    struct wire_holder list[HOLDERS];
    struct fixture_fetcher *fetcher = fixture_fetcher_new(1000);
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
        const struct bulk_server_stats stats = bulk_server_stats(holders[i].server);
        chunks[i] = stats.chunks;
        lists += stats.leaf_lists;
        assert_true(stats.chunks > 0);
    }
    assert_true(lists == 1 && chunks[0] + chunks[1] + chunks[2] == MODEL_LEAVES);
    print_message("leaves from each: %d %d %d\n", (int)chunks[0], (int)chunks[1], (int)chunks[2]);

    pin(fetcher->store, 5, params);                         // As the learner does
    params[0] = params[50 * DIGEST_LEAF_FLOATS] = params[MODEL_FLOATS - 1] = 1.5f;
    for (int i = 0; i < HOLDERS; i++) digest = pin(holders[i].store, 6, params);
    fetched = fetch_model(fetcher, 6, &digest, list, HOLDERS);
    assert_true(fetched->ok);
    assert_int_equal(fetched->bytes, LIST_BYTES + (2 * DIGEST_LEAF_FLOATS + 77) * 4);
    expect_stage(fetcher->store, 6, &digest, params);

    pin(fetcher->store, 6, params);                         // All of it is here
    fetched = fetch_model(fetcher, 6, &digest, NULL, 0);
    assert_true(fetched->ok && fetched->bytes == 0 && fetched->holders == 0);
    expect_stage(fetcher->store, 6, &digest, params);
    free(params);
    fixture_fetcher_destroy(fetcher);
    for (int i = 0; i < HOLDERS; i++) fixture_holder_destroy(&holders[i]);
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
    assert_non_null(strstr(fetched->reason, "no holder has it: 1 asked, 1 silent; "));
    assert_non_null(strstr(fetched->reason, " of 101 leaves are here"));
    const uint64_t first = fetched->bytes;
    assert_true(first > LIST_BYTES);
    fetched = fetch_model(fetcher, 5, &digest, &holder.holder, 1);
    assert_true(fetched->ok && fetched->holders == 1);
    assert_int_equal(first + fetched->bytes, MODEL_BYTES + LIST_BYTES);
    expect_stage(fetcher->store, 5, &digest, params);
    fetched = fetch_model(fetcher, 9, &other, &holder.holder, 1);
    assert_string_equal(fetched->reason, "no holder has it: 1 asked, 1 lack it; 0 of 0 leaves are here");
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
    const enum rogue_mode modes[] = { ROGUE_WRONG_LIST, ROGUE_SILENT, ROGUE_WRONG, ROGUE_SHORT, ROGUE_LARGER,
                                      ROGUE_OTHER };
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

// Another digest takes the place of the one on its way.
static void test_model_is_replaced(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    float *params = (float *)(void *)fixture_bytes(MODEL_BYTES, 11);
    const struct hash digest = pin(holder.store, 5, params), old = { { 3 } };
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, holder.store);
    fixture_job(fetcher, FRAME_FETCH_MODEL, &(struct wire_fetch_model){ 4, old, &silent->holder, 1 });
    fixture_job(fetcher, FRAME_FETCH_MODEL, &(struct wire_fetch_model){ 5, digest, &holder.holder, 1 });
    const struct wire_fetched_model *fetched = fixture_answer(fetcher, FRAME_FETCHED_MODEL, ENOUGH_MS);
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

// ---- the server among enemies ---------------------------------------------------------------

static int dial(const struct wire_holder *holder)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)atoi(strrchr(holder->endpoint, ':') + 1)) };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

// ZMTP 3.0 with the NULL mechanism, as a DEALER.
static int shake_hands(const struct wire_holder *holder)
{
    uint8_t greeting[64] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'N', 'U', 'L', 'L' }, theirs[256];
    static const char ready[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06" "DEALER";
    const int fd = dial(holder);
    assert_int_equal(send(fd, greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    assert_int_equal(recv(fd, theirs, 64, MSG_WAITALL), 64);
    assert_int_equal(send(fd, ready, sizeof ready - 1, MSG_NOSIGNAL), sizeof ready - 1);
    assert_int_equal(recv(fd, theirs, 2, MSG_WAITALL), 2);
    assert_int_equal(recv(fd, theirs + 2, theirs[1], MSG_WAITALL), theirs[1]);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count; ) {
        const ssize_t n = send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL);
        if (n <= 0) return;                                 // It hung up on us, as it should
        done += (size_t)n;
    }
}

static void expect_serving(const struct fixture_holder *holder, uint64_t seed)
{
    struct fixture_fetcher *fetcher = fixture_fetcher_new(3000);
    uint8_t *bytes = fixture_bytes(300000, seed);
    const struct hash hash = fixture_give(holder->store, bytes, 300000);
    fixture_fetch(fetcher, &hash, 300000, &holder->holder, 1);
    expect_fetched(fetcher, &hash);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    uint8_t *noise = fixture_bytes(1 << 20, 12), huge[9] = { 2, 0, 0, 1, 0, 0, 0, 0, 0 };
    int fds[4] = { dial(&holder.holder), dial(&holder.holder), shake_hands(&holder.holder),
                   shake_hands(&holder.holder) };
    send_all(fds[0], noise, 1 << 20);                       // No protocol at all
    send_all(fds[1], "\xff\0\0", 3);                        // Begins, and never goes on
    send_all(fds[2], huge, sizeof huge);                    // A frame of a terabyte
    send_all(fds[2], noise, 100000);
    for (int i = 0; i < 1 << 20; i += 4) memcpy(noise + i, "\1\1xx", 4);
    for (int i = 2; i < 1 << 20; i += 3) memcpy(noise + i - 2, "\1\1x", 3);     // More, more, more ..
    for (int i = 0; i < 4; i++) send_all(fds[3], noise, 349525 * 3);
    expect_serving(&holder, 13);
    for (int i = 0; i < 4; i++) close(fds[i]);
    expect_serving(&holder, 14);
    free(noise);
    fixture_holder_destroy(&holder);
}

static uint64_t wait_for_malformed(const struct fixture_holder *holder, uint64_t count)
{
    uint64_t seen = 0;
    for (int i = 0; i < 5000 && (seen = bulk_server_stats(holder->server).malformed) < count; i++) usleep(1000);
    return seen;
}

static void send_parts(void *dealer, const uint8_t *bytes, size_t count, int parts)
{
    for (int i = 0; i < parts; i++) zmq_send(dealer, bytes, count, i + 1 < parts ? ZMQ_SNDMORE : 0);
}

static void test_hostile_frames(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = bulk_context_new(1), *dealer = bulk_socket_new(context, ZMQ_DEALER, -1, 100000);
    uint8_t *noise = fixture_bytes(BULK_ASK_BYTES_MAX, 15), frame[BULK_FRAME_MAX];
    assert_int_equal(zmq_connect(dealer, holder.holder.endpoint), 0);
    for (int i = 0; i < 200; i++) send_parts(dealer, noise + i, (size_t)i * 5, 1);
    send_parts(dealer, noise, BULK_ASK_BYTES_MAX, 1);
    send_parts(dealer, noise, 10, 5000);
    struct wire_head head = { .run = FIXTURE_RUN };
    struct wire_want want = { .request = 1, .hash = { { 1 } }, .offset = UINT64_MAX, .count = 1 };
    head.kind = FRAME_WANT;
    size_t count = wire_pack(&head, &want, frame, sizeof frame);
    send_parts(dealer, frame, count, 2);                    // A question with bytes behind it
    for (size_t i = 0; i < count; i++) {                    // Cut short everywhere
        zmq_send(dealer, frame, i, 0);
    }
    head.kind = FRAME_LACKING;                              // An answer, not a question
    count = wire_pack(&head, &(struct wire_lacking){ .request = 1 }, frame, sizeof frame);
    send_parts(dealer, frame, count, 1);
    head.kind = FRAME_WANT;
    const uint64_t malformed = 200 + 1 + 1 + 1 + wire_pack(&head, &want, frame, sizeof frame) + 1;
    assert_int_equal(wait_for_malformed(&holder, malformed), malformed);
    assert_int_equal(bulk_server_stats(holder.server).lacking, 0);      // Not one of them was answered
    uint8_t answer[8];
    assert_int_equal(zmq_recv(dealer, answer, sizeof answer, ZMQ_DONTWAIT), -1);
    expect_serving(&holder, 16);
    zmq_close(dealer);
    bulk_context_destroy(&context);
    free(noise);
    fixture_holder_destroy(&holder);
}

// Asks in its own words and returns the kind of the answer, its text in `text`.
static uint16_t ask(void *dealer, const char *run, uint16_t kind, const void *question, char text[192])
{
    struct bulk_mail mail;
    zmq_pollitem_t item = { .socket = dealer, .events = ZMQ_POLLIN };
    bulk_mail_init(&mail);
    assert_true(bulk_send(dealer, NULL, run, kind, question, NULL));
    assert_int_equal(zmq_poll(&item, 1, ENOUGH_MS), 1);
    assert_int_equal(bulk_mail_recv(&mail, dealer), BULK_MAIL);
    const uint16_t came = mail.head.kind;
    snprintf(text, 192, "%s", came == FRAME_LACKING ? ((const struct wire_lacking *)mail.body)->reason
                            : came == FRAME_NO_SAMPLES ? ((const struct wire_no_samples *)mail.body)->reason : "");
    bulk_mail_end(&mail);
    return came;
}

static void test_refusals(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = bulk_context_new(1), *dealer = bulk_socket_new(context, ZMQ_DEALER, -1, 100);
    char text[192];
    const struct hash hash = fixture_give(holder.store, (const uint8_t *)"alpha", 5);
    assert_int_equal(zmq_connect(dealer, holder.holder.endpoint), 0);
    struct wire_want want = { 1, hash, 5, 1 };
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT, &want, text), FRAME_LACKING);
    assert_string_equal(text, "it ends before this offset");
    want.offset = UINT64_MAX;
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT, &want, text), FRAME_LACKING);
    want.offset = 4, want.count = BULK_CHUNK_MAX;
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT, &want, text), FRAME_CHUNK);
    assert_int_equal(ask(dealer, "other", FRAME_WANT, &want, text), FRAME_LACKING);
    assert_string_equal(text, "this is run '" FIXTURE_RUN "'");
    const struct wire_want_leaves leaves = { 1, hash };
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT_LEAVES, &leaves, text), FRAME_LACKING);
    const struct wire_want_samples samples = { 1, 0, 1 };
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT_SAMPLES, &samples, text), FRAME_NO_SAMPLES);
    assert_string_equal(text, "no samples are served here");
    zmq_close(dealer);
    bulk_context_destroy(&context);
    fixture_holder_destroy(&holder);
}

// A peer that asks for much and reads nothing: its queue is bounded, and the end does not wait for it.
static void test_end_with_peers_connected(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = bulk_context_new(1), *dealer = bulk_socket_new(context, ZMQ_DEALER, -1, 2);
    uint8_t *bytes = fixture_bytes(8 << 20, 17);
    const struct hash hash = fixture_give(holder.store, bytes, 8 << 20);
    assert_int_equal(zmq_connect(dealer, holder.holder.endpoint), 0);
    const struct wire_want want = { 1, hash, 0, BULK_CHUNK_MAX };
    for (int i = 0; i < 300; i++) {
        zmq_pollitem_t item = { .socket = dealer, .events = ZMQ_POLLOUT };
        zmq_poll(&item, 1, 100);
        bulk_send(dealer, NULL, FIXTURE_RUN, FRAME_WANT, &want, NULL);
    }
    for (int i = 0; i < 5000 && bulk_server_stats(holder.server).dropped == 0; i++) usleep(1000);
    const struct bulk_server_stats stats = bulk_server_stats(holder.server);
    assert_true(stats.dropped > 0 && stats.chunks > 0);
    blob_store_forget(holder.store, &hash);                 // Some of it is still in its queue
    const uint64_t start_ms = bulk_now_ms();
    fixture_holder_destroy(&holder);
    assert_true(bulk_now_ms() - start_ms < 1000);
    zmq_close(dealer);
    bulk_context_destroy(&context);
    free(bytes);
}

static void test_bad_options(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    bulk_server_t *server = NULL;
    struct bulk_server_options options = { .endpoint = holder.holder.endpoint, .run = FIXTURE_RUN };
    assert_int_equal(bulk_server_new(&options, &why, &server), FAULT_BUSY);
    options.endpoint = "ipc:///nowhere";
    assert_int_equal(bulk_server_new(&options, &why, &server), FAULT_CONFIG);
    options.endpoint = "tcp://127.0.0.1:99999";
    assert_int_equal(bulk_server_new(&options, &why, &server), FAULT_CONFIG);
    options.run = "a run with a name that is longer than allowed";
    assert_int_equal(bulk_server_new(&options, &why, &server), FAULT_RANGE);
    assert_null(server);
    fixture_holder_destroy(&holder);
}

// ---- samples --------------------------------------------------------------------------------

enum { SEQ_LEN = 7, FIRST_MISSING = 1000000 };

static int read_samples(void *arg, uint64_t position, uint32_t count, uint32_t *tokens, struct why *reason)
{
    const uint64_t missing_from = *(const uint64_t *)arg;
    for (uint32_t i = 0; i < count * (SEQ_LEN + 1); i++) tokens[i] = (uint32_t)position * (SEQ_LEN + 1) + i;
    return position + count <= missing_from ? 0
         : why_set(reason, FAULT_NOT_FOUND, "position %llu:\nnot in this file", (unsigned long long)position);
}

static bulk_server_t *new_provider(const uint64_t *missing_from)
{
    const struct bulk_server_options options = { .endpoint = "tcp://127.0.0.1:*", .run = FIXTURE_RUN,
        .read = read_samples, .arg = (void *)(uintptr_t)missing_from, .seq_len = SEQ_LEN };
    bulk_server_t *server = NULL;
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    return server;
}

static void test_samples(void **state)
{
    (void)state;
    static const uint64_t none = 0, many = FIRST_MISSING;
    bulk_server_t *empty = new_provider(&none), *full = new_provider(&many);
    struct bulk_client *client = NULL;
    const struct bulk_client_options options = { FIXTURE_RUN, SEQ_LEN, 2000, 2 };
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    uint32_t tokens[2][10 * (SEQ_LEN + 1)];
    assert_int_equal(bulk_read_samples(client, 0, 1, tokens[0], &why), FAULT_UNREACHABLE);
    assert_string_equal(why.text, "samples 0..0: 0 providers asked 2 times, none gave them");
    const char *endpoints[] = { bulk_server_endpoint(empty), bulk_server_endpoint(full) };
    bulk_client_set_endpoints(client, endpoints, 2);
    for (uint64_t position = 0; position < 50; position += 10) {
        assert_int_equal(bulk_client_fetch(client, position, 10, tokens[0], &why), 0);
        read_samples((void *)(uintptr_t)&many, position, 10, tokens[1], &why);
        assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
    }
    assert_int_equal(bulk_server_stats(empty).lacking, 1);          // Whoever gave them is asked again
    assert_int_equal(bulk_server_stats(full).samples, 50);
    assert_int_equal(bulk_read_samples(client, FIRST_MISSING, 1, tokens[0], &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "samples 1000000..1000000: 2 providers asked 2 times, none gave them; tcp://"));
    assert_non_null(strstr(why.text, "position 1000000: not in this file"));

    enum { LARGE = 300000 };                                        // More than one answer may be
    uint32_t *large = malloc((size_t)LARGE * (SEQ_LEN + 1) * sizeof *large);
    assert_int_equal(bulk_read_samples(client, 0, LARGE, large, &why), 0);
    for (uint32_t i = 0; i < LARGE * (SEQ_LEN + 1); i++) assert_int_equal(large[i], i);
    free(large);
    bulk_client_destroy(&client);
    bulk_server_destroy(&empty);
    bulk_server_destroy(&full);
}

static void test_samples_from_whom_nothing_is_to_be_had(void **state)
{
    (void)state;
    static const uint64_t many = FIRST_MISSING;
    bulk_server_t *full = new_provider(&many);
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, NULL);
    struct bulk_client *client = NULL, *other = NULL;
    const struct bulk_client_options options = { FIXTURE_RUN, SEQ_LEN, 100, 2 };
    const struct bulk_client_options longer = { FIXTURE_RUN, SEQ_LEN + 1, 2000, 1 };
    const struct bulk_client_options foreign = { "other", SEQ_LEN, 2000, 1 }, bad = { "", 0, 0, 0 };
    const char *endpoints[] = { silent->holder.endpoint, "nonsense", bulk_server_endpoint(full) };
    uint32_t tokens[SEQ_LEN + 2];
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    bulk_client_set_endpoints(client, endpoints, 2);
    assert_int_equal(bulk_read_samples(client, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, ": no answer in 100 ms; nonsense: cannot be called"));
    assert_int_equal(silent->asked, 2);
    bulk_client_set_endpoints(client, endpoints, 3);
    assert_int_equal(bulk_read_samples(client, 3, 1, tokens, &why), 0);
    assert_int_equal(tokens[1], 3 * (SEQ_LEN + 1) + 1);
    assert_int_equal(bulk_client_new(&longer, &why, &other), 0);
    bulk_client_set_endpoints(other, endpoints + 2, 1);
    assert_int_equal(bulk_read_samples(other, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "sent 1 samples of seq_len 7 in 32 bytes, asked were 1 of 8"));
    bulk_client_destroy(&other);
    assert_int_equal(bulk_client_new(&foreign, &why, &other), 0);
    bulk_client_set_endpoints(other, endpoints + 2, 1);
    assert_int_equal(bulk_read_samples(other, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "this is run '" FIXTURE_RUN "'"));
    bulk_client_destroy(&other);
    assert_int_equal(bulk_client_new(&bad, &why, &other), FAULT_RANGE);
    bulk_client_destroy(&client);
    bulk_server_destroy(&full);
    rogue_destroy(silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch),
        cmocka_unit_test(test_many_small_ones),
        cmocka_unit_test(test_killed_holder_is_resumed_from),
        cmocka_unit_test(test_rogues),
        cmocka_unit_test(test_mixed_lies),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_twice_and_forgotten),
        cmocka_unit_test(test_model_from_three_and_then_what_differs),
        cmocka_unit_test(test_model_goes_on_where_it_stopped),
        cmocka_unit_test(test_model_among_rogues),
        cmocka_unit_test(test_model_is_replaced),
        cmocka_unit_test(test_hostile_bytes),
        cmocka_unit_test(test_hostile_frames),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_end_with_peers_connected),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_samples_from_whom_nothing_is_to_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
