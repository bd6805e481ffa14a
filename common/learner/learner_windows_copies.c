// learner_windows_copies -- memory saves of a run in step (common/pace/windows/keeping.h): after every so many steps each
// member of the group copies its share of the state in memory (learner_copies.h). If one dies, the others fetch its share
// from its buddies.
//
// 1. A step is told by HAVE, which says whether the member's newest copy is not on record yet. All know the same of
//    each other when they apply the step, so all copy their shares behind it, or nobody does.
// 2. Once a copy is hashed, HAVE names its list. When those of all are known here, the core is told (LISTED). It has the
//    lists and the shares of our predecessors fetched, and the coordinator record that all is there.
// 3. When that is heard (KEPT, or the next window), the copies of the step before are dropped: their memory is for
//    those of the next one.
//
// With parameter servers those copy that own the shares, and keep them for one another; the trainers go on.
//
// A window that begins behind a break drops what is not on record (`drops`).

#include "common/learner/learner_windows.h"

static const struct wire_windows_config *config_of(const struct learner *self)
{
    return &self->window->config;
}

static struct learner_window_copies *own(struct learner *self) { return &self->window->copies; }

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

uint64_t learner_window_copies_memory(const struct learner *self, uint32_t members)
{
    return are_on(self) ? learner_copies_bytes(self, config_of(self)->buddies, members) : 0;
}

// ---- generations --------------------------------------------------------------------------------

static void forget(struct learner_window_copies *copies)
{
    learner_copies_forget(&copies->of);
    copies->listed = 0;
    copies->told = false;
}

static void recorded(struct learner_window_copies *copies, uint64_t window, uint64_t step)
{
    learner_copies_recorded(&copies->of, window, step);
    if (copies->of.step == 0) forget(copies);
}

static void prepare(struct learner *self)
{
    learner_copies_prepare(self, &own(self)->of, owner_now(self), SHARE_ALIKE);
}

void learner_window_copies_kept(struct learner *self, const struct wire_kept *said)
{
    if (!are_on(self)) return;
    recorded(own(self), said->window, said->step);
    if (self->window->now) prepare(self);
}

void learner_window_copies_begin(struct learner *self, const struct wire_take_window *window)
{
    struct learner_window_copies *copies = own(self);
    if (!are_on(self)) return;
    if (window->kept_window) recorded(copies, window->kept_window, window->kept_step);
    const bool same =
        copies->of.kept_in == window->kept_window && copies->of.kept_step == window->kept_step;
    // It may have been given before we heard of a newer save (seeds 50013, 6864)
    // mutant: keeping: a window that was given earlier drops the newest save
    if (!same && (window->drops ||
                  learner_copies_is_later(&copies->of, window->kept_window, window->kept_step)))
        copies->of.kept_in = 0;
    // mutant: keeping: what is not on record outlives a break
    if (window->drops) forget(copies);
    prepare(self);
}

// ---- a copy -------------------------------------------------------------------------------------

void learner_window_copies_stepped(struct learner *self)
{
    struct learner_window_copies *copies = own(self);
    if (!are_on(self) || self->step % config_of(self)->memory_every != 0 ||
        copies->somebody_waits || !copies->of.next)
        return;
    const struct learner_owner of = owner_now(self);
    const uint64_t window = self->window->now->said.number;
    copies->place = of.owner;
    if (!learner_copies_take(self, &copies->of, of, SHARE_ALIKE, self->step, window)) return;
    copies->copied = self->step;
    copies->copied_window = window;
}

// ---- what all say of theirs ---------------------------------------------------------------------

static void tell_listed(struct learner *self)
{
    struct learner_window_copies *copies = own(self);
    const uint32_t count = self->window->now ? owner_now(self).owners : 0;
    struct wire_blob lists[GROUP_MEMBERS_MAX];
    if (copies->told || !copies->of.is_hashed || count < 2 ||
        copies->listed != ((uint64_t)2 << (count - 1)) - 1)
        return;
    copies->told = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct share_list list = share_list_of(&self->cut, i, count, SHARE_ALIKE);
        lists[i] = (struct wire_blob){ copies->lists[i],
                                       (uint32_t)(share_list_leaves(&list) * HASH_BYTES) };
    }
    // A late answer to an older question may have had the core forget a blob of the same bytes (seed 9917)
    lists[copies->place] = learner_copies_list(self, &copies->of);
    worker_answer(self->worker, FRAME_LISTED,
                  &(struct wire_listed){ .window = copies->of.in,
                                         .step = copies->of.step,
                                         .place = copies->place,
                                         .lists = lists,
                                         .lists_count = count });
}

void learner_window_copies_look(struct learner *self)
{
    struct learner_window_copies *copies = own(self);
    if (!learner_copies_look(&copies->of) || !copies->of.is_hashed) return;
    copies->lists[copies->place] = copies->of.name;
    copies->listed |= (uint64_t)1 << copies->place;
    tell_listed(self);
}

void learner_window_copies_step(struct learner *self) { own(self)->somebody_waits = false; }

void learner_window_copies_tell(struct learner *self, struct wire_have *have)
{
    struct learner_window_copies *copies = own(self);
    if (!are_on(self)) return;
    learner_window_copies_look(self); // The hashes are there after a few ms, the step takes longer
    const bool owns = owner_now(self).owner != OWNER_NONE;
    have->copying = owns && (copies->of.step > 0 || !copies->of.next);
    have->copy = copies->of.is_hashed ? copies->of.step : 0;
    if (copies->of.is_hashed) have->list = copies->of.name;
    copies->somebody_waits |= have->copying;
}

void learner_window_copies_hear(struct learner *self, uint32_t from, const struct wire_have *have)
{
    struct learner_window_copies *copies = own(self);
    // mutant: keeping: a member whose copy is not on record is not waited for
    copies->somebody_waits |= have->copying;
    // mutant: keeping: the list of another step is taken
    if (have->copy == 0 || have->copy != copies->of.step || from < first_owner(self)) return;
    const uint32_t owner = from - first_owner(self);
    copies->lists[owner] = have->list;
    copies->listed |= (uint64_t)1 << owner;
    tell_listed(self);
}

void learner_window_copies_close(struct learner *self) { learner_copies_close(&own(self)->of); }
