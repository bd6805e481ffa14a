// Admission by lists, invitations and bans; and rate limits on what a sender says and makes others
// send.
#include "broker/admission.h"
#include "broker/budget.h"
#include "broker/penalties.h"
#include "tests/test.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct why why;
static char dir[] = "/tmp/admission.XXXXXX", list[64], record[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(list, sizeof list, "%s/list", dir);
    snprintf(record, sizeof record, "%s/record", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(list), unlink(record);
    return rmdir(dir);
}

static struct identity *identity_of(uint8_t number)
{
    uint8_t secret[SECRET_BYTES] = { number };
    struct identity *identity;
    assert_int_equal(identity_from_secret(secret, &why, &identity), 0);
    return identity;
}

static struct key key_of(uint8_t number)
{
    struct identity *identity = identity_of(number);
    struct key key = *identity_key(identity);
    identity_destroy(&identity);
    return key;
}

static void write_list(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void write_list(const char *format, ...)
{
    va_list args;
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    assert_int_equal(fclose(file), 0);
}

static const char *hello(struct admission *self, uint8_t number, uint8_t role)
{
    struct key key = key_of(number);
    return admission_hello(self, &key, role, "demo", NULL, 0, 1000);
}

static bool lets_in(struct admission *self, uint8_t number)
{
    struct key key = key_of(number);
    return admission_lets_in(self, &key);
}

// ---- policies -----------------------------------------------------------------------------------

static void a_list_is_read_and_read_again(void **state)
{
    (void)state;
    char a[KEY_HEX], b[KEY_HEX];
    struct key server = key_of(1), key_a = key_of(2), key_b = key_of(3);
    struct admission_options options = {
        .policy = ADMIT_ALLOWLIST, .list_path = list, .identity = &server, .server = &server
    };
    struct admission *self = NULL;
    key_to_hex(&key_a, a), key_to_hex(&key_b, b);
    write_list("# friends\n\n  %s   # anything\n%s monitor coordinator\r\n", a, b);
    assert_int_equal(admission_new(&options, &why, &self), 0);
    assert_int_equal(admission_count(self), 2);
    assert_true(lets_in(self, 2) && lets_in(self, 3));
    assert_false(lets_in(self, 4));
    assert_null(hello(self, 2, ACTOR_TRAINER));
    assert_non_null(hello(self, 2, ACTOR_COORDINATOR));
    assert_null(hello(self, 3, ACTOR_COORDINATOR));
    assert_non_null(hello(self, 3, ACTOR_TRAINER));
    assert_ptr_equal(hello(self, 4, ACTOR_MONITOR), ADMISSION_UNLISTED);
    write_list("%s\n", b);
    assert_int_equal(admission_reload(self, &why), 0);
    assert_false(lets_in(self, 2));
    // A fault anywhere: the table before it stays.
    const char *bad[] = { "%s\n12ab\n", "%s\n%s pilot\n", "%s\n0%s\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        FILE *file = fopen(list, "w");
        fprintf(file, bad[i], a, b);
        fclose(file);
#pragma GCC diagnostic pop
        assert_int_equal(admission_reload(self, &why), FAULT_FORMAT);
        assert_non_null(strstr(why.text, "/list:2: "));
        assert_true(lets_in(self, 3) && !lets_in(self, 2));
    }
    unlink(list);
    assert_int_equal(admission_reload(self, &why), FAULT_NOT_FOUND);
    assert_true(lets_in(self, 3));
    admission_destroy(&self);
    assert_int_equal(admission_new(&options, &why, &self), FAULT_NOT_FOUND);
}

static const char *hello_with(struct admission *self, uint8_t number, const uint8_t *bytes,
                              uint64_t now_s)
{
    struct key key = key_of(number);
    return admission_hello(self, &key, ACTOR_TRAINER, "demo", bytes, INVITATION_BYTES, now_s);
}

static void an_invitation_lets_in_so_many_and_no_more(void **state)
{
    (void)state;
    struct identity *owner = identity_of(2), *stranger = identity_of(9);
    struct key server = key_of(1);
    struct admission_options options = { .policy = ADMIT_INVITE,
                                         .record_path = record,
                                         .identity = &server,
                                         .server = &server,
                                         .owner = identity_key(owner) };
    struct invitation bearer = { .expires_unix_s = 2000, .uses = 1, .number = { 1 } }, named = {
        .expires_unix_s = 2000, .uses = 1, .number = { 2 }, .guest = key_of(5)
    };
    uint8_t bytes[INVITATION_BYTES];
    struct admission *self = NULL;
    const struct key three = key_of(3);
    assert_int_equal(admission_new(&options, &why, &self), 0);
    assert_true(lets_in(self, 2)); // The owner needs none
    assert_false(lets_in(self, 3));
    assert_null(admission_refuses(self, &three)); // It may show an invitation
    assert_non_null(hello(self, 3, ACTOR_TRAINER));

    invitation_sign(&bearer, stranger, &server, "demo", bytes);
    assert_non_null(strstr(hello_with(self, 3, bytes, 1000), "not signed by this run's owner"));
    invitation_sign(&bearer, owner, &server, "demo", bytes);
    assert_non_null(strstr(hello_with(self, 3, bytes, 2001), "expired"));
    assert_null(hello_with(self, 3, bytes, 1000));
    assert_true(lets_in(self, 3));
    assert_null(hello_with(self, 3, bytes, 3000)); // Again: known by now
    assert_non_null(strstr(hello_with(self, 4, bytes, 1000), "used up"));

    invitation_sign(&named, owner, &server, "demo", bytes);
    assert_non_null(strstr(hello_with(self, 4, bytes, 1000), "another key"));
    assert_null(hello_with(self, 5, bytes, 1000));
    assert_non_null(hello(self, 5, ACTOR_COORDINATOR));
    assert_null(hello(self, 2, ACTOR_COORDINATOR));

    // Written down: another life of the broker knows them, and that the invitation is used up. What
    // a crash has cut is as if it had not been.
    admission_destroy(&self);
    int fd = open(record, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "0100", 4), 4);
    close(fd);
    assert_int_equal(admission_new(&options, &why, &self), 0);
    assert_true(lets_in(self, 3) && lets_in(self, 5) && !lets_in(self, 4));
    invitation_sign(&bearer, owner, &server, "demo", bytes);
    assert_non_null(strstr(hello_with(self, 4, bytes, 1000), "used up"));
    admission_destroy(&self);
    identity_destroy(&owner);
    identity_destroy(&stranger);
}

static void write_revoked(const char *text)
{
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

// An invitation may name roles; its ticket, or one guest of it, can be revoked.
static void an_invitation_is_for_its_roles_until_it_is_revoked(void **state)
{
    (void)state;
    struct identity *owner = identity_of(2);
    struct key server = key_of(1), three = key_of(3);
    struct admission_options options = { .policy = ADMIT_INVITE,
                                         .record_path = record,
                                         .revoked_path = list,
                                         .identity = &server,
                                         .server = &server,
                                         .owner = identity_key(owner) };
    struct invitation trains = { .expires_unix_s = 2000,
                                 .uses = 9,
                                 .number = { 1 },
                                 .roles = 1 << ACTOR_TRAINER },
                      any = { .expires_unix_s = 2000, .uses = 9, .number = { 2 } };
    struct ticket ticket = { .address = "198.51.100.7:5550",
                             .run = "demo",
                             .has_invitation = true };
    uint8_t bytes[INVITATION_BYTES];
    char text[TICKET_TEXT_MAX + 100], line[TICKET_TEXT_MAX], hex[KEY_HEX];
    struct admission *self = NULL;
    unlink(record), unlink(list);
    assert_int_equal(admission_new(&options, &why, &self), 0);
    invitation_sign(&trains, owner, &server, "demo", bytes);
    for (uint8_t number = 3; number < 5; number++)
        assert_null(hello_with(self, number, bytes, 1000));
    assert_string_equal(hello(self, 3, ACTOR_WITNESS), "this key may not take that role");
    struct key six = key_of(6);
    assert_string_equal(
        admission_hello(self, &six, ACTOR_WITNESS, "demo", bytes, sizeof bytes, 1000),
        "the invitation is not for this role");
    assert_false(lets_in(self, 6)); // And is not used up by it
    memcpy(ticket.invitation, bytes, sizeof bytes);
    invitation_sign(&any, owner, &server, "demo", bytes);
    assert_null(hello_with(self, 5, bytes, 1000));
    assert_null(hello(self, 5, ACTOR_WITNESS));

    snprintf(text, sizeof text, "# guests\n%s\n", key_to_hex(&three, hex));
    write_revoked(text);
    assert_int_equal(admission_reload(self, &why), 0);
    assert_true(!lets_in(self, 3) && lets_in(self, 4) && lets_in(self, 5));
    write_revoked("3fa2\n");
    assert_int_equal(admission_reload(self, &why), FAULT_FORMAT);
    assert_true(!lets_in(self, 3) && lets_in(self, 4)); // As before

    snprintf(text, sizeof text, "%s # anna's\n", ticket_print(&ticket, line));
    write_revoked(text);
    assert_int_equal(admission_reload(self, &why), 0);
    assert_true(!lets_in(self, 3) && !lets_in(self, 4) && lets_in(self, 5));
    invitation_sign(&trains, owner, &server, "demo", bytes);
    assert_string_equal(hello_with(self, 6, bytes, 1000), "the run's owner has revoked it");
    admission_destroy(&self);
    assert_int_equal(admission_new(&options, &why, &self), 0); // Another life of the broker
    assert_true(!lets_in(self, 3) && !lets_in(self, 4) && lets_in(self, 5));
    assert_null(hello(self, 5, ACTOR_WITNESS));
    unlink(list);
    assert_int_equal(admission_reload(self, &why), 0);
    assert_true(lets_in(self, 3) && lets_in(self, 4));
    assert_string_equal(hello(self, 3, ACTOR_WITNESS), "this key may not take that role");
    admission_destroy(&self);
    identity_destroy(&owner);
}

// The other Ed25519 key of the same connection: the secret of one also signs for the other.
static const char *hello_as_negative(struct admission *self, uint8_t number, uint8_t role,
                                     const uint8_t *bytes)
{
    struct key key = key_of(number);
    key.bytes[KEY_BYTES - 1] ^= 0x80;
    return admission_hello(self, &key, role, "demo", bytes, bytes ? INVITATION_BYTES : 0, 1000);
}

static void one_key_is_one_member(void **state)
{
    (void)state;
    struct identity *owner = identity_of(2);
    struct key server = key_of(1), listed = key_of(3), negative = listed;
    char hex[KEY_HEX], other[KEY_HEX];
    struct admission_options invite = { .policy = ADMIT_INVITE,
                                        .record_path = record,
                                        .identity = &server,
                                        .server = &server,
                                        .owner = identity_key(owner) };
    struct admission_options allow = {
        .policy = ADMIT_ALLOWLIST, .list_path = list, .identity = &server, .server = &server
    };
    struct invitation bearer = { .expires_unix_s = 2000, .uses = 5, .number = { 7 } };
    uint8_t bytes[INVITATION_BYTES];
    struct admission *self = NULL;
    unlink(record);
    assert_int_equal(admission_new(&invite, &why, &self), 0);
    invitation_sign(&bearer, owner, &server, "demo", bytes);
    assert_null(hello_with(self, 6, bytes, 1000));
    assert_non_null(strstr(hello_as_negative(self, 6, ACTOR_TRAINER, bytes), "negative"));
    assert_non_null(strstr(hello_as_negative(self, 2, ACTOR_COORDINATOR, NULL), "negative"));
    assert_null(hello_as_negative(self, 7, ACTOR_TRAINER, bytes)); // The first that comes is it
    assert_non_null(strstr(hello_with(self, 7, bytes, 1000), "negative"));
    admission_destroy(&self);

    negative.bytes[KEY_BYTES - 1] ^= 0x80;
    write_list("%s trainer\n%s monitor\n", key_to_hex(&listed, hex), hex);
    assert_int_equal(admission_new(&allow, &why, &self), 0);
    assert_null(hello(self, 3, ACTOR_TRAINER));
    assert_null(hello(self, 3, ACTOR_MONITOR));
    assert_non_null(strstr(hello_as_negative(self, 3, ACTOR_TRAINER, NULL), "negative"));
    write_list("%s\n%s\n", hex, key_to_hex(&negative, other));
    assert_int_equal(admission_reload(self, &why), FAULT_FORMAT);
    admission_destroy(&self);
    identity_destroy(&owner);
}

static void a_banned_key_stays_out(void **state)
{
    (void)state;
    struct key server = key_of(1), owner = key_of(2);
    struct admission_options options = { .identity = &server, .server = &server, .owner = &owner };
    struct admission *self = NULL;
    const struct key three = key_of(3), two = key_of(2);
    assert_int_equal(admission_new(&options, &why, &self), 0);
    assert_true(lets_in(self, 3));
    assert_true(admission_ban(self, &three));
    assert_false(admission_ban(self, &three));
    assert_false(lets_in(self, 3));
    assert_string_equal(admission_refuses(self, &three), "this key was ejected");
    assert_non_null(hello(self, 3, ACTOR_TRAINER));
    assert_false(admission_ban(self, &two)); // Never the owner
    assert_non_null(hello(self, 4, ACTOR_COORDINATOR));
    admission_destroy(&self);
}

// A broker that only its own machine reaches: the first coordinator is the owner.
static void the_first_coordinator_stays_it(void **state)
{
    (void)state;
    struct key server = key_of(1), two = key_of(2), three = key_of(3);
    struct admission_options options = { .identity = &server, .server = &server };
    struct admission *self = NULL;
    assert_int_equal(admission_new(&options, &why, &self), 0);
    assert_null(hello(self, 3, ACTOR_COORDINATOR)); // Was not welcomed for another reason
    assert_null(hello(self, 2, ACTOR_COORDINATOR));
    assert_true(admission_pin(self, &two));
    assert_false(admission_pin(self, &two));
    assert_false(admission_pin(self, &three));
    assert_null(hello(self, 2, ACTOR_COORDINATOR));
    assert_ptr_equal(hello(self, 3, ACTOR_COORDINATOR), ADMISSION_PINNED);
    assert_null(hello(self, 3, ACTOR_TRAINER));
    assert_false(admission_ban(self, &two));
    admission_destroy(&self);
    options.owner = &two;
    assert_int_equal(admission_new(&options, &why, &self), 0);
    assert_string_equal(hello(self, 3, ACTOR_COORDINATOR),
                        "only the owner's key may be coordinator");
    assert_false(admission_pin(self, &three));
    admission_destroy(&self);
}

// ---- budgets and penalties ----------------------------------------------------------------------

static const struct budget narrow = {
    .frames_s = 10, .frames_burst = 5, .bytes_s = 1000, .bytes_burst = 1000
};

static void use_up(struct bucket *bucket)
{
    bucket_fill(bucket, &narrow, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(bucket_take(bucket, &narrow, 1, 1, 0), BUDGET_WITHIN);
}

static void a_bucket_fills_drops_and_cuts(void **state)
{
    (void)state;
    struct bucket bucket = { 0 };
    use_up(&bucket);
    assert_int_equal(bucket_take(&bucket, &narrow, 1, 1, 0), BUDGET_OVER);
    assert_int_equal(bucket_take(&bucket, &narrow, 1, 1, 300), BUDGET_WITHIN); // 3 more came
    for (uint64_t ms = 1000; ms < 20000; ms += 100) // At its rate for ever
        assert_int_equal(bucket_take(&bucket, &narrow, 1, 100, ms), BUDGET_WITHIN);
    assert_int_equal(bucket_take(&bucket, &narrow, 1, 2000, 20000), BUDGET_OVER);
    assert_int_equal(bucket_take(&bucket, &narrow, 1, UINT64_MAX, 20000), BUDGET_CUT);
    bucket = (struct bucket){ 0 };
    bucket_fill(&bucket, &narrow, 0);
    int over = 0;
    while (bucket_take(&bucket, &narrow, 1, 1, 0) != BUDGET_CUT) over++;
    assert_int_equal(over, 5 + 4 * 5);
}

// The frames of a round come on top of those that come with time; never more than a burst waits.
static void a_bucket_is_given_more(void **state)
{
    (void)state;
    struct bucket bucket = { 0 };
    use_up(&bucket);
    for (int round = 0; round < 100; round++) {
        bucket_give(&bucket, &narrow, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(bucket_take(&bucket, &narrow, 1, 1, 0), BUDGET_WITHIN);
        // Without the excess that a round takes back, the 21st of these would cut the connection
        assert_int_equal(bucket_take(&bucket, &narrow, 1, 1, 0), BUDGET_OVER);
    }
    bucket_give(&bucket, &narrow, UINT64_MAX);
    for (int i = 0; i < 5; i++)
        assert_int_equal(bucket_take(&bucket, &narrow, 1, 1, 0), BUDGET_WITHIN);
    assert_int_equal(bucket_take(&bucket, &narrow, 1, 1, 0), BUDGET_OVER);
}

// A stranger becomes a member, then by turns an observer and a member.
static void a_change_of_budget_gives_no_more(void **state)
{
    (void)state;
    const struct budget small = { 5, 20, 1000, 1000000 }, large = { 2000, 8000, 1000, 2000000 };
    struct bucket bucket = { 0 };
    uint32_t passed = 0;
    for (int turn = 0; turn < 10; turn++) {
        const struct budget *budget = turn % 2 ? &large : &small;
        bucket_fill(&bucket, budget, 1);
        for (int i = 0; i < 8000 && bucket_take(&bucket, budget, 1, 1, 1) == BUDGET_WITHIN; i++)
            passed++;
        if (turn == 0) assert_int_equal(passed, 20);
    }
    assert_int_equal(passed, 8000);
}

struct said {
    uint32_t said, passed, own_said, own_passed;
    uint64_t cut_ms;
}; // Cut: 0, never

// A minute of a sender at `tenths` of its budget, in frames or in bytes. One in forty of its frames
// is its own and the others are answers to its peers; all come in no order. If `once` it ends with
// the cut.
static struct said say_for_a_minute(uint32_t tenths, uint64_t bytes, bool once)
{
    const struct budget budget = { 2000, 8000, 8 << 20, 32 << 20 };
    const uint64_t rate = bytes ? budget.bytes_s / bytes : budget.frames_s;
    struct bucket bucket = { 0 };
    struct said said = { 0 };
    uint32_t random = 1;
    bucket_fill(&bucket, &budget, 1000);
    for (uint64_t ms = 1; ms <= 60000; ms++)
        while (said.said < rate * tenths * ms / 10000) {
            random = random * 1664525u + 1013904223u;
            const bool own = (random >> 16) % 40 == 0;
            enum budget_verdict verdict = bucket_take(&bucket, &budget, 1, bytes, 1000 + ms);
            said.said++, said.own_said += own;
            if (verdict == BUDGET_WITHIN) said.passed++, said.own_passed += own;
            if (verdict == BUDGET_CUT && !said.cut_ms) said.cut_ms = ms;
            if (verdict == BUDGET_CUT && once) return said;
        }
    return said;
}

static void a_sender_over_budget_is_slowed_and_not_silenced(void **state)
{
    (void)state;
    for (uint64_t bytes = 0; bytes <= 100000; bytes += 100000) {
        const uint32_t rate = bytes ? (8 << 20) / 100000 : 2000, all = rate * (60 + 4);
        struct said within = say_for_a_minute(10, bytes, true);
        assert_int_equal(within.passed, within.said);
        // A fifth too much, for a minute: its budget, of its own frames as of the others.
        struct said slowed = say_for_a_minute(12, bytes, true);
        assert_int_equal(slowed.cut_ms, 0);
        assert_in_range(slowed.passed, all - all / 50, all + all / 50);
        assert_true(slowed.own_said > 50);
        assert_in_range(slowed.own_passed * 10, slowed.own_said * 7, slowed.own_said * 10);
        // Ten times too much: cut within the five bursts that the rule allows; and had it not been,
        // its budget would have come through, no more.
        struct said flooded = say_for_a_minute(100, bytes, true);
        assert_in_range(flooded.cut_ms, 1, 3000);
        flooded = say_for_a_minute(100, bytes, false);
        assert_in_range(flooded.passed, all - all / 50, all + all / 50);
        assert_true(flooded.own_passed > 0);
    }
}

static void a_penalty_ends(void **state)
{
    (void)state;
    struct penalties self = { .next = 0 };
    const struct key key = key_of(3), other = key_of(4);
    penalties_add(&self, &key, 1000);
    assert_true(penalties_has(&self, &key, 1000 + PENALTY_MS - 1));
    assert_false(penalties_has(&self, &other, 1001));
    assert_false(penalties_has(&self, &key, 1000 + PENALTY_MS));
}

TESTS_WITH(set_up, tear_down, TEST(a_list_is_read_and_read_again),
           TEST(an_invitation_lets_in_so_many_and_no_more), TEST(one_key_is_one_member),
           TEST(an_invitation_is_for_its_roles_until_it_is_revoked), TEST(a_banned_key_stays_out),
           TEST(the_first_coordinator_stays_it), TEST(a_bucket_fills_drops_and_cuts),
           TEST(a_bucket_is_given_more), TEST(a_change_of_budget_gives_no_more),
           TEST(a_sender_over_budget_is_slowed_and_not_silenced), TEST(a_penalty_ends))
