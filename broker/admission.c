// admission -- reads the allowlist or the record of invitations, then decides about a HELLO: first
// whether its key may be heard (admission_refuses), and once its signature is verified, whether it may
// take its role (admission_hello). Both look for a ban first, then for the owner, then at the policy.
// The tables are indexed by curve_of_key, which is the same for a key and its negative.

#include "broker/admission.h"
#include "common/base/ensure.h"
#include "common/wire/wire.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(ACTOR_COUNT <= 8, "a set of roles is a byte");
enum {
    SIGN = 1 << 8, // The sign bit of an Ed25519 key, which the shared name lacks
    ROLES_ALL = (1 << ACTOR_COUNT) - 1,
    ROLES_MEMBER = ROLES_ALL & ~(1 << ACTOR_COORDINATOR),
    NUMBER_HEX = 2 * INVITATION_NUMBER_BYTES,
    RECORD_BYTES = NUMBER_HEX + 4 + 2 * KEY_BYTES + 1
};

struct record {
    uint8_t number[INVITATION_NUMBER_BYTES], roles;
    struct key guest;
};

// Of a file: of a ticket its number, else one guest.
struct revoked {
    bool is_ticket;
    uint8_t number[INVITATION_NUMBER_BYTES];
    struct key guest;
};

struct admission {
    struct admission_options options;
    struct key identity, server, owner;
    bool has_owner, is_pinned; // is_pinned: no owner was given, and it is the first coordinator
    struct curve_key owner_curve;
    struct curve_set known, banned; // Value in known: the allowed roles as bits, and the key's SIGN
    struct record *records;
    struct revoked *revoked;
    uint32_t records_count, revoked_count;
    int record_fd;
};

static uint16_t sign_of(const struct key *key)
{
    return key->bytes[KEY_BYTES - 1] & 1 << 7 ? SIGN : 0;
}

// ---- the list -----------------------------------------------------------------------------------

static int line_fault(const char *path, unsigned number, const char *word, const char *wanted,
                      struct why *why)
{
    return why_set(why, FAULT_FORMAT,
                   "%s:%u: \"%.70s\" is %s; the file is refused, the list read before "
                   "stays in use",
                   path, number, word, wanted);
}

static int read_roles(char **rest, const char *path, unsigned number, struct why *why,
                      uint8_t *ret_roles)
{
    uint8_t roles = 0;
    for (char *word; (word = strtok_r(NULL, " \t\r\n", rest));) {
        uint8_t role = 0;
        while (role < ACTOR_COUNT && strcmp(word, wire_enum_name(&wire_enum_role, role)) != 0)
            role++;
        if (role == ACTOR_COUNT)
            return line_fault(path, number, word,
                              "no role (trainer witness checkpointer "
                              "data-provider monitor operator parameter-server coordinator)",
                              why);
        roles |= (uint8_t)(1 << role);
    }
    *ret_roles = roles ? roles : ROLES_MEMBER;
    return 0;
}

static int read_line(char *line, const char *path, unsigned number, struct why *why, void *to)
{
    struct curve_set *set = to;
    struct key key;
    struct curve_key curve;
    uint8_t roles = 0;
    char *rest;
    line[strcspn(line, "#")] = 0;
    char *word = strtok_r(line, " \t\r\n", &rest);
    if (!word) return 0;
    if (!key_from_hex(word, &key))
        return line_fault(path, number, word,
                          "no key: 64 hexadecimal "
                          "digits, as `shoal show-identity` prints",
                          why);
    if (!curve_of_key(&key, &curve))
        return line_fault(path, number, word, "not a valid key (no point of the curve)", why);
    if (set->count == ADMISSION_LIST_MAX)
        return line_fault(path, number, word, "one key too many, 65536 are allowed", why);
    int rc = read_roles(&rest, path, number, why, &roles);
    const uint16_t before = curve_set_get(set, &curve);
    if (rc == 0 && before && ((before ^ sign_of(&key)) & SIGN))
        return line_fault(path, number, word, "the negative of a key above: both are one person's",
                          why);
    if (rc == 0) curve_set_put(set, &curve, before | roles | sign_of(&key));
    return rc;
}

typedef int read_line_fn(char *line, const char *path, unsigned number, struct why *why, void *to);

static int read_lines(FILE *file, const char *path, read_line_fn *read_one, struct why *why,
                      void *to)
{
    char line[ADMISSION_LINE_MAX];
    unsigned number = 0;
    int rc = 0;
    while (rc == 0 && fgets(line, sizeof line, file)) {
        number++;
        size_t length = strlen(line);
        if (length + 1 == sizeof line && line[length - 1] != '\n')
            rc = line_fault(path, number, line, "the start of a line that is too long", why);
        else rc = read_one(line, path, number, why, to);
    }
    if (rc == 0 && ferror(file)) rc = why_set(why, FAULT_IO, "%s: %s", path, strerror(errno));
    fclose(file);
    return rc;
}

static int reload_list(struct admission *self, struct why *why)
{
    const char *path = self->options.list_path;
    struct curve_set set = { 0 };
    FILE *file = fopen(path, "re");
    if (!file) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    const int rc = read_lines(file, path, read_line, why, &set);
    curve_set_clear(rc < 0 ? &set : &self->known);
    if (rc == 0) self->known = set;
    return rc;
}

// ---- what is revoked ----------------------------------------------------------------------------

struct revoked_list {
    struct revoked *items;
    uint32_t count;
};

static int read_revoked(char *line, const char *path, unsigned number, struct why *why, void *to)
{
    struct revoked_list *list = to;
    uint8_t bytes[INVITATION_BYTES];
    struct invitation invitation;
    struct revoked *item = &list->items[list->count];
    char *rest;
    line[strcspn(line, "#")] = 0;
    const char *word = strtok_r(line, " \t\r\n", &rest);
    if (!word) return 0;
    if (list->count == ADMISSION_REVOKED_MAX)
        return line_fault(path, number, word, "one line too many, 4096 are allowed", why);
    *item = (struct revoked){ 0 };
    item->is_ticket =
        ticket_invitation(word, bytes) && invitation_parse(bytes, sizeof bytes, &invitation);
    if (item->is_ticket) memcpy(item->number, invitation.number, sizeof item->number);
    else if (!key_from_hex(word, &item->guest))
        return line_fault(path, number, word, "neither a ticket with an invitation nor a key", why);
    list->count++;
    return 0;
}

static bool is_revoked(const struct admission *self, const uint8_t *number, const struct key *guest)
{
    for (uint32_t i = 0; i < self->revoked_count; i++) {
        const struct revoked *item = &self->revoked[i];
        if (item->is_ticket ? memcmp(item->number, number, sizeof item->number) == 0
                            : key_equal(&item->guest, guest))
            return true;
    }
    return false;
}

static void know(struct admission *self, const struct record *record)
{
    struct curve_key curve;
    ensure(curve_of_key(&record->guest, &curve)); // Checked when it was recorded
    if (!is_revoked(self, record->number, &record->guest))
        curve_set_put(&self->known, &curve,
                      (record->roles ? record->roles : ROLES_MEMBER) | sign_of(&record->guest));
}

static int reload_revoked(struct admission *self, struct why *why)
{
    const char *path = self->options.revoked_path;
    struct revoked_list list = { .items = calloc(ADMISSION_REVOKED_MAX + 1, sizeof *list.items) };
    ensure(list.items);
    FILE *file = path ? fopen(path, "re") : NULL;
    int rc = 0;
    if (file) rc = read_lines(file, path, read_revoked, why, &list);
    else if (path && errno != ENOENT)
        rc = why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    if (rc < 0) {
        free(list.items);
        return rc;
    }
    free(self->revoked);
    self->revoked = list.items;
    self->revoked_count = list.count;
    curve_set_clear(&self->known);
    for (uint32_t i = 0; i < self->records_count; i++) know(self, &self->records[i]);
    return 0;
}

int admission_reload(struct admission *self, struct why *why)
{
    if (self->options.policy == ADMIT_ALLOWLIST) return reload_list(self, why);
    return self->options.policy == ADMIT_INVITE ? reload_revoked(self, why) : 0;
}

// ---- the record of invitations ------------------------------------------------------------------

static bool remember(struct admission *self, const struct record *record)
{
    struct curve_key curve;
    if (self->records_count == ADMISSION_RECORDS_MAX || !curve_of_key(&record->guest, &curve))
        return false;
    self->records[self->records_count++] = *record;
    know(self, record);
    return true;
}

// Drops a last line that a crash cut short: its guest was never welcomed.
static int read_records(struct admission *self, struct why *why)
{
    const char *path = self->options.record_path;
    char line[RECORD_BYTES + 1];
    self->record_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->record_fd < 0)
        return why_set(why, fault_from_errno(errno),
                       "%s: %s; the record of invitations belongs there", path, strerror(errno));
    off_t whole = 0;
    while (pread(self->record_fd, line, RECORD_BYTES, whole) == RECORD_BYTES) {
        struct record record;
        line[RECORD_BYTES - 1] = 0, line[NUMBER_HEX] = 0, line[NUMBER_HEX + 3] = 0;
        if (sodium_hex2bin(record.number, sizeof record.number, line, NUMBER_HEX, NULL, NULL,
                           NULL) ||
            sodium_hex2bin(&record.roles, 1, line + NUMBER_HEX + 1, 2, NULL, NULL, NULL) ||
            !key_from_hex(line + NUMBER_HEX + 4, &record.guest) || !remember(self, &record))
            return why_set(why, FAULT_CORRUPT,
                           "%s: line %" PRId64 " is not a record of an invitation; repair the "
                           "file or move it away",
                           path, (int64_t)(whole / RECORD_BYTES + 1));
        whole += RECORD_BYTES;
    }
    if (ftruncate(self->record_fd, whole) != 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    return 0;
}

static bool write_record(struct admission *self, const struct record *record)
{
    char line[RECORD_BYTES + 1], hex[KEY_HEX], number[NUMBER_HEX + 1];
    sodium_bin2hex(number, sizeof number, record->number, sizeof record->number);
    snprintf(line, sizeof line, "%s %02x %s\n", number, record->roles,
             key_to_hex(&record->guest, hex));
    off_t end = (off_t)self->records_count * RECORD_BYTES;
    return pwrite(self->record_fd, line, RECORD_BYTES, end) == RECORD_BYTES &&
           fdatasync(self->record_fd) == 0;
}

// ---- life ---------------------------------------------------------------------------------------

int admission_new(const struct admission_options *options, struct why *why,
                  struct admission **ret_self)
{
    struct admission *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = *options;
    self->record_fd = -1;
    self->identity = *options->identity;
    self->server = *options->server;
    self->has_owner = options->owner != NULL;
    int rc = 0;
    if (self->has_owner) {
        self->owner = *options->owner;
        if (!curve_of_key(&self->owner, &self->owner_curve))
            rc = why_set(why, FAULT_USAGE, "--owner: not a valid key");
    }
    if (rc == 0) rc = admission_reload(self, why);
    if (rc == 0 && options->policy == ADMIT_INVITE) {
        self->records = calloc(ADMISSION_RECORDS_MAX, sizeof *self->records);
        ensure(self->records);
        rc = read_records(self, why);
    }
    if (rc < 0) admission_destroy(&self);
    else *ret_self = self;
    return rc;
}

void admission_destroy(struct admission **self_p)
{
    struct admission *self = *self_p;
    if (!self) return;
    curve_set_clear(&self->known);
    curve_set_clear(&self->banned);
    if (self->record_fd >= 0) close(self->record_fd);
    free(self->records);
    free(self->revoked);
    free(self);
    *self_p = NULL;
}

// ---- judging ------------------------------------------------------------------------------------

static bool is_owner(const struct admission *self, const struct curve_key *key)
{
    return self->has_owner && memcmp(self->owner_curve.bytes, key->bytes, CURVE_BYTES) == 0;
}

uint8_t admission_roles(const struct admission *self, const struct curve_key *key)
{
    if (curve_set_get(&self->banned, key)) return 0;
    if (is_owner(self, key)) return ROLES_ALL;
    const uint8_t roles = self->options.policy == ADMIT_OPEN
                              ? ROLES_ALL
                              : (uint8_t)curve_set_get(&self->known, key); // Without the SIGN
    return self->has_owner ? roles & ROLES_MEMBER : roles;
}

bool admission_lets_in(const struct admission *self, const struct key *key)
{
    struct curve_key curve;
    return curve_of_key(key, &curve) && admission_roles(self, &curve);
}

static bool is_ours(const struct admission *self, const struct invitation *invitation,
                    const char *run)
{
    const struct key *owners[] = { &self->identity, self->has_owner ? &self->owner : NULL };
    for (int i = 0; i < 2 && owners[i]; i++)
        if (invitation_is_by(invitation, owners[i], &self->server, run) ||
            invitation_is_by(invitation, owners[i], &self->server, ""))
            return true;
    return false;
}

const char ADMISSION_LATER[] = "the invitation cannot be recorded now; try again later";
const char ADMISSION_PINNED[] =
    "another key was coordinator at this broker first, and stays it until the broker "
    "starts again; --owner names one for good";

static const char *accept(struct admission *self, const struct key *key, uint8_t role,
                          const char *run, const uint8_t *bytes, size_t count, uint64_t now_unix_s)
{
    static const struct key bearer;
    struct invitation invitation;
    uint32_t used = 0;
    if (count == 0) return "an invitation is needed: ask the run's owner for a ticket of your own";
    if (!invitation_parse(bytes, count, &invitation)) return "the invitation is malformed";
    if (!is_ours(self, &invitation, run)) return "the invitation is not signed by this run's owner";
    if (now_unix_s > invitation.expires_unix_s) return "the invitation has expired";
    if (!key_equal(&invitation.guest, &bearer) && !key_equal(&invitation.guest, key))
        return "the invitation is for another key";
    if (is_revoked(self, invitation.number, key)) return "the run's owner has revoked it";
    if (!((invitation.roles ? invitation.roles : ROLES_MEMBER) & 1 << role))
        return "the invitation is not for this role";
    struct record record = { .guest = *key, .roles = invitation.roles };
    memcpy(record.number, invitation.number, sizeof record.number);
    for (uint32_t i = 0; i < self->records_count; i++)
        used += memcmp(self->records[i].number, record.number, sizeof record.number) == 0;
    if (used >= invitation.uses) return "the invitation is used up: ask for another one";
    if (self->records_count == ADMISSION_RECORDS_MAX) return "the record of invitations is full";
    if (!write_record(self, &record)) return ADMISSION_LATER;
    return remember(self, &record) ? NULL : "the key is not valid";
}

// The holder of a key's secret can also sign with the key's negative, and both have the same
// curve_of_key. Without this check one invitation or one line of the list would admit two members.
static bool is_other_half(const struct admission *self, const struct key *key,
                          const struct curve_key *curve)
{
    const uint16_t known = curve_set_get(&self->known, curve);
    if (is_owner(self, curve)) return !key_equal(key, &self->owner);
    return self->options.policy != ADMIT_OPEN && known && ((known ^ sign_of(key)) & SIGN);
}

const char ADMISSION_UNLISTED[] = "the key is not on this broker's list";

const char *admission_refuses(const struct admission *self, const struct key *key)
{
    struct curve_key curve;
    if (!curve_of_key(key, &curve) || curve_set_get(&self->banned, &curve))
        return "this key was ejected";
    const bool is_listed = self->options.policy != ADMIT_ALLOWLIST || admission_roles(self, &curve);
    return is_listed ? NULL : ADMISSION_UNLISTED;
}

const char *admission_hello(struct admission *self, const struct key *key, uint8_t role,
                            const char *run, const uint8_t *invitation, size_t invitation_bytes,
                            uint64_t now_unix_s)
{
    struct curve_key curve;
    const char *refused = admission_refuses(self, key);
    if (refused) return refused;
    ensure(curve_of_key(key, &curve)); // Else it is refused
    if (is_other_half(self, key, &curve))
        return "this is the negative of the key that was admitted; use the admitted key";
    if (!admission_roles(self, &curve) && self->options.policy == ADMIT_INVITE) {
        const char *reason = accept(self, key, role, run, invitation, invitation_bytes, now_unix_s);
        if (reason) return reason;
    }
    if (admission_roles(self, &curve) & 1 << role) return NULL;
    if (role != ACTOR_COORDINATOR || !self->has_owner) return "this key may not take that role";
    return self->is_pinned ? ADMISSION_PINNED : "only the owner's key may be coordinator";
}

bool admission_pin(struct admission *self, const struct key *key)
{
    if (self->has_owner || !curve_of_key(key, &self->owner_curve)) return false;
    self->owner = *key;
    return self->has_owner = self->is_pinned = true;
}

bool admission_is_owner(const struct admission *self, const struct key *key)
{
    return self->has_owner && key_equal(&self->owner, key);
}

bool admission_ban(struct admission *self, const struct key *key)
{
    struct curve_key curve;
    if (!curve_of_key(key, &curve) || is_owner(self, &curve) ||
        curve_set_get(&self->banned, &curve))
        return false;
    curve_set_put(&self->banned, &curve, 1);
    return true;
}

uint32_t admission_count(const struct admission *self) { return self->known.count; }
