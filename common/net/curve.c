// Both conversions are libsodium's; why they fit each other is in curve.h.

#include "common/base/ensure.h"
#include "common/net/curve.h"
#include <sodium.h>

_Static_assert(CURVE_BYTES == crypto_scalarmult_curve25519_BYTES, "an X25519 key");

bool curve_of_key(const struct key *key, struct curve_key *ret_public)
{
    return crypto_sign_ed25519_pk_to_curve25519(ret_public->bytes, key->bytes) == 0;
}

void curve_of_identity(const struct identity *identity, struct curve_key *ret_public,
                       uint8_t ret_secret[CURVE_BYTES])
{
    identity_curve_secret(identity, ret_secret);
    ensure(curve_of_key(identity_key(identity), ret_public));
}
