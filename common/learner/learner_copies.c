// learner_copies -- a member's part of memory saves (common/pace/windows/keeping.h): after every so many steps each
// member of the group copies its share of the state in memory. If one dies, the others fetch its share from its buddies.
//
// 1. A step is told by HAVE, which says whether the member's newest copy is not on record yet. All know the same of
//    each other when they apply the step, so all copy their shares behind it, or nobody does.
// 2. The share is copied: this is all that the steps wait for. A thread hashes the leaves of the copy, gives it to the
//    blob store, which serves them from then on, and puts the list of their hashes there as a blob.
// 3. HAVE names that list from then on. When those of all are known here, the core is told (LISTED). It has the lists
//    and the shares of our predecessors fetched, and the coordinator record that all is there.
// 4. When that is heard (KEPT, or the next window), the copies of the step before are dropped: their memory is for
//    those of the next one. So there are two generations at most, and the older is complete until the newer is.
//
// With parameter servers those copy that own the shares, and keep them for one another; the trainers go on.
//
// A window that begins behind a break drops what is not on record (`drops`). Copies are of whole leaves of the digest,
// as the shares are; what all members hold alike, each has in its copy.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/learner/learner_windows.h"
#include "common/learner/state.h"
#include "common/vector/share_list.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct wire_windows_config *config_of(const struct learner *self)
{
    return &self->window->config;
}

static bool are_on(const struct learner *self)
{
    return learner_shares_are_on(self) && self->options->trains &&
           config_of(self)->memory_every > 0;
}

// Of the window in hand.
static struct learner_owner owner_now(const struct learner *self)
{
    return learner_owner_in(self, &self->window->now->said);
}

// The first place that owns a share.
static uint32_t first_owner(const struct learner *self)
{
    return self->window->now->said.group_count - owner_now(self).owners;
}

static struct share_list list_of(const struct learner *self, uint32_t owner)
{
    return share_list_of(&self->cut, owner, owner_now(self).owners);
}

// Two generations of our share and those of our predecessors.
uint64_t learner_copies_memory(const struct learner *self, uint32_t members)
{
    const uint32_t others = config_of(self)->buddies,
                   held = others < members ? others + 1 : members;
    return are_on(self) ? 2 * held * ((state_cut_room(&self->cut) + members - 1) / members) : 0;
}

// ---- generations --------------------------------------------------------------------------------

static void wait_for_hashes(struct learner_copies *copies)
{
    if (!copies->is_hashing) return;
    ensure(pthread_join(copies->thread, NULL) == 0);
    copies->is_hashing = false;
}

static void forget_newest(struct learner_copies *copies)
{
    wait_for_hashes(copies);
    blob_share_release(&copies->filled);
    copies->step = copies->window = copies->listed = 0;
    copies->is_hashed = copies->told = false;
}

// Drops what is not needed any more, then takes room for the next copy and touches its pages: the step waits for a
// memcpy alone.
static void prepare(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    const struct learner_owner of = owner_now(self);
    struct why why = { 0 };
    blob_store_drop_shares(self->options->store,
                           copies->kept_window ? copies->kept_step : UINT64_MAX,
                           copies->step ? copies->step : UINT64_MAX);
    if (copies->step) return;
    // Nobody else would keep it, or there is nothing to keep
    if (of.owners < 2 || of.owner == OWNER_NONE) {
        blob_share_release(&copies->next);
        return;
    }
    if (!copies->next &&
        blob_store_new_share(self->options->store, &self->cut, &why, &copies->next) < 0) {
        log_line(LOG_ERR,
                 "memory.impossible reason=\"%s\"; training goes on, and no member copies until "
                 "there is room here",
                 why.text);
        return;
    }
    const struct share_list list = list_of(self, of.owner);
    for (uint32_t i = 0; i < list.count; i++) blob_share_touch(copies->next, list.runs[i]);
}

// Whether a memory save that is on record is a later one than ours. Several may be of one window.
static bool is_later(const struct learner_copies *copies, uint64_t window, uint64_t step)
{
    // mutant: keeping: of two saves of a window the older one counts as the newest
    return window > copies->kept_window ||
           (window == copies->kept_window && step > copies->kept_step);
}

void learner_copies_kept(struct learner *self, const struct wire_kept *said)
{
    struct learner_copies *copies = &self->window->copies;
    if (!are_on(self)) return;
    if (copies->step == said->step && copies->window == said->window) {
        forget_newest(copies);
        copies->kept_step = said->step, copies->kept_window = said->window;
    } else if (is_later(copies, said->window, said->step))
        copies->kept_window = 0; // We have no copy of it
    if (self->window->now) prepare(self);
}

void learner_copies_begin(struct learner *self, const struct wire_take_window *window)
{
    struct learner_copies *copies = &self->window->copies;
    if (!are_on(self)) return;
    if (window->kept_window)
        learner_copies_kept(self, &(struct wire_kept){ window->kept_window, window->kept_step });
    const bool same =
        copies->kept_window == window->kept_window && copies->kept_step == window->kept_step;
    // It may have been given before we heard of a newer save (seeds 50013, 6864)
    // mutant: keeping: a window that was given earlier drops the newest save
    if (!same && (window->drops || is_later(copies, window->kept_window, window->kept_step)))
        copies->kept_window = 0;
    // mutant: keeping: what is not on record outlives a break
    if (window->drops) forget_newest(copies);
    prepare(self);
}

void learner_copies_close(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    forget_newest(copies);
    blob_share_release(&copies->next);
    free(copies->hashes);
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

static void *hash_copy(void *arg)
{
    struct learner *self = arg;
    struct learner_copies *copies = &self->window->copies;
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
                     &copies->lists[copies->place]) < 0)
        log_line(LOG_ERR,
                 "memory.failed step=%" PRIu64 " reason=\"%s\"; training goes on, and no member "
                 "makes copies until the group breaks or ends",
                 copies->step, why.text);
    else copies->is_ready = true;
    atomic_store(&copies->has_ended, true);
    worker_wake(self->worker);
    return NULL;
}

static int take(struct learner *self, struct why *why)
{
    struct learner_copies *copies = &self->window->copies;
    const struct wire_take_window *window = &self->window->now->said;
    const void *items[STATE_ITEMS_MAX];
    int rc = find_items(self, why, items);
    if (rc < 0) return rc;
    copies->place = owner_now(self).owner;
    copies->list = list_of(self, copies->place);
    const uint64_t leaves = share_list_leaves(&copies->list);
    free(copies->hashes);
    copies->hashes = malloc((leaves + 1) * sizeof *copies->hashes);
    if (!copies->hashes) return why_set(why, FAULT_MEMORY, "%" PRIu64 " hashes", leaves);
    copy_runs(self, &copies->list, items, blob_share_bytes(copies->next));
    copies->filled = copies->next, copies->next = NULL;
    copies->is_ready = false;
    atomic_store(&copies->has_ended, false);
    copies->step = copies->copied = self->step;
    copies->window = copies->copied_window = window->number;
    copies->is_hashing = pthread_create(&copies->thread, NULL, hash_copy, self) == 0;
    return copies->is_hashing ? 0 : why_set(why, FAULT_MEMORY, "no thread to hash the copy");
}

void learner_copies_stepped(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    struct why why = { 0 };
    if (!are_on(self) || self->step % config_of(self)->memory_every != 0 || copies->somebody ||
        !copies->next)
        return;
    const uint64_t from_us = clock_us();
    if (take(self, &why) < 0)
        log_line(LOG_ERR,
                 "memory.failed step=%" PRIu64
                 " reason=\"%s\"; training goes on, and no member makes "
                 "copies until the group breaks or ends",
                 self->step, why.text);
    else
        log_line(LOG_INFO, "memory.copied step=%" PRIu64 " waited_us=%" PRIu64, self->step,
                 clock_us() - from_us);
}

// ---- what all say of theirs ---------------------------------------------------------------------

static void put_list(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    const uint64_t leaves = share_list_leaves(&copies->list);
    struct why why = { 0 };
    // A fault has been said when the list was put first
    learner_keep(self, copies->hashes, (size_t)leaves * HASH_BYTES, &why,
                 &copies->lists[copies->place]);
}

static void tell_listed(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    const uint32_t count = self->window->now ? owner_now(self).owners : 0;
    struct wire_blob lists[GROUP_MEMBERS_MAX];
    if (copies->told || !copies->is_hashed || count < 2 ||
        copies->listed != ((uint64_t)2 << (count - 1)) - 1)
        return;
    copies->told = true;
    // A late answer to an older question may have had the core forget a blob of the same bytes (seed 9917)
    put_list(self);
    for (uint32_t i = 0; i < count; i++) {
        const struct share_list list = list_of(self, i);
        lists[i] = (struct wire_blob){ copies->lists[i],
                                       (uint32_t)(share_list_leaves(&list) * HASH_BYTES) };
    }
    worker_answer(self->worker, FRAME_LISTED,
                  &(struct wire_listed){ .window = copies->window,
                                         .step = copies->step,
                                         .place = copies->place,
                                         .lists = lists,
                                         .lists_count = count });
}

void learner_copies_look(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    if (!copies->is_hashing || !atomic_load(&copies->has_ended)) return;
    wait_for_hashes(copies);
    if (!copies->is_ready) return;
    copies->is_hashed = true;
    copies->listed |= (uint64_t)1 << copies->place;
    tell_listed(self);
}

void learner_copies_step(struct learner *self)
{
    struct learner_copies *copies = &self->window->copies;
    copies->somebody = false;
}

void learner_copies_tell(struct learner *self, struct wire_have *have)
{
    struct learner_copies *copies = &self->window->copies;
    if (!are_on(self)) return;
    learner_copies_look(self); // The hashes are there after a few ms, the step takes longer
    const bool owns = owner_now(self).owner != OWNER_NONE;
    have->copying = owns && (copies->step > 0 || !copies->next);
    have->copy = copies->is_hashed ? copies->step : 0;
    if (copies->is_hashed) have->list = copies->lists[copies->place];
    copies->somebody |= have->copying;
}

void learner_copies_hear(struct learner *self, uint32_t from, const struct wire_have *have)
{
    struct learner_copies *copies = &self->window->copies;
    // mutant: keeping: a member whose copy is not on record is not waited for
    copies->somebody |= have->copying;
    // mutant: keeping: the list of another step is taken
    if (have->copy == 0 || have->copy != copies->step || from < first_owner(self)) return;
    const uint32_t owner = from - first_owner(self);
    copies->lists[owner] = have->list;
    copies->listed |= (uint64_t)1 << owner;
    tell_listed(self);
}
