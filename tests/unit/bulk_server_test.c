// The bulk server survives hostile peers, and a client finds a provider that gives samples.
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/bulk/bulk_client.h"
#include "common/bulk/providers.h"
#include "common/net/callers.h"
#include "common/net/addresses.h"
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

static bool hung_up(int fd)
{
    struct pollfd item = { .fd = fd, .events = POLLIN };
    uint8_t byte;
    return poll(&item, 1, ENOUGH_MS) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    uint8_t *noise = fixture_bytes(1 << 20, 12);
    int fds[3] = { dial(&holder.holder), dial(&holder.holder), dial(&holder.holder) };
    static const uint8_t zmtp[64] = { 0xff, 0, 0, 0,   0,   0,   0,   0,  0,
                                      0x7f, 3, 0, 'C', 'U', 'R', 'V', 'E' };
    send_all(fds[0], noise, 1 << 20);                                // No protocol at all
    send_all(fds[1], BULK_PROTOCOL, 12);                             // Begins, and never goes on
    for (int i = 0; i < 3; i++) send_all(fds[2], zmtp, sizeof zmtp); // Another one's
    expect_serving(&holder, 13);
    assert_true(hung_up(fds[0]) && hung_up(fds[2]));
    assert_true(hung_up(fds[1])); // When its time is up
    for (int i = 0; i < 3; i++) close(fds[i]);
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

// Whether a question of this identity is answered; else what ended its connection is in why.
static bool is_answered(const struct identity *identity, const struct wire_holder *holder)
{
    struct fixture_asker asker;
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    fixture_asker_open(&asker, identity, holder);
    fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want);
    const enum bulk_heard heard = fixture_hear(&asker, ENOUGH_MS);
    assert_int_not_equal(heard, BULK_NOTHING);
    bulk_line_close(&asker.line);
    why = asker.why;
    return heard == BULK_MAIL;
}

static void test_only_guests_are_served(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct identity *identity = stranger();
    assert_false(is_answered(identity, &holder.holder));
    assert_non_null(strstr(why.text, "it does not expect a connection from this key"));
    bulk_server_admit(holder.server, identity_key(identity), true);
    assert_true(is_answered(identity, &holder.holder));
    struct wire_holder other = holder.holder; // Our own key there, not the holder's
    other.key = *identity_key(identity);
    assert_false(is_answered(identity, &other));
    assert_non_null(strstr(why.text, "another key or another process of that key answers there"));
    bulk_server_admit(holder.server, identity_key(identity), false);
    assert_false(is_answered(identity, &holder.holder));
    identity_destroy(&identity);
    fixture_holder_destroy(&holder);
}

// Whether a probe from 127.0.0.`from` is answered with a proof.
static bool is_proved(const struct wire_holder *holder, uint8_t from)
{
    struct handshake_self self = bulk_line_self(fixture_identity(), FIXTURE_RUN);
    struct handshake shake;
    const struct handshake_party party = { .key = holder->key };
    struct sockaddr_in own = { .sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f000000u | from) };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port =
                                  htons((uint16_t)atoi(strrchr(holder->endpoint, ':') + 1)) };
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    handshake_connect(&shake, &self, &party, &(struct handshake_purpose){ .probe = true });
    int rc = 0;
    while ((rc = handshake_move(&shake, fd, &why)) == 0) {
        struct pollfd item = { .fd = fd, .events = handshake_events(&shake) };
        assert_int_equal(poll(&item, 1, ENOUGH_MS), 1);
    }
    assert_true(rc == 1 || shake.refusal == HANDSHAKE_REFUSED_BUSY);
    close(fd);
    return rc == 1;
}

// A flood of probes from one address: another one's is answered, and guests of the same address are
// served.
static void test_probes_are_counted_by_address(void **state)
{
    (void)state;
    enum { PROBES = 1000 };
    struct fixture_holder holder = fixture_holder_new();
    const uint64_t begun_ms = clock_ms();
    uint32_t proved = 0;
    for (int i = 0; i < PROBES; i++) proved += is_proved(&holder.holder, 1);
    const uint64_t took_ms = clock_ms() - begun_ms;
    print_message("%u of %d probes were answered in %d ms\n", proved, PROBES, (int)took_ms);
    assert_in_range(proved, CALLERS_PROBES, CALLERS_PROBES + 1 + took_ms / CALLERS_PROBE_MS);
    assert_true(is_proved(&holder.holder, 2));
    expect_serving(&holder, 19);
    fixture_holder_destroy(&holder);
}

// It names a guest's key in its HELLO, and cannot prove it.
static void test_a_stolen_name_is_of_no_use(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct identity *identity = stranger();
    struct handshake_self self = bulk_line_self(identity, FIXTURE_RUN);
    struct handshake shake;
    const struct handshake_party party = { .key = holder.holder.key };
    const int fd = dial(&holder.holder);
    handshake_connect(&shake, &self, &party, &(struct handshake_purpose){ .sealed = false });
    memcpy(shake.hello + 48, identity_key(fixture_identity())->bytes, KEY_BYTES);
    int rc = 0;
    while ((rc = handshake_move(&shake, fd, &why)) == 0) {
        struct pollfd item = { .fd = fd, .events = handshake_events(&shake) };
        assert_int_equal(poll(&item, 1, ENOUGH_MS), 1);
    }
    assert_int_equal(rc, 1);  // As far as it can see ..
    assert_true(hung_up(fd)); // .. and no further
    close(fd);
    identity_destroy(&identity);
    expect_serving(&holder, 18);
    fixture_holder_destroy(&holder);
}

// Sealed wherever it goes through a network; plain only between two loopback addresses, with the same
// proof of keys.
static void test_what_is_sealed(void **state)
{
    (void)state;
    char own[ADDRESSES_TEXT_MAX];
    struct fixture_holder holder = fixture_holder_new();
    const struct bulk_server_options options = { .identity = fixture_identity(),
                                                 .endpoint = "tcp://*:*",
                                                 .run = FIXTURE_RUN };
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    struct fixture_asker asker;
    bulk_server_t *server = NULL;
    fixture_asker_open(&asker, fixture_identity(), &holder.holder);
    assert_true(fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want));
    assert_int_equal(fixture_hear(&asker, ENOUGH_MS), BULK_MAIL);
    assert_false(asker.line.seals);
    bulk_line_close(&asker.line);
    fixture_holder_destroy(&holder);
    if (addresses_towards("192.0.2.1:1", &why, own) < 0) {
        print_message("no other address than loopback on this machine: half tested\n");
        return;
    }
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    fixture_admit(server);
    struct wire_holder there = fixture_at("");
    snprintf(there.endpoint, sizeof there.endpoint, "tcp://%s%s", own,
             strrchr(bulk_server_endpoint(server), ':'));
    fixture_asker_open(&asker, fixture_identity(), &there);
    assert_true(fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want));
    assert_int_equal(fixture_hear(&asker, ENOUGH_MS), BULK_MAIL);
    assert_true(asker.line.seals);
    bulk_line_close(&asker.line);
    // One that would have it plain there is refused
    fixture_asker_open(&asker, fixture_identity(), &there);
    const struct handshake_party party = { .key = there.key };
    handshake_connect(asker.line.handshake, &asker.self, &party,
                      &(struct handshake_purpose){ .sealed = false });
    assert_int_equal(fixture_hear(&asker, ENOUGH_MS), BULK_ENDED);
    assert_non_null(strstr(asker.why.text, "plain or sealed"));
    bulk_line_close(&asker.line);
    bulk_server_destroy(&server);
}

// A peer that is ejected while connected gets no more answers, and its connection ends.
static void test_an_ejected_peer_is_cut_off(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    const struct wire_want want = { .request = 1, .hash = { { 1 } }, .count = 1 };
    struct fixture_asker asker;
    for (int asks = 0; asks < 2; asks++) { // Whether it asks again or not
        bulk_server_admit(holder.server, identity_key(fixture_identity()), true);
        fixture_asker_open(&asker, fixture_identity(), &holder.holder);
        fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want);
        assert_int_equal(fixture_hear(&asker, ENOUGH_MS), BULK_MAIL);
        bulk_server_admit(holder.server, identity_key(fixture_identity()), false);
        if (asks) fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want);
        assert_int_equal(fixture_hear(&asker, ENOUGH_MS), BULK_ENDED);
        bulk_line_close(&asker.line);
    }
    fixture_holder_destroy(&holder);
}

// Asks and returns the kind of the answer, its text in `text`.
static uint16_t ask(struct fixture_asker *asker, uint16_t kind, const void *question,
                    char text[192])
{
    assert_true(fixture_say(asker, FIXTURE_RUN, kind, question));
    assert_int_equal(fixture_hear(asker, ENOUGH_MS), BULK_MAIL);
    const struct bulk_mail *mail = &asker->mail;
    const uint16_t came = mail->head.kind;
    snprintf(text, 192, "%s",
             came == FRAME_LACKING      ? ((const struct wire_lacking *)mail->body)->reason
             : came == FRAME_NO_SAMPLES ? ((const struct wire_no_samples *)mail->body)->reason
                                        : "");
    return came;
}

// What a guest sends after its handshake: it ends its connection, is not answered, and nothing else
// happens.
static void expect_cut(const struct fixture_holder *holder, const uint8_t *bytes, size_t count)
{
    struct fixture_asker asker;
    const uint64_t refusals = bulk_counts_of(holder->server).refusals;
    fixture_asker_open(&asker, fixture_identity(), &holder->holder);
    while (!asker.line.is_open) assert_int_equal(fixture_hear(&asker, 1), BULK_NOTHING);
    send_all(asker.line.fd, bytes, count);
    shutdown(asker.line.fd, SHUT_WR); // Of half a message no more comes
    assert_int_equal(fixture_hear(&asker, ENOUGH_MS), BULK_ENDED);
    bulk_line_close(&asker.line);
    assert_int_equal(bulk_counts_of(holder->server).refusals, refusals);
}

// A message as it goes over a plain line; `raw`: how many bytes it says will follow.
static size_t write_message(uint8_t *to, uint16_t kind, const char *run, const void *body,
                            uint32_t raw)
{
    struct wire_head head = { .kind = kind };
    snprintf(head.run, sizeof head.run, "%s", run);
    const size_t count = wire_pack(&head, body, to + BULK_HEAD, BULK_FRAME_MAX);
    le_put(to, count, 4);
    le_put(to + 4, raw, 4);
    return BULK_HEAD + count;
}

static void test_hostile_frames(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    uint8_t *noise = fixture_bytes(1 << 16, 15), message[BULK_HEAD + BULK_FRAME_MAX];
    const struct wire_want want = {
        .request = 1, .hash = { { 1 } }, .offset = UINT64_MAX, .count = 1
    };
    size_t count = write_message(message, FRAME_WANT, FIXTURE_RUN, &want, 0);
    for (int i = 0; i < 20; i++) expect_cut(&holder, noise + i, (size_t)i * 1000);
    for (size_t i = 0; i < count; i += 7) expect_cut(&holder, message, i); // Cut short everywhere
    le_put(message, BULK_FRAME_MAX + 1, 4); // A frame that is too long
    expect_cut(&holder, message, count);
    le_put(message, UINT32_MAX, 4);
    expect_cut(&holder, message, count);
    le_put(message, 0, 4); // None
    expect_cut(&holder, message, count);
    write_message(message, FRAME_WANT, FIXTURE_RUN, &want, 2); // With bytes behind it
    expect_cut(&holder, message, count);
    write_message(message, FRAME_WANT, FIXTURE_RUN, &want, UINT32_MAX);
    expect_cut(&holder, message, count);
    expect_cut(&holder, message, write_message(message, FRAME_WANT, "other", &want, 0));
    count = write_message(message, FRAME_LACKING, FIXTURE_RUN,
                          &(struct wire_lacking){ .request = 1 }, 0); // An answer, no question
    expect_cut(&holder, message, count);
    expect_serving(&holder, 16);
    free(noise);
    fixture_holder_destroy(&holder);
}

static void test_refusals(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_asker asker;
    char text[192];
    const struct hash hash = fixture_give(holder.store, (const uint8_t *)"alpha", 5);
    fixture_asker_open(&asker, fixture_identity(), &holder.holder);
    struct wire_want want = { 1, hash, 5, 1 };
    assert_int_equal(ask(&asker, FRAME_WANT, &want, text), FRAME_LACKING);
    assert_string_equal(text, "it ends before this offset");
    want.offset = UINT64_MAX;
    assert_int_equal(ask(&asker, FRAME_WANT, &want, text), FRAME_LACKING);
    want.offset = 4, want.count = BULK_CHUNK_MAX;
    assert_int_equal(ask(&asker, FRAME_WANT, &want, text), FRAME_CHUNK);
    want.hash =
        fixture_give(holder.store, (const uint8_t *)"", 0); // Nothing, and that is an answer
    assert_int_equal(ask(&asker, FRAME_WANT, &want, text), FRAME_CHUNK);
    assert_true(asker.mail.raw && asker.mail.raw_count == 0);
    const struct wire_want_leaves leaves = { 1, hash };
    assert_int_equal(ask(&asker, FRAME_WANT_LEAVES, &leaves, text), FRAME_LACKING);
    const struct wire_want_samples samples = { 1, 0, 1 };
    assert_int_equal(ask(&asker, FRAME_WANT_SAMPLES, &samples, text), FRAME_NO_SAMPLES);
    assert_string_equal(text, "no samples are served here");
    bulk_line_close(&asker.line);
    fixture_holder_destroy(&holder);
}

// A peer that asks for much and reads nothing: what waits for it is bounded, its further questions wait
// as well, and the end does not wait for it.
static void test_end_with_peers_connected(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_asker asker;
    uint8_t *bytes = fixture_bytes(8 << 20, 17);
    const struct hash hash = fixture_give(holder.store, bytes, 8 << 20);
    const struct wire_want want = { 1, hash, 0, BULK_CHUNK_MAX };
    fixture_asker_open(&asker, fixture_identity(), &holder.holder);
    while (!asker.line.is_open) fixture_hear(&asker, 1);
    uint64_t chunks = 0, still = 0;
    while (still < 5) { // As long as it is answered
        for (int i = 0; i < 10; i++)
            assert_true(fixture_say(&asker, FIXTURE_RUN, FRAME_WANT, &want));
        poll(NULL, 0, 100);
        const uint64_t now = bulk_counts_of(holder.server).chunks;
        still = now == chunks ? still + 1 : 0;
        chunks = now;
    }
    assert_true(chunks > 0);
    assert_true(bulk_counts_of(holder.server).heard == chunks + 1); // One is in hand
    blob_store_drop(holder.store, &hash); // Some of it is still in its queue
    const uint64_t start_ms = clock_ms();
    fixture_holder_destroy(&holder);
    assert_true(clock_ms() - start_ms < 1000);
    bulk_line_close(&asker.line);
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
    assert_int_equal(bulk_read_samples(client, FIRST_MISSING, 1, tokens[0], &why), FAULT_DIGEST);
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

// A provider that is named first and always answers in time, but takes much longer than the other.
static void test_a_provider_that_is_just_fast_enough_is_left(void **state)
{
    (void)state;
    enum { PATIENCE = 3000, QUESTIONS = 30 };
    struct pace paces[] = { { 250 }, { 0 } };
    bulk_server_t *servers[2];
    struct wire_holder list[2];
    struct bulk_client *client = NULL;
    const struct bulk_client_options options = {
        fixture_identity(), FIXTURE_RUN, SEQ_LEN, PATIENCE, 1, .take = take_samples
    };
    for (int i = 0; i < 2; i++) {
        servers[i] = new_slow_provider(&paces[i]);
        list[i] = fixture_at(bulk_server_endpoint(servers[i]));
    }
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    bulk_client_set_providers(client, list, 2);
    ask_one_by_one(client, QUESTIONS);
    print_message("%d of %d answers came from the slow one\n",
                  (int)bulk_counts_of(servers[0]).samples, QUESTIONS);
    assert_true(bulk_counts_of(servers[0]).samples <= 2);
    bulk_client_destroy(&client);
    for (int i = 0; i < 2; i++) bulk_server_destroy(&servers[i]);
}

// Many that are quick in a trial and slow afterwards, against one that is always quick: by a count
// of questions.
static void test_what_trials_cost(void **state)
{
    (void)state;
    enum { FOES = 20, QUESTIONS = 2000, QUICK_MS = 5, SLOW_MS = 480, LIMIT_MS = 500 };
    struct providers *self = calloc(1, sizeof *self);
    struct wire_holder names[FOES + 1];
    uint32_t slow = 0, trials = 0, most_ms;
    uint64_t now_ms = 1000;
    assert_non_null(self);
    for (uint32_t i = 0; i <= FOES; i++) {
        names[i] = fixture_at("tcp://127.0.0.1:1");
        names[i].key.bytes[0] = (uint8_t)i;
    }
    providers_name(self, names, FOES + 1);
    for (int n = 0; n < QUESTIONS; n++) {
        providers_begin(self);
        struct provider_peer *peer = providers_try(self, now_ms, &most_ms);
        if (peer) {
            trials++;
            assert_in_range(most_ms, PROVIDERS_LEAST_MS, SLOW_MS);
            providers_end_trial(self, peer, true, true, 1, now_ms);
            continue;
        }
        peer = providers_next(self, 1, now_ms);
        const bool is_foe = peer->holder.key.bytes[0] < FOES;
        slow += is_foe;
        providers_succeed(self, peer, true, is_foe ? SLOW_MS : QUICK_MS, LIMIT_MS, now_ms);
    }
    print_message("%u trials and %u slow answers in %d questions\n", trials, slow, QUESTIONS);
    assert_true(trials > QUESTIONS / PROVIDERS_TRY / 2);
    assert_true(slow <= FOES + trials);
    free(self);
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
    assert_in_range(silent->asked, 2, 3); // Then READ_MS were over; two, if the machine is busy
    memcpy(list, (struct wire_holder[]){ names[0], names[1], names[SILENT] }, sizeof list);
    ask_once(client, list, 3, 0);
    for (uint32_t i = 0; i < 20; i++) { // The honest one is named no more
        memcpy(list, (struct wire_holder[]){ names[i % 4], names[(i + 1) % 4], names[(i + 2) % 4] },
               sizeof list);
        ask_once(client, list, 3, 0);
    }
    assert_int_equal(silent->asked, 4); // The one that was not asked yet was tried
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
    assert_int_equal(bulk_read_samples(other, 3, 1, tokens, &why), FAULT_DIGEST);
    assert_non_null(strstr(why.text, "sent 1 samples of seq_len 7 in 32 bytes, asked were 1 of 8"));
    bulk_client_destroy(&other);
    assert_int_equal(bulk_client_new(&foreign, &why, &other), 0);
    bulk_client_set_providers(other, list + 2, 1);
    assert_int_equal(bulk_read_samples(other, 3, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "refused: it belongs to another run"));
    bulk_client_destroy(&other);
    assert_int_equal(bulk_client_new(&bad, &why, &other), FAULT_RANGE);
    bulk_client_destroy(&client);
    bulk_server_destroy(&full);
    rogue_destroy(silent);
}

TESTS(TEST(test_hostile_bytes), TEST(test_hostile_frames), TEST(test_only_guests_are_served),
      TEST(test_probes_are_counted_by_address), TEST(test_a_stolen_name_is_of_no_use),
      TEST(test_what_is_sealed), TEST(test_an_ejected_peer_is_cut_off), TEST(test_refusals),
      TEST(test_end_with_peers_connected), TEST(test_bad_options), TEST(test_samples),
      TEST(test_providers_without_samples_are_named),
      TEST(test_a_slow_provider_is_left_for_the_fastest),
      TEST(test_a_provider_that_is_just_fast_enough_is_left), TEST(test_what_trials_cost),
      TEST(test_a_silent_provider_is_asked_once), TEST(test_what_is_remembered_of_providers))
