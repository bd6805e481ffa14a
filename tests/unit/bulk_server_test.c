// The bulk server survives hostile peers, and a client finds a provider that gives samples.
#include "common/base/clock.h"
#include "common/bulk/bulk_client.h"
#include "common/bulk/providers.h"
#include "tests/unit/bulk_counts.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"
#include <inttypes.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENOUGH_MS = 30000 };

static struct why why;

// ---- the server among enemies ---------------------------------------------------------------

static int dial(const struct wire_holder *holder)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const uint16_t port = (uint16_t)atoi(strrchr(holder->endpoint, ':') + 1);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

// ZMTP 3.0, as far as one comes without a key.
static int greet(const struct wire_holder *holder, const char *mechanism)
{
    uint8_t greeting[64] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0 }, theirs[64];
    const int fd = dial(holder);
    memcpy(greeting + 12, mechanism, strlen(mechanism));
    assert_int_equal(send(fd, greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    const ssize_t count = recv(fd, theirs, 64, MSG_WAITALL);
    if (strcmp(mechanism, "CURVE") == 0) assert_int_equal(count, 64);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        const ssize_t n = send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL);
        if (n <= 0) return; // It hung up on us, as it should
        done += (size_t)n;
    }
}

static void expect_serving(const struct fixture_holder *holder, uint64_t seed)
{
    struct fixture_fetcher *fetcher = fixture_fetcher_new(3000);
    uint8_t *bytes = fixture_bytes(300000, seed);
    const struct hash hash = fixture_give(holder->store, bytes, 300000);
    fixture_fetch(fetcher, &hash, 300000, &holder->holder, 1);
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_true(fetched && fetched->ok);
    free(bytes);
    fixture_fetcher_destroy(fetcher);
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    uint8_t *noise = fixture_bytes(1 << 20, 12), huge[9] = { 2, 0, 0, 1, 0, 0, 0, 0, 0 };
    int fds[4] = { dial(&holder.holder), dial(&holder.holder), greet(&holder.holder, "CURVE"),
                   greet(&holder.holder, "CURVE") };
    const int plain = greet(&holder.holder, "NULL");
    uint8_t nothing;
    assert_true(recv(plain, &nothing, 1, 0) <= 0); // Hung up at once
    close(plain);
    send_all(fds[0], noise, 1 << 20);    // No protocol at all
    send_all(fds[1], "\xff\0\0", 3);     // Begins, and never goes on
    send_all(fds[2], huge, sizeof huge); // A frame of a terabyte
    send_all(fds[2], noise, 100000);
    for (int i = 0; i < 1 << 20; i += 4) memcpy(noise + i, "\1\1xx", 4);
    for (int i = 2; i < 1 << 20; i += 3) memcpy(noise + i - 2, "\1\1x", 3); // More, more ..
    for (int i = 0; i < 4; i++) send_all(fds[3], noise, 349525 * 3);
    expect_serving(&holder, 13);
    for (int i = 0; i < 4; i++) close(fds[i]);
    expect_serving(&holder, 14);
    free(noise);
    fixture_holder_destroy(&holder);
}

static struct identity *stranger(void)
{
    static const uint8_t secret[SECRET_BYTES] = { 9 };
    struct identity *identity;
    assert_int_equal(identity_from_secret(secret, &why, &identity), 0);
    return identity;
}

// Whether a question of this identity is answered within a second.
static bool is_answered(void *context, const struct identity *identity,
                        const struct wire_holder *holder)
{
    void *dealer = net_socket_new(context, ZMQ_DEALER, -1, 10);
    zmq_pollitem_t item = { .socket = dealer, .events = ZMQ_POLLIN };
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    assert_true(bulk_connect(dealer, identity, holder));
    bulk_send(dealer, NULL, FIXTURE_RUN, FRAME_WANT, &want, NULL);
    const bool is = zmq_poll(&item, 1, 1000) == 1;
    zmq_close(dealer);
    return is;
}

static void test_only_guests_are_served(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct identity *identity = stranger();
    struct curve_key key;
    void *context = net_context_new(1);
    assert_true(curve_of_key(identity_key(identity), &key));
    assert_false(is_answered(context, identity, &holder.holder));
    bulk_server_admit(holder.server, &key, true);
    assert_true(is_answered(context, identity, &holder.holder));
    struct wire_holder other = holder.holder; // Our own key there, not the holder's
    other.key = *identity_key(identity);
    assert_false(is_answered(context, identity, &other));
    net_context_destroy(&context);
    identity_destroy(&identity);
    fixture_holder_destroy(&holder);
}

// A peer that is ejected while connected gets no more answers, and its connection ends.
static void test_an_ejected_peer_is_cut_off(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = net_context_new(1), *dealer = net_socket_new(context, ZMQ_DEALER, -1, 10),
         *events = zmq_socket(context, ZMQ_PAIR);
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    zmq_pollitem_t items[] = { { .socket = dealer, .events = ZMQ_POLLIN },
                               { .socket = events, .events = ZMQ_POLLIN } };
    struct bulk_mail mail;
    struct curve_key key;
    assert_int_equal(zmq_socket_monitor(dealer, "inproc://events", ZMQ_EVENT_DISCONNECTED), 0);
    assert_int_equal(zmq_connect(events, "inproc://events"), 0);
    assert_true(bulk_connect(dealer, fixture_identity(), &holder.holder));
    bulk_send(dealer, NULL, FIXTURE_RUN, FRAME_WANT, &want, NULL);
    assert_int_equal(zmq_poll(items, 1, ENOUGH_MS), 1);
    bulk_mail_init(&mail);
    assert_int_equal(bulk_mail_recv(&mail, dealer), BULK_MAIL);
    bulk_mail_end(&mail);
    assert_true(curve_of_key(identity_key(fixture_identity()), &key));
    bulk_server_admit(holder.server, &key, false);
    bulk_send(dealer, NULL, FIXTURE_RUN, FRAME_WANT, &want, NULL);
    assert_int_equal(zmq_poll(items, 2, ENOUGH_MS), 1);
    assert_false(items[0].revents); // No answer but the end
    assert_true(items[1].revents);
    zmq_close(events);
    zmq_close(dealer);
    net_context_destroy(&context);
    fixture_holder_destroy(&holder);
}

// Asks in its own words and returns the kind of the answer, its text in `text`.
static uint16_t ask(void *dealer, const char *run, uint16_t kind, const void *question,
                    char text[192])
{
    struct bulk_mail mail;
    zmq_pollitem_t item = { .socket = dealer, .events = ZMQ_POLLIN };
    bulk_mail_init(&mail);
    assert_true(bulk_send(dealer, NULL, run, kind, question, NULL));
    assert_int_equal(zmq_poll(&item, 1, ENOUGH_MS), 1);
    assert_int_equal(bulk_mail_recv(&mail, dealer), BULK_MAIL);
    const uint16_t came = mail.head.kind;
    snprintf(text, 192, "%s",
             came == FRAME_LACKING      ? ((const struct wire_lacking *)mail.body)->reason
             : came == FRAME_NO_SAMPLES ? ((const struct wire_no_samples *)mail.body)->reason
                                        : "");
    bulk_mail_end(&mail);
    return came;
}

static void send_parts(void *dealer, const uint8_t *bytes, size_t count, int parts)
{
    for (int i = 0; i < parts; i++) zmq_send(dealer, bytes, count, i + 1 < parts ? ZMQ_SNDMORE : 0);
}

static void test_hostile_frames(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = net_context_new(1), *dealer = net_socket_new(context, ZMQ_DEALER, -1, 100000);
    uint8_t *noise = fixture_bytes(BULK_ASK_BYTES_MAX, 15), frame[BULK_FRAME_MAX];
    assert_true(bulk_connect(dealer, fixture_identity(), &holder.holder));
    for (int i = 0; i < 200; i++) send_parts(dealer, noise + i, (size_t)i * 5, 1);
    send_parts(dealer, noise, BULK_ASK_BYTES_MAX, 1);
    send_parts(dealer, noise, 10, 5000);
    struct wire_head head = { .run = FIXTURE_RUN };
    struct wire_want want = { .request = 1, .hash = { { 1 } }, .offset = UINT64_MAX, .count = 1 };
    head.kind = FRAME_WANT;
    size_t count = wire_pack(&head, &want, frame, sizeof frame);
    send_parts(dealer, frame, count, 2); // A question with bytes behind it
    for (size_t i = 0; i < count; i++) { // Cut short everywhere
        zmq_send(dealer, frame, i, 0);
    }
    head.kind = FRAME_LACKING; // An answer, not a question
    count = wire_pack(&head, &(struct wire_lacking){ .request = 1 }, frame, sizeof frame);
    send_parts(dealer, frame, count, 1);
    head.kind = FRAME_WANT;
    const uint64_t malformed = 200 + 1 + 1 + 1 + wire_pack(&head, &want, frame, sizeof frame) + 1;
    char text[192];
    want.offset = 0; // By its answer all before are heard
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT, &want, text), FRAME_LACKING);
    assert_int_equal(bulk_counts_of(holder.server).heard, malformed + 1);
    assert_int_equal(bulk_counts_of(holder.server).refusals, 1); // No other was answered
    uint8_t answer[8];
    assert_int_equal(zmq_recv(dealer, answer, sizeof answer, ZMQ_DONTWAIT), -1);
    expect_serving(&holder, 16);
    zmq_close(dealer);
    net_context_destroy(&context);
    free(noise);
    fixture_holder_destroy(&holder);
}

static void test_refusals(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = net_context_new(1), *dealer = net_socket_new(context, ZMQ_DEALER, -1, 100);
    char text[192];
    const struct hash hash = fixture_give(holder.store, (const uint8_t *)"alpha", 5);
    assert_true(bulk_connect(dealer, fixture_identity(), &holder.holder));
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
    assert_int_equal(ask(dealer, FIXTURE_RUN, FRAME_WANT_SAMPLES, &samples, text),
                     FRAME_NO_SAMPLES);
    assert_string_equal(text, "no samples are served here");
    zmq_close(dealer);
    net_context_destroy(&context);
    fixture_holder_destroy(&holder);
}

// A peer that asks for much and reads nothing: its queue is bounded, and the end does not wait for
// it.
static void test_end_with_peers_connected(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    void *context = net_context_new(1), *dealer = net_socket_new(context, ZMQ_DEALER, -1, 2);
    uint8_t *bytes = fixture_bytes(8 << 20, 17);
    const struct hash hash = fixture_give(holder.store, bytes, 8 << 20);
    assert_true(bulk_connect(dealer, fixture_identity(), &holder.holder));
    const struct wire_want want = { 1, hash, 0, BULK_CHUNK_MAX };
    struct bulk_counts counts = { 0 };
    for (int i = 0; i < 100000 && counts.heard <= counts.chunks + 1; i++) {
        zmq_pollitem_t item = { .socket = dealer, .events = ZMQ_POLLOUT };
        assert_int_equal(zmq_poll(&item, 1, ENOUGH_MS), 1); // It reads on, answered or not
        bulk_send(dealer, NULL, FIXTURE_RUN, FRAME_WANT, &want, NULL);
        counts = bulk_counts_of(holder.server);
    }
    assert_true(counts.heard > counts.chunks + 1 && counts.chunks > 0); // One is in hand
    blob_store_drop(holder.store, &hash); // Some of it is still in its queue
    const uint64_t start_ms = clock_ms();
    fixture_holder_destroy(&holder);
    assert_true(clock_ms() - start_ms < 1000);
    zmq_close(dealer);
    net_context_destroy(&context);
    free(bytes);
}

static void test_bad_options(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    bulk_server_t *server = NULL;
    struct bulk_server_options options = { .identity = fixture_identity(),
                                           .endpoint = holder.holder.endpoint,
                                           .run = FIXTURE_RUN };
    assert_int_equal(bulk_server_new(&options, &why, &server), FAULT_BUSY);
    options.endpoint = "tcp://192.0.2.1:*";
    assert_int_equal(bulk_server_new(&options, &why, &server), FAULT_UNAVAILABLE);
    assert_non_null(strstr(why.text, "192.0.2.1 is no address of this machine; it has "));
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

static int read_samples(void *arg, uint64_t position, uint32_t count, uint32_t *tokens,
                        struct why *reason)
{
    const uint64_t missing_from = *(const uint64_t *)arg;
    for (uint32_t i = 0; i < count * (SEQ_LEN + 1); i++)
        tokens[i] = (uint32_t)position * (SEQ_LEN + 1) + i;
    return position + count <= missing_from
               ? 0
               : why_set(reason, FAULT_NOT_FOUND, "position %" PRIu64 ":\nnot in this file",
                         position);
}

// Proofs are common/data's: here the bytes are the tokens.
static int give_samples(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                        size_t *ret_count, struct why *reason)
{
    *ret_count = count * (SEQ_LEN + 1) * sizeof(uint32_t);
    *ret_bytes = malloc(*ret_count);
    return read_samples(arg, position, count, (uint32_t *)(void *)*ret_bytes, reason);
}

static int take_samples(void *arg, uint64_t position, uint32_t count, const uint8_t *bytes,
                        size_t bytes_count, uint32_t *tokens, struct why *reason)
{
    (void)arg, (void)position;
    if (bytes_count != count * (SEQ_LEN + 1) * sizeof *tokens)
        return why_set(reason, FAULT_FORMAT, "%zu bytes", bytes_count);
    memcpy(tokens, bytes, bytes_count);
    return 0;
}

static bulk_server_t *new_provider(const uint64_t *missing_from)
{
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .answer = give_samples,
                                                 .arg = (void *)(uintptr_t)missing_from,
                                                 .seq_len = SEQ_LEN };
    bulk_server_t *server = NULL;
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    fixture_admit(server);
    return server;
}

static void test_samples(void **state)
{
    (void)state;
    static const uint64_t none = 0, many = FIRST_MISSING;
    bulk_server_t *empty = new_provider(&none), *full = new_provider(&many);
    struct bulk_client *client = NULL;
    const struct bulk_client_options options = { fixture_identity(),  FIXTURE_RUN, SEQ_LEN, 2000, 2,
                                                 .take = take_samples };
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    uint32_t tokens[2][10 * (SEQ_LEN + 1)];
    assert_int_equal(bulk_read_samples(client, 0, 1, tokens[0], &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "samples 0..0: 0 providers asked in "));
    const struct wire_holder list[] = { fixture_at(bulk_server_endpoint(empty)),
                                        fixture_at(bulk_server_endpoint(full)) };
    bulk_client_set_providers(client, list, 2);
    for (uint64_t position = 0; position < 50; position += 10) {
        assert_int_equal(bulk_read_samples(client, position, 10, tokens[0], &why), 0);
        read_samples((void *)(uintptr_t)&many, position, 10, tokens[1], &why);
        assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
    }
    assert_int_equal(bulk_counts_of(empty).refusals,
                     1); // The provider that gave them is asked again
    assert_int_equal(bulk_counts_of(full).samples, 50);
    assert_int_equal(bulk_read_samples(client, FIRST_MISSING, 1, tokens[0], &why),
                     FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "1000000: 2 providers asked in "));
    assert_non_null(strstr(why.text, "position 1000000: not in this file"));

    enum { LARGE = 300000 }; // More than one answer may be
    uint32_t *large = malloc((size_t)LARGE * (SEQ_LEN + 1) * sizeof *large);
    assert_int_equal(bulk_read_samples(client, 0, LARGE, large, &why), 0);
    for (uint32_t i = 0; i < LARGE * (SEQ_LEN + 1); i++) assert_int_equal(large[i], i);
    free(large);
    bulk_client_destroy(&client);
    bulk_server_destroy(&empty);
    bulk_server_destroy(&full);
}

// ---- slow peers ----------------------------------------------------------------------------

struct pace {
    uint32_t wait_ms;
};

static int give_slowly(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                       size_t *ret_count, struct why *reason)
{
    static const uint64_t many = FIRST_MISSING;
    usleep(((const struct pace *)arg)->wait_ms * 1000);
    return give_samples((void *)(uintptr_t)&many, position, count, ret_bytes, ret_count, reason);
}

static bulk_server_t *new_slow_provider(struct pace *pace)
{
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = FIXTURE_RUN,
                                                 .answer = give_slowly,
                                                 .arg = pace,
                                                 .seq_len = SEQ_LEN };
    bulk_server_t *server = NULL;
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    fixture_admit(server);
    return server;
}

static void ask_one_by_one(struct bulk_client *client, uint32_t count)
{
    uint32_t tokens[SEQ_LEN + 1];
    for (uint32_t i = 0; i < count; i++)
        if (bulk_read_samples(client, i, 1, tokens, &why) < 0) fail_msg("%s", why.text);
}

// A provider that answers just before the time is up is honest and costs a round; the client finds
// the fastest.
static void test_a_slow_provider_is_left_for_the_fastest(void **state)
{
    (void)state;
    enum { PATIENCE = 1200 };
    struct pace paces[] = { { 900 }, { 0 }, { 400 } }; // Far apart, for a busy machine
    bulk_server_t *servers[3];
    struct wire_holder list[3];
    struct bulk_client *client = NULL;
    const struct bulk_client_options options = {
        fixture_identity(), FIXTURE_RUN, SEQ_LEN, PATIENCE, 1, .take = take_samples
    };
    for (int i = 0; i < 3; i++) {
        servers[i] = new_slow_provider(&paces[i]);
        list[i] = fixture_at(bulk_server_endpoint(servers[i]));
    }
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    bulk_client_set_providers(client, (const struct wire_holder[]){ list[0], list[2], list[1] }, 3);
    ask_one_by_one(client, 2);                  // Each is tried
    bulk_client_set_providers(client, list, 3); // Others first: what is known stays so
    ask_one_by_one(client, 20);
    assert_int_equal(bulk_counts_of(servers[0]).samples, 1);
    assert_int_equal(bulk_counts_of(servers[2]).samples, 1);
    assert_int_equal(bulk_counts_of(servers[1]).samples, 20);
    paces[1].wait_ms = 1000; // It was good to be chosen
    ask_one_by_one(client, 3);
    assert_int_equal(bulk_counts_of(servers[1]).samples, 21);
    assert_int_equal(bulk_counts_of(servers[2]).samples, 3); // The faster of the other two
    bulk_client_destroy(&client);
    for (int i = 0; i < 3; i++) bulk_server_destroy(&servers[i]);
}

// ---- silent peers ------------------------------------------------------------------------

enum { SILENT = 6, SHORT_MS = 250, READ_MS = 550 };

static uint64_t ask_once(struct bulk_client *client, const struct wire_holder *list, uint32_t count,
                         int expected)
{
    uint32_t tokens[SEQ_LEN + 1];
    const uint64_t begun_ms = clock_ms();
    bulk_client_set_providers(client, list, count);
    const int rc = bulk_read_samples(client, 3, 1, tokens, &why);
    if (rc != expected) fail_msg("%s", rc < 0 ? why.text : "samples, from an unknown provider");
    return clock_ms() - begun_ms;
}

// Lists of keys that never answer, with the honest one in few of them: each key costs its patience
// once.
static void test_a_silent_provider_is_asked_once(void **state)
{
    (void)state;
    static const uint64_t many = FIRST_MISSING;
    struct wire_holder names[SILENT + 1], list[3];
    struct rogue *silent = rogue_new_of_names(ROGUE_SILENT, 0, NULL, names, SILENT);
    bulk_server_t *honest = new_provider(&many);
    struct bulk_client *client = NULL;
    const struct bulk_client_options options = {
        fixture_identity(),     FIXTURE_RUN,         SEQ_LEN, SHORT_MS, 2,
        .read_ms_max = READ_MS, .take = take_samples
    };
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    names[SILENT] = fixture_at(bulk_server_endpoint(honest));
    const uint64_t took_ms = ask_once(client, names, SILENT, FAULT_UNREACHABLE);
    print_message("%d silent providers and no other: given up after %d ms\n", SILENT, (int)took_ms);
    assert_int_equal(silent->asked, 3); // Then READ_MS were over
    memcpy(list, (struct wire_holder[]){ names[0], names[1], names[SILENT] }, sizeof list);
    ask_once(client, list, 3, 0);
    for (uint32_t i = 0; i < 20; i++) { // The honest one is named no more
        memcpy(list, (struct wire_holder[]){ names[i % 4], names[(i + 1) % 4], names[(i + 2) % 4] },
               sizeof list);
        ask_once(client, list, 3, 0);
    }
    assert_int_equal(silent->asked, 3);
    assert_int_equal(bulk_counts_of(honest).samples, 21);
    bulk_server_destroy(&honest); // Until it fails: then it goes
    ask_once(client, names, 1, FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, names[SILENT].endpoint));
    ask_once(client, names, 1, FAULT_UNREACHABLE);
    assert_null(strstr(why.text, names[SILENT].endpoint));
    const uint32_t asked = silent->asked;
    const struct bulk_server_options again = { .identity = fixture_identity(),
                                               .run = FIXTURE_RUN,
                                               .endpoint = names[SILENT].endpoint,
                                               .answer = give_samples,
                                               .arg = (void *)(uintptr_t)&many,
                                               .seq_len = SEQ_LEN };
    assert_int_equal(bulk_server_new(&again, &why, &honest), 0);
    fixture_admit(honest);
    memcpy(list, (struct wire_holder[]){ names[0], names[1], names[SILENT] }, sizeof list);
    ask_once(client, list, 3, 0); // And comes before those that never gave any
    assert_int_equal(silent->asked, asked);
    bulk_client_destroy(&client);
    bulk_server_destroy(&honest);
    rogue_destroy(silent);
}

// By a clock of our own: what is remembered is bounded, and forgiven in time.
static void test_what_is_remembered_of_providers(void **state)
{
    (void)state;
    enum { KEYS = 2 * PROVIDERS_MAX };
    struct providers *self = calloc(1, sizeof *self);
    struct wire_holder holder = fixture_at("tcp://127.0.0.1:1");
    struct provider_peer *peer;
    uint64_t now_ms = 1000;
    assert_non_null(self);
    for (uint32_t i = 0; i < KEYS; i++, now_ms++) { // Some give samples, the others nothing
        holder.key.bytes[0] = (uint8_t)i, holder.key.bytes[1] = (uint8_t)(i >> 8);
        providers_name(self, &holder, 1);
        for (peer = self->list; !peer->is_named;) peer++;
        if (i < 2 * PROVIDERS_KEPT_MAX) providers_succeed(self, peer, true, 5, 100, now_ms);
        else providers_fail(self, peer, 300, now_ms);
    }
    uint32_t kept = 0;
    providers_begin(self);
    for (peer = self->list; peer < self->list + self->count; peer++) kept += peer->is_kept;
    assert_true(self->count == PROVIDERS_MAX && kept == PROVIDERS_KEPT_MAX);
    for (uint32_t i = 0; (peer = providers_next(self, 1, now_ms)); i++) {
        peer->times++;
        assert_true(i == PROVIDERS_KEPT_MAX ? peer->is_named : peer->is_kept);
    }
    providers_begin(self);
    for (uint32_t i = 0; i < 2; i++) { // The newest one failed, the one before it too
        holder.key.bytes[0] = (uint8_t)(KEYS - 1 - i), holder.key.bytes[1] = (KEYS - 1) >> 8;
        const struct wire_holder both[] = { holder, fixture_at("tcp://127.0.0.1:2") };
        for (peer = self->list; peer < self->list + self->count; peer++) peer->is_kept = false;
        providers_name(self, both, 2);
        peer = providers_next(self, 1, now_ms + (i ? PROVIDERS_FORGIVE_MS : 0));
        assert_true(peer && (peer->reputation.failed_ms == 0) == (i == 0));
    }
    free(self);
}

static void test_providers_without_samples_are_named(void **state)
{
    (void)state;
    static const uint64_t many = FIRST_MISSING;
    bulk_server_t *full = new_provider(&many);
    struct rogue *silent = rogue_new(ROGUE_SILENT, 0, NULL);
    struct bulk_client *client = NULL, *other = NULL;
    const struct bulk_client_options options = { fixture_identity(),  FIXTURE_RUN, SEQ_LEN, 500, 2,
                                                 .take = take_samples };
    const struct bulk_client_options longer = {
        fixture_identity(), FIXTURE_RUN, SEQ_LEN + 1, 2000, 1, .take = take_samples
    };
    const struct bulk_client_options foreign = { fixture_identity(),  "other", SEQ_LEN, 2000, 1,
                                                 .take = take_samples };
    const struct bulk_client_options bad = { .run = "" };
    const struct wire_holder list[] = { silent->holder, fixture_at("nonsense"),
                                        fixture_at(bulk_server_endpoint(full)) };
    uint32_t tokens[SEQ_LEN + 2];
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    bulk_client_set_providers(client, list, 2);
    assert_int_equal(bulk_read_samples(client, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, ": no answer in 500 ms; nonsense: cannot be called"));
    assert_int_equal(silent->asked, 2);
    bulk_client_set_providers(client, list, 3);
    assert_int_equal(bulk_read_samples(client, 3, 1, tokens, &why), 0);
    assert_int_equal(tokens[1], 3 * (SEQ_LEN + 1) + 1);
    assert_int_equal(bulk_client_new(&longer, &why, &other), 0);
    bulk_client_set_providers(other, list + 2, 1);
    assert_int_equal(bulk_read_samples(other, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "sent 1 samples of seq_len 7 in 32 bytes, asked were 1 of 8"));
    bulk_client_destroy(&other);
    assert_int_equal(bulk_client_new(&foreign, &why, &other), 0);
    bulk_client_set_providers(other, list + 2, 1);
    assert_int_equal(bulk_read_samples(other, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "this is run '" FIXTURE_RUN "'"));
    bulk_client_destroy(&other);
    assert_int_equal(bulk_client_new(&bad, &why, &other), FAULT_RANGE);
    bulk_client_destroy(&client);
    bulk_server_destroy(&full);
    rogue_destroy(silent);
}

TESTS(TEST(test_hostile_bytes), TEST(test_hostile_frames), TEST(test_only_guests_are_served),
      TEST(test_an_ejected_peer_is_cut_off), TEST(test_refusals),
      TEST(test_end_with_peers_connected), TEST(test_bad_options), TEST(test_samples),
      TEST(test_providers_without_samples_are_named),
      TEST(test_a_slow_provider_is_left_for_the_fastest),
      TEST(test_a_silent_provider_is_asked_once), TEST(test_what_is_remembered_of_providers))
