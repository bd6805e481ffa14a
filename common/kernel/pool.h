#pragma once
// pool -- a few threads that share the tasks of one job and sleep between jobs.
//
//     pool_run(n tasks) ──▶ workers 0 (the caller), 1, 2, ... take tasks 0..n-1 ──▶ returns
//
// A task has a number. Which worker runs it, and when, depends on chance: each worker begins with a
// run of neighbours, the same in every job of that many tasks, so that its cache is still warm.
// Therefore a task must take its input and output from its number alone, and use `worker` only to
// choose scratch memory: then the result is the same for every number of threads. Several actors
// share a machine, so a thread that waits sleeps on a condition variable; only its first POOL_WATCH_US it looks
// again and again whether its wait is over, because a training step has hundreds of waits, and waking takes longer.

#include <stdint.h>

enum { POOL_THREADS_MAX = 64, POOL_WATCH_US = 50 };

typedef struct pool pool_t;

// Starts threads-1 threads (the caller is the remaining worker); they block all signals. `threads`
// is 1..POOL_THREADS_MAX (ensured). With 1 no thread is started and jobs run inline. NULL if a
// thread cannot be started or memory is out.
pool_t *pool_new(uint32_t threads);

// Joins the threads. Not while a job runs. NULL is allowed; *self becomes NULL.
void pool_destroy(pool_t **self);

uint32_t pool_threads(const pool_t *self); // As given to pool_new; 1 for NULL

typedef void(pool_task_fn)(void *arg, uint32_t task, uint32_t worker);

// Runs fn(arg, task, worker) once for each task 0..tasks-1 and returns when all have returned;
// their writes are then visible to the caller. `worker` is 0..threads-1, and no two tasks run at
// the same time with the same worker. A NULL pool runs inline. One job at a time: one caller, and
// no pool_run from inside a task (both ensured).
void pool_run(pool_t *self, uint32_t tasks, pool_task_fn *fn, void *arg);

// The share of part number `part` when `count` items are dealt to `parts` parts in runs whose
// lengths are multiples of `grain` (the last one may be shorter). Pure arithmetic.
struct pool_share {
    uint64_t first, end;
};
struct pool_share pool_share_of(uint64_t count, uint64_t grain, uint32_t parts, uint32_t part);
