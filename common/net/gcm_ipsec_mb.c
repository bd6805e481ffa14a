// Intel's library, in the programs of make IPSEC_MB=1: where the processor has VAES it is three
// times as fast as OpenSSL 3.0 is, which knows AES-NI only (OpenSSL knows VAES from 3.1 on).
//
// A manager is the library's table of functions for this processor; those used here keep nothing in
// it, so all threads share one.

#include "common/base/ensure.h"
#include "common/net/gcm.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

enum { ALIGNED = 64 };

struct gcm {
    struct gcm_key_data key; // Must lie at a multiple of ALIGNED
    struct gcm_context_data record;
};

static IMB_MGR *manager;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_manager(void)
{
    manager = alloc_mb_mgr(0);
    ensure(manager);
    init_mb_mgr_auto(manager, NULL);
    ensure(imb_get_errno(manager) == 0);
}

void *gcm_new(const uint8_t key[GCM_KEY], bool seals)
{
    (void)seals;
    pthread_once(&once, make_manager);
    struct gcm *self = aligned_alloc(ALIGNED, (sizeof *self + ALIGNED - 1) / ALIGNED * ALIGNED);
    if (self) IMB_AES256_GCM_PRE(manager, key, &self->key);
    return self;
}

void gcm_destroy(void *self)
{
    if (self) OPENSSL_cleanse(self, sizeof(struct gcm));
    free(self);
}

void gcm_seal(void *self, const uint8_t nonce[GCM_NONCE], const void *from, size_t count, void *to,
              uint8_t ret_tag[GCM_TAG])
{
    struct gcm *gcm = self;
    IMB_AES256_GCM_ENC(manager, &gcm->key, &gcm->record, to, from, count, nonce, NULL, 0, ret_tag,
                       GCM_TAG);
}

bool gcm_open(void *self, const uint8_t nonce[GCM_NONCE], void *bytes, size_t count,
              const uint8_t tag[GCM_TAG])
{
    struct gcm *gcm = self;
    uint8_t own[GCM_TAG];
    IMB_AES256_GCM_DEC(manager, &gcm->key, &gcm->record, bytes, bytes, count, nonce, NULL, 0, own,
                       GCM_TAG);
    return CRYPTO_memcmp(own, tag, GCM_TAG) == 0;
}
