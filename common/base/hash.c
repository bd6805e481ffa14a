// SHA-256 by OpenSSL's EVP interface. A failure of the library is our own mistake: the process
// ends, so that no function here has a fault to return.
#include "common/base/ensure.h"
#include "common/base/hash.h"
#include "common/base/hex.h"
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

// Looked up by name once: a look-up takes longer than a short hash.
static EVP_MD *sha256;
static void look_up(void) { ensure((sha256 = EVP_MD_fetch(NULL, "SHA256", NULL)) != NULL); }

static const EVP_MD *algorithm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    ensure(pthread_once(&once, look_up) == 0);
    return sha256;
}

struct hash hash_of(const void *bytes, size_t count)
{
    struct hash hash;
    ensure(EVP_Digest(bytes, count, hash.bytes, NULL, algorithm(), NULL) == 1);
    return hash;
}

struct hash hash_of_two(const void *a, size_t a_count, const void *b, size_t b_count)
{
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, a, a_count);
    hasher_add(&hasher, b, b_count);
    return hasher_end(&hasher);
}

bool hash_equal(const struct hash *a, const struct hash *b)
{
    return memcmp(a->bytes, b->bytes, HASH_BYTES) == 0;
}

bool hash_is_none(const struct hash *hash)
{
    static const struct hash none;
    return hash_equal(hash, &none);
}

char *hash_to_hex(const struct hash *hash, char text[HASH_HEX])
{
    return hex_encode(hash->bytes, HASH_BYTES, text);
}

bool hash_from_hex(const char *text, struct hash *ret_hash)
{
    return hex_decode(text, ret_hash->bytes, HASH_BYTES);
}

void hasher_init(struct hasher *self)
{
    self->context = EVP_MD_CTX_new();
    ensure(self->context && EVP_DigestInit_ex(self->context, algorithm(), NULL) == 1);
}

void hasher_add(struct hasher *self, const void *bytes, size_t count)
{
    ensure(EVP_DigestUpdate(self->context, bytes, count) == 1);
}

struct hash hasher_end(struct hasher *self)
{
    struct hash hash;
    ensure(EVP_DigestFinal_ex(self->context, hash.bytes, NULL) == 1);
    EVP_MD_CTX_free(self->context);
    self->context = NULL;
    return hash;
}
