// blob_store_pins -- a pin is a copy of the parameters with a hash table from leaf hash to leaf, so
// that a leaf is served without a search. The stage holds one vector: the fetcher puts it there and
// the learner takes it.

#include "common/base/ensure.h"
#include "common/bulk/blob_store_inside.h"
#include "common/crypto/merkle.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_pin(struct blob_held *held)
{
    struct pin *pin = (struct pin *)held;
    free(pin->params);
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
        const uint64_t first = (uint64_t)(found - 1) * DIGEST_LEAF_FLOATS,
                       rest = pin->floats - first;
        const size_t floats = rest < DIGEST_LEAF_FLOATS ? (size_t)rest : DIGEST_LEAF_FLOATS;
        *ret_ref = refer(pin, pin->params + first, floats * sizeof(float));
        return true;
    }
    return false;
}

// ---- pins -----------------------------------------------------------------------------------

static struct pin *make_pin(struct blob_store *self, uint64_t floats, size_t leaf_count)
{
    struct pin *pin = calloc(1, sizeof *pin);
    if (!pin) return NULL;
    pin->held = (struct blob_held){ self, 1, free_pin };
    pin->floats = floats;
    pin->leaf_count = leaf_count;
    pin->slot_count = 2;
    while (pin->slot_count < 2 * leaf_count) pin->slot_count *= 2;
    pin->params = malloc(floats * sizeof *pin->params + 1);
    pin->leaves = malloc(leaf_count * sizeof *pin->leaves + 1);
    pin->slots = calloc(pin->slot_count, sizeof *pin->slots);
    if (pin->params && pin->leaves && pin->slots) return pin;
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

int blob_store_pin(blob_store_t *self, uint64_t step, const struct hash *digest,
                   const float *params, uint64_t floats, const struct hash *leaves,
                   size_t leaf_count, struct why *why)
{
    ensure(floats < SIZE_MAX / sizeof *params && leaf_count < UINT32_MAX);
    ensure(leaf_count == digest_leaf_count((size_t)floats));
    const struct hash root = merkle_root(leaves, leaf_count);
    ensure(hash_equal(&root, digest));
    struct pin *pin = make_pin(self, floats, leaf_count), *gone = NULL;
    if (!pin)
        return why_set(why, FAULT_MEMORY,
                       "a copy of the %" PRIu64 " parameters of step %" PRIu64 "; not pinned",
                       floats, step);
    pin->step = step;
    pin->digest = *digest;
    memcpy(pin->params, params, floats * sizeof *params);
    memcpy(pin->leaves, leaves, leaf_count * sizeof *leaves);
    index_leaves(pin);
    blob_store_lock(self);
    uint32_t same = 0;
    while (same < self->pin_count && self->pins[same]->step != step) same++;
    if (same < self->pin_count) gone = take_out(self, same);
    else if (self->pin_count == BLOB_PINS_MAX) gone = take_out(self, self->pin_count - 1);
    memmove(&self->pins[1], &self->pins[0], self->pin_count++ * sizeof *self->pins);
    self->pins[0] = pin;
    blob_store_unlock(self);
    if (gone) free_pin(&gone->held);
    return 0;
}

int blob_store_leaves(blob_store_t *self, const struct hash *digest, struct why *why,
                      struct blob_ref *ret_ref, uint64_t *ret_floats)
{
    char name[HASH_HEX];
    bool found = false;
    blob_store_lock(self);
    for (uint32_t i = 0; i < self->pin_count && !found; i++) {
        struct pin *pin = self->pins[i];
        if (!(found = hash_equal(&pin->digest, digest))) continue;
        *ret_ref = refer(pin, pin->leaves, pin->leaf_count * sizeof *pin->leaves);
        *ret_floats = pin->floats;
    }
    blob_store_unlock(self);
    return found ? 0
                 : why_set(why, FAULT_NOT_FOUND, "no parameters of digest %.16s are pinned",
                           hash_to_hex(digest, name));
}

void blob_store_drop_pins(struct blob_store *self)
{
    while (self->pin_count > 0) {
        struct pin *pin = take_out(self, 0);
        if (pin) free_pin(&pin->held);
    }
    free(self->stage.vector);
}

// ---- the stage ------------------------------------------------------------------------------

void blob_store_stage(blob_store_t *self, uint64_t step, const struct hash *digest,
                      float **vector_p, uint64_t floats)
{
    blob_store_lock(self);
    float *old = self->stage.vector;
    self->stage.step = step;
    self->stage.digest = *digest;
    self->stage.vector = *vector_p;
    self->stage.floats = floats;
    blob_store_unlock(self);
    free(old);
    *vector_p = NULL;
}

float *blob_store_unstage(blob_store_t *self, uint64_t step, struct hash *ret_digest,
                          uint64_t *ret_floats)
{
    blob_store_lock(self);
    float *vector = self->stage.step == step ? self->stage.vector : NULL;
    if (vector) {
        *ret_digest = self->stage.digest;
        *ret_floats = self->stage.floats;
        self->stage.vector = NULL;
    }
    blob_store_unlock(self);
    return vector;
}
