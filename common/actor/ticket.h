#pragma once
// ticket -- one line with a broker's address and key, the key of the run's owner, a run, and
// perhaps an invitation. A member whose ticket names the owner's key follows no other coordinator.
//
//     shoal:<base64url of:>
//     [3] [server: the CURVE key of its connections, 32] [owner, 32; 0: not said] [n, address]
//     [n, run; 0: any]
//     [0 or 124, invitation]
//     [the first 4 bytes of the SHA-256 of all before]
//
// In version 2 the server's key was the broker's Ed25519 key, and the CURVE key followed from it. A
// ticket of version 2 is refused; only its invitation is still read, so that it can be revoked
// (ticket_invitation).
//
// The last four bytes detect accidental changes, such as those of a mail program; they are no
// protection against forgery. The only secret in a ticket is a bearer's invitation.
//
// An invitation is signed by the broker's own key or its owner's (shoal-broker --owner), so that
// the broker can admit without a list:
//
//     [2] [expires, unix s, 8] [uses, 2] [roles, 1] [number: random, 16]
//     [guest: a key, 0: the bearer, 32]
//     [signature, 64: over "shoal invitation 2" 0, server, n run, and the 60 bytes above]
//
// It travels in the HELLO. The guest signs the HELLO, and the HELLO counts only on the connection
// that it names, so a copy of it is useless to others. The broker admits and records the first
// `uses` keys that show the invitation before it expires, each to the roles that it names; then it
// is used up. Numbers are little-endian. Pure except ticket_read; any thread.

#include "common/crypto/identity.h"
#include "common/wire/wire.h"

enum {
    TICKET_ADDRESS_MAX = 127,
    TICKET_TEXT_MAX = 512,
    INVITATION_NUMBER_BYTES = 16,
    INVITATION_BYTES = 1 + 8 + 2 + 1 + INVITATION_NUMBER_BYTES + KEY_BYTES + SIGNATURE_BYTES
};

struct ticket {
    struct key server, owner; // Of the broker's connections (curve_server_key); of the run's
                              // coordinator, 0: not said
    char address[TICKET_ADDRESS_MAX + 1]; // host:port, of the mail
    char run[WIRE_RUN_MAX + 1];           // "": any
    bool has_invitation;
    uint8_t invitation[INVITATION_BYTES];
};

struct invitation {
    uint64_t expires_unix_s;
    uint16_t uses; // 1 ..
    uint8_t roles; // Bit r: enum role r may be taken, never the coordinator's; 0: all but that
    uint8_t number[INVITATION_NUMBER_BYTES];
    struct key guest; // Zeros: any key, in the order in which they come
    struct signature signature;
};

// FAULT_FORMAT names what is wrong with the line. Blanks around it are allowed.
int ticket_parse(const char *text, struct why *why, struct ticket *ret_ticket);
// The invitation of a ticket, of this version or of version 2. False: it is no such ticket, or has
// no invitation.
bool ticket_invitation(const char *text, uint8_t ret_invitation[INVITATION_BYTES]);
char *ticket_print(const struct ticket *self, char text[TICKET_TEXT_MAX]);

// The ticket itself, or the name of a file that holds one.
int ticket_read(const char *text_or_path, struct why *why, struct ticket *ret_ticket);

void invitation_sign(const struct invitation *self, const struct identity *owner,
                     const struct key *server, const char *run,
                     uint8_t ret_bytes[INVITATION_BYTES]);

// False: the bytes are not an invitation. It does not check the signature; invitation_is_by does,
// over the broker's key and the run.
bool invitation_parse(const uint8_t *bytes, size_t count, struct invitation *ret_invitation);
bool invitation_is_by(const struct invitation *self, const struct key *owner,
                      const struct key *server, const char *run);
