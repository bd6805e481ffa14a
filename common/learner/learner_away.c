// learner_away -- all of the state is here, but memory has the parameters and our share of the moments alone: the moments
// of the others are away, in a copy (state_copy.h), which is a file where there is a disk for it. So the state of all
// takes 4 bytes a parameter, and not 12, at a group's beginning and end and while it is loaded.
//
//   group ends:  each moment, gathered in the gradient's vector ─▶ hashed ─▶ written to the copy
//   LOAD:        each moment, from peers, through it            ─▶ hashed ─▶ written, or it is the fetcher's copy
//                of a save: read once and compared with its hashes; the copy is a view of the save
//   pinned:      the parameters are added, unless it is a view, and the blob store has the copy
//   next group:  our share of each moment, read from the copy or from the pin, and compared with its hashes
//
// The gradient's vector is free at these times. What all members have alike and is no vector (a number of steps) stays in
// memory as well. With the first step that is applied the copy is of an earlier step, and is dropped.

#include "common/base/ensure.h"
#include "common/learner/learner_away.h"
#include "common/learner/state.h"
#include <inttypes.h>

bool learner_away_is_on(const struct learner *self)
{
    return self->options->trains && self->strategy && self->strategy->shares_state &&
           self->strategy->shares_state(self);
}

uint64_t learner_away_moments(struct learner *self, struct interval part)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    uint64_t bytes = 0;
    if (!learner_away_is_on(self)) return 0;
    for (size_t i = 0; i < count; i++)
        if (items[i].tag == TAG_RESHARD) bytes += interval_length(part) * items[i].element_bytes;
    return bytes;
}

void learner_away_drop(struct learner *self)
{
    if (self->has_moments) state_copy_free(&self->moments);
    self->away = self->has_moments = false;
}

// The leaves of item `number` of the cut, in the list of all.
static struct hash *leaves_of(const struct learner *self, uint32_t number)
{
    return self->leaves + state_cut_place(&self->cut, number) / STATE_LEAF_BYTES;
}

static int take_item(struct learner *self, const struct state_item *item, uint32_t number,
                     const struct learner_away_source *source, struct why *why)
{
    float *floats = compute_at(self->compute, COMPUTE_GRADIENT);
    void *values = item->values ? item->values : floats;
    if (source->check && !item->values)
        return source->check(item, source->arg, why, leaves_of(self, number));
    int rc = source->fill(self, item, number, values, source->arg, why);
    if (rc < 0) return rc;
    if (item->values) state_item_fill(values, self->cut.bytes[number], leaves_of(self, number));
    else {
        rc = optimizer_check_item(item, floats, why);
        if (rc == 0)
            rc = compute_leaves(self->compute, COMPUTE_GRADIENT, why, leaves_of(self, number));
    }
    if (rc < 0 || source->copy) return rc;
    return state_copy_put(&self->moments, state_cut_place(&self->cut, number), values,
                          self->cut.bytes[number], why);
}

int learner_away_take(struct learner *self, const struct learner_away_source *source,
                      struct why *why)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    uint32_t number = 1;
    int rc = 0;
    learner_away_drop(self);
    if (source->copy) self->moments = *source->copy, *source->copy = no_state_copy;
    else
        rc = blob_store_new_copy(self->options->store, state_cut_room(&self->cut), why,
                                 &self->moments);
    if (rc < 0) return rc;
    self->has_moments = true;
    for (size_t i = 0; i < count && rc == 0; i++)
        if (items[i].tag != TAG_DROP) rc = take_item(self, &items[i], number++, source, why);
    ensure(rc < 0 || number == self->cut.count);
    if (rc < 0) learner_away_drop(self);
    else self->away = true;
    return rc;
}

// The part of the item, from the copy or from the pin.
static int read_part(struct learner *self, uint64_t place, void *to, size_t bytes, struct why *why)
{
    return self->has_moments
               ? state_copy_get(&self->moments, place, to, bytes, why)
               : blob_store_pinned_part(self->options->store, &self->digest, place, bytes, why, to);
}

static int check_part(const struct learner *self, uint64_t place, const void *values, size_t bytes,
                      struct why *why)
{
    const uint64_t count = state_item_leaves(bytes);
    struct hash leaf;
    for (uint64_t i = 0; i < count; i++) {
        const size_t at = (size_t)i * STATE_LEAF_BYTES;
        const size_t left = bytes - at < STATE_LEAF_BYTES ? bytes - at : STATE_LEAF_BYTES;
        state_item_fill((const uint8_t *)values + at, left, &leaf);
        // mutant: away: moments that have changed on the disk are taken
        if (!hash_equal(&leaf, &self->leaves[place / STATE_LEAF_BYTES + i]))
            return why_set(why, FAULT_CORRUPT, "the copy of the moments has changed on the disk");
    }
    return 0;
}

int learner_away_read(struct learner *self, struct interval part, struct why *why)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    uint32_t number = 1;
    int rc = 0;
    learner_pin_wait(self);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (items[i].tag == TAG_DROP) continue;
        const uint64_t place = state_cut_place(&self->cut, number++) + part.begin * sizeof(float);
        const size_t bytes = (size_t)interval_length(part) * sizeof(float);
        if (items[i].tag != TAG_RESHARD || bytes == 0) continue;
        float *vector = compute_at(self->compute, items[i].vector);
        compute_release(self->compute, items[i].vector, part);
        rc = read_part(self, place, vector + part.begin, bytes, why);
        if (rc == 0) rc = check_part(self, place, vector + part.begin, bytes, why);
    }
    return rc;
}
