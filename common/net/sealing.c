// Counts records, so that each has a nonce of its own. One of the two libraries of gcm.h seals them: the faster
// one, if the build has it and the processor can run it.

#include "common/net/sealing.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/net/gcm.h"

#include <string.h>

_Static_assert((int)SEALING_KEY == GCM_KEY && (int)SEALING_TAG == GCM_TAG, "AES-256-GCM");

bool sealing_new(struct sealing *self, const uint8_t key[SEALING_KEY], bool seals)
{
    const struct gcm *fast = gcm_ipsec_mb();
    *self = (struct sealing){ .gcm = fast ? fast : &gcm_openssl };
    self->context = self->gcm->make(key, seals);
    return self->context;
}

void sealing_destroy(struct sealing *self)
{
    if (self->context) self->gcm->destroy(self->context);
    *self = (struct sealing){ 0 };
}

static void next_nonce(struct sealing *self, size_t count, uint8_t ret_nonce[GCM_NONCE])
{
    ensure(self->next < UINT64_MAX && count <= GCM_COUNT_MAX);
    le_put(ret_nonce, self->next++, sizeof self->next);
    memset(ret_nonce + sizeof self->next, 0, GCM_NONCE - sizeof self->next);
}

void sealing_put(struct sealing *self, const void *from, size_t count, void *to,
                 uint8_t ret_tag[SEALING_TAG])
{
    uint8_t nonce[GCM_NONCE];
    next_nonce(self, count, nonce);
    self->gcm->seal(self->context, nonce, from, count, to, ret_tag);
}

bool sealing_take(struct sealing *self, void *bytes, size_t count, const uint8_t tag[SEALING_TAG])
{
    uint8_t nonce[GCM_NONCE];
    next_nonce(self, count, nonce);
    return self->gcm->open(self->context, nonce, bytes, count, tag);
}
