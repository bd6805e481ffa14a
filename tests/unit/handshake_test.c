// handshake_test -- from memory to memory: who gets a connection, who only a proof of the key, and who
// nothing. Edits of the messages: tests/fuzz/link.c. Over sockets: group_links_test, bulk_server_test.

#include "common/base/ensure.h"
#include "common/net/handshake.h"
#include "tests/test.h"
#include <string.h>

static struct identity *identities[3];
static struct handshake_self connects, accepts;
static struct handshake one, other;
static unsigned judged, probed, probes_max;
static struct why why;

static enum handshake_refusal judge(void *arg, const struct handshake_party *from,
                                    const struct handshake_purpose *purpose)
{
    (void)arg, (void)purpose;
    judged++;
    return key_equal(&from->key, identity_key(identities[0])) ? HANDSHAKE_REFUSED_NONE
                                                              : HANDSHAKE_REFUSED_STRANGER;
}

static enum handshake_refusal judge_probe(void *arg, const struct handshake_party *from,
                                          const struct handshake_purpose *purpose)
{
    (void)arg, (void)from;
    assert_true(purpose->probe);
    return probed++ < probes_max ? HANDSHAKE_REFUSED_NONE : HANDSHAKE_REFUSED_BUSY;
}

static int set_up(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 3; i++) {
        const uint8_t secret[SECRET_BYTES] = { 1, i };
        ensure(identity_from_secret(secret, NULL, &identities[i]) == 0);
    }
    connects = (struct handshake_self){ .protocol = "test 1", .identity = identities[0] };
    accepts = (struct handshake_self){
        .protocol = "test 1", .identity = identities[1], .judge = judge, .judge_probe = judge_probe
    };
    judged = probed = 0;
    probes_max = 10;
    why.text[0] = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) identity_destroy(&identities[i]);
    return 0;
}

static int carry(struct handshake *from, struct handshake *to)
{
    assert_int_equal(from->out_count, to->in_count);
    memcpy(to->in, from->out, from->out_count);
    from->out_done = from->out_count;
    return handshake_take(to, &why);
}

// Up to the ANSWER, which is heard.
static int ask(const struct handshake_purpose *purpose)
{
    const struct handshake_party party = { .key = *identity_key(identities[1]) };
    handshake_connect(&one, &connects, &party, purpose);
    handshake_accept(&other, &accepts);
    const int rc = carry(&one, &other);
    return rc < 0 ? rc : carry(&other, &one);
}

static void both_ends_have_the_same_keys(void **state)
{
    (void)state;
    struct sealing seal, unseal, back, forth;
    uint8_t bytes[5] = "seal", tag[SEALING_TAG];
    assert_int_equal(ask(&(struct handshake_purpose){ .sealed = true, .number = 7 }), 0);
    assert_int_equal(carry(&one, &other), 0);
    assert_true(one.done && other.done && !one.ends && !other.ends && other.purpose.number == 7);
    assert_true(handshake_seal(&one, &seal, &back) && handshake_seal(&other, &forth, &unseal));
    sealing_put(&seal, bytes, sizeof bytes, bytes, tag);
    assert_string_not_equal((const char *)bytes, "seal");
    assert_true(sealing_take(&unseal, bytes, sizeof bytes, tag));
    assert_string_equal((const char *)bytes, "seal");
    sealing_destroy(&seal), sealing_destroy(&unseal);
    sealing_destroy(&back), sealing_destroy(&forth);
}

// For any key; nobody judges it, and no connection comes of it.
static void a_probe_is_answered_and_no_more(void **state)
{
    (void)state;
    connects.identity = identities[2];
    assert_int_equal(ask(&(struct handshake_purpose){ .probe = true }), 0);
    assert_true(one.done && judged == 0);
    assert_int_equal(one.out_count, one.out_done); // No PROOF follows
    assert_true(other.ends && !other.done);
    assert_int_equal(other.in_count, 0);
    assert_int_equal(ask(&(struct handshake_purpose){ .number = 1 }), FAULT_DENIED);
    assert_int_equal(judged, 1);
}

static void a_probe_proves_the_key(void **state)
{
    (void)state;
    const struct handshake_party party = { .key = *identity_key(identities[1]) };
    accepts.identity = identities[2]; // Another process has the address
    assert_int_equal(ask(&(struct handshake_purpose){ .probe = true }), FAULT_DENIED);
    assert_true(one.refusal == HANDSHAKE_REFUSED_NOT_ME && !one.done);
    // It repeats what the right one said to another HELLO
    accepts.identity = identities[1];
    assert_int_equal(ask(&(struct handshake_purpose){ .probe = true }), 0);
    const struct handshake old = other;
    handshake_connect(&one, &connects, &party, &(struct handshake_purpose){ .probe = true });
    memcpy(one.in, old.answer, HANDSHAKE_ANSWER);
    assert_int_equal(handshake_take(&one, &why), FAULT_SIGNATURE);
    assert_false(one.done);
}

static void who_answers_no_probes_says_so(void **state)
{
    (void)state;
    accepts.judge_probe = NULL;
    assert_int_equal(ask(&(struct handshake_purpose){ .probe = true }), FAULT_DENIED);
    assert_true(one.refusal == HANDSHAKE_REFUSED_PURPOSE && judged == 0);
}

static void a_probe_too_many_is_not_signed(void **state)
{
    (void)state;
    static const uint8_t nothing[64];
    probes_max = 1;
    assert_int_equal(ask(&(struct handshake_purpose){ .probe = true }), 0);
    assert_int_equal(ask(&(struct handshake_purpose){ .probe = true }), FAULT_DENIED);
    assert_true(one.refusal == HANDSHAKE_REFUSED_BUSY && other.ends && judged == 0);
    assert_memory_equal(other.answer + HANDSHAKE_ANSWER - sizeof nothing, nothing, sizeof nothing);
}

// A member of both: what it says on one kind of connection is worth nothing on the other.
static void another_protocol_is_not_understood(void **state)
{
    (void)state;
    connects.protocol = "test 2";
    assert_int_equal(ask(&(struct handshake_purpose){ .number = 1 }), FAULT_PROTOCOL);
    assert_int_equal(judged, 0);
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)
TESTS(CASE(both_ends_have_the_same_keys), CASE(a_probe_is_answered_and_no_more),
      CASE(a_probe_proves_the_key), CASE(who_answers_no_probes_says_so),
      CASE(a_probe_too_many_is_not_signed), CASE(another_protocol_is_not_understood))
