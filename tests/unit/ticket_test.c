// ticket_test -- a printed ticket can be read again, and no other line can; of a ticket of version
// 2 only the invitation is read; an invitation counts only as it was signed.

#include "common/actor/ticket.h"
#include "common/base/hash.h"
#include "common/net/curve.h"
#include "tests/test.h"
#include <sodium.h>
#include <stdio.h>
#include <string.h>

static struct why why;

static struct identity *identity_of(uint8_t number)
{
    uint8_t secret[SECRET_BYTES] = { number };
    struct identity *identity;
    assert_int_equal(identity_from_secret(secret, &why, &identity), 0);
    return identity;
}

// Its invitation, if it has one, is signed by the broker itself.
static struct ticket ticket_made(bool invited)
{
    struct ticket ticket = { .address = "198.51.100.7:5550", .run = "demo" };
    struct identity *broker = identity_of(1);
    ticket.server = curve_server_key(broker);
    if (invited) {
        struct identity *owner = identity_of(2);
        ticket.owner = *identity_key(owner);
        identity_destroy(&owner);
        struct invitation invitation = { .expires_unix_s = 1800000000, .uses = 3, .number = { 5 } };
        invitation_sign(&invitation, broker, &ticket.server, "demo", ticket.invitation);
        ticket.has_invitation = true;
    }
    identity_destroy(&broker);
    return ticket;
}

static void a_printed_ticket_is_read_again(void **state)
{
    (void)state;
    char text[TICKET_TEXT_MAX], padded[TICKET_TEXT_MAX + 8];
    for (int invited = 0; invited < 2; invited++) {
        struct ticket ticket = ticket_made(invited), read;
        ticket_print(&ticket, text);
        assert_int_equal(strncmp(text, "shoal:", 6), 0);
        assert_null(strpbrk(text, " +/=\n"));
        snprintf(padded, sizeof padded, " \t%s\r\n", text);
        assert_int_equal(ticket_parse(padded, &why, &read), 0);
        assert_true(key_equal(&read.server, &ticket.server));
        assert_true(key_equal(&read.owner, &ticket.owner) && key_is_none(&read.owner) == !invited);
        assert_string_equal(read.address, ticket.address);
        assert_string_equal(read.run, "demo");
        assert_int_equal(read.has_invitation, invited);
        if (invited) assert_memory_equal(read.invitation, ticket.invitation, INVITATION_BYTES);
    }
}

// Folders are named after the run.
static void a_run_that_is_no_plain_name_is_refused(void **state)
{
    (void)state;
    static const char *const runs[] = { "/../../.ssh", "a/b", "a b;true", "caf\xc3\xa9" };
    char text[TICKET_TEXT_MAX];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct ticket ticket = ticket_made(false), read;
        snprintf(ticket.run, sizeof ticket.run, "%s", runs[i]);
        ticket_print(&ticket, text);
        assert_int_equal(ticket_parse(text, &why, &read), FAULT_FORMAT);
    }
}

static void the_longest_ticket_fits(void **state)
{
    (void)state;
    struct ticket ticket = ticket_made(true), read;
    char text[TICKET_TEXT_MAX];
    memset(ticket.address, 'a', TICKET_ADDRESS_MAX);
    memset(ticket.run, 'r', WIRE_RUN_MAX);
    assert_true(strlen(ticket_print(&ticket, text)) < TICKET_TEXT_MAX);
    assert_int_equal(ticket_parse(text, &why, &read), 0);
}

// A ticket of which one letter is another is refused, and so is each beginning of a ticket.
static void a_damaged_ticket_is_refused(void **state)
{
    (void)state;
    struct ticket ticket = ticket_made(true), read;
    char text[TICKET_TEXT_MAX], damaged[TICKET_TEXT_MAX];
    ticket_print(&ticket, text);
    for (size_t i = 0; text[i]; i++) {
        strcpy(damaged, text);
        damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
        assert_int_equal(ticket_parse(damaged, &why, &read), FAULT_FORMAT);
        damaged[i] = 0;
        assert_int_equal(ticket_parse(damaged, &why, &read), FAULT_FORMAT);
    }
    static const char *const bad[] = { "",         "shoal:",          "shoal:====",
                                       "http://x", "shoal:AAAA AAAA", "shoal:\xff\xfe" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ticket_parse(bad[i], &why, &read), FAULT_FORMAT);
    memset(damaged, 'A', sizeof damaged);
    memcpy(damaged, "shoal:", 6);
    damaged[sizeof damaged - 1] = 0;
    assert_int_equal(ticket_parse(damaged, &why, &read), FAULT_FORMAT);
}

// The same ticket with this version in its first byte, and a check that fits.
static void put_version(char text[TICKET_TEXT_MAX], uint8_t version)
{
    enum { CHECK_BYTES = 4, PREFIX = 6 }; // "shoal:"
    const int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
    uint8_t bytes[TICKET_TEXT_MAX];
    size_t count;
    assert_int_equal(sodium_base642bin(bytes, sizeof bytes, text + PREFIX, strlen(text + PREFIX),
                                       NULL, &count, NULL, variant),
                     0);
    bytes[0] = version;
    const struct hash check = hash_of(bytes, count - CHECK_BYTES);
    memcpy(bytes + count - CHECK_BYTES, check.bytes, CHECK_BYTES);
    sodium_bin2base64(text + PREFIX, TICKET_TEXT_MAX - PREFIX, bytes, count, variant);
}

// It names the broker by another key than that of its connections, so nobody can connect with it.
// But its invitation may still be taken back.
static void of_version_2_only_the_invitation_is_read(void **state)
{
    (void)state;
    const struct ticket invited = ticket_made(true), uninvited = ticket_made(false);
    struct ticket read;
    char text[TICKET_TEXT_MAX];
    uint8_t invitation[INVITATION_BYTES];
    for (uint8_t version = 1; version <= 4; version++) {
        memset(invitation, 0, sizeof invitation);
        ticket_print(&invited, text);
        put_version(text, version);
        assert_int_equal(ticket_parse(text, &why, &read), version == 3 ? 0 : FAULT_FORMAT);
        if (version != 3)
            assert_non_null(
                strstr(why.text, version == 2 ? "is of version 2" : "is of a version that is not"));
        const bool has_one = version == 2 || version == 3;
        assert_int_equal(ticket_invitation(text, invitation), has_one);
        if (has_one) assert_memory_equal(invitation, invited.invitation, INVITATION_BYTES);
        ticket_print(&uninvited, text);
        put_version(text, version);
        assert_false(ticket_invitation(text, invitation));
    }
}

static void an_address_of_two_lines_is_refused(void **state)
{
    (void)state;
    struct ticket ticket = ticket_made(false), read;
    char text[TICKET_TEXT_MAX];
    strcpy(ticket.address, "host:5550\ninjected");
    ticket_print(&ticket, text);
    assert_int_equal(ticket_parse(text, &why, &read), FAULT_FORMAT);
}

static void an_invitation_counts_only_as_it_was_signed(void **state)
{
    (void)state;
    struct identity *owner = identity_of(2), *other = identity_of(3);
    struct key server = *identity_key(other);
    struct invitation invitation = { .expires_unix_s = 9, .uses = 1, .number = { 7 } }, read;
    uint8_t bytes[INVITATION_BYTES];
    invitation_sign(&invitation, owner, &server, "demo", bytes);
    assert_true(invitation_parse(bytes, sizeof bytes, &read));
    assert_int_equal(read.expires_unix_s, 9);
    assert_true(invitation_is_by(&read, identity_key(owner), &server, "demo"));
    assert_false(invitation_is_by(&read, identity_key(other), &server, "demo"));
    assert_false(invitation_is_by(&read, identity_key(owner), identity_key(owner), "demo"));
    assert_false(invitation_is_by(&read, identity_key(owner), &server, "dem"));
    for (size_t i = 0; i < sizeof bytes; i++) { // With any byte changed
        bytes[i] ^= 1;
        assert_false(invitation_parse(bytes, sizeof bytes, &read) &&
                     invitation_is_by(&read, identity_key(owner), &server, "demo"));
        bytes[i] ^= 1;
    }
    assert_false(invitation_parse(bytes, sizeof bytes - 1, &read));
    identity_destroy(&owner);
    identity_destroy(&other);
}

TESTS(TEST(a_printed_ticket_is_read_again), TEST(a_run_that_is_no_plain_name_is_refused),
      TEST(the_longest_ticket_fits), TEST(a_damaged_ticket_is_refused),
      TEST(of_version_2_only_the_invitation_is_read), TEST(an_address_of_two_lines_is_refused),
      TEST(an_invitation_counts_only_as_it_was_signed))
