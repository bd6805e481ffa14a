// The check of a step: the hash of those leaves of our state whose turn it is (state_cut.h). All members
// of a group hold the same bits, so a check that differs shows a fault of a machine: memory that lost a
// bit, a kernel that computes something else. The parameters and the optimizer's items are hashed where
// they lie, before the step changes them; of a large model by all threads, a leaf (64 KiB) each.
// (State that lies on a GPU would be copied for it. Windows compute on CPUs only, learner_windows.c.)
//
// What it costs: a model of N parameters has 3 N floats of state, so a step hashes 12 N / 256 bytes, or
// one leaf of a small model. Measured in one thread at 1.25 GB/s: 10,032 parameters 29 KiB and 0.024 ms
// a step, a million 63 KiB and 0.054 ms, eight million 366 KiB and 0.30 ms.

#include "common/base/ensure.h"
#include "common/learner/learner_windows.h"
#include "common/learner/state.h"

struct check_job {
    const struct state_cut *cut;
    const void *const *items;
    struct state_check which;
    struct hash *leaves;
};

static void hash_one(void *arg, uint32_t task, uint32_t worker)
{
    const struct check_job *job = arg;
    (void)worker;
    job->leaves[task] =
        state_cut_hash_leaf(job->cut, job->items, job->which.first + task * job->which.period);
}

int learner_step_check(struct learner *self, struct why *why, struct hash *ret_check)
{
    const void *items[STATE_ITEMS_MAX] = { self->params };
    struct state state;
    uint32_t count = 1;
    const int rc = state_save(self->optimizer, OPTIMIZER_SHARED, why, &state);
    if (rc < 0) return rc;
    // What each holds for itself is not compared
    const struct state_cut parameters = state_cut_of_floats(self->floats);
    const struct state_cut *cut = learner_shares_are_on(self) ? &parameters : &self->cut;
    for (size_t i = 0; i < state.tags.count && cut->count > 1; i++)
        if (state.values[i]) items[count++] = state.values[i];
    ensure(count == cut->count);
    const struct check_job job = { .cut = cut,
                                   .items = items,
                                   .which = state_cut_check(cut, self->step),
                                   .leaves = self->window->check_leaves };
    // One or two leaves are hashed before other threads would be awake
    pool_run(job.which.count > 2 ? self->pool : NULL, (uint32_t)job.which.count, hash_one,
             (void *)(uintptr_t)&job);
    *ret_check = merkle_root(job.leaves, job.which.count);
    return 0;
}
