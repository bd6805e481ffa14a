// OpenSSL's GCM: the key is set once, the nonce before each record.

#include "common/net/sealing.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"

#include <openssl/evp.h>

enum { NONCE = 12, COUNT_MAX = 1 << 30 };

bool sealing_new(struct sealing *self, const uint8_t key[SEALING_KEY], bool seals)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    *self = (struct sealing){ .context = context };
    if (!context) return false;
    if (EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key, NULL, seals) == 1) return true;
    sealing_destroy(self);
    return false;
}

void sealing_destroy(struct sealing *self)
{
    EVP_CIPHER_CTX_free(self->context);
    *self = (struct sealing){ NULL, 0 };
}

static void begin(struct sealing *self)
{
    uint8_t nonce[NONCE] = { 0 };
    ensure(self->next < UINT64_MAX);
    le_put(nonce, self->next++, sizeof self->next);
    ensure(EVP_CipherInit_ex(self->context, NULL, NULL, NULL, nonce, -1) == 1);
}

void sealing_put(struct sealing *self, const void *from, size_t count, void *to,
                 uint8_t ret_tag[SEALING_TAG])
{
    int done = 0;
    ensure(count <= COUNT_MAX);
    begin(self);
    ensure(EVP_EncryptUpdate(self->context, to, &done, from, (int)count) == 1);
    ensure(EVP_EncryptFinal_ex(self->context, to, &done) == 1);
    ensure(EVP_CIPHER_CTX_ctrl(self->context, EVP_CTRL_GCM_GET_TAG, SEALING_TAG, ret_tag) == 1);
}

bool sealing_take(struct sealing *self, void *bytes, size_t count, const uint8_t tag[SEALING_TAG])
{
    uint8_t copy[SEALING_TAG];
    int done = 0;
    ensure(count <= COUNT_MAX);
    begin(self);
    memcpy(copy, tag, sizeof copy);
    ensure(EVP_CIPHER_CTX_ctrl(self->context, EVP_CTRL_GCM_SET_TAG, SEALING_TAG, copy) == 1);
    ensure(EVP_DecryptUpdate(self->context, bytes, &done, bytes, (int)count) == 1);
    return EVP_DecryptFinal_ex(self->context, bytes, &done) == 1;
}
