#pragma once
// leases_run -- the durable half of leases: the group, which of its tasks are out, and how its epoch ends.
//
//     RECORD_GROUP ─▶ open ─▶ RECORD_LEASE ─▶ its samples are pending ─▶ RECORD_LEASE_END ─▶ done, todo again, or failed
//                       ├─▶ RECORD_SAVE ─▶ its servers save this step, and it goes on (saving.h)
//                       ├─▶ RECORD_COPY ─▶ RECORD_KEPT: the same in memory, with no disk (copying.h)
//                       └─▶ RECORD_CLOSE ─▶ no lease any more ─▶ RECORD_SETTLED ─▶ RECORD_PHASE Cooldown: over
//                       └──────────────────(a server died)───────────────────────▶ RECORD_PHASE Cooldown: over
//
// A group that is closed deals no task again, also after a restart of the coordinator: its members may have put their
// state together. When a group is over without being settled, nobody holds what it did. The restore that follows
// deals its samples again. If it committed no step there is nothing to restore, so its samples are dealt again here.
//
// The state that a group has put together is that of a step, and no other state may have that number: neither the one
// that it began with nor one that was saved on the way. So a group that has dealt tasks and committed no step since
// then commits one before it is closed (leases_run_must_step).
//
// Each record is one function of the state and of the table of samples. The verifier of a ledger (leases_evidence.c)
// calls the same functions, for a table of its own.
//
// It lies in struct run (pace_state); only records change it, but for the times of leases, which a restart forgets.
// Pure. One thread.

#include "common/pace/leases/leases_group.h"
#include "common/run/memory_save.h"

struct leases_run {
    struct leases leases;
    struct wire_group group; // The open one; else the newest that was. number 0: there was none
    struct wire_place places[LEASES_GROUP_MAX]; // Its list
    bool is_open;
    struct wire_data_position begin; // The data position when it began
    struct run_lists begin_lists;    // Its lists
    uint64_t dealt_before;           // The newest lease when it began
    uint64_t rest;                   // Samples trained since then that are of no step yet
    struct wire_close_group closing; // The newest attempt to close it; attempt 0: there was none
    bool settled;                    // All members of that attempt have put the state together
    uint64_t differ;                 // Places of those whose digests differ from that of most
    uint64_t save_number,
        save_step; // The newest group that was told to save, and of which step; 0: none was
    uint64_t copy_number, copy_step;       // The same of a memory save
    struct memory_save memory;             // Not known to the verifier of a ledger
    struct wire_lease_out out[LEASES_MAX]; // The lists of `leases`, as a snapshot has them
    struct wire_strikes struck[STRIKES_KEPT_MAX];
};

// The records, in the order of a group's life.
void leases_run_begin(struct leases_run *self, const struct table *table,
                      const struct wire_group *group);
void leases_run_deal(struct leases_run *self, struct table *table, const struct wire_lease *lease);
void leases_run_end(struct leases_run *self, struct table *table,
                    const struct wire_lease_ended *ended);
void leases_run_save(struct leases_run *self, const struct wire_save_share *save);
void leases_run_copy(struct leases_run *self, const struct wire_save_share *copy);
void leases_run_close(struct leases_run *self, const struct wire_close_group *closing);
void leases_run_settle(struct leases_run *self, const struct wire_group_settled *settled);

// Whether the open group has to commit a step before it is closed at this step of the run. Not once it is being
// closed.
bool leases_run_must_step(const struct leases_run *self, uint64_t step);

// The group is over, at this step of the run. What is out is todo again. Returns how many trained samples are, too.
uint64_t leases_run_over(struct leases_run *self, struct table *table, uint64_t step);

// The run went back.
void leases_run_restore(struct leases_run *self);

// Gives a lease that was just dealt its time: the record has none.
void leases_run_arm(struct leases_run *self, const struct lease_rules *rules, uint64_t now_ms);

// Whether this process put the state of the newest group together, so that it holds all of it.
bool leases_run_has_settled(const struct leases_run *self, uint32_t member, uint64_t instance);

// The functions of struct run_pace (run.h).
bool leases_run_apply(struct run *run, uint16_t kind, const void *record);
struct wire_part leases_run_store(const struct run *run, void *memory);
bool leases_run_load(struct run *run, const struct wire_part *part);
bool leases_run_refers_to(const struct run *run, uint32_t member);

// The lease of this number that is out; NULL: none is.
const struct lease *leases_run_lease(const struct leases_run *self, uint64_t number);

static inline const struct leases_run *leases_run_of(const struct run *run)
{
    return (const struct leases_run *)(const void *)run->pace_state;
}

// For the times of leases alone.
static inline struct leases_run *leases_run_times(struct run *run)
{
    return (struct leases_run *)(void *)run->pace_state;
}
