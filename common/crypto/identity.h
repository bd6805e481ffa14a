#pragma once
// identity -- the Ed25519 key pair of an actor. The public key names the actor everywhere; the
// secret key signs every claim it makes.
//
// The secret is 32 random bytes, in a file that only its owner may read, or in the environment as
// 64 hexadecimal digits:
//
//     openssl rand 32 > secret.key && chmod 600 secret.key
//     RAW_IDENTITY_SECRET_KEY=$(openssl rand -hex 32)
//
// In memory it lies in a page of its own, which is read-only, not swapped (where the system allows)
// and not dumped; destroy wipes it. Nothing prints it, and it cannot be computed from any key that is derived from it.
// While a signature is made, for some 25 us, libsodium has the scalar that signs on the stack as well: a core dump of
// just that moment would show it. An actor leaves none by itself (PR_SET_DUMPABLE 0, command.c).
//
// Any number of threads may use a struct identity at once; the functions on signatures are pure.

#include "common/base/fault.h"
#include "common/base/key.h"
#include <stdbool.h>
#include <stdint.h>

enum { SIGNATURE_BYTES = 64, SECRET_BYTES = 32 };
#define IDENTITY_ENV "RAW_IDENTITY_SECRET_KEY"

struct signature {
    uint8_t bytes[SIGNATURE_BYTES];
};
struct identity;

// Reads the secret from the file `path`; if `path` is NULL, from `env_hex`, the value of
// RAW_IDENTITY_SECRET_KEY. Refused, and `why` names the cure: neither is given, or `env_hex` is not
// 64 hexadecimal digits (CONFIG); there is no such file (NOT_FOUND); group or others have access to
// it (DENIED); it is not a regular file of 32 bytes, or the secret is all zeros (FORMAT).
int identity_load(const char *path, const char *env_hex, struct why *why,
                  struct identity **ret_identity);

// Makes a new secret at `path`, mode 0600, durable before it returns. Never overwrites (DENIED).
int identity_create(const char *path, struct why *why);

// From a secret that the caller has (a simulation's seed, a test). The caller wipes its own copy.
int identity_from_secret(const uint8_t secret[SECRET_BYTES], struct why *why,
                         struct identity **ret_identity);

void identity_destroy(struct identity **self_p); // Wipes; NULL is allowed

const struct key *identity_key(const struct identity *self); // Lives as long as `self`
void identity_sign(const struct identity *self, const void *bytes, size_t count,
                   struct signature *ret_signature); // The same bytes give the same signature
// Derives another secret from ours and from `context`, a constant text of the caller. It tells nothing about ours,
// nor about the secrets of other contexts. The caller wipes it.
void identity_derive(const struct identity *self, const char *context,
                     uint8_t ret_secret[SECRET_BYTES]);

// Total: key, bytes and signature may come from anyone.
bool signature_verify(const struct key *key, const void *bytes, size_t count,
                      const struct signature *signature);
