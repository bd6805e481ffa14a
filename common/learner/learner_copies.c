// learner_copies -- first the generations, then a copy, then its hashes.

#include "common/learner/learner_copies.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/learner/state.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t learner_copies_bytes(const struct learner *self, uint32_t buddies, uint32_t owners)
{
    const uint32_t held = buddies < owners ? buddies + 1 : owners;
    return 2 * held * ((state_cut_room(&self->cut) + owners - 1) / owners);
}

// ---- generations --------------------------------------------------------------------------------

static void wait_for_hashes(struct learner_copies *copies)
{
    if (!copies->is_hashing) return;
    ensure(pthread_join(copies->thread, NULL) == 0);
    copies->is_hashing = false;
}

void learner_copies_forget(struct learner_copies *copies)
{
    wait_for_hashes(copies);
    blob_share_release(&copies->filled);
    copies->step = copies->in = 0;
    copies->is_hashed = false;
}

void learner_copies_prepare(struct learner *self, struct learner_copies *copies,
                            struct learner_owner of, enum share_rest rest)
{
    struct why why = { 0 };
    blob_store_drop_shares(self->options->store, copies->kept_in ? copies->kept_step : UINT64_MAX,
                           copies->step ? copies->step : UINT64_MAX);
    if (copies->step) return;
    if (of.owners < 2 || of.owner == OWNER_NONE) {
        blob_share_release(&copies->next);
        return;
    }
    if (!copies->next &&
        blob_store_new_share(self->options->store, &self->cut, &why, &copies->next) < 0) {
        log_line(
            LOG_ERR,
            "memory.impossible reason=\"%s\"; training goes on without such copies until there is "
            "room here",
            why.text);
        return;
    }
    const struct share_list list = share_list_of(&self->cut, of.owner, of.owners, rest);
    for (uint32_t i = 0; i < list.count; i++) blob_share_touch(copies->next, list.runs[i]);
}

bool learner_copies_is_later(const struct learner_copies *copies, uint64_t in, uint64_t step)
{
    // mutant: keeping: of two saves of a window the older one counts as the newest
    return in > copies->kept_in || (in == copies->kept_in && step > copies->kept_step);
}

void learner_copies_recorded(struct learner_copies *copies, uint64_t in, uint64_t step)
{
    if (copies->step == step && copies->in == in) {
        learner_copies_forget(copies);
        copies->kept_step = step, copies->kept_in = in;
    } else if (learner_copies_is_later(copies, in, step))
        copies->kept_in = 0; // We have no copy of it
}

void learner_copies_close(struct learner_copies *copies)
{
    learner_copies_forget(copies);
    blob_share_release(&copies->next);
    free(copies->hashes);
    copies->hashes = NULL;
}

// ---- a copy -------------------------------------------------------------------------------------

// Where the items of the state lie now, in the order of the cut.
static int find_items(struct learner *self, struct why *why, const void *ret_items[STATE_ITEMS_MAX])
{
    struct state state;
    uint32_t count = 1;
    const int rc = state_save(self->optimizer, OPTIMIZER_SHARED, why, &state);
    ret_items[0] = self->params;
    for (size_t i = 0; rc == 0 && i < state.tags.count; i++)
        if (state.values[i]) ret_items[count++] = state.values[i];
    ensure(rc < 0 || count == self->cut.count);
    return rc;
}

// The bytes of a run of leaves, all of one item.
static size_t run_bytes(const struct state_cut *cut, struct interval run)
{
    const struct state_leaf last = state_cut_leaf(cut, run.end - 1);
    return (size_t)(interval_length(run) - 1) * STATE_LEAF_BYTES + last.bytes;
}

static void copy_runs(const struct learner *self, const struct share_list *list,
                      const void *const *items, uint8_t *bytes)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct interval run = list->runs[i];
        if (interval_empty(run)) continue;
        const struct state_leaf first = state_cut_leaf(&self->cut, run.begin);
        memcpy(bytes + run.begin * STATE_LEAF_BYTES,
               (const uint8_t *)items[first.item] + first.offset, run_bytes(&self->cut, run));
    }
}

static void log_failed(uint64_t step, const struct why *why)
{
    log_line(LOG_ERR,
             "memory.failed step=%" PRIu64 " reason=\"%s\"; training goes on without "
             "this copy",
             step, why->text);
}

static void *hash_copy(void *arg)
{
    struct learner_copies *copies = arg;
    struct learner *self = copies->learner;
    struct hash *at = copies->hashes;
    uint8_t *bytes = blob_share_bytes(copies->filled);
    struct why why = { 0 };
    for (uint32_t i = 0; i < copies->list.count; i++) {
        const struct interval run = copies->list.runs[i];
        if (interval_empty(run)) continue;
        state_item_fill(bytes + run.begin * STATE_LEAF_BYTES, run_bytes(&self->cut, run), at);
        at += interval_length(run);
    }
    blob_store_put_share(self->options->store, &copies->filled, copies->step, &copies->list,
                         copies->hashes);
    if (learner_keep(self, copies->hashes, (size_t)(at - copies->hashes) * HASH_BYTES, &why,
                     &copies->name) < 0)
        log_failed(copies->step, &why);
    else copies->is_ready = true;
    atomic_store(&copies->has_ended, true);
    worker_wake(self->worker);
    return NULL;
}

bool learner_copies_may_take(const struct learner_copies *copies)
{
    return copies->next && copies->step == 0;
}

static int take(struct learner *self, struct learner_copies *copies, uint64_t step, uint64_t in,
                struct why *why)
{
    const void *items[STATE_ITEMS_MAX];
    const uint64_t leaves = share_list_leaves(&copies->list);
    int rc = find_items(self, why, items);
    if (rc < 0) return rc;
    free(copies->hashes);
    copies->hashes = malloc((leaves + 1) * sizeof *copies->hashes);
    if (!copies->hashes) return why_set(why, FAULT_MEMORY, "%" PRIu64 " hashes", leaves);
    copy_runs(self, &copies->list, items, blob_share_bytes(copies->next));
    copies->filled = copies->next, copies->next = NULL;
    copies->is_ready = false;
    atomic_store(&copies->has_ended, false);
    copies->step = step;
    copies->in = in;
    copies->learner = self;
    copies->is_hashing = pthread_create(&copies->thread, NULL, hash_copy, copies) == 0;
    return copies->is_hashing ? 0 : why_set(why, FAULT_MEMORY, "no thread to hash the copy");
}

bool learner_copies_take(struct learner *self, struct learner_copies *copies,
                         struct learner_owner of, enum share_rest rest, uint64_t step, uint64_t in)
{
    const uint64_t from_us = clock_us();
    struct why why = { 0 };
    copies->list = share_list_of(&self->cut, of.owner, of.owners, rest);
    if (take(self, copies, step, in, &why) < 0) {
        log_failed(step, &why);
        return false;
    }
    log_line(LOG_INFO, "memory.copied step=%" PRIu64 " waited_us=%" PRIu64, step,
             clock_us() - from_us);
    return true;
}

// ---- its hashes ---------------------------------------------------------------------------------

bool learner_copies_look(struct learner_copies *copies)
{
    if (!copies->is_hashing || !atomic_load(&copies->has_ended)) return false;
    wait_for_hashes(copies);
    copies->is_hashed = copies->is_ready;
    return true;
}

bool learner_copies_have_ended(const struct learner_copies *copies)
{
    return copies->is_hashing && atomic_load(&copies->has_ended);
}

struct wire_blob learner_copies_list(struct learner *self, struct learner_copies *copies)
{
    const size_t bytes = (size_t)share_list_leaves(&copies->list) * HASH_BYTES;
    struct why why = { 0 };
    // A fault has been said when the list was put first
    learner_keep(self, copies->hashes, bytes, &why, &copies->name);
    return (struct wire_blob){ copies->name, (uint32_t)bytes };
}
