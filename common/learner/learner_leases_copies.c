// learner_leases_copies -- memory saves of servers that apply pushes at once (common/pace/leases/copying.h).
//
//     TAKE_COPY   the share is copied as it is (learner_copies.h), between two pushes. COPY_TAKEN has its list, or none
//     GIVE_LISTS  the lists of all servers are known: they go to the core with ours (LISTED), which has the shares of our
//                 predecessors fetched
//     KEPT        it is on record: the copies before it go, and there is room for the next
//
// The servers copy at different moments. So what is not cut into shares, the number of optimizer steps, is that of the
// first one.

#include "common/base/log.h"
#include "common/learner/learner_leases.h"
#include <inttypes.h>

static struct learner_copies *own(struct learner *self) { return &self->lease->copies; }

static bool are_on(const struct learner *self)
{
    const struct wire_leases_config *config = &self->lease->config;
    return self->options->trains && config->memory_every > 0 && config->servers > 1;
}

static struct learner_owner owner_now(const struct learner *self)
{
    const struct wire_take_group *said = &self->lease->said;
    return (struct learner_owner){ said->place - learner_lease_trainers(self), said->servers };
}

uint64_t learner_lease_copies_memory(const struct learner *self)
{
    const struct wire_leases_config *config = &self->lease->config;
    return are_on(self) ? learner_copies_bytes(self, config->buddies, config->servers) : 0;
}

static bool serves(const struct learner *self)
{
    const struct learner_lease_work *work = self->lease;
    return work->said.number && !work->lost && !work->broken && learner_lease_serves(self);
}

static void prepare(struct learner *self)
{
    if (serves(self)) learner_copies_prepare(self, own(self), owner_now(self), SHARE_OF_FIRST);
}

// A group begins without copies: those of an earlier one that are not on record never will be.
void learner_lease_copies_begin(struct learner *self)
{
    struct learner_copies *copies = own(self);
    const struct wire_take_group *said = &self->lease->said;
    if (!are_on(self)) return;
    if (said->kept_in) learner_copies_recorded(copies, said->kept_in, said->kept_step);
    // mutant: copying: a copy that the run has given up stays in memory
    if (copies->kept_in != said->kept_in || copies->kept_step != said->kept_step)
        copies->kept_in = 0;
    learner_copies_forget(copies);
    prepare(self);
}

void learner_lease_copies_kept(struct learner *self, const struct wire_kept *said)
{
    if (!are_on(self)) return;
    learner_copies_recorded(own(self), said->window, said->step);
    prepare(self);
}

static void tell(struct learner *self, uint64_t number, uint64_t step, const struct wire_blob *list)
{
    struct wire_share_copied copied = { .number = number, .step = step };
    if (list) copied.list = *list;
    worker_answer(self->worker, FRAME_COPY_TAKEN, &copied);
}

void learner_lease_copy(struct learner *self, const struct wire_save_share *said)
{
    struct learner_copies *copies = own(self);
    const bool may = are_on(self) && serves(self) && said->number == self->lease->said.number;
    // A copy that is not on record has been given up, or no other would be asked for. Where there was no room before,
    // there may be some now
    if (may && (copies->step || !copies->next)) {
        learner_copies_forget(copies);
        prepare(self);
    }
    if (!may || !learner_copies_may_take(copies) ||
        !learner_copies_take(self, copies, owner_now(self), SHARE_OF_FIRST, said->step,
                             said->number)) {
        log_line(LOG_WARNING, "memory.not_copied step=%" PRIu64, said->step);
        tell(self, said->number, said->step, NULL);
    }
}

void learner_lease_copies_look(struct learner *self)
{
    struct learner_copies *copies = own(self);
    if (!learner_copies_look(copies)) return;
    const struct wire_blob list = learner_copies_list(self, copies);
    tell(self, copies->in, copies->step, copies->is_hashed ? &list : NULL);
}

// A late answer to an older question may have had the core forget a blob of the same bytes: ours is put once more.
void learner_lease_list(struct learner *self, const struct wire_keep_shares *said)
{
    struct learner_copies *copies = own(self);
    struct wire_blob lists[GROUP_MEMBERS_MAX];
    if (!serves(self) || !copies->is_hashed || copies->step != said->step ||
        copies->in != said->number || said->lists_count != self->lease->said.servers)
        return;
    const uint32_t place = owner_now(self).owner;
    for (uint32_t i = 0; i < said->lists_count; i++) { // How long each is follows from the state
        const struct share_list list =
            share_list_of(&self->cut, i, said->lists_count, SHARE_OF_FIRST);
        lists[i] = (struct wire_blob){ said->lists[i].hash,
                                       (uint32_t)(share_list_leaves(&list) * HASH_BYTES) };
    }
    lists[place] = learner_copies_list(self, copies);
    worker_answer(self->worker, FRAME_LISTED,
                  &(struct wire_listed){ .window = copies->in,
                                         .step = copies->step,
                                         .place = place,
                                         .lists = lists,
                                         .lists_count = said->lists_count });
}

bool learner_lease_copies_have_ended(const struct learner *self)
{
    return learner_copies_have_ended(&self->lease->copies);
}

void learner_lease_copies_close(struct learner *self) { learner_copies_close(own(self)); }
