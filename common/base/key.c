#include "common/base/hex.h"
#include "common/base/key.h"
#include <string.h>

bool key_equal(const struct key *a, const struct key *b) { return key_compare(a, b) == 0; }

bool key_is_none(const struct key *key)
{
    static const struct key none;
    return key_equal(key, &none);
}

int key_compare(const struct key *a, const struct key *b)
{
    return memcmp(a->bytes, b->bytes, KEY_BYTES);
}

char *key_to_hex(const struct key *key, char text[KEY_HEX])
{
    return hex_encode(key->bytes, KEY_BYTES, text);
}

bool key_from_hex(const char *text, struct key *ret_key)
{
    return hex_decode(text, ret_key->bytes, KEY_BYTES);
}
