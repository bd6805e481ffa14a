// Loading finds each item in the save, decides once whether the cut is unchanged, loads every value
// into memory of its own, and only then, when nothing can fail any more, gives them to the caller.
#include "common/checkpoint/world.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int world_save(const struct pieces_save *save, const struct world_item *items, size_t count,
               struct why *why, uint32_t *ret_missing)
{
    struct pieces_part parts[PIECES_ITEMS_MAX];
    if (count > PIECES_ITEMS_MAX)
        return why_set(why, FAULT_LIMIT, "%zu state items, allowed are %d; not saved", count,
                       PIECES_ITEMS_MAX);
    for (size_t i = 0; i < count; i++)
        parts[i] = (struct pieces_part){ items[i].name, items[i].tag, items[i].element_bytes,
                                         items[i].elements, items[i].bytes };
    const int rc = pieces_write(save, parts, count, why);
    return rc < 0 ? rc : pieces_seal(save, why, ret_missing);
}

// ---- loading ------------------------------------------------------------------------------------

struct loading {
    const struct pieces_save *save;
    pieces_t *pieces;
    bool same; // The cut is unchanged
    const struct pieces_item *saved[PIECES_ITEMS_MAX];
    struct world_value values[PIECES_ITEMS_MAX];
};

static struct interval saved_by(const struct pieces_item *item, uint32_t worker)
{
    return (struct interval){ item->begins[worker], item->begins[worker + 1] };
}

static int find_items(struct loading *self, const struct world_item *items, size_t count,
                      struct why *why)
{
    for (size_t i = 0; i < count; i++) {
        const struct pieces_item *saved = self->saved[i] = pieces_find(self->pieces, items[i].name);
        if (!saved)
            return why_set(why, FAULT_NOT_FOUND, "state item '%s' was not saved; nothing loaded",
                           items[i].name);
        if (saved->tag != items[i].tag || saved->element_bytes != items[i].element_bytes)
            return why_set(why, FAULT_UNSUPPORTED,
                           "state item '%s' was saved as %s with %" PRIu32
                           " bytes an element, and is %s with %" PRIu32 " now; nothing loaded",
                           items[i].name, tags_tag_name(saved->tag), saved->element_bytes,
                           tags_tag_name(items[i].tag), items[i].element_bytes);
    }
    return 0;
}

static int check_begins(const struct world_item *item, uint64_t total, uint32_t workers,
                        struct why *why)
{
    bool is_cut = item->begins[0] == 0 && item->begins[workers] == total;
    for (uint32_t w = 0; w < workers; w++) is_cut &= item->begins[w] <= item->begins[w + 1];
    if (is_cut) return 0;
    return why_set(why, FAULT_RANGE,
                   "the new cut of state item '%s' does not go from 0 to its %" PRIu64
                   " elements without falling; nothing loaded",
                   item->name, total);
}

// The cut is unchanged if the number of workers and all intervals are the same.
static int compare_cuts(struct loading *self, const struct world_item *items, size_t count,
                        struct why *why)
{
    const uint32_t before = pieces_meta(self->pieces)->workers, now = self->save->workers;
    self->same = before == now;
    for (size_t i = 0; i < count; i++) {
        if (items[i].tag != TAG_RESHARD || !items[i].begins) continue;
        const int rc = check_begins(&items[i], self->saved[i]->begins[before], now, why);
        if (rc < 0) return rc;
        // mutant: world: as many workers are the same world
        self->same = self->same && memcmp(items[i].begins, self->saved[i]->begins,
                                          ((size_t)now + 1) * sizeof *items[i].begins) == 0;
    }
    return 0;
}

static int read_value(const struct loading *self, const struct pieces_item *item,
                      struct interval at, struct why *why, struct world_value *ret_value)
{
    const uint64_t bytes = interval_length(at) * item->element_bytes;
    struct world_value value = { interval_length(at), malloc(bytes ? (size_t)bytes : 1) };
    if (!value.bytes)
        return why_set(why, FAULT_MEMORY, "%" PRIu64 " bytes of state item '%s'; nothing loaded",
                       bytes, item->name);
    const int rc = pieces_read(self->pieces, item, at, value.bytes, why);
    if (rc < 0) free(value.bytes);
    else *ret_value = value;
    return rc;
}

static int reshard(struct loading *self, const struct world_item *item, size_t i, struct why *why)
{
    const struct pieces_save *now = self->save;
    const struct pieces_item *saved = self->saved[i];
    const uint32_t before = pieces_meta(self->pieces)->workers;
    struct interval at = interval_share(saved->begins[before], now->worker, now->workers);
    if (before == now->workers) at = saved_by(saved, now->worker);
    if (item->begins)
        at = (struct interval){ item->begins[now->worker], item->begins[now->worker + 1] };
    return read_value(self, saved, at, why, &self->values[i]);
}

static void free_values(struct world_value *values, uint32_t count)
{
    for (uint32_t w = 0; w < count; w++) free(values[w].bytes);
    free(values);
}

// All values of the old world, in the order of its workers, to the item's own function.
static int gather(struct loading *self, const struct world_item *item, size_t i, struct why *why)
{
    const uint32_t before = pieces_meta(self->pieces)->workers;
    struct world_value *all = calloc(before, sizeof *all);
    if (!all) return why_set(why, FAULT_MEMORY, "%" PRIu32 " values; nothing loaded", before);
    int rc = 0;
    for (uint32_t w = 0; rc == 0 && w < before; w++)
        rc = read_value(self, self->saved[i], saved_by(self->saved[i], w), why, &all[w]);
    if (rc == 0) {
        rc = item->merge(item->arg, all, before, self->save->worker, self->save->workers, why,
                         &self->values[i]);
        ensure(rc <= 0); // 0 or a fault
        if (rc < 0)
            rc = why_wrap(why, rc, "the function of state item '%s' failed; nothing loaded",
                          item->name);
    }
    free_values(all, before);
    return rc;
}

static int load_item(struct loading *self, const struct world_item *item, size_t i, struct why *why)
{
    const struct pieces_item *saved = self->saved[i];
    const uint32_t before = pieces_meta(self->pieces)->workers;
    if (item->tag == TAG_RESHARD) return reshard(self, item, i, why);
    if (item->tag == TAG_REPLICATE)
        return read_value(self, saved, (struct interval){ 0, saved->begins[before] }, why,
                          &self->values[i]);
    if (self->same)
        return read_value(self, saved, saved_by(saved, self->save->worker), why, &self->values[i]);
    return item->tag == TAG_CUSTOM ? gather(self, item, i, why) : 0; // Drop: nothing is loaded
}

static int load_all(struct loading *self, struct world_item *items, size_t count, struct why *why)
{
    int rc = find_items(self, items, count, why);
    if (rc == 0) rc = compare_cuts(self, items, count, why);
    for (size_t i = 0; rc == 0 && i < count; i++) rc = load_item(self, &items[i], i, why);
    for (size_t i = 0; i < count; i++) {
        if (rc < 0) free(self->values[i].bytes);
        if (rc < 0) continue;
        items[i].is_fresh = items[i].tag == TAG_DROP && !self->same;
        if (items[i].is_fresh) continue;
        items[i].elements = self->values[i].elements;
        items[i].bytes = self->values[i].bytes;
    }
    return rc;
}

int world_load(const struct pieces_save *save, struct world_item *items, size_t count,
               struct why *why)
{
    ensure(save->workers >= 1 && save->worker < save->workers);
    if (count > PIECES_ITEMS_MAX)
        return why_set(why, FAULT_LIMIT, "%zu state items, allowed are %d; nothing loaded", count,
                       PIECES_ITEMS_MAX);
    for (size_t i = 0; i < count; i++) ensure(items[i].tag != TAG_CUSTOM || items[i].merge);
    struct loading self = { .save = save };
    int rc = pieces_open(save->root, save->step, save->run, why, &self.pieces);
    if (rc == 0) rc = load_all(&self, items, count, why);
    pieces_close(&self.pieces);
    return rc;
}
