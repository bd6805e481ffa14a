// penalties -- keys that are refused for PENALTY_MS, in a ring: a full ring drops the oldest one.

#include "broker/penalties.h"

void penalties_add(struct penalties *self, const struct key *key, uint64_t now_ms)
{
    self->list[self->next++ % PENALTIES_MAX] = (struct penalty){ *key, now_ms + PENALTY_MS };
}

bool penalties_has(const struct penalties *self, const struct key *key, uint64_t now_ms)
{
    for (uint32_t i = 0; i < PENALTIES_MAX; i++)
        if (self->list[i].until_ms > now_ms && key_equal(&self->list[i].key, key)) return true;
    return false;
}
