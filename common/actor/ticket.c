// A ticket is checked from outside to inside: one word, the prefix, base64, the length, the check
// bytes, the version, then the fields. The layouts of ticket and invitation are drawn in ticket.h.

#include "common/actor/ticket.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/base/hash.h"
#include "common/base/plain_name.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert(ACTOR_COUNT == 8, "each bit of the roles of an invitation is a role");

enum {
    VERSION = 3,
    VERSION_BEFORE = 2, // The same layout, but with the broker's Ed25519 key
    INVITATION_VERSION = 2,
    CHECK_BYTES = 4,
    BYTES_MAX = 1 + 2 * KEY_BYTES + 1 + TICKET_ADDRESS_MAX + 1 + WIRE_RUN_MAX + 1 +
                INVITATION_BYTES + CHECK_BYTES,
    SIGNED_BYTES = INVITATION_BYTES - SIGNATURE_BYTES
};
static const char prefix[] = "shoal:";

_Static_assert(sizeof prefix + (BYTES_MAX + 2) / 3 * 4 <= TICKET_TEXT_MAX,
               "a line has room for all");
_Static_assert(INVITATION_BYTES < 256, "its length is one byte");

// ---- the line -----------------------------------------------------------------------------------

static size_t put(uint8_t *bytes, size_t used, const void *from, size_t count)
{
    bytes[used] = (uint8_t)count;
    memcpy(bytes + used + 1, from, count);
    return used + 1 + count;
}

char *ticket_print(const struct ticket *self, char text[TICKET_TEXT_MAX])
{
    uint8_t bytes[BYTES_MAX] = { VERSION };
    size_t used = 1 + 2 * KEY_BYTES;
    memcpy(bytes + 1, self->server.bytes, KEY_BYTES);
    memcpy(bytes + 1 + KEY_BYTES, self->owner.bytes, KEY_BYTES);
    used = put(bytes, used, self->address, strlen(self->address));
    used = put(bytes, used, self->run, strlen(self->run));
    used = put(bytes, used, self->invitation, self->has_invitation ? INVITATION_BYTES : 0);
    struct hash check = hash_of(bytes, used);
    memcpy(bytes + used, check.bytes, CHECK_BYTES);
    memcpy(text, prefix, sizeof prefix);
    sodium_bin2base64(text + sizeof prefix - 1, TICKET_TEXT_MAX - sizeof prefix + 1, bytes,
                      used + CHECK_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return text;
}

struct reader {
    const uint8_t *bytes;
    size_t used, count;
};

// Reads a length and that many bytes of text. False: too long, cut, or not printable ASCII without
// blanks.
static bool get_text(struct reader *in, char *text, size_t max)
{
    if (in->used >= in->count) return false;
    size_t count = in->bytes[in->used++];
    if (count > max || count > in->count - in->used) return false;
    for (size_t i = 0; i < count; i++)
        if (in->bytes[in->used + i] <= 0x20 || in->bytes[in->used + i] >= 0x7f) return false;
    memcpy(text, in->bytes + in->used, count);
    text[count] = 0;
    in->used += count;
    return true;
}

static bool get_invitation(struct reader *in, struct ticket *ticket)
{
    if (in->used >= in->count) return false;
    size_t count = in->bytes[in->used++];
    ticket->has_invitation = count > 0;
    if (count != in->count - in->used || (count > 0 && count != INVITATION_BYTES)) return false;
    memcpy(ticket->invitation, in->bytes + in->used, count);
    in->used += count;
    return true;
}

static int refuse(struct why *why, const char *what)
{
    return why_set(why, FAULT_FORMAT,
                   "the ticket %s: ask for it again, `shoal invite` prints one; "
                   "it is one line that begins with %s",
                   what, prefix);
}

// Parses a ticket of either version; *ret_version says which.
static int parse(const char *text, struct why *why, struct ticket *ret_ticket, uint8_t *ret_version)
{
    uint8_t bytes[BYTES_MAX + 1];
    const char *end;
    size_t count;
    struct ticket ticket = { .run = "" };
    text += strspn(text, " \t\r\n");
    size_t length = strcspn(text, " \t\r\n");
    if (text[length + strspn(text + length, " \t\r\n")])
        return refuse(why, "is more than one word");
    if (length == 0) return refuse(why, "is empty");
    if (strncmp(text, prefix, sizeof prefix - 1) != 0) return refuse(why, "begins otherwise");
    text += sizeof prefix - 1, length -= sizeof prefix - 1;
    if (sodium_base642bin(bytes, sizeof bytes, text, length, NULL, &count, &end,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        end != text + length)
        return refuse(why, "is cut, too long, or holds a character that belongs to none");
    if (count < 1 + 2 * KEY_BYTES + 3 + CHECK_BYTES) return refuse(why, "is cut");
    count -= CHECK_BYTES;
    struct hash check = hash_of(bytes, count);
    if (memcmp(bytes + count, check.bytes, CHECK_BYTES) != 0)
        return refuse(why, "was changed on its way: its check does not fit");
    if (bytes[0] != VERSION && bytes[0] != VERSION_BEFORE)
        return refuse(why, "is of a version that is not known here");
    memcpy(ticket.server.bytes, bytes + 1, KEY_BYTES);
    memcpy(ticket.owner.bytes, bytes + 1 + KEY_BYTES, KEY_BYTES);
    struct reader in = { bytes, 1 + 2 * KEY_BYTES, count };
    if (!get_text(&in, ticket.address, TICKET_ADDRESS_MAX) ||
        !get_text(&in, ticket.run, WIRE_RUN_MAX) || !get_invitation(&in, &ticket))
        return refuse(why, "is not made as tickets are");
    // Folders are named after the run.
    if (ticket.run[0] && !plain_name(ticket.run, WIRE_RUN_MAX))
        return refuse(why, "names a run with other characters than " PLAIN_NAME_RULE);
    *ret_ticket = ticket;
    *ret_version = bytes[0];
    return 0;
}

int ticket_parse(const char *text, struct why *why, struct ticket *ret_ticket)
{
    struct ticket ticket;
    uint8_t version;
    const int rc = parse(text, why, &ticket, &version);
    if (rc < 0) return rc;
    if (version != VERSION)
        return refuse(why, "is of version 2: its broker had no separate key for connections yet "
                           "(this is version 3)");
    *ret_ticket = ticket;
    return 0;
}

bool ticket_invitation(const char *text, uint8_t ret_invitation[INVITATION_BYTES])
{
    struct ticket ticket;
    uint8_t version;
    if (parse(text, NULL, &ticket, &version) < 0 || !ticket.has_invitation) return false;
    memcpy(ret_invitation, ticket.invitation, INVITATION_BYTES);
    return true;
}

int ticket_read(const char *text_or_path, struct why *why, struct ticket *ret_ticket)
{
    char text[TICKET_TEXT_MAX + 64];
    if (strncmp(text_or_path, prefix, sizeof prefix - 1) == 0)
        return ticket_parse(text_or_path, why, ret_ticket);
    int fd = open(text_or_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    int error = errno;
    if (fd >= 0) close(fd);
    if (count < 0)
        return why_set(why, fault_from_errno(error),
                       "%s: %s; a ticket is wanted, or the name of a file with one", text_or_path,
                       strerror(error));
    text[count] = 0;
    int rc = ticket_parse(text, why, ret_ticket);
    return rc < 0 ? why_wrap(why, rc, "%s", text_or_path) : 0;
}

// ---- the invitation -----------------------------------------------------------------------------

static void pack(const struct invitation *self, uint8_t bytes[SIGNED_BYTES])
{
    bytes[0] = INVITATION_VERSION;
    le_put(bytes + 1, self->expires_unix_s, 8);
    le_put(bytes + 9, self->uses, 2);
    bytes[11] = self->roles;
    memcpy(bytes + 12, self->number, sizeof self->number);
    memcpy(bytes + 12 + sizeof self->number, self->guest.bytes, KEY_BYTES);
}

static const char domain[] = "shoal invitation 2";
struct signed_text {
    uint8_t bytes[sizeof domain + KEY_BYTES + 1 + WIRE_RUN_MAX + SIGNED_BYTES];
};

static size_t write_signed(const struct invitation *self, const struct key *server, const char *run,
                           struct signed_text *ret_text)
{
    size_t used = sizeof domain, length = strlen(run);
    ensure(length <= WIRE_RUN_MAX);
    memcpy(ret_text->bytes, domain, sizeof domain);
    memcpy(ret_text->bytes + used, server->bytes, KEY_BYTES);
    used = put(ret_text->bytes, used + KEY_BYTES, run, length);
    pack(self, ret_text->bytes + used);
    return used + SIGNED_BYTES;
}

void invitation_sign(const struct invitation *self, const struct identity *owner,
                     const struct key *server, const char *run, uint8_t ret_bytes[INVITATION_BYTES])
{
    struct signed_text text;
    struct signature signature;
    size_t count = write_signed(self, server, run, &text);
    identity_sign(owner, text.bytes, count, &signature);
    pack(self, ret_bytes);
    memcpy(ret_bytes + SIGNED_BYTES, signature.bytes, SIGNATURE_BYTES);
}

bool invitation_parse(const uint8_t *bytes, size_t count, struct invitation *ret_invitation)
{
    struct invitation *to = ret_invitation;
    if (count != INVITATION_BYTES || bytes[0] != INVITATION_VERSION) return false;
    to->expires_unix_s = le_get(bytes + 1, 8);
    to->uses = (uint16_t)le_get(bytes + 9, 2);
    to->roles = bytes[11];
    memcpy(to->number, bytes + 12, sizeof to->number);
    memcpy(to->guest.bytes, bytes + 12 + sizeof to->number, KEY_BYTES);
    memcpy(to->signature.bytes, bytes + SIGNED_BYTES, SIGNATURE_BYTES);
    return to->uses > 0 && !(to->roles & 1 << ACTOR_COORDINATOR);
}

bool invitation_is_by(const struct invitation *self, const struct key *owner,
                      const struct key *server, const char *run)
{
    struct signed_text text;
    return signature_verify(owner, text.bytes, write_signed(self, server, run, &text),
                            &self->signature);
}
