// tags -- registration checks the name, that it is new, the tag, the size and the room, in this
// order.

#include "common/vector/tags.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ELEMENT_BYTES_MAX = 16 };
#define ELEMENTS_MAX ((uint64_t)1 << 48)

static const char *const names[TAG_COUNT] = {
    [TAG_UNSET] = "unset",         [TAG_DROP] = "drop",     [TAG_RESHARD] = "reshard",
    [TAG_REPLICATE] = "replicate", [TAG_CUSTOM] = "custom",
};

const char *tags_tag_name(enum tag tag) { return names[tag < TAG_COUNT ? tag : TAG_UNSET]; }

enum tag tags_tag_from_name(const char *name)
{
    for (enum tag tag = TAG_DROP; tag < TAG_COUNT; tag++) {
        if (strcmp(name, names[tag]) == 0) return tag;
    }
    return TAG_UNSET;
}

bool tags_name_valid(const char *name)
{
    size_t count = 0;
    if (name[0] < 'a' || name[0] > 'z') return false;
    for (; name[count] && count <= TAGS_NAME_MAX; count++) {
        const char c = name[count];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) return false;
    }
    return count <= TAGS_NAME_MAX;
}

void tags_init(struct tags *self, struct tags_item *items, size_t capacity)
{
    *self = (struct tags){ .items = items, .capacity = capacity };
}

const struct tags_item *tags_find(const struct tags *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp(self->items[i].name, name) == 0) return &self->items[i];
    }
    return NULL;
}

int tags_add(struct tags *self, const char *name, enum tag tag, uint64_t elements,
             uint32_t element_bytes, struct why *why)
{
    if (!tags_name_valid(name))
        return why_set(why, FAULT_RANGE,
                       "state item %zu: a name is 1 to %d characters of a-z, 0-9 "
                       "and -, and begins with a letter; not registered",
                       self->count, TAGS_NAME_MAX);
    if (tags_find(self, name))
        return why_set(why, FAULT_RANGE,
                       "state item '%s' is registered already, as %s; not "
                       "registered again",
                       name, tags_tag_name(tags_find(self, name)->tag));
    if (tag <= TAG_UNSET || tag >= TAG_COUNT)
        return why_set(why, FAULT_RANGE,
                       "state item '%s' has tag %d; an item has exactly one of "
                       "drop, reshard, replicate, custom; not registered",
                       name, (int)tag);
    if (!elements || elements > ELEMENTS_MAX || !element_bytes || element_bytes > ELEMENT_BYTES_MAX)
        return why_set(why, FAULT_RANGE,
                       "state item '%s' has %" PRIu64 " elements of %" PRIu32 " "
                       "bytes; allowed are 1 to 2^48 elements of 1 to %d bytes; not registered",
                       name, elements, element_bytes, ELEMENT_BYTES_MAX);
    if (self->count == self->capacity)
        return why_set(why, FAULT_LIMIT,
                       "state item '%s': the registry has room for %zu items and "
                       "is full; not registered",
                       name, self->capacity);
    struct tags_item *item = &self->items[self->count++];
    *item = (struct tags_item){ .elements = elements, .element_bytes = element_bytes, .tag = tag };
    snprintf(item->name, sizeof item->name, "%s", name);
    return 0;
}
