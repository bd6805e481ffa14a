#include "common/base/bytes.h"
#include "common/data/shuffle.h"
#include "common/base/ensure.h"
#include "common/base/hash.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void shuffle_init(struct shuffle *self, uint64_t count, const uint8_t seed[SHUFFLE_SEED_BYTES],
                  uint64_t pass)
{
    ensure(count > 0 && count < UINT64_C(1) << 63);
    uint8_t number[8];
    le_put(number, pass, 8);
    const struct hash key = hash_of_two(seed, SHUFFLE_SEED_BYTES, number, 8);

    self->count = count;
    for (uint32_t r = 0; r < SHUFFLE_ROUNDS; r++) {
        le_put(number, r, 4);
        const struct hash drawn = hash_of_two(key.bytes, HASH_BYTES, number, 4);
        self->pivot[r] = hash_to_number(&drawn) % count;
        self->salt[r] = le_get(drawn.bytes + 8, 8);
    }
}

uint64_t shuffle_at(const struct shuffle *self, uint64_t index)
{
    ensure(index < self->count);
    for (int r = 0; r < SHUFFLE_ROUNDS; r++) {
        const uint64_t pivot = self->pivot[r];
        const uint64_t mirror = pivot >= index ? pivot - index : pivot + (self->count - index);
        const uint64_t greater = mirror > index ? mirror : index;
        if (mix(greater ^ self->salt[r]) & 1) index = mirror;
    }
    return index;
}
