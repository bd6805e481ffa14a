// blob_store_pins -- a pin is a copy of the state with a hash table from leaf hash to leaf, so that a
// leaf is served without a search. The stage holds one state: the fetcher puts it there and the
// learner takes it.

#include "common/base/ensure.h"
#include "common/bulk/blob_store_inside.h"
#include "common/crypto/merkle.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_pin(struct blob_held *held)
{
    struct pin *pin = (struct pin *)held;
    free(pin->copy);
    free(pin->leaves);
    free(pin->slots);
    free(pin);
}

// ---- leaves by hash -------------------------------------------------------------------------

// The slot of a leaf. It holds the leaf's index + 1, or 0 if the pin does not have the leaf.
static uint32_t *slot(const struct pin *pin, const struct hash *leaf)
{
    for (uint64_t at = hash_to_number(leaf);; at++) {
        uint32_t *place = &pin->slots[at & (pin->slot_count - 1)];
        if (*place == 0 || hash_equal(&pin->leaves[*place - 1], leaf)) return place;
    }
}

static void index_leaves(struct pin *pin)
{
    for (size_t i = 0; i < pin->leaf_count; i++) *slot(pin, &pin->leaves[i]) = (uint32_t)i + 1;
}

static struct blob_ref refer(struct pin *pin, const void *bytes, size_t count)
{
    blob_held_add(&pin->held);
    pin->held.store->refs++;
    return (struct blob_ref){ bytes, count, &pin->held };
}

bool blob_store_find_leaf(struct blob_store *self, const struct hash *hash,
                          struct blob_ref *ret_ref)
{
    for (uint32_t i = 0; i < self->pin_count; i++) {
        struct pin *pin = self->pins[i];
        const uint32_t found = *slot(pin, hash);
        if (!found) continue;
        const uint64_t place = (uint64_t)(found - 1) * STATE_LEAF_BYTES;
        *ret_ref = refer(pin, pin->copy + place, state_cut_leaf(&pin->state.cut, found - 1).bytes);
        return true;
    }
    return false;
}

// ---- pins -----------------------------------------------------------------------------------

static struct pin *make_pin(struct blob_store *self, const struct blob_snapshot *state)
{
    struct pin *pin = calloc(1, sizeof *pin);
    if (!pin) return NULL;
    pin->held = (struct blob_held){ self, 1, free_pin };
    pin->state = *state;
    pin->leaf_count = state_cut_leaves(&state->cut);
    pin->slot_count = 2;
    while (pin->slot_count < 2 * pin->leaf_count) pin->slot_count *= 2;
    pin->copy = malloc(state_cut_room(&state->cut) + 1);
    pin->leaves = malloc(pin->leaf_count * sizeof *pin->leaves + 1);
    pin->slots = calloc(pin->slot_count, sizeof *pin->slots);
    if (pin->copy && pin->leaves && pin->slots) return pin;
    free_pin(&pin->held);
    return NULL;
}

// Under the lock. Takes pin i out of the list; returns it if the caller must free it, else NULL.
static struct pin *take_out(struct blob_store *self, uint32_t i)
{
    struct pin *pin = self->pins[i];
    memmove(&self->pins[i], &self->pins[i + 1], (--self->pin_count - i) * sizeof *self->pins);
    return blob_held_drop(&pin->held) ? pin : NULL;
}

void blob_store_limit_pins(blob_store_t *self, uint32_t pins_max)
{
    ensure(pins_max >= 1 && pins_max <= BLOB_PINS_MAX);
    blob_store_lock(self);
    self->pins_max = pins_max;
    while (self->pin_count > pins_max) {
        struct pin *gone = take_out(self, self->pin_count - 1);
        blob_store_unlock(self);
        if (gone) free_pin(&gone->held);
        blob_store_lock(self);
    }
    blob_store_unlock(self);
}

// Under the lock. The pin of this step; pin_count if there is none.
static uint32_t index_of(const struct blob_store *self, uint64_t step)
{
    uint32_t i = 0;
    while (i < self->pin_count && self->pins[i]->state.step != step) i++;
    return i;
}

// Under the lock. Takes out the pin of this step, else the oldest of a full list; as take_out.
static struct pin *make_place(struct blob_store *self, uint64_t step)
{
    const uint32_t same = index_of(self, step);
    if (same < self->pin_count) return take_out(self, same);
    return self->pin_count == self->pins_max ? take_out(self, self->pin_count - 1) : NULL;
}

// Under the lock. The first `i` pins move down by one, and `pin` becomes the newest.
static void put_first(struct blob_store *self, struct pin *pin, uint32_t i)
{
    memmove(&self->pins[1], &self->pins[0], i * sizeof *self->pins);
    self->pins[0] = pin;
}

// True: this state is pinned already, and is the newest now. Else there is place for it, and the
// memory of what was there before is free.
static bool prepare(struct blob_store *self, const struct blob_snapshot *state)
{
    struct pin *gone = NULL;
    blob_store_lock(self);
    const uint32_t same = index_of(self, state->step);
    const bool is_here =
        same < self->pin_count && hash_equal(&self->pins[same]->state.digest, &state->digest);
    if (is_here) put_first(self, self->pins[same], same);
    else gone = make_place(self, state->step);
    blob_store_unlock(self);
    if (gone) free_pin(&gone->held);
    return is_here;
}

int blob_store_pin(blob_store_t *self, const struct blob_snapshot *state, const void *const *items,
                   const struct hash *leaves, struct why *why)
{
    const struct state_cut *cut = &state->cut;
    const struct hash root = state_cut_root(cut, leaves);
    ensure(hash_equal(&root, &state->digest) && state_cut_leaves(cut) < UINT32_MAX);
    if (prepare(self, state)) return 0;
    struct pin *pin = make_pin(self, state), *gone;
    if (!pin)
        return why_set(why, FAULT_MEMORY,
                       "a copy of the %" PRIu64 " bytes of step %" PRIu64 "; not pinned",
                       state_cut_room(cut), state->step);
    for (uint32_t i = 0; i < cut->count; i++)
        if (cut->bytes[i]) memcpy(pin->copy + state_cut_place(cut, i), items[i], cut->bytes[i]);
    memcpy(pin->leaves, leaves, pin->leaf_count * sizeof *leaves);
    index_leaves(pin);
    blob_store_lock(self);
    gone = make_place(self, state->step); // Another thread may have pinned meanwhile
    put_first(self, pin, self->pin_count++);
    blob_store_unlock(self);
    if (gone) free_pin(&gone->held);
    return 0;
}

// The pin of the digest, with one reference for the caller.
static int find_pin(struct blob_store *self, const struct hash *digest, bool leaves,
                    struct why *why, struct blob_ref *ret_ref, struct state_cut *ret_cut)
{
    char name[HASH_HEX];
    bool found = false;
    blob_store_lock(self);
    for (uint32_t i = 0; i < self->pin_count && !found; i++) {
        struct pin *pin = self->pins[i];
        if (!(found = hash_equal(&pin->state.digest, digest))) continue;
        *ret_ref = leaves ? refer(pin, pin->leaves, pin->leaf_count * sizeof *pin->leaves)
                          : refer(pin, pin->copy, state_cut_room(&pin->state.cut));
        *ret_cut = pin->state.cut;
    }
    blob_store_unlock(self);
    return found ? 0
                 : why_set(why, FAULT_NOT_FOUND, "no parameters of digest %.16s are pinned",
                           hash_to_hex(digest, name));
}

int blob_store_leaves(blob_store_t *self, const struct hash *digest, struct why *why,
                      struct blob_ref *ret_ref, struct state_cut *ret_cut)
{
    return find_pin(self, digest, true, why, ret_ref, ret_cut);
}

int blob_store_pinned(blob_store_t *self, const struct hash *digest, struct why *why,
                      struct blob_ref *ret_ref, struct state_cut *ret_cut)
{
    return find_pin(self, digest, false, why, ret_ref, ret_cut);
}

void blob_store_drop_pins(struct blob_store *self)
{
    while (self->pin_count > 0) {
        struct pin *pin = take_out(self, 0);
        if (pin) free_pin(&pin->held);
    }
    free(self->stage.copy);
}

// ---- the stage ------------------------------------------------------------------------------

void blob_store_stage(blob_store_t *self, const struct blob_snapshot *state, uint8_t **copy_p)
{
    blob_store_lock(self);
    uint8_t *old = self->stage.copy;
    self->stage.state = *state;
    self->stage.copy = *copy_p;
    blob_store_unlock(self);
    free(old);
    *copy_p = NULL;
}

uint8_t *blob_store_unstage(blob_store_t *self, uint64_t step, struct blob_snapshot *ret_state)
{
    blob_store_lock(self);
    uint8_t *copy = self->stage.state.step == step ? self->stage.copy : NULL;
    if (copy) {
        *ret_state = self->stage.state;
        self->stage.copy = NULL;
    }
    blob_store_unlock(self);
    return copy;
}
