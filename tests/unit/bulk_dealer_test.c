// A holder cannot take more memory or time from a peer that asks it than the limits allow.
#include "common/bulk/bulk_client.h"
#include "common/bulk/bulk_dealer.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/test.h"
#include <sys/resource.h>

// A holder that sends 4 GiB in one answer is left when 32 MiB of it have come, not when patience
// ends.
enum {
    PATIENCE_MS = 60000,
    ENOUGH_MS = 20000,
    PARTS = 4096,
    RESIDENT_MIB_MAX = 192,
    HANDSHAKE_BYTES_MAX = 1024,
    SEQ_LEN = 7,
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
    assert_non_null(strstr(why.text, "sends bytes without end that make no answer"));
    expect_resident(before_mib);
    bulk_client_destroy(&client);
    rogue_destroy(rogue);
}

// The answer to a question, of a connection that may have to be made first.
static void ask(struct bulk_dealer *dealer, struct bulk_mail *mail, const struct hash *hash)
{
    const struct wire_want want = { 1, *hash, 0, BULK_CHUNK_BYTES };
    zmq_pollitem_t item = { .socket = dealer->socket, .events = ZMQ_POLLIN };
    bulk_send(dealer->socket, NULL, FIXTURE_RUN, FRAME_WANT, &want, NULL);
    assert_int_equal(zmq_poll(&item, 1, ENOUGH_MS), 1);
    assert_int_equal(bulk_dealer_recv(dealer, mail), BULK_MAIL);
    assert_int_equal(mail->head.kind, FRAME_CHUNK);
}

// What was received counts no more, over one connection and over the next.
static void test_answers_that_are_taken_do_not_count(void **state)
{
    (void)state;
    enum { ANSWERS = 300 };
    struct fixture_holder holder = fixture_holder_new();
    uint8_t *bytes = fixture_bytes(BULK_CHUNK_BYTES, 1);
    const struct hash hash = fixture_give(holder.store, bytes, BULK_CHUNK_BYTES);
    void *context = net_context_new(1);
    struct bulk_dealer dealer;
    struct bulk_mail mail;
    bulk_mail_init(&mail);
    assert_true(bulk_dealer_open(&dealer, context, 4, fixture_identity(), &holder.holder));
    for (int life = 0; life < 2; life++) {
        for (int i = 0; i < ANSWERS; i++) ask(&dealer, &mail, &hash);
        assert_true(dealer.fd >= 0 && dealer.taken > (uint64_t)ANSWERS * BULK_CHUNK_BYTES);
        assert_true(bulk_dealer_pending(&dealer) < HANDSHAKE_BYTES_MAX);
        if (life) break;
        bulk_server_destroy(&holder.server); // The connection ends ..
        const struct bulk_server_options options = { .identity = fixture_identity(),
                                                     .run = FIXTURE_RUN,
                                                     .endpoint = holder.holder.endpoint,
                                                     .store = holder.store };
        assert_int_equal(bulk_server_new(&options, &why, &holder.server), 0);
        fixture_admit(holder.server); // .. and there is another
    }
    assert_true(dealer.taken < (uint64_t)(ANSWERS + 1) * (BULK_CHUNK_BYTES + 1000));
    bulk_dealer_close(&dealer);
    bulk_mail_end(&mail);
    net_context_destroy(&context);
    fixture_holder_destroy(&holder);
    free(bytes);
}

static void test_peers_that_cannot_be_asked(void **state)
{
    (void)state;
    void *context = net_context_new(1);
    struct bulk_dealer dealer;
    const struct wire_holder nowhere = fixture_at("nonsense");
    assert_false(bulk_dealer_open(&dealer, context, 4, fixture_identity(), &nowhere));
    assert_int_equal(zmq_errno(), EINVAL);
    bulk_dealer_close(&dealer);
    net_context_destroy(&context);
}

TESTS(TEST(test_fetcher_leaves_a_holder_that_sends_without_end),
      TEST(test_sample_client_leaves_a_provider_that_sends_without_end),
      TEST(test_answers_that_are_taken_do_not_count), TEST(test_peers_that_cannot_be_asked))
