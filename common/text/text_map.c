#include "common/text/text_map.h"
#include "common/base/ensure.h"
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static uint8_t key[crypto_shorthash_KEYBYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    ensure(sodium_init() >= 0);
    crypto_shorthash_keygen(key);
}

static uint32_t hash_of_text(const uint8_t *text, size_t count)
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint32_t low;
    pthread_once(&once, make_key);
    crypto_shorthash(hash, text, count, key);
    memcpy(&low, hash, sizeof low);
    return low;
}

uint32_t text_map_find(const struct text_map *self, text_map_text_fn *text_of, const void *context,
                       const uint8_t *text, size_t count)
{
    if (self->count == 0) return TEXT_MAP_NONE;
    for (uint32_t at = hash_of_text(text, count) & self->mask; self->slots[at] != TEXT_MAP_NONE;
         at = (at + 1) & self->mask) {
        size_t other;
        const uint8_t *found = text_of(context, self->slots[at], &other);
        if (other == count && memcmp(found, text, count) == 0) return self->slots[at];
    }
    return TEXT_MAP_NONE;
}

static void put(struct text_map *self, text_map_text_fn *text_of, const void *context,
                uint32_t number)
{
    size_t count;
    const uint8_t *text = text_of(context, number, &count);
    uint32_t at = hash_of_text(text, count) & self->mask;
    while (self->slots[at] != TEXT_MAP_NONE) at = (at + 1) & self->mask;
    self->slots[at] = number;
}

void text_map_add(struct text_map *self, text_map_text_fn *text_of, const void *context,
                  uint32_t number)
{
    const uint32_t size = self->slots ? self->mask + 1 : 0;
    if (2 * (self->count + 1) > size) {
        struct text_map old = *self;
        self->mask = size ? 2 * size - 1 : 1023;
        self->slots = malloc(((size_t)self->mask + 1) * sizeof *self->slots);
        ensure(self->slots);
        memset(self->slots, 0xff, ((size_t)self->mask + 1) * sizeof *self->slots);
        for (uint32_t i = 0; i < size; i++)
            if (old.slots[i] != TEXT_MAP_NONE) put(self, text_of, context, old.slots[i]);
        free(old.slots);
    }
    put(self, text_of, context, number);
    self->count++;
}

void text_map_free(struct text_map *self)
{
    free(self->slots);
    *self = (struct text_map){ 0 };
}
