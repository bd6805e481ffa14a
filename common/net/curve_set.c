// Linear probing from the slot that the key's first eight bytes name. There is no removal, so a
// search ends at the first empty slot.

#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/net/curve_set.h"
#include <stdlib.h>
#include <string.h>

enum { PLACES_MIN = 64 };

// The slot of the key, or the empty slot where it belongs.
static uint32_t find(const struct curve_set *self, const struct curve_key *key)
{
    uint32_t place =
        (uint32_t)(le_get(key->bytes, 8) % self->places); // Key bytes are as good as random
    while (self->entries[place].value &&
           memcmp(self->entries[place].key.bytes, key->bytes, CURVE_BYTES) != 0)
        place = (place + 1) % self->places;
    return place;
}

uint16_t curve_set_get(const struct curve_set *self, const struct curve_key *key)
{
    return self->places ? self->entries[find(self, key)].value : 0;
}

static void grow(struct curve_set *self)
{
    struct curve_set larger = { .places = self->places ? 2 * self->places : PLACES_MIN };
    larger.entries = calloc(larger.places, sizeof *larger.entries);
    ensure(larger.entries);
    for (uint32_t i = 0; i < self->places; i++)
        if (self->entries[i].value) {
            larger.entries[find(&larger, &self->entries[i].key)] = self->entries[i];
            larger.count++;
        }
    free(self->entries);
    *self = larger;
}

void curve_set_put(struct curve_set *self, const struct curve_key *key, uint16_t value)
{
    ensure(value);
    if (2 * (self->count + 1) > self->places) grow(self);
    struct curve_entry *entry = &self->entries[find(self, key)];
    if (!entry->value) self->count++;
    *entry = (struct curve_entry){ *key, value };
}

void curve_set_clear(struct curve_set *self)
{
    free(self->entries);
    *self = (struct curve_set){ 0 };
}
