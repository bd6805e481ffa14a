// Admission: tickets by paste, invitations in a HELLO, a broker's list and record by file.

#include "broker/admission.h"
#include "common/actor/ticket.h"
#include "common/base/ensure.h"
#include "common/wire/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"
#include "tests/fuzz/scratch.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_BYTES = 4 };

// The line that these bytes make, with the sum that they should have.
static char *seal_ticket(const uint8_t *bytes, size_t count)
{
    uint8_t sealed[TICKET_TEXT_MAX + SUM_BYTES];
    if (count > TICKET_TEXT_MAX) count = TICKET_TEXT_MAX;
    memcpy(sealed, bytes, count);
    const struct hash sum = hash_of(sealed, count);
    memcpy(sealed + count, sum.bytes, SUM_BYTES);
    const size_t max =
        sodium_base64_encoded_len(sizeof sealed, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *text = malloc(max + 6);
    ensure(text);
    memcpy(text, "shoal:", 6);
    sodium_bin2base64(text + 6, max, sealed, count + SUM_BYTES,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return text;
}

// What is read is printed, and read again.
bool ticket_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct ticket ticket, again;
    char text[TICKET_TEXT_MAX];
    if (count == 0) return false;
    char *line = bytes[0] == 's' ? seal_ticket(bytes + 1, count - 1)
                                 : strndup((const char *)bytes + 1, count - 1);
    ensure(line);
    const bool accepted = ticket_parse(line, &why, &ticket) == 0;
    ensure(accepted || why.text[0]);
    free(line);
    if (!accepted) return false;
    ensure(ticket_parse(ticket_print(&ticket, text), &why, &again) == 0);
    ensure(key_equal(&ticket.server, &again.server) && key_equal(&ticket.owner, &again.owner));
    ensure(strcmp(ticket.run, again.run) == 0 && strcmp(ticket.address, again.address) == 0);
    ensure(ticket.has_invitation == again.has_invitation);
    ensure(!ticket.has_invitation ||
           memcmp(ticket.invitation, again.invitation, INVITATION_BYTES) == 0);
    return true;
}

// A printed ticket, without the prefix, base64 and check bytes: what seal_ticket puts around it.
static void write_ticket(const char *folder, const char *name, const struct ticket *ticket)
{
    uint8_t seed[1 + TICKET_TEXT_MAX] = { 's' };
    char text[TICKET_TEXT_MAX];
    size_t count;
    ticket_print(ticket, text);
    ensure(sodium_base642bin(seed + 1, TICKET_TEXT_MAX, text + 6, strlen(text + 6), NULL, &count,
                             NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0);
    fuzz_write_seed(folder, name, seed, 1 + count - SUM_BYTES);
}

void ticket_fuzz_write_seeds(const char *folder)
{
    struct ticket ticket = { .address = "host:5550", .run = "demo" };
    memset(&ticket.server, 7, sizeof ticket.server);
    memset(&ticket.owner, 8, sizeof ticket.owner);
    write_ticket(folder, "accepted-plain", &ticket);
    ticket.has_invitation = true;
    memset(ticket.invitation, 9, INVITATION_BYTES);
    write_ticket(folder, "accepted-invited", &ticket);
}

// A broker's list: refused whole, or a table of the keys in it.
bool allowlist_fuzz_check(const uint8_t *bytes, size_t count)
{
    static const struct key server = { { 1 } };
    struct why why = { 0 };
    struct admission *admission = NULL;
    scratch_put("allowlist", bytes, count);
    const struct admission_options options = { .policy = ADMIT_ALLOWLIST,
                                               .identity = &server,
                                               .server = &server,
                                               .list_path = scratch_path("allowlist") };
    const bool accepted = admission_new(&options, &why, &admission) == 0;
    ensure(accepted || why.text[0]);
    if (accepted) {
        const struct key none = { { 0 } };
        ensure(!admission_lets_in(admission, &none));
        ensure(admission_reload(admission, &why) == 0);
    }
    admission_destroy(&admission);
    return accepted;
}

// ---- invitations --------------------------------------------------------------------------------

enum { GUESTS = 3, NOW_S = 1000 };

static const struct identity *person(uint8_t number)
{
    static struct identity *people[GUESTS + 2]; // The owner, a stranger, the guests
    const uint8_t secret[SECRET_BYTES] = { 9, number };
    if (!people[number]) ensure(identity_from_secret(secret, NULL, &people[number]) == 0);
    return people[number];
}

// The invitation that these bytes make: signed by the owner, signed by a stranger, or as they are.
static size_t make_invitation(const uint8_t *bytes, size_t count, uint8_t by,
                              uint8_t made[INVITATION_BYTES + 8])
{
    struct invitation invitation;
    const size_t most = count < INVITATION_BYTES + 8 ? count : INVITATION_BYTES + 8;
    memset(made, 0, INVITATION_BYTES + 8);
    memcpy(made, bytes, most);
    if (by % 4 == 3 || !invitation_parse(made, INVITATION_BYTES, &invitation)) return most;
    if (by & 4) invitation.guest = *identity_key(person(2));
    if (by & 8) memset(&invitation.guest, 0, sizeof invitation.guest);
    invitation_sign(&invitation, person(by % 4 == 2), identity_key(person(0)), "run", made);
    return INVITATION_BYTES;
}

// How many guests it lets in: none that it does not name, no more than it says, none too late.
static unsigned check_guests(struct admission *admission, const uint8_t *made, size_t count)
{
    static const struct key bearer;
    struct invitation invitation;
    const bool is_one = invitation_parse(made, count, &invitation);
    unsigned guests = 0;
    for (uint8_t i = 2; i < GUESTS + 2; i++) {
        const struct key *key = identity_key(person(i));
        const char *reason =
            admission_hello(admission, key, ACTOR_TRAINER, "run", made, count, NOW_S);
        if (reason) continue;
        guests++;
        ensure(admission_hello(admission, key, ACTOR_TRAINER, "run", NULL, 0, NOW_S) == NULL);
        ensure(admission_hello(admission, key, ACTOR_COORDINATOR, "run", NULL, 0, NOW_S) != NULL);
        ensure(is_one && invitation_is_by(&invitation, identity_key(person(0)),
                                          identity_key(person(0)), "run"));
        ensure(key_equal(&invitation.guest, key) || key_equal(&invitation.guest, &bearer));
    }
    ensure(guests == 0 || (guests <= invitation.uses && invitation.expires_unix_s >= NOW_S));
    return guests;
}

// 'r' and a record of invitations: refused whole, or those in it are known, and cut lines are gone.
// Else a byte that chooses the signer, and an invitation.
bool invitation_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct admission *admission = NULL;
    uint8_t made[INVITATION_BYTES + 8];
    char path[512];
    if (count < 2) return false;
    const bool is_record = bytes[0] == 'r';
    scratch_put("invitations", bytes + 1, is_record ? count - 1 : 0);
    snprintf(path, sizeof path, "%s", scratch_path("invitations"));
    const struct admission_options options = { .policy = ADMIT_INVITE,
                                               .identity = identity_key(person(0)),
                                               .server = identity_key(person(0)),
                                               .owner = identity_key(person(0)),
                                               .record_path = path };
    if (admission_new(&options, &why, &admission) < 0) {
        ensure(why.text[0]);
        return false;
    }
    const uint32_t before = admission_count(admission);
    const size_t length = is_record ? 0 : make_invitation(bytes + 2, count - 2, bytes[1], made);
    const unsigned guests = is_record ? 0 : check_guests(admission, made, length);
    ensure(admission_count(admission) == before + guests);
    admission_destroy(&admission);
    ensure(admission_new(&options, &why, &admission) == 0); // What was written is read again
    ensure(admission_count(admission) == before + guests);
    admission_destroy(&admission);
    return is_record ? before > 0 : guests > 0;
}

// What is revoked, beside a record of two guests: refused whole, or each of them is known or is not, and
// the file says the same when it is read again.
bool revoked_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct admission *admission = NULL;
    char record[2 * 128], one[KEY_HEX], other[KEY_HEX], record_path[512], path[512];
    snprintf(record, sizeof record, "%032d 00 %s\n%032d 00 %s\n", 7,
             key_to_hex(identity_key(person(2)), one), 8,
             key_to_hex(identity_key(person(3)), other));
    scratch_put("invitations", record, strlen(record));
    snprintf(record_path, sizeof record_path, "%s", scratch_path("invitations"));
    scratch_put("revoked", bytes, count);
    snprintf(path, sizeof path, "%s", scratch_path("revoked"));
    const struct admission_options options = { .policy = ADMIT_INVITE,
                                               .identity = identity_key(person(0)),
                                               .server = identity_key(person(0)),
                                               .owner = identity_key(person(0)),
                                               .record_path = record_path,
                                               .revoked_path = path };
    const bool accepted = admission_new(&options, &why, &admission) == 0;
    ensure(accepted || why.text[0]);
    if (accepted) {
        const uint32_t known = admission_count(admission);
        ensure(known <= 2 && admission_reload(admission, &why) == 0);
        ensure(admission_count(admission) == known);
    }
    admission_destroy(&admission);
    return accepted;
}

void revoked_fuzz_write_seeds(const char *folder)
{
    struct ticket ticket = { .address = "host:5550", .run = "run", .has_invitation = true };
    const struct invitation invitation = { .expires_unix_s = 2 * NOW_S, .uses = 2 };
    char line[TICKET_TEXT_MAX + 32], hex[KEY_HEX], text[TICKET_TEXT_MAX];
    invitation_sign(&invitation, person(0), identity_key(person(0)), "run", ticket.invitation);
    int length = snprintf(line, sizeof line, "%s # anna\n", ticket_print(&ticket, text));
    fuzz_write_seed(folder, "accepted-ticket", line, (size_t)length);
    length = snprintf(line, sizeof line, "# a key\n%s\n", key_to_hex(identity_key(person(2)), hex));
    fuzz_write_seed(folder, "accepted-key", line, (size_t)length);
}

void invitation_fuzz_write_seeds(const char *folder)
{
    uint8_t seed[2 + INVITATION_BYTES] = { 'i', 9 };
    const struct invitation invitation = { .expires_unix_s = 2 * NOW_S, .uses = 2 };
    char hex[KEY_HEX], line[256];
    invitation_sign(&invitation, person(0), identity_key(person(0)), "run", seed + 2);
    fuzz_write_seed(folder, "accepted-bearers", seed, sizeof seed);
    seed[1] = 5;
    fuzz_write_seed(folder, "accepted-named", seed, sizeof seed);
    seed[1] = 2;
    fuzz_write_seed(folder, "refused-stranger", seed, sizeof seed);
    const int count =
        snprintf(line, sizeof line, "r%032d 00 %s\n", 7, key_to_hex(identity_key(person(3)), hex));
    fuzz_write_seed(folder, "accepted-record", line, (size_t)count);
}
