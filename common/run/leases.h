#pragma once
// leases -- tasks that are pulled: who has which task of the data under which number, until when, and how
// often it has failed.
//
//         GET_TASK                     TASK_END done
//     todo ──────▶ pending, lease 17 ────────────────▶ done
//       ▲             │ failed, late, or its holder died: a strike
//       └─────────────┤
//                     └ the fourth strike ──▶ failed: given up for this pass
//
// A *task* is the samples [k · T, (k + 1) · T) of one pass, T = task_samples; the last task of a pass may
// be shorter. The state of its samples lies in the table (table.h), in which a lease's number is the
// number that its samples are pending under. A *lease* is one holder's right to one task. Numbers rise
// and are never used again: a word under an old number is refused, so nobody ends another's lease.
//
// The next pass is further positions. So its tasks are todo and have no strike, also those that were
// given up in the pass before, and no end of a pass has to be noticed by anybody (PaddlePaddle's
// master forgot it when the last task failed). With `pass_barrier` no task of a pass is dealt while one
// of the pass before is pending.
//
// A task gets a strike when its lease fails, is late, or loses its holder (not where nobody gave its samples), but one
// from each process: a process that is not well would use up the strikes of task after task. It is dealt a task that it
// has struck only when there is no other. Strikes count within the pass. The strike after `strikes_max` gives the task
// up; PaddlePaddle's strikes_max is 3. Each lease has room for its strike: a task is dealt only if that is there.
//
// A lease's time is LEASE_TIMES times the moving average of what finished tasks took, within
// [time_min_ms, time_max_ms]; time_max_ms until one has finished. One that was late counts with the time that it had: so
// a quarter is added each time, until those that are left finish theirs, slow as they are. After a restart each lease has its full
// time again (leases_rearm): a holder cannot know that the coordinator was away.
//
// The durable half is the list of leases and of strikes: only leases_put and leases_end change it, which
// records call. Deadlines and the average may be forgotten. Pure; one thread.

#include "common/run/table.h"

enum {
    LEASES_MAX = 1024,
    LEASE_TIMES = 3,
    LEASE_AVERAGE = 8,                 // The newest task counts for one in so many
    STRIKES_KEPT_MAX = 2 * LEASES_MAX, // Lines of strikes
};

struct lease_rules {
    uint64_t task_samples;             // At least 1
    uint32_t strikes_max;              // The next one gives the task up
    uint64_t time_min_ms, time_max_ms; // At least 1; min <= max
    bool pass_barrier;
};

struct lease {
    uint64_t number;
    uint32_t member;   // By index in the roster
    uint64_t instance; // Of its process
    uint64_t task;     // First position of the task, also if some of it was done before
    uint64_t since_ms, deadline_ms;
};

struct strikes { // Of one task, by one process
    uint64_t task;
    uint32_t count; // More than 1: of other processes, too, for which no line was left
    uint32_t member;
    uint64_t instance;
};

struct leases {
    uint64_t newest; // Number of the newest lease; 0: there was none
    uint32_t count, struck_count;
    struct lease leases[LEASES_MAX]; // By rising number
    struct strikes struck[STRIKES_KEPT_MAX];
    uint64_t average_ms; // 0: not known
};

enum lease_answer {
    LEASE_OK,
    LEASE_NONE_NOW, // All tasks that may be dealt are pending: ask again later
    LEASE_FULL,     // LEASES_MAX are out, or no room is left in the table or for a strike
    LEASE_STALE,    // No such lease: it has ended, or it is another process's
};

// Whether this process has struck the task of this lease.
bool leases_has_struck(const struct leases *self, const struct lease *lease);

// The task that is dealt next to the process of *lease: the lowest one that is todo and that it has not struck; if there
// is none, the lowest one. lease->task is its first position, the list what of it is to be
// trained (all, unless another strategy has trained a part before). list_max = entries of the table + 1 always suffices.
enum lease_answer leases_next(const struct leases *self, const struct table *table,
                              const struct lease_rules *rules, struct lease *lease,
                              struct interval *ret_list, uint32_t list_max, uint32_t *ret_count);

// A lease is on record: these samples of this task are pending under `number`, higher than all before.
enum lease_answer leases_put(struct leases *self, struct table *table,
                             const struct lease_rules *rules, const struct lease *lease,
                             const struct interval *list, uint32_t count);

enum lease_end {
    LEASE_DONE,     // All of it is trained
    LEASE_RETURNED, // A strike, and it is todo again
    LEASE_GIVEN_UP, // The last strike
};

// How a lease ends that failed, was late or whose holder died: LEASE_RETURNED or LEASE_GIVEN_UP.
enum lease_end leases_outcome(const struct leases *self, const struct lease_rules *rules,
                              const struct lease *lease);

// A lease is over, by record, and nobody is to blame: its task is todo again without a strike. LEASE_STALE: there is none
// of this number.
enum lease_answer leases_give_back(struct leases *self, struct table *table, uint64_t number);

// A lease has ended so, by record. LEASE_STALE: there is none of this number.
enum lease_answer leases_end(struct leases *self, struct table *table, uint64_t number,
                             enum lease_end end, uint64_t now_ms);

// Behind the end of one that was late after took_ms.
void leases_note_late(struct leases *self, uint64_t took_ms);

// NULL: there is none of this number, or it is not of this process.
const struct lease *leases_find(const struct leases *self, uint64_t number, uint32_t member,
                                uint64_t instance);

// The lease whose time is over for longest; NULL: none is. And when the next one is; UINT64_MAX: none is out.
const struct lease *leases_late(const struct leases *self, uint64_t now_ms);
uint64_t leases_due_ms(const struct leases *self);

// A lease of this member that a process other than `instance` holds; with 0, any lease of this member. NULL: there is none.
const struct lease *leases_of_dead(const struct leases *self, uint32_t member, uint64_t instance);

// All leases have their full time from now on.
void leases_rearm(struct leases *self, const struct lease_rules *rules, uint64_t now_ms);
uint64_t leases_time_ms(const struct leases *self, const struct lease_rules *rules);

// The tasks of the pass in hand, by state. Their sum is always the number of tasks of a pass. A task that is done in part
// is todo, or pending.
struct lease_counts {
    uint64_t pass, todo, pending, done, failed;
};
struct lease_counts leases_count(const struct table *table, const struct lease_rules *rules);
