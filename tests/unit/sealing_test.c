// sealing_test -- what one end seals the other opens, whichever library either has: the bytes are those of
// OpenSSL's AES-256-GCM with record i under nonce i. What was changed, moved or doubled does not open.

#include "common/base/bytes.h"
#include "common/net/gcm.h"
#include "common/net/sealing.h"
#include "tests/test.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_MAX = 200000 };

static const uint8_t key[SEALING_KEY] = "thirty-two bytes that are no key";

static void fill(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
}

static void seal_by_openssl(uint64_t number, uint8_t *bytes, size_t count, uint8_t *ret_tag)
{
    uint8_t nonce[12] = { 0 };
    int done;
    le_put(nonce, number, 8);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    assert_int_equal(EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce), 1);
    assert_int_equal(EVP_EncryptUpdate(context, bytes, &done, bytes, (int)count), 1);
    assert_int_equal(EVP_EncryptFinal_ex(context, bytes, &done), 1);
    assert_int_equal(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, SEALING_TAG, ret_tag), 1);
    EVP_CIPHER_CTX_free(context);
}

static void the_bytes_are_those_of_aes_256_gcm(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1, 15, 16, 32, 33, 255, 4096, 65537, RECORD_MAX };
    struct sealing seal, unseal;
    uint8_t tag[SEALING_TAG], other_tag[SEALING_TAG];
    uint8_t *bytes = malloc(RECORD_MAX), *other = malloc(RECORD_MAX), *clear = malloc(RECORD_MAX);
    assert_true(sealing_new(&seal, key, true) && sealing_new(&unseal, key, false));
    fill(clear, RECORD_MAX);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memcpy(other, clear, sizes[i]);
        sealing_put(&seal, clear, sizes[i], bytes, tag);
        seal_by_openssl(i, other, sizes[i], other_tag);
        assert_memory_equal(bytes, other, sizes[i]);
        assert_memory_equal(tag, other_tag, SEALING_TAG);
        assert_true(sealing_take(&unseal, bytes, sizes[i], tag));
        assert_memory_equal(bytes, clear, sizes[i]);
    }
    sealing_destroy(&seal);
    sealing_destroy(&unseal);
    free(bytes), free(other), free(clear);
}

static void what_was_changed_or_doubled_does_not_open(void **state)
{
    (void)state;
    uint8_t bytes[256], copy[256], tag[SEALING_TAG];
    for (int way = 0; way < 4; way++) {
        struct sealing seal, unseal;
        assert_true(sealing_new(&seal, key, true) && sealing_new(&unseal, key, false));
        fill(bytes, sizeof bytes);
        sealing_put(&seal, bytes, sizeof bytes, bytes, tag); // In place
        memcpy(copy, bytes, sizeof bytes);
        if (way == 1) bytes[100] ^= 1;
        if (way == 2) tag[15] ^= 1;
        if (way == 3) assert_true(sealing_take(&unseal, copy, sizeof copy, tag)); // And once more
        assert_true(sealing_take(&unseal, bytes, sizeof bytes, tag) == (way == 0));
        sealing_destroy(&seal);
        sealing_destroy(&unseal);
    }
}

// Each opens what the other one seals.
static void two_libraries_understand_each_other(void **state)
{
    (void)state;
    const struct gcm *both[] = { &gcm_openssl, gcm_ipsec_mb() };
    const uint8_t nonce[GCM_NONCE] = { 7 };
    uint8_t clear[1000], bytes[1000], tag[GCM_TAG];
    if (!both[1]) skip(); // Not on this processor
    for (int from = 0; from < 2; from++) {
        void *seal = both[from]->make(key, true), *open = both[!from]->make(key, false);
        assert_true(seal && open);
        fill(clear, sizeof clear);
        both[from]->seal(seal, nonce, clear, sizeof clear, bytes, tag);
        assert_true(both[!from]->open(open, nonce, bytes, sizeof bytes, tag));
        assert_memory_equal(bytes, clear, sizeof clear);
        tag[0] ^= 1;
        assert_false(both[!from]->open(open, nonce, bytes, sizeof bytes, tag));
        both[from]->destroy(seal);
        both[!from]->destroy(open);
    }
}

TESTS(TEST(the_bytes_are_those_of_aes_256_gcm), TEST(what_was_changed_or_doubled_does_not_open),
      TEST(two_libraries_understand_each_other))
