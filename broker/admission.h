#pragma once
// admission -- decides which actors' keys are welcome, and which roles they may take.
//
//     open        every key, in any role
//     allowlist   the keys of a file, read again on SIGHUP; a file with a fault is refused whole,
//                 and the old table stays
//     invite      a key that shows an invitation (common/actor/ticket.h) signed by the broker's key
//                 or by its owner's. The broker records the key; from then on it needs no
//                 invitation
//
// The file has one key a line. After the key come the roles that it may take; no role means all but
// coordinator. Blanks separate them, # begins a comment.
//
//     3fa2..64 hexadecimal digits..  trainer witness
//     91c0..                                             # any role but coordinator
//
// The broker learns a key from its HELLO: a connection does not tell which actor it belongs to (curve.h). So
// every connection to the mail is let in, and only its HELLO is heard until that is welcomed; the news let in
// only actors that the mail has welcomed. Only the owner's key is coordinator. Without an owner, which is for a
// broker that only its own machine reaches, the first coordinator becomes the owner (admission_pin). A banned
// key (ejected by the owner's ROSTER or MEMBERS) is refused under every policy.
//
// The record of invitations is a text file in the state directory with a line for each admitted
// key: "<number of the invitation> <its roles, two digits> <key>". A line is appended and synced before
// its guest is welcomed.
//
// A file beside it revokes: each line is one key, or a ticket, which admits no key any more and whose guests lose
// their place. It is read again on SIGHUP; a file with a fault is refused whole. Without the file nothing is
// revoked. One thread.

#include "common/net/curve_set.h"
#include "common/actor/ticket.h"
#include "common/base/fault.h"

enum admission_policy { ADMIT_OPEN, ADMIT_ALLOWLIST, ADMIT_INVITE };
enum {
    ADMISSION_LIST_MAX = 65536,
    ADMISSION_LINE_MAX = 640, // A ticket and a few words
    ADMISSION_RECORDS_MAX = 65536,
    ADMISSION_REVOKED_MAX = 4096
};

struct admission_options {
    enum admission_policy policy;
    const char *list_path;    // For ADMIT_ALLOWLIST; it must outlive the admission
    const char *record_path;  // For ADMIT_INVITE ...
    const char *revoked_path; // ... both; they must outlive the admission. NULL: no such file
    // The broker's identity; the key of its connections, as in tickets; the owner's, or NULL: there is none
    const struct key *identity, *server, *owner;
};

struct admission;

// 0, or FAULT_USAGE for an invalid owner, FAULT_FORMAT for a line of the list, FAULT_CORRUPT for a
// line of the record, or a fault of the files.
int admission_new(const struct admission_options *options, struct why *why,
                  struct admission **ret_self);
void admission_destroy(struct admission **self_p);
int admission_reload(struct admission *self, struct why *why); // Nothing changes on a fault

// Whether the key is welcome in some role without an invitation.
bool admission_lets_in(const struct admission *self, const struct key *key);

// The roles that a key may take without an invitation, as bits 1 << role. `name` is its curve_of_key, which costs
// 0.1 ms: the caller may keep it.
uint8_t admission_roles(const struct admission *self, const struct curve_key *name);

// A cheap check before the signature is verified. NULL, or the reason to refuse: the key is on no list, or
// banned.
const char *admission_refuses(const struct admission *self, const struct key *key);

// For the HELLO: NULL if this key may take the role, else the reason. The caller has verified the
// signature, and that the HELLO is for its connection. Every reason but these three is final: a retry would not
// help. After ADMISSION_UNLISTED a retry helps once the owner has listed the key.
extern const char ADMISSION_LATER[], ADMISSION_PINNED[], ADMISSION_UNLISTED[];
const char *admission_hello(struct admission *self, const struct key *key, uint8_t role,
                            const char *run, const uint8_t *invitation, size_t invitation_bytes,
                            uint64_t now_unix_s);

// The key of a coordinator that was welcomed. True if it is the owner from now on: none was given.
bool admission_pin(struct admission *self, const struct key *key);

bool admission_is_owner(const struct admission *self, const struct key *key);

// True if the key is banned now and was not before. The owner is never banned.
bool admission_ban(struct admission *self, const struct key *key);
uint32_t admission_count(const struct admission *self); // Keys of the list or the record
