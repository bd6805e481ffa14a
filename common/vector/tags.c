// tags -- registration checks the name, that it is new, the tag, the size and the room, in this
// order. A plan first checks the cuts, then gives each item the steps of its tag, in the order of
// registration.

#include "common/vector/tags.h"
#include "common/base/ensure.h"
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

static bool name_valid(const char *name)
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
    if (!name_valid(name))
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

// ---- Plans ----

bool tags_cut_equal(const struct tags_cut *a, const struct tags_cut *b)
{
    if (a->workers != b->workers || a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!interval_equal(a->pieces[i].at, b->pieces[i].at)) return false;
        if (a->pieces[i].owner != b->pieces[i].owner) return false;
    }
    return true;
}

size_t tags_plan_max(const struct tags *self, const struct tags_cut *before,
                     const struct tags_cut *now)
{
    const size_t pieces = now->count + (before ? before->count : 0);
    const size_t workers = before ? before->workers : 1;
    return self->count * (pieces > workers ? pieces : workers);
}

static int cut_check(const struct tags *self, const struct tags_cut *cut, const char *which,
                     struct why *why)
{
    if (!interval_pieces_tidy(cut->pieces, cut->count))
        return why_set(why, FAULT_RANGE,
                       "the %s cut has pieces that are empty, overlap or are out "
                       "of order; no plan",
                       which);
    for (size_t i = 0; i < cut->count; i++) {
        if (cut->pieces[i].owner >= cut->workers)
            return why_set(why, FAULT_RANGE,
                           "the %s cut gives piece %zu to worker %" PRIu32 " of "
                           "%" PRIu32 "; no plan",
                           which, i, cut->pieces[i].owner, cut->workers);
    }
    for (size_t i = 0; i < self->count; i++) {
        const struct tags_item *item = &self->items[i];
        if (item->tag == TAG_RESHARD &&
            !interval_pieces_cover(cut->pieces, cut->count, item->elements))
            return why_set(why, FAULT_RANGE,
                           "the %s cut does not tile the %" PRIu64 " elements of "
                           "state item '%s'; no plan",
                           which, item->elements, item->name);
    }
    return 0;
}

struct plan {
    struct tags_step *steps;
    size_t count;
};

static void step(struct plan *plan, size_t item, enum tags_deed deed, uint32_t from,
                 struct interval at)
{
    plan->steps[plan->count++] =
        (struct tags_step){ .item = item, .deed = deed, .from = from, .at = at };
}

// One step for each overlap of an old piece with a piece that `worker` holds now: the same loop for
// any two numbers of workers.
static void reshard(struct plan *plan, size_t item, const struct tags_cut *before,
                    const struct tags_cut *now, uint32_t worker)
{
    size_t i = 0, j = 0;
    while (i < before->count && j < now->count) {
        const struct interval_piece *have = &before->pieces[i], *want = &now->pieces[j];
        const struct interval at = interval_meet(have->at, want->at);
        if (want->owner == worker && !interval_empty(at))
            step(plan, item, TAGS_COPY, have->owner, at);
        if (have->at.end < want->at.end) i++;
        else j++;
    }
}

int tags_plan_save(const struct tags *self, const struct tags_cut *cut, uint32_t worker,
                   struct why *why, struct tags_step *ret_steps, size_t *ret_count)
{
    ensure(worker < cut->workers);
    const int rc = cut_check(self, cut, "present", why);
    if (rc < 0) return rc;
    struct plan plan = { .steps = ret_steps };
    for (size_t i = 0; i < self->count; i++) {
        const struct interval whole = { 0, self->items[i].elements };
        switch (self->items[i].tag) {
        case TAG_REPLICATE:
            if (worker == 0) step(&plan, i, TAGS_COPY, 0, whole);
            break;
        case TAG_RESHARD:
            for (size_t k = 0; k < cut->count; k++) {
                if (cut->pieces[k].owner == worker)
                    step(&plan, i, TAGS_COPY, worker, cut->pieces[k].at);
            }
            break;
        default: step(&plan, i, TAGS_COPY, worker, whole);
        }
    }
    *ret_count = plan.count;
    return 0;
}

int tags_plan_load(const struct tags *self, const struct tags_cut *before,
                   const struct tags_cut *now, uint32_t worker, struct why *why,
                   struct tags_step *ret_steps, size_t *ret_count)
{
    ensure(worker < now->workers);
    int rc = cut_check(self, before, "saved", why);
    if (rc == 0) rc = cut_check(self, now, "present", why);
    if (rc < 0) return rc;
    const bool same = tags_cut_equal(before, now);
    struct plan plan = { .steps = ret_steps };
    for (size_t i = 0; i < self->count; i++) {
        const struct interval whole = { 0, self->items[i].elements };
        const enum tag tag = self->items[i].tag;
        if (tag == TAG_RESHARD) reshard(&plan, i, before, now, worker);
        else if (tag == TAG_REPLICATE) step(&plan, i, TAGS_COPY, 0, whole);
        else if (same) step(&plan, i, TAGS_COPY, worker, whole);
        else if (tag == TAG_DROP) step(&plan, i, TAGS_FRESH, worker, whole);
        else
            for (uint32_t from = 0; from < before->workers; from++)
                step(&plan, i, TAGS_GATHER, from, whole);
    }
    *ret_count = plan.count;
    return 0;
}
