// Lines of the bulk plane: what goes over them, sealed and plain, and when they end. A holder cannot take
// more memory or time from a peer that asks it than the limits allow.
#include "common/bulk/bulk_client.h"
#include "common/bulk/bulk_line.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"
#include <sys/resource.h>
#include <sys/socket.h>

// A holder that sends 4 GiB that nobody asked for is left with the first of them, not when patience ends.
enum {
    PATIENCE_MS = 60000,
    ENOUGH_MS = 20000,
    PARTS = 4096,
    RESIDENT_MIB_MAX = 192,
    SEQ_LEN = 7,
    RAW_MAX = 5000,
    MIB = 1 << 20
};

static struct why why;

static int most_resident_mib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (int)(usage.ru_maxrss / 1024);
}

static void expect_resident(int before_mib)
{
    const int more = most_resident_mib() - before_mib;
    print_message("%d MiB more resident, at most\n", more);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // They keep what is freed
    assert_true(more < RESIDENT_MIB_MAX);
#endif
}

static void test_fetcher_leaves_a_holder_that_sends_without_end(void **state)
{
    (void)state;
    struct fixture_holder honest = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    struct rogue *rogue = rogue_new(ROGUE_ENDLESS, PARTS, honest.store);
    const uint8_t bytes[1000] = { 1 };
    const struct hash hash = fixture_give(honest.store, bytes, sizeof bytes);
    const int before_mib = most_resident_mib();
    fixture_fetch(fetcher, &hash, sizeof bytes, &rogue->holder, 1);
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_true(fetched && !fetched->ok);
    fixture_fetch(fetcher, &hash, sizeof bytes,
                  (struct wire_holder[]){ rogue->holder, honest.holder }, 2);
    fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_true(fetched && fetched->ok);
    expect_resident(before_mib);
    fixture_fetcher_destroy(fetcher);
    rogue_destroy(rogue);
    fixture_holder_destroy(&honest);
}

// However short: it is left at once, and asked last from then on.
static void test_fetcher_leaves_a_holder_that_says_what_nobody_asked(void **state)
{
    (void)state;
    struct fixture_fetcher *fetcher = fixture_fetcher_new(PATIENCE_MS);
    struct rogue *rogue = rogue_new(ROGUE_CHATTY, 3, NULL);
    const struct hash hash = { { 1 } };
    fixture_fetch(fetcher, &hash, 1000, &rogue->holder, 1);
    const struct wire_fetched *fetched = fixture_answer(fetcher, FRAME_FETCHED, ENOUGH_MS);
    assert_true(fetched && !fetched->ok);
    fixture_fetcher_destroy(fetcher);
    rogue_destroy(rogue);
}

static int take_nothing(void *arg, uint64_t position, uint32_t count, const uint8_t *bytes,
                        size_t bytes_count, uint32_t *tokens, struct why *ret_why)
{
    (void)arg, (void)position, (void)count, (void)bytes, (void)bytes_count, (void)tokens;
    return why_set(ret_why, FAULT_RANGE, "nothing is taken here");
}

static void test_sample_client_leaves_a_provider_that_sends_without_end(void **state)
{
    (void)state;
    const struct bulk_client_options options = {
        fixture_identity(), FIXTURE_RUN, SEQ_LEN, PATIENCE_MS, 1, .take = take_nothing
    };
    struct rogue *rogue = rogue_new(ROGUE_ENDLESS, PARTS, NULL);
    struct bulk_client *client;
    uint32_t tokens[SEQ_LEN + 1];
    const int before_mib = most_resident_mib();
    assert_int_equal(bulk_client_new(&options, &why, &client), 0);
    bulk_client_set_providers(client, &rogue->holder, 1);
    assert_int_equal(bulk_read_samples(client, 0, 1, tokens, &why), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "sends what makes no answer"));
    expect_resident(before_mib);
    bulk_client_destroy(&client);
    rogue_destroy(rogue);
}

// ---- both ends of a line, by hand ---------------------------------------------------------------

struct ends {
    struct handshake_self self;
    struct bulk_line asks, serves;
    int listener;
};

static enum handshake_refusal lets_in(void *arg, const struct handshake_party *from,
                                      const struct handshake_purpose *purpose)
{
    (void)arg, (void)from, (void)purpose;
    return HANDSHAKE_REFUSED_NONE;
}

// Between two loopback addresses; `seals`: as it is between any others.
static void ends_open(struct ends *self, bool seals)
{
    struct wire_holder holder = fixture_at("");
    const struct handshake_party party = { .key = holder.key };
    uint16_t port;
    int fd;
    self->self = bulk_line_self(fixture_identity(), FIXTURE_RUN);
    self->self.judge = lets_in;
    assert_int_equal(tcp_listen("127.0.0.1:0", &why, &self->listener, &port), 0);
    snprintf(holder.endpoint, sizeof holder.endpoint, "tcp://127.0.0.1:%u", port);
    assert_int_equal(bulk_line_connect(&self->asks, &self->self, &holder, &why), 0);
    self->asks.seals = seals;
    handshake_connect(self->asks.handshake, &self->self, &party,
                      &(struct handshake_purpose){ .sealed = seals });
    while ((fd = tcp_accept(self->listener)) < 0) poll(NULL, 0, 1);
    bulk_line_accept(&self->serves, &self->self, fd);
}

static void ends_shake_hands(struct ends *self)
{
    for (int a = 0, b = 0; a != 1 || b != 1;) {
        assert_true((a = bulk_line_move(&self->asks, &why)) >= 0);
        assert_true((b = bulk_line_move(&self->serves, &why)) >= 0);
    }
    assert_true(self->asks.seals == self->serves.seals);
    assert_true(key_equal(&self->serves.key, identity_key(fixture_identity())));
}

static void ends_close(struct ends *self)
{
    bulk_line_close(&self->asks);
    bulk_line_close(&self->serves);
    close(self->listener);
}

// The next message at one end, while the other one writes.
static enum bulk_heard carry(struct bulk_line *from, struct bulk_line *to, struct bulk_mail *mail)
{
    enum bulk_heard heard;
    do {
        if (from->fd >= 0) bulk_line_move(from, &why);
        heard = bulk_line_recv(to, mail, &why);
    } while (heard == BULK_NOTHING);
    return heard;
}

// Before the handshake, after it, with raw bytes of any length and with none.
static void test_messages_arrive_as_they_were(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 15, 16, 4096, BULK_CHUNK_BYTES, 3 * MIB + 1 };
    static const struct hash hash = { { 5 } };
    uint8_t *bytes = fixture_bytes(4 * MIB, 1);
    for (int seals = 0; seals < 2; seals++) {
        struct ends ends;
        struct bulk_mail mail;
        ends_open(&ends, seals);
        for (uint32_t i = 0; i < 9; i++) { // Queued while nobody has a key yet
            const struct wire_want want = { i, hash, i, 1 };
            bulk_line_put(&ends.asks, FIXTURE_RUN, FRAME_WANT, &want, NULL, 0);
        }
        ends_shake_hands(&ends);
        for (uint32_t i = 0; i < 9; i++) {
            assert_int_equal(carry(&ends.asks, &ends.serves, &mail), BULK_MAIL);
            assert_true(mail.head.kind == FRAME_WANT && !mail.raw);
            assert_int_equal(((const struct wire_want *)mail.body)->request, i);
        }
        ends.asks.raw_max = 4 * MIB;
        for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const struct wire_chunk chunk = { i, hash, 0, sizes[i] };
            bulk_line_put(&ends.serves, FIXTURE_RUN, FRAME_CHUNK, &chunk, bytes, sizes[i]);
            assert_int_equal(carry(&ends.serves, &ends.asks, &mail), BULK_MAIL);
            assert_true(mail.head.kind == FRAME_CHUNK && mail.raw && mail.raw_count == sizes[i]);
            assert_memory_equal(mail.raw, bytes, sizes[i]);
            assert_int_equal(((const struct wire_chunk *)mail.body)->request, i);
        }
        assert_true(ends.serves.out_bytes == 0 && !ends.serves.out);
        bulk_line_close(&ends.serves);
        assert_int_equal(carry(&ends.serves, &ends.asks, &mail), BULK_ENDED);
        ends_close(&ends);
    }
    free(bytes);
}

// One bit of what is on the line is wrong, in the head, the frame, the raw bytes or a tag.
static void test_a_flipped_bit_ends_a_sealed_line(void **state)
{
    (void)state;
    enum { RAW = 1000 };
    static const uint8_t bytes[RAW] = { 3 };
    const struct wire_chunk chunk = { .request = 1, .total = RAW };
    size_t count = 1;
    for (size_t at = 0; at < count; at += 13) {
        struct ends ends;
        struct bulk_mail mail;
        uint8_t wire[2 * RAW];
        ends_open(&ends, true);
        ends_shake_hands(&ends);
        bulk_line_put(&ends.serves, FIXTURE_RUN, FRAME_CHUNK, &chunk, bytes, RAW);
        const int other = ends.serves.fd; // Its bytes go through our hands
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ends.serves.fd = pair[0];
        assert_int_equal(bulk_line_move(&ends.serves, &why), 1);
        const ssize_t n = recv(pair[1], wire, sizeof wire, 0);
        assert_true(n > RAW && n < (ssize_t)sizeof wire);
        count = (size_t)n;
        wire[at] ^= 16;
        assert_int_equal(send(other, wire, count, 0), n);
        ends.asks.raw_max = RAW;
        assert_int_equal(carry(&ends.serves, &ends.asks, &mail), BULK_ENDED);
        assert_non_null(strstr(why.text, "was not sealed by the other end"));
        close(other);
        close(pair[1]);
        ends_close(&ends);
    }
}

// Nothing is allocated for what is longer than the owner takes.
static void test_a_message_that_is_too_long_ends_its_line(void **state)
{
    (void)state;
    struct ends ends;
    struct bulk_mail mail;
    uint8_t *bytes = fixture_bytes(RAW_MAX + 1, 2);
    const struct wire_chunk chunk = { .request = 1, .total = RAW_MAX + 1 };
    ends_open(&ends, true);
    ends_shake_hands(&ends);
    ends.asks.raw_max = RAW_MAX;
    bulk_line_put(&ends.serves, FIXTURE_RUN, FRAME_CHUNK, &chunk, bytes, RAW_MAX);
    assert_int_equal(carry(&ends.serves, &ends.asks, &mail), BULK_MAIL);
    bulk_line_put(&ends.serves, FIXTURE_RUN, FRAME_CHUNK, &chunk, bytes, RAW_MAX + 1);
    assert_int_equal(carry(&ends.serves, &ends.asks, &mail), BULK_ENDED);
    assert_string_equal(why.text, "more bytes than were asked for");
    assert_int_equal(ends.asks.raw_room, RAW_MAX + SEALING_TAG);
    ends_close(&ends);
    free(bytes);
}

static void test_peers_that_cannot_be_asked(void **state)
{
    (void)state;
    struct handshake_self self = bulk_line_self(fixture_identity(), FIXTURE_RUN);
    struct bulk_line line;
    static const char *const bad[] = { "nonsense", "tcp://localhost:7000", "inproc://stop", "" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct wire_holder nowhere = fixture_at(bad[i]);
        assert_int_equal(bulk_line_connect(&line, &self, &nowhere, &why), FAULT_CONFIG);
        bulk_line_close(&line);
    }
}

TESTS(TEST(test_messages_arrive_as_they_were), TEST(test_a_flipped_bit_ends_a_sealed_line),
      TEST(test_a_message_that_is_too_long_ends_its_line),
      TEST(test_fetcher_leaves_a_holder_that_sends_without_end),
      TEST(test_fetcher_leaves_a_holder_that_says_what_nobody_asked),
      TEST(test_sample_client_leaves_a_provider_that_sends_without_end),
      TEST(test_peers_that_cannot_be_asked))
