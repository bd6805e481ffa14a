// Tickets: what is printed is read, and no other line is.
#include "common/actor/ticket.h"
#include "common/net/curve.h"
#include "tests/test.h"
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

static struct ticket sample(bool invited)
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

static void what_is_printed_is_read(void **state)
{
    (void)state;
    char text[TICKET_TEXT_MAX], padded[TICKET_TEXT_MAX + 8];
    for (int invited = 0; invited < 2; invited++) {
        struct ticket ticket = sample(invited), read;
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

// A folder is named after the run.
static void no_run_leads_out_of_a_folder(void **state)
{
    (void)state;
    static const char *const runs[] = { "/../../.ssh", "a/b", "a b;true", "caf\xc3\xa9" };
    char text[TICKET_TEXT_MAX];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct ticket ticket = sample(false), read;
        snprintf(ticket.run, sizeof ticket.run, "%s", runs[i]);
        ticket_print(&ticket, text);
        assert_int_equal(ticket_parse(text, &why, &read), FAULT_FORMAT);
    }
}

static void the_longest_ticket_fits(void **state)
{
    (void)state;
    struct ticket ticket = sample(true), read;
    char text[TICKET_TEXT_MAX];
    memset(ticket.address, 'a', TICKET_ADDRESS_MAX);
    memset(ticket.run, 'r', WIRE_RUN_MAX);
    assert_true(strlen(ticket_print(&ticket, text)) < TICKET_TEXT_MAX);
    assert_int_equal(ticket_parse(text, &why, &read), 0);
}

// Every line that differs in a letter, and every beginning of one, is refused.
static void a_damaged_line_is_refused(void **state)
{
    (void)state;
    struct ticket ticket = sample(true), read;
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

static void what_must_not_be_in_an_address_is_refused(void **state)
{
    (void)state;
    struct ticket ticket = sample(false), read;
    char text[TICKET_TEXT_MAX];
    strcpy(ticket.address, "host:5550\ninjected");
    ticket_print(&ticket, text);
    assert_int_equal(ticket_parse(text, &why, &read), FAULT_FORMAT);
}

static void an_invitation_is_its_owners(void **state)
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
    for (size_t i = 0; i < sizeof bytes; i++) { // No byte of it may be another
        bytes[i] ^= 1;
        assert_false(invitation_parse(bytes, sizeof bytes, &read) &&
                     invitation_is_by(&read, identity_key(owner), &server, "demo"));
        bytes[i] ^= 1;
    }
    assert_false(invitation_parse(bytes, sizeof bytes - 1, &read));
    identity_destroy(&owner);
    identity_destroy(&other);
}

TESTS(TEST(what_is_printed_is_read), TEST(no_run_leads_out_of_a_folder),
      TEST(the_longest_ticket_fits), TEST(a_damaged_line_is_refused),
      TEST(what_must_not_be_in_an_address_is_refused), TEST(an_invitation_is_its_owners))
