#pragma once
// admission -- who may come in, and as what.
//
//     open        whoever knows the broker's key, in any role
//     allowlist   the keys of a file, read again on SIGHUP; a file with a fault is refused whole, and
//                 the old table stays
//     invite      whoever brings an invitation (common/actor/ticket.h) by the broker's own key or its
//                 owner's, once; the broker writes down whom it let in, and knows them from then on
//
// The file has one key a line, and after it the roles it may take if not all: blanks between, # begins
// a comment.
//
//     3fa2..64 hexadecimal digits..  trainer witness
//     91c0..                                             # any role but coordinator
//
// A connection is judged by its CURVE key (zap.h), which follows from the Ed25519 key. With `invite`
// an unknown key comes as far as the mail and may say one thing there, its HELLO; the news refuse
// it. Nobody but the owner, where there is one, is coordinator. A banned key (ejected, by the word
// of the coordinator's ROSTER) comes in no more, whatever the policy.
//
// The record of invitations is a text file in the state directory, a line each, appended and synced
// before the guest is welcomed: "<number of the invitation> <key>". One thread.

#include "common/net/curve_set.h"
#include "common/actor/ticket.h"
#include "common/base/fault.h"

enum admission_policy { ADMIT_OPEN, ADMIT_ALLOWLIST, ADMIT_INVITE };
enum { ADMISSION_LIST_MAX = 65536, ADMISSION_LINE_MAX = 256, ADMISSION_RECORDS_MAX = 65536 };

struct admission_options {
    enum admission_policy policy;
    const char *list_path;            // ADMIT_ALLOWLIST; kept by the caller
    const char *record_path;          // ADMIT_INVITE
    const struct key *server, *owner; // Owner: NULL for none
};

struct admission;

int admission_new(const struct admission_options *options, struct why *why,
                  struct admission **ret_self);
void admission_destroy(struct admission **self_p);
int admission_reload(struct admission *self, struct why *why); // Nothing changes on a fault

// For the handshake. `guests`: at this socket a stranger may say who invited it.
bool admission_lets_in(const struct admission *self, const struct curve_key *key, bool guests);

extern const char ADMISSION_LATER[];
// For the HELLO: NULL if this key may take the role, else why not. The key has been proven, by
// signature and by connection. All reasons but ADMISSION_LATER are for good.
const char *admission_hello(struct admission *self, const struct key *key, uint8_t role,
                            const char *run, const uint8_t *invitation, size_t invitation_bytes,
                            uint64_t now_unix_s);

// True if it was not banned before.
bool admission_ban(struct admission *self, const struct curve_key *key);
uint32_t admission_count(const struct admission *self); // Keys that are known by name
