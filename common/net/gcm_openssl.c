// OpenSSL's: the key is set once, the nonce before each record.

#include "common/base/ensure.h"
#include "common/net/gcm.h"

#include <openssl/evp.h>
#include <string.h>

static void *make(const uint8_t key[GCM_KEY], bool seals)
{
    EVP_CIPHER_CTX *self = EVP_CIPHER_CTX_new();
    if (self && EVP_CipherInit_ex(self, EVP_aes_256_gcm(), NULL, key, NULL, seals) == 1)
        return self;
    EVP_CIPHER_CTX_free(self);
    return NULL;
}

static void destroy(void *self) { EVP_CIPHER_CTX_free(self); }

static void seal(void *self, const uint8_t nonce[GCM_NONCE], const void *from, size_t count,
                 void *to, uint8_t ret_tag[GCM_TAG])
{
    int done = 0;
    ensure(EVP_CipherInit_ex(self, NULL, NULL, NULL, nonce, -1) == 1);
    ensure(EVP_EncryptUpdate(self, to, &done, from, (int)count) == 1);
    ensure(EVP_EncryptFinal_ex(self, to, &done) == 1);
    ensure(EVP_CIPHER_CTX_ctrl(self, EVP_CTRL_GCM_GET_TAG, GCM_TAG, ret_tag) == 1);
}

static bool open_record(void *self, const uint8_t nonce[GCM_NONCE], void *bytes, size_t count,
                        const uint8_t tag[GCM_TAG])
{
    uint8_t copy[GCM_TAG];
    int done = 0;
    ensure(EVP_CipherInit_ex(self, NULL, NULL, NULL, nonce, -1) == 1);
    memcpy(copy, tag, sizeof copy);
    ensure(EVP_CIPHER_CTX_ctrl(self, EVP_CTRL_GCM_SET_TAG, GCM_TAG, copy) == 1);
    ensure(EVP_DecryptUpdate(self, bytes, &done, bytes, (int)count) == 1);
    return EVP_DecryptFinal_ex(self, bytes, &done) == 1;
}

const struct gcm gcm_openssl = { "openssl", make, destroy, seal, open_record };
