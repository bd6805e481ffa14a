// learner_away -- all of the state is here, but a trainer's memory has the parameters and our share of the moments alone: the
// moments of the others are away, in a copy (state_copy.h), which is a file where there is a disk for it. So the state of all
// takes 4 bytes a parameter, and not 12, at a group's beginning and end and while it is loaded. A parameter server has
// no use for the parameters of the others either: they are away as well, and its memory has its share of all.
//
//   group ends:  each vector, gathered piece by piece ─▶ hashed ─▶ written to the copy
//   LOAD:        from peers: the fetcher's copy, read once and hashed
//                of a save: read once and compared with its hashes; the copy is a view of the save
//                of a server, from elsewhere: from memory, once
//   pinned:      the parameters are added, if they are not there, and the blob store has the copy
//   next group:  our share of each vector, read from the copy or from the pin, and compared with its hashes
//
// What all members have alike and is no vector (a number of steps) stays in memory as well. With the first step that is
// applied the copy is of an earlier step, and is dropped.

#include "common/base/ensure.h"
#include "common/learner/learner_away.h"
#include "common/kernel/digest.h"
#include "common/learner/state.h"
#include <inttypes.h>

bool learner_away_is_on(const struct learner *self)
{
    return self->options->trains && self->strategy && self->strategy->shares_state &&
           self->strategy->shares_state(self);
}

bool learner_away_takes_parameters(const struct learner *self)
{
    return self->options->serves && learner_away_is_on(self);
}

uint64_t learner_away_bytes(struct learner *self, struct interval part)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    uint64_t bytes = 0;
    if (!learner_away_is_on(self)) return 0;
    for (size_t i = 0; i < count; i++)
        if (items[i].tag == TAG_RESHARD) bytes += interval_length(part) * items[i].element_bytes;
    if (learner_away_takes_parameters(self)) bytes += 2 * interval_length(part) * sizeof(float);
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

int learner_away_put(const struct learner_away_item *to, struct interval at, const float *values,
                     struct why *why)
{
    struct learner *self = to->learner;
    const uint64_t place = state_cut_place(&self->cut, to->number) + at.begin * sizeof(float);
    const uint64_t bytes = interval_length(at) * sizeof(float);
    ensure(at.begin * sizeof(float) % STATE_LEAF_BYTES == 0);
    if (to->item) {
        struct state_item part = *to->item;
        part.at = at;
        const int rc = optimizer_check_item(&part, values, why);
        if (rc < 0) return rc;
    }
    digest_leaves(values, interval_length(at), self->pool, self->leaves + place / STATE_LEAF_BYTES);
    return to->is_written ? state_copy_put(&self->moments, place, values, bytes, why) : 0;
}

static int take_item(const struct learner_away_item *to, const struct learner_away_source *source,
                     struct why *why)
{
    struct learner *self = to->learner;
    void *values = to->item ? to->item->values : NULL;
    const uint64_t bytes = self->cut.bytes[to->number];
    if (source->check && to->item && !values)
        return source->check(to->item, source->arg, why, leaves_of(self, to->number));
    if (!values) return source->give(to, source->arg, why);
    const int rc = source->fill(to, values, source->arg, why);
    if (rc < 0) return rc;
    state_item_fill(values, bytes, leaves_of(self, to->number));
    return to->is_written ? state_copy_put(&self->moments, state_cut_place(&self->cut, to->number),
                                           values, bytes, why)
                          : 0;
}

static int take_items(struct learner *self, const struct learner_away_source *source,
                      struct why *why)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    struct learner_away_item to = { .learner = self, .is_written = !source->copy };
    int rc = learner_away_takes_parameters(self) ? take_item(&to, source, why) : 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (items[i].tag == TAG_DROP) continue;
        to.number++;
        to.item = &items[i];
        rc = take_item(&to, source, why);
    }
    ensure(rc < 0 || to.number + 1 == self->cut.count);
    return rc;
}

int learner_away_take(struct learner *self, const struct learner_away_source *source,
                      struct why *why)
{
    int rc = 0;
    learner_away_drop(self);
    if (source->copy) self->moments = *source->copy, *source->copy = no_state_copy;
    else
        rc = blob_store_new_copy(self->options->store, state_cut_room(&self->cut), why,
                                 &self->moments);
    if (rc < 0) return rc;
    self->has_moments = true;
    rc = take_items(self, source, why);
    if (rc < 0) learner_away_drop(self);
    else self->away = true;
    return rc;
}

// ---- from memory ------------------------------------------------------------------------------------

static int give_vector(const struct learner_away_item *to, void *arg, struct why *why)
{
    struct learner *self = to->learner;
    const struct interval all = { 0, self->floats };
    (void)arg;
    return learner_away_put(
        to, all, to->item ? compute_at(self->compute, to->item->vector) : self->params, why);
}

static int keep_values(const struct learner_away_item *to, void *values, void *arg, struct why *why)
{
    (void)to, (void)values, (void)arg, (void)why;
    return 0; // They are where the optimizer has them
}

void learner_away_release(struct learner *self, struct interval part)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    if (learner_away_takes_parameters(self)) {
        compute_release(self->compute, COMPUTE_PARAMETERS, part);
        compute_release(self->compute, COMPUTE_GRADIENT, part);
    }
    for (size_t i = 0; i < count; i++)
        if (items[i].tag == TAG_RESHARD) compute_release(self->compute, items[i].vector, part);
}

int learner_away_move(struct learner *self, struct why *why)
{
    const struct learner_away_source source = { .give = give_vector, .fill = keep_values };
    const int rc = learner_away_take(self, &source, why);
    if (rc == 0) learner_away_release(self, (struct interval){ 0, 0 });
    return rc;
}

// ---- our share --------------------------------------------------------------------------------------

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
            return why_set(why, FAULT_CORRUPT, "the copy of the state has changed on the disk");
    }
    return 0;
}

static int read_vector(struct learner *self, uint32_t number, float *vector, struct interval part,
                       struct why *why)
{
    const uint64_t place = state_cut_place(&self->cut, number) + part.begin * sizeof(float);
    const size_t bytes = (size_t)interval_length(part) * sizeof(float);
    int rc = read_part(self, place, vector + part.begin, bytes, why);
    if (rc == 0) rc = check_part(self, place, vector + part.begin, bytes, why);
    return rc;
}

int learner_away_read(struct learner *self, struct interval part, struct why *why)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self->optimizer, items);
    uint32_t number = 1;
    int rc = 0;
    learner_pin_wait(self);
    learner_away_release(self, part);
    if (interval_empty(part)) return 0;
    // mutant: away: a server goes on with the parameters of another share
    if (learner_away_takes_parameters(self)) rc = read_vector(self, 0, self->params, part, why);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (items[i].tag == TAG_DROP) continue;
        if (items[i].tag == TAG_RESHARD)
            rc = read_vector(self, number, compute_at(self->compute, items[i].vector), part, why);
        number++;
    }
    return rc;
}
