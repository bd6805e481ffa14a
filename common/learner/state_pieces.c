// state_pieces -- one walk over the optimizer's items each way. An item that reshards has a value
// for the optimizer's interval, of which a share is saved; all others have one for the whole item.

#include "common/learner/state_pieces.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct interval saved_of(const struct state_item *item, struct interval share)
{
    return item->tag == TAG_RESHARD ? interval_meet(item->at, share) : item->at;
}

size_t state_parts(optimizer_t *optimizer, const struct state *state, const float *params,
                   struct interval share, struct pieces_part ret_parts[STATE_PARTS_MAX])
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t items_count = optimizer_items(optimizer, items);
    size_t count = 0;
    ret_parts[count++] = (struct pieces_part){ STATE_PARAMETERS, TAG_RESHARD, sizeof *params,
                                               interval_length(share), params + share.begin };
    for (size_t i = 0; i < items_count; i++) {
        const struct interval saved = saved_of(&items[i], share);
        const uint64_t behind = interval_empty(saved) ? 0 : saved.begin - items[i].at.begin;
        const uint8_t *values = state->values[i];
        if (values)
            ret_parts[count++] =
                (struct pieces_part){ items[i].name, items[i].tag, items[i].element_bytes,
                                      interval_length(saved),
                                      values + behind * items[i].element_bytes };
    }
    return count;
}

uint64_t state_parts_bytes(optimizer_t *optimizer, struct interval share)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(optimizer, items);
    uint64_t bytes = interval_length(share) * sizeof(float);
    for (size_t i = 0; i < count; i++)
        bytes += interval_length(saved_of(&items[i], share)) * items[i].element_bytes;
    return bytes;
}

static bool is_alike(const struct pieces_item *item)
{
    return item->tag != TAG_DROP && item->tag != TAG_CUSTOM &&
           (strcmp(item->name, STATE_PARAMETERS) == 0 || optimizer_is_item(item->name));
}

int state_check_params(const pieces_t *pieces, const struct layout *layout, struct why *why)
{
    const struct pieces_item *item = pieces_find(pieces, STATE_PARAMETERS);
    const struct pieces_meta *meta = pieces_meta(pieces);
    if (!item) return why_set(why, FAULT_NOT_FOUND, "the save has no item '" STATE_PARAMETERS "'");
    const struct hash saved = layout_hash(&meta->layout), ours = layout_hash(layout);
    if (item->tag != TAG_RESHARD || item->element_bytes != sizeof(float) ||
        item->begins[meta->workers] != layout->total || !hash_equal(&saved, &ours))
        return why_set(why, FAULT_FOREIGN,
                       "the save has %" PRIu64 " parameters of %" PRIu32
                       " bytes in other tensors than this model with its %" PRIu64,
                       item->begins[meta->workers], item->element_bytes, layout->total);
    return 0;
}

static uint64_t bytes_of(const pieces_t *pieces, const struct pieces_item *item)
{
    return item->begins[pieces_meta(pieces)->workers] * item->element_bytes;
}

// Somebody else may have put the save there: a file of terabytes costs him nothing, if it has holes.
static int check_size(const pieces_t *pieces, const struct pieces_item *item, struct why *why)
{
    const uint64_t bytes = bytes_of(pieces, item);
    const uint64_t most = bytes_of(pieces, pieces_find(pieces, STATE_PARAMETERS));
    return bytes <= most ? 0
                         : why_set(why, FAULT_FOREIGN,
                                   "item '%s' has %" PRIu64
                                   " bytes, more than the parameters with their %" PRIu64,
                                   item->name, bytes, most);
}

int state_pieces_digest(const pieces_t *pieces, const struct layout *layout, struct why *why,
                        struct hash *ret_digest)
{
    const struct pieces_meta *meta = pieces_meta(pieces);
    struct hash roots[STATE_ITEMS_MAX];
    uint32_t count = 0;
    if (!pieces_find(pieces, STATE_PARAMETERS))
        return why_set(why, FAULT_NOT_FOUND, "the save has no item '" STATE_PARAMETERS "'");
    int rc = layout ? state_check_params(pieces, layout, why) : 0;
    for (size_t i = 0; rc == 0 && i < meta->count && count < STATE_ITEMS_MAX; i++) {
        if (!is_alike(&meta->items[i])) continue;
        rc = check_size(pieces, &meta->items[i], why);
        if (rc == 0) rc = pieces_root(pieces, &meta->items[i], why, &roots[count++]);
    }
    // mutant: pieces: the digest is that of the parameters alone
    if (rc == 0) *ret_digest = merkle_root(roots, count);
    return rc;
}

int state_verify_pieces(const pieces_t *pieces, struct why *why)
{
    const struct pieces_meta *meta = pieces_meta(pieces);
    int rc = 0;
    for (size_t i = 0, count = 0; rc == 0 && i < meta->count && count < STATE_ITEMS_MAX; i++) {
        if (!is_alike(&meta->items[i])) continue;
        rc = check_size(pieces, &meta->items[i], why);
        if (rc == 0) rc = pieces_walk(pieces, &meta->items[i], NULL, NULL, why);
        count++;
    }
    return rc;
}

int state_read_params(const pieces_t *pieces, const struct layout *layout, struct interval share,
                      float *params, struct why *why)
{
    const int rc = state_check_params(pieces, layout, why);
    return rc < 0 ? rc
                  : pieces_read(pieces, pieces_find(pieces, STATE_PARAMETERS), share, params, why);
}

// ---- the optimizer's ----------------------------------------------------------------------------

static int check_item(const struct pieces_item *saved, const struct state_item *item,
                      uint64_t elements, uint32_t workers, struct why *why)
{
    if (!saved)
        return why_set(why, FAULT_NOT_FOUND, "the save has no item '%s' of the optimizer",
                       item->name);
    if (saved->tag == item->tag && saved->element_bytes == item->element_bytes &&
        saved->begins[workers] == elements)
        return 0;
    return why_set(why, FAULT_FOREIGN,
                   "item '%s' was saved as %s, %" PRIu64 " elements of %" PRIu32
                   " bytes, and is now %s, %" PRIu64 " of %" PRIu32,
                   item->name, tags_tag_name(saved->tag), saved->begins[workers],
                   saved->element_bytes, tags_tag_name(item->tag), elements, item->element_bytes);
}

int state_read_item(const pieces_t *pieces, const struct state_item *item, void *values,
                    struct why *why)
{
    const struct pieces_item *saved = pieces_find(pieces, item->name);
    const int rc =
        check_item(saved, item, interval_length(item->at), pieces_meta(pieces)->workers, why);
    return rc < 0 ? rc : pieces_read(pieces, saved, item->at, values, why);
}

static int check_floats(void *arg, uint64_t offset, const void *bytes, size_t count,
                        struct why *why)
{
    struct state_item part = *(const struct state_item *)arg;
    part.at.begin += offset / sizeof(float);
    part.at.end = part.at.begin + count / sizeof(float);
    return optimizer_check_item(&part, bytes, why);
}

int state_check_pieces(const pieces_t *pieces, const struct state_item *item, struct why *why,
                       struct hash *ret_leaves)
{
    const struct pieces_item *saved = pieces_find(pieces, item->name);
    struct state_item checked = *item;
    int rc = check_item(saved, item, interval_length(item->at), pieces_meta(pieces)->workers, why);
    if (rc == 0) rc = pieces_leaves(pieces, saved, why, ret_leaves);
    // mutant: saves: the moments of a save are taken unread
    return rc < 0 ? rc
                  : pieces_walk(pieces, saved, item->values ? NULL : check_floats, &checked, why);
}

struct save_view {
    struct state_view view;
    pieces_t *pieces;
    struct state_cut cut;
    const struct pieces_item *items[STATE_ITEMS_MAX];
};

// The part of item `number` that lies in the `count` bytes at `offset` of the copy.
static int view_item(const struct save_view *self, uint32_t number, uint64_t offset, uint8_t *to,
                     size_t count, struct why *why)
{
    const uint64_t place = state_cut_place(&self->cut, number);
    const struct interval has = { place, place + self->cut.bytes[number] };
    const struct interval part = interval_meet(has, (struct interval){ offset, offset + count });
    if (interval_empty(part)) return 0;
    const uint32_t size = self->items[number]->element_bytes;
    ensure((part.begin - place) % size == 0 && (part.end - place) % size == 0);
    const struct interval elements = { (part.begin - place) / size, (part.end - place) / size };
    return pieces_read(self->pieces, self->items[number], elements, to + (part.begin - offset),
                       why);
}

static int view_get(const struct state_view *view, uint64_t offset, void *to, size_t count,
                    struct why *why)
{
    const struct save_view *self = (const struct save_view *)view;
    int rc = 0;
    for (uint32_t i = 0; i < self->cut.count && rc == 0; i++)
        rc = view_item(self, i, offset, to, count, why);
    return rc;
}

static void view_destroy(struct state_view *view)
{
    struct save_view *self = (struct save_view *)view;
    pieces_close(&self->pieces);
    free(self);
}

int state_view_pieces(pieces_t **pieces_p, optimizer_t *optimizer, const struct state_cut *cut,
                      struct why *why, struct state_copy *ret_copy)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(optimizer, items);
    const uint32_t workers = pieces_meta(*pieces_p)->workers;
    struct save_view *self = malloc(sizeof *self);
    uint32_t number = 0;
    int rc = 0;
    if (!self) return why_set(why, FAULT_MEMORY, "no memory for the view of a save");
    *self = (struct save_view){ { view_get, view_destroy }, *pieces_p, *cut, { NULL } };
    self->items[number++] = pieces_find(self->pieces, STATE_PARAMETERS);
    if (!self->items[0])
        rc = why_set(why, FAULT_NOT_FOUND, "the save has no item '" STATE_PARAMETERS "'");
    // The digest of a save does not have the names of its items: another optimizer's may be there
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (items[i].tag == TAG_DROP) continue;
        ensure(number < cut->count);
        self->items[number] = pieces_find(self->pieces, items[i].name);
        // mutant: pieces: a view is of items that the save does not have
        rc = check_item(self->items[number], &items[i], cut->bytes[number] / items[i].element_bytes,
                        workers, why);
        number++;
    }
    if (rc < 0) {
        free(self);
        return rc;
    }
    ensure(number == cut->count);
    *pieces_p = NULL;
    *ret_copy = no_state_copy;
    ret_copy->view = &self->view;
    return 0;
}

int state_read_pieces(optimizer_t *optimizer, enum optimizer_scope scope, const pieces_t *pieces,
                      struct why *why, bool *ret_is_fresh)
{
    struct tags_item tagged[OPTIMIZER_ITEMS_MAX];
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    struct tags tags;
    void *values[OPTIMIZER_ITEMS_MAX];
    const uint32_t workers = pieces_meta(pieces)->workers;
    *ret_is_fresh = false;
    tags_init(&tags, tagged, OPTIMIZER_ITEMS_MAX);
    const size_t count = optimizer_items(optimizer, items);
    int rc = optimizer_forget(optimizer, why);
    if (rc == 0) rc = optimizer_pull(optimizer, scope, &tags, why, values);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (!values[i]) continue;
        // mutant: pieces: what was a member's own goes to another one
        if (items[i].tag == TAG_DROP && workers != 1) {
            *ret_is_fresh = true;
            continue;
        }
        const struct pieces_item *saved = pieces_find(pieces, items[i].name);
        rc = check_item(saved, &items[i], tagged[i].elements, workers, why);
        // mutant: pieces: each worker takes the first share of the moments
        if (rc == 0) rc = pieces_read(pieces, saved, items[i].at, values[i], why);
    }
    if (rc == 0) return optimizer_push(optimizer, scope, why);
    optimizer_forget(optimizer, NULL); // The first fault is the one to report
    return rc;
}
