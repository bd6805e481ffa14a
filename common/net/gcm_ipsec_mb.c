// Intel's libIPSec_MB. A manager is the library's table of functions for this processor; those used here
// keep nothing in it, so all threads share one. On other processors than x86-64 there is no such library.

#include "common/net/gcm.h"

#ifdef __x86_64__

#include "common/base/ensure.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

enum { ALIGNED = 64 };

struct context {
    struct gcm_key_data key; // Must lie at a multiple of ALIGNED
    struct gcm_context_data record;
};

static IMB_MGR *manager; // NULL: not on this processor
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_manager(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) return;
    manager = alloc_mb_mgr(0);
    if (!manager) return;
    init_mb_mgr_auto(manager, NULL);
    if (imb_get_errno(manager) == 0) return;
    free_mb_mgr(manager);
    manager = NULL;
}

static void *make(const uint8_t key[GCM_KEY], bool seals)
{
    const size_t room = (sizeof(struct context) + ALIGNED - 1) / ALIGNED * ALIGNED;
    (void)seals;
    ensure(manager);
    struct context *self = aligned_alloc(ALIGNED, room);
    if (self) IMB_AES256_GCM_PRE(manager, key, &self->key);
    return self;
}

static void destroy(void *self)
{
    if (self) OPENSSL_cleanse(self, sizeof(struct context));
    free(self);
}

static void seal(void *self, const uint8_t nonce[GCM_NONCE], const void *from, size_t count,
                 void *to, uint8_t ret_tag[GCM_TAG])
{
    struct context *at = self;
    IMB_AES256_GCM_ENC(manager, &at->key, &at->record, to, from, count, nonce, NULL, 0, ret_tag,
                       GCM_TAG);
}

static bool open_record(void *self, const uint8_t nonce[GCM_NONCE], void *bytes, size_t count,
                        const uint8_t tag[GCM_TAG])
{
    struct context *at = self;
    uint8_t own[GCM_TAG];
    IMB_AES256_GCM_DEC(manager, &at->key, &at->record, bytes, bytes, count, nonce, NULL, 0, own,
                       GCM_TAG);
    return CRYPTO_memcmp(own, tag, GCM_TAG) == 0;
}

static const struct gcm library = { "libIPSec_MB", make, destroy, seal, open_record };

const struct gcm *gcm_ipsec_mb(void)
{
    pthread_once(&once, make_manager);
    return manager ? &library : NULL;
}

#else

const struct gcm *gcm_ipsec_mb(void) { return NULL; }

#endif
