// curve -- the secret of a broker's pair is a hash of the context, keyed with the identity's secret; the public key
// is the base point times that. curve.h says why, and what a thief of the pair can do.

#include "common/net/curve.h"
#include "common/base/ensure.h"
#include <sodium.h>
#include <string.h>

_Static_assert(CURVE_BYTES == crypto_box_PUBLICKEYBYTES && CURVE_BYTES == crypto_box_SECRETKEYBYTES,
               "an X25519 pair");
_Static_assert(sizeof(struct key) == sizeof(struct curve_key), "a ticket has room for it");

static const char context[] = "shoal broker connections 1";

void curve_of_broker(const struct identity *identity, struct curve_pair *ret_pair)
{
    identity_derive(identity, context, ret_pair->secret);
    ensure(crypto_scalarmult_base(ret_pair->public.bytes, ret_pair->secret) == 0);
}

void curve_draw(struct curve_pair *ret_pair)
{
    ensure(sodium_init() >= 0 && crypto_box_keypair(ret_pair->public.bytes, ret_pair->secret) == 0);
}

struct key curve_server_key(const struct identity *identity)
{
    struct curve_pair pair;
    struct key key;
    curve_of_broker(identity, &pair);
    memcpy(key.bytes, pair.public.bytes, KEY_BYTES);
    explicit_bzero(&pair, sizeof pair);
    return key;
}

bool curve_of_key(const struct key *key, struct curve_key *ret_name)
{
    return crypto_sign_ed25519_pk_to_curve25519(ret_name->bytes, key->bytes) == 0;
}
