// curve_test -- the key pairs of connections; the name that an Ed25519 key and its negative share
// (the map of RFC 7748), and the keys that have none; the table that is indexed by such names.

#include "common/net/curve.h"
#include "common/net/curve_set.h"
#include "tests/test.h"
#include <sodium.h>
#include <string.h>

static struct key key_of(const char *hex)
{
    struct key key;
    assert_true(key_from_hex(hex, &key));
    return key;
}

// The base point of edwards25519 and its image: y = 4/5 becomes u = 9 (RFC 7748, section 4.1).
static void a_key_and_its_negative_have_one_name(void **state)
{
    (void)state;
    struct key base = key_of("5866666666666666666666666666666666666666666666666666666666666666");
    struct key negative = base;
    struct curve_key name, nine = { { 9 } }, other;
    assert_true(curve_of_key(&base, &name));
    assert_memory_equal(name.bytes, nine.bytes, CURVE_BYTES);
    negative.bytes[31] |= 0x80; // -A has the same u
    assert_true(curve_of_key(&negative, &other));
    assert_memory_equal(other.bytes, nine.bytes, CURVE_BYTES);
}

// Secret 1 of RFC 8032, section 7.1. The pair is made again here with hashlib and X25519 of Python:
// blake2b(context, key=seed, digest_size=32), and the base point times it.
static void a_brokers_pair_follows_from_its_identity(void **state)
{
    (void)state;
    static const char seed[] = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    static const char secret_hex[] =
        "43e31fa952449a98194d545ac311d49334e683bc0272714029a4866b7e9b9ccd";
    static const char public_hex[] =
        "9abd138cfb306a0a06de4c367db2d7b12f36aaed869c9ea7a2f2276dd7ddbb31";
    uint8_t bytes[SECRET_BYTES], scalar[CURVE_BYTES];
    char hex[2 * CURVE_BYTES + 1];
    struct identity *identity;
    struct curve_pair pair;
    assert_int_equal(sodium_hex2bin(bytes, sizeof bytes, seed, 64, NULL, NULL, NULL), 0);
    assert_int_equal(identity_from_secret(bytes, NULL, &identity), 0);
    curve_of_broker(identity, &pair);
    assert_string_equal(sodium_bin2hex(hex, sizeof hex, pair.secret, CURVE_BYTES), secret_hex);
    assert_string_equal(sodium_bin2hex(hex, sizeof hex, pair.public.bytes, CURVE_BYTES),
                        public_hex);
    const struct key server = curve_server_key(identity);
    assert_memory_equal(server.bytes, pair.public.bytes, KEY_BYTES);
    // It is not the scalar that signs, which is the first half of the seed's SHA-512, clamped
    uint8_t hash[crypto_hash_sha512_BYTES];
    crypto_hash_sha512(hash, bytes, sizeof bytes);
    hash[0] &= 248, hash[31] = (uint8_t)((hash[31] & 127) | 64);
    memcpy(scalar, hash, sizeof scalar);
    assert_memory_not_equal(pair.secret, scalar, CURVE_BYTES);
    assert_memory_not_equal(pair.secret, bytes, CURVE_BYTES);
    identity_destroy(&identity);
}

static void every_other_pair_is_random(void **state)
{
    (void)state;
    struct curve_pair one, other;
    struct curve_key again;
    curve_draw(&one), curve_draw(&other);
    assert_memory_not_equal(one.secret, other.secret, CURVE_BYTES);
    assert_int_equal(crypto_scalarmult_base(again.bytes, one.secret), 0);
    assert_memory_equal(again.bytes, one.public.bytes, CURVE_BYTES);
}

static void an_invalid_key_has_no_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000", // The neutral point
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // Of order 2
        "0200000000000000000000000000000000000000000000000000000000000000", // On no curve
        "abababababababababababababababababababababababababababababababab",
    };
    struct curve_key name;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct key key = key_of(bad[i]);
        assert_false(curve_of_key(&key, &name));
    }
}

static void a_set_returns_what_was_put(void **state)
{
    (void)state;
    struct curve_set set = { 0 };
    struct curve_key key = { { 0 } };
    assert_int_equal(curve_set_get(&set, &key), 0);
    for (int round = 1; round <= 2; round++)
        for (int i = 0; i < 5000; i++) { // Many of them fall on the same place
            key.bytes[0] = (uint8_t)(i % 7), key.bytes[20] = (uint8_t)i,
            key.bytes[21] = (uint8_t)(i >> 8);
            curve_set_put(&set, &key, (uint8_t)(round + i % 3));
        }
    assert_int_equal(set.count, 5000);
    for (int i = 0; i < 5000; i++) {
        key.bytes[0] = (uint8_t)(i % 7), key.bytes[20] = (uint8_t)i,
        key.bytes[21] = (uint8_t)(i >> 8);
        assert_int_equal(curve_set_get(&set, &key), 2 + i % 3);
    }
    key.bytes[22] = 1;
    assert_int_equal(curve_set_get(&set, &key), 0);
    curve_set_clear(&set);
    assert_int_equal(curve_set_get(&set, &key), 0);
}

TESTS(TEST(a_key_and_its_negative_have_one_name), TEST(a_brokers_pair_follows_from_its_identity),
      TEST(every_other_pair_is_random), TEST(an_invalid_key_has_no_name),
      TEST(a_set_returns_what_was_put))
