// blob_store_pins -- a pin is a copy of the state with a hash table from leaf hash to leaf, so that a
// leaf is served without a search. If the copy is in a file, the part that is asked for is read into memory of
// its own, which lives as long as its references. A leaf from a file is hashed before it is served, since a peer
// that gets a wrong one takes us for a liar. The stage holds one state: the fetcher puts it there and the
// learner takes it.

#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/bulk/blob_store_inside.h"
#include "common/crypto/merkle.h"
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

static void free_pin(struct blob_held *held)
{
    struct pin *pin = (struct pin *)held;
    state_copy_free(&pin->copy);
    free(pin->leaves);
    free(pin->slots);
    free(pin);
}

// ---- leaves by hash -------------------------------------------------------------------------

uint32_t *blob_store_slot(const struct pin *pin, const struct hash *leaf)
{
    for (uint64_t at = hash_to_number(leaf);; at++) {
        uint32_t *place = &pin->slots[at & (pin->slot_count - 1)];
        if (*place == 0 || hash_equal(&pin->leaves[*place - 1], leaf)) return place;
    }
}

static void index_leaves(struct pin *pin)
{
    for (size_t i = 0; i < pin->leaf_count; i++)
        *blob_store_slot(pin, &pin->leaves[i]) = (uint32_t)i + 1;
}

struct blob_ref blob_store_refer(struct pin *pin, const void *bytes, size_t count)
{
    blob_held_add(&pin->held);
    pin->held.store->refs++;
    return (struct blob_ref){ bytes, count, &pin->held };
}

static bool find_leaf_in(struct pin *pin, const struct hash *hash, struct blob_ref *ret_ref,
                         uint64_t *ret_place)
{
    const uint32_t found = *blob_store_slot(pin, hash);
    if (!found) return false;
    *ret_place = (uint64_t)(found - 1) * STATE_LEAF_BYTES;
    *ret_ref = blob_store_refer(pin, pin->copy.bytes ? pin->copy.bytes + *ret_place : NULL,
                                state_cut_leaf(&pin->state.cut, found - 1).bytes);
    return true;
}

bool blob_store_find_leaf(struct blob_store *self, const struct hash *hash,
                          struct blob_ref *ret_ref, uint64_t *ret_place)
{
    for (uint32_t i = 0; i < self->pin_count; i++)
        if (find_leaf_in(self->pins[i], hash, ret_ref, ret_place)) return true;
    for (uint32_t i = 0; i < self->share_count; i++)
        if (find_leaf_in(&self->shares[i]->pin, hash, ret_ref, ret_place)) return true;
    return false;
}

uint64_t blob_store_pin_bytes(const struct blob_store *self)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < self->pin_count; i++) {
        const struct pin *pin = self->pins[i];
        const uint64_t bytes =
            state_cut_room(&pin->state.cut) + pin->leaf_count * sizeof *pin->leaves;
        if (bytes > most) most = bytes;
    }
    return most;
}

// ---- parts of copies in files ---------------------------------------------------------------

struct part {
    struct blob_held held;
    uint8_t bytes[];
};

static void free_part(struct blob_held *held) { free(held); }

// Turns a reference to a pin in a file into one to bytes that were read from it. After a fault it is released.
static int read_part(struct blob_store *self, uint64_t place, struct why *why, struct blob_ref *ref)
{
    const struct pin *pin = (const struct pin *)ref->held;
    struct part *part = malloc(sizeof *part + ref->count);
    int rc = part ? state_copy_get(&pin->copy, place, part->bytes, ref->count, why)
                  : why_set(why, FAULT_MEMORY, "%zu bytes of a pin", ref->count);
    if (rc < 0) {
        free(part);
        blob_store_release(ref);
        return rc;
    }
    const size_t count = ref->count;
    part->held = (struct blob_held){ self, 1, free_part };
    blob_store_release(ref);
    blob_store_lock(self);
    self->refs++;
    blob_store_unlock(self);
    *ref = (struct blob_ref){ part->bytes, count, &part->held };
    return 0;
}

int blob_store_read_leaf(struct blob_store *self, const struct hash *hash, uint64_t place,
                         struct why *why, struct blob_ref *ref)
{
    const int rc = read_part(self, place, why, ref);
    if (rc < 0) return rc;
    const struct hash is = merkle_leaf(ref->bytes, ref->count);
    if (hash_equal(&is, hash)) return 0;
    blob_store_release(ref);
    return why_set(why, FAULT_CORRUPT, "a leaf of a pin has changed on the disk%s%s",
                   self->dir ? " of " : "", self->dir ? self->dir : "");
}

// ---- pins -----------------------------------------------------------------------------------

static void say_in_memory(const struct blob_store *self, uint64_t bytes, const char *reason)
{
    log_line(LOG_WARNING,
             "pins.in_memory bytes=%" PRIu64 " reason=\"%s\"; free some of the disk of %s", bytes,
             reason, self->dir);
}

int blob_store_new_copy(struct blob_store *self, uint64_t bytes, struct why *why,
                        struct state_copy *ret_copy)
{
    struct why said = { 0 };
    blob_store_lock(self);
    const int dir_fd = self->pins_in_files ? self->dir_fd : -1;
    blob_store_unlock(self);
    if (dir_fd >= 0 && state_copy_new(dir_fd, bytes, &said, ret_copy) == 0) return 0;
    if (dir_fd >= 0) say_in_memory(self, bytes, said.text);
    return state_copy_new(-1, bytes, why, ret_copy);
}

static int fill_copy(const struct state_copy *copy, const struct state_cut *cut,
                     const void *const *items, struct why *why)
{
    int rc = 0;
    for (uint32_t i = 0; i < cut->count && rc == 0; i++)
        if (cut->bytes[i])
            rc = state_copy_put(copy, state_cut_place(cut, i), items[i], cut->bytes[i], why);
    return rc;
}

// If the disk fails while the copy is written, the copy is made in memory instead.
static int make_copy(struct blob_store *self, const struct state_cut *cut, const void *const *items,
                     struct why *why, struct state_copy *ret_copy)
{
    struct why said = { 0 };
    const uint64_t bytes = state_cut_room(cut);
    int rc = blob_store_new_copy(self, bytes, why, ret_copy);
    if (rc < 0 || fill_copy(ret_copy, cut, items, &said) == 0) return rc;
    state_copy_free(ret_copy);
    say_in_memory(self, bytes, said.text);
    rc = state_copy_new(-1, bytes, why, ret_copy);
    return rc == 0 ? fill_copy(ret_copy, cut, items, why) : rc;
}

// Without its copy.
static struct pin *new_pin(struct blob_store *self, const struct blob_snapshot *state,
                           const struct hash *leaves, struct why *why)
{
    struct pin *pin = calloc(1, sizeof *pin);
    if (!pin) {
        why_set(why, FAULT_MEMORY, "a pin");
        return NULL;
    }
    pin->copy = no_state_copy;
    pin->held = (struct blob_held){ self, 1, free_pin };
    pin->state = *state;
    pin->leaf_count = state_cut_leaves(&state->cut);
    pin->slot_count = 2;
    while (pin->slot_count < 2 * pin->leaf_count) pin->slot_count *= 2;
    pin->leaves = malloc(pin->leaf_count * sizeof *pin->leaves + 1);
    pin->slots = calloc(pin->slot_count, sizeof *pin->slots);
    if (pin->leaves && pin->slots) {
        memcpy(pin->leaves, leaves, pin->leaf_count * sizeof *leaves);
        index_leaves(pin);
        return pin;
    }
    why_set(why, FAULT_MEMORY, "%zu leaves", pin->leaf_count);
    free_pin(&pin->held);
    return NULL;
}

static struct pin *make_pin(struct blob_store *self, const struct blob_snapshot *state,
                            const void *const *items, const struct hash *leaves, struct why *why)
{
    struct pin *pin = new_pin(self, state, leaves, why);
    if (!pin || make_copy(self, &state->cut, items, why, &pin->copy) == 0) return pin;
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

static bool is_on_disk(const struct blob_store *self)
{
    struct statfs space;
    return self->dir_fd >= 0 && fstatfs(self->dir_fd, &space) == 0 && space.f_type != TMPFS_MAGIC &&
           space.f_type != RAMFS_MAGIC;
}

bool blob_store_plan_pins(blob_store_t *self, uint32_t pins_max, bool in_files)
{
    ensure(pins_max >= 1 && pins_max <= BLOB_PINS_MAX);
    in_files = in_files && is_on_disk(self);
    blob_store_lock(self);
    self->pins_max = pins_max;
    self->pins_in_files = in_files;
    while (self->pin_count > pins_max) {
        struct pin *gone = take_out(self, self->pin_count - 1);
        blob_store_unlock(self);
        if (gone) free_pin(&gone->held);
        blob_store_lock(self);
    }
    blob_store_unlock(self);
    return in_files;
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

bool blob_store_pin_again(blob_store_t *self, const struct blob_snapshot *state)
{
    blob_store_lock(self);
    const uint32_t same = index_of(self, state->step);
    const bool is_here =
        same < self->pin_count && hash_equal(&self->pins[same]->state.digest, &state->digest);
    if (is_here) put_first(self, self->pins[same], same);
    blob_store_unlock(self);
    return is_here;
}

// True: this state is pinned already, and is the newest now. Else there is place for it, and the
// memory of what was there before is free.
static bool prepare(struct blob_store *self, const struct blob_snapshot *state)
{
    if (blob_store_pin_again(self, state)) return true;
    blob_store_lock(self);
    struct pin *gone = make_place(self, state->step);
    blob_store_unlock(self);
    if (gone) free_pin(&gone->held);
    return false;
}

static void put_pin(struct blob_store *self, struct pin *pin)
{
    blob_store_lock(self);
    struct pin *gone =
        make_place(self, pin->state.step); // Another thread may have pinned meanwhile
    put_first(self, pin, self->pin_count++);
    blob_store_unlock(self);
    if (gone) free_pin(&gone->held);
}

static void ensure_leaves(const struct blob_snapshot *state, const struct hash *leaves)
{
    const struct hash root = state_cut_root(&state->cut, leaves);
    ensure(hash_equal(&root, &state->digest) && state_cut_leaves(&state->cut) < UINT32_MAX);
}

int blob_store_pin(blob_store_t *self, const struct blob_snapshot *state, const void *const *items,
                   const struct hash *leaves, struct why *why)
{
    ensure_leaves(state, leaves);
    if (prepare(self, state)) return 0;
    struct pin *pin = make_pin(self, state, items, leaves, why);
    if (!pin) return why_wrap(why, FAULT_MEMORY, "step %" PRIu64 " is not pinned", state->step);
    put_pin(self, pin);
    return 0;
}

int blob_store_pin_copy(blob_store_t *self, const struct blob_snapshot *state,
                        struct state_copy *copy, const struct hash *leaves, struct why *why)
{
    ensure_leaves(state, leaves);
    if (prepare(self, state)) {
        state_copy_free(copy);
        return 0;
    }
    struct pin *pin = new_pin(self, state, leaves, why);
    if (!pin) return why_wrap(why, FAULT_MEMORY, "step %" PRIu64 " is not pinned", state->step);
    pin->copy = *copy, *copy = no_state_copy;
    put_pin(self, pin);
    return 0;
}

// Under the lock. The pin of the digest; with `shares` a share that is whole, too. NULL: there is none.
static struct pin *pin_of(const struct blob_store *self, const struct hash *digest, bool shares)
{
    for (uint32_t i = 0; i < self->pin_count; i++)
        if (hash_equal(&self->pins[i]->state.digest, digest)) return self->pins[i];
    for (uint32_t i = 0; i < self->share_count && shares; i++) {
        struct blob_share *share = self->shares[i];
        // mutant: shares: a list is served before it is whole
        if (share->is_whole && hash_equal(&share->pin.state.digest, digest)) return &share->pin;
    }
    return NULL;
}

// The pin of the digest, with one reference for the caller: to its leaf hashes, also those of a share, or to its copy.
static int find_pin(struct blob_store *self, const struct hash *digest, bool leaves,
                    struct why *why, struct blob_ref *ret_ref, struct state_cut *ret_cut)
{
    char name[HASH_HEX];
    blob_store_lock(self);
    struct pin *pin = pin_of(self, digest, leaves);
    if (pin) {
        *ret_ref = leaves ? blob_store_refer(pin, pin->leaves, pin->leaf_count * HASH_BYTES)
                          : blob_store_refer(pin, pin->copy.bytes, state_cut_room(&pin->state.cut));
        *ret_cut = pin->state.cut;
    }
    blob_store_unlock(self);
    return pin ? 0
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
    const int rc = find_pin(self, digest, false, why, ret_ref, ret_cut);
    return rc < 0 || ret_ref->bytes ? rc : read_part(self, 0, why, ret_ref);
}

int blob_store_pinned_part(blob_store_t *self, const struct hash *digest, uint64_t place,
                           size_t count, struct why *why, void *to)
{
    struct blob_ref ref;
    struct state_cut cut;
    int rc = find_pin(self, digest, false, why, &ref, &cut);
    if (rc < 0) return rc;
    ensure(place <= state_cut_room(&cut) && count <= state_cut_room(&cut) - place);
    rc = state_copy_get(&((const struct pin *)ref.held)->copy, place, to, count, why);
    blob_store_release(&ref);
    return rc;
}

int blob_store_pinned_params(blob_store_t *self, const struct hash *digest, uint64_t bytes,
                             struct why *why, void *to)
{
    struct blob_ref ref;
    struct state_cut cut;
    int rc = find_pin(self, digest, false, why, &ref, &cut);
    if (rc < 0) return rc;
    rc = cut.bytes[0] == bytes
             ? state_copy_get(&((const struct pin *)ref.held)->copy, 0, to, bytes, why)
             : why_set(why, FAULT_CORRUPT,
                       "the parameters of a pin have %" PRIu64 " bytes, the model's %" PRIu64,
                       cut.bytes[0], bytes);
    blob_store_release(&ref);
    return rc;
}

void blob_store_drop_pins(struct blob_store *self)
{
    while (self->pin_count > 0) {
        struct pin *pin = take_out(self, 0);
        if (pin) free_pin(&pin->held);
    }
    state_copy_free(&self->stage.copy);
}

// ---- the stage ------------------------------------------------------------------------------

void blob_store_stage(blob_store_t *self, const struct blob_snapshot *state,
                      struct state_copy *copy)
{
    blob_store_lock(self);
    struct state_copy old = self->stage.copy;
    self->stage.state = *state;
    self->stage.copy = *copy;
    self->stage.is_full = true;
    blob_store_unlock(self);
    state_copy_free(&old);
    *copy = no_state_copy;
}

bool blob_store_unstage(blob_store_t *self, uint64_t step, struct blob_snapshot *ret_state,
                        struct state_copy *ret_copy)
{
    blob_store_lock(self);
    const bool is_here = self->stage.is_full && self->stage.state.step == step;
    if (is_here) {
        *ret_state = self->stage.state;
        *ret_copy = self->stage.copy;
        self->stage.copy = no_state_copy;
        self->stage.is_full = false;
    }
    blob_store_unlock(self);
    return is_here;
}
