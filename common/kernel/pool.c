// pool -- one lock guards the job. pool_run deals the tasks into one share for each worker, wakes
// the others and takes tasks itself. A worker takes from its own share first, in order, then from
// the end of the largest share that is left. The caller returns when all tasks have returned.
//
// The jobs of a training step follow each other within microseconds, but a thread that sleeps wakes 60 µs late in a
// virtual machine, and later if its processor has other work. So a waiting thread watches a counter before it sleeps.

#include "common/kernel/pool.h"
#include "common/base/ensure.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct worker {
    pool_t *pool;
    pthread_t thread;
    uint32_t number; // From 1; the caller of pool_run is worker 0
};

// The tasks of a worker's share that are not taken yet. Jobs with the same number of tasks give a
// worker the same share, so that it reads from its own cache what it wrote in the job before.
struct share {
    uint32_t next, end;
};

// `lock` guards all members but `threads` and `workers`; `begun` and `ended` are also read without it. A worker that
// wakes late finds no task and sleeps again: a job waits for its tasks, not for its workers.
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work; // There is a task to take, or it is time to stop
    pthread_cond_t done; // `left` reached 0
    pool_task_fn *fn;
    void *arg;
    struct share shares[POOL_THREADS_MAX];
    uint32_t left; // Tasks that have not returned yet
    bool busy, stop;
    atomic_uint begun, ended; // Jobs; the stop begins like one
    uint32_t threads;
    struct worker workers[]; // threads - 1 of them
};

static bool take_task(pool_t *self, uint32_t worker, uint32_t *ret_task)
{
    struct share *own = &self->shares[worker], *most = own;
    if (own->next < own->end) {
        *ret_task = own->next++;
        return true;
    }
    for (uint32_t i = 0; i < self->threads; i++) {
        struct share *other = &self->shares[i];
        if (other->end - other->next > most->end - most->next) most = other;
    }
    if (most->next == most->end) return false;
    *ret_task = --most->end;
    return true;
}

// Takes and runs tasks until none is left to take. Called and returns with the lock held.
static void take_tasks(pool_t *self, uint32_t worker)
{
    uint32_t task;
    while (take_task(self, worker, &task)) {
        pool_task_fn *fn = self->fn;
        void *arg = self->arg;
        pthread_mutex_unlock(&self->lock);
        fn(arg, task, worker);
        pthread_mutex_lock(&self->lock);
        if (--self->left > 0) continue;
        atomic_fetch_add(&self->ended, 1);
        pthread_cond_signal(&self->done);
    }
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Watches the counter for a while, until it is no longer `seen`, which it was under the lock. Called and returns with
// the lock held.
static void watch(pool_t *self, const atomic_uint *counter, unsigned seen)
{
    pthread_mutex_unlock(&self->lock);
    const int64_t end = now_ns() + POOL_WATCH_US * INT64_C(1000);
    while (atomic_load_explicit(counter, memory_order_relaxed) == seen && now_ns() < end) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&self->lock);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    pool_t *self = worker->pool;
    pthread_mutex_lock(&self->lock);
    while (!self->stop) {
        take_tasks(self, worker->number);
        const unsigned begun = self->begun;
        watch(self, &self->begun, begun);
        while (self->begun == begun) pthread_cond_wait(&self->work, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void join_workers(pool_t *self, uint32_t count)
{
    pthread_mutex_lock(&self->lock);
    self->stop = true;
    atomic_fetch_add(&self->begun, 1);
    pthread_mutex_unlock(&self->lock);
    pthread_cond_broadcast(&self->work);
    for (uint32_t i = 0; i < count; i++) pthread_join(self->workers[i].thread, NULL);
    pthread_cond_destroy(&self->done);
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

pool_t *pool_new(uint32_t threads)
{
    ensure(threads >= 1 && threads <= POOL_THREADS_MAX);
    pool_t *self = calloc(1, sizeof *self + (threads - 1) * sizeof self->workers[0]);
    if (!self) return NULL;
    self->threads = threads;
    ensure(pthread_mutex_init(&self->lock, NULL) == 0);
    ensure(pthread_cond_init(&self->work, NULL) == 0);
    ensure(pthread_cond_init(&self->done, NULL) == 0);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // Only the thread of the event loop takes signals
    uint32_t started = 0;
    for (; started < threads - 1; started++) {
        struct worker *worker = &self->workers[started];
        worker->pool = self;
        worker->number = started + 1;
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started == threads - 1) return self;
    join_workers(self, started);
    return NULL;
}

void pool_destroy(pool_t **self)
{
    if (!*self) return;
    ensure(!(*self)->busy);
    join_workers(*self, (*self)->threads - 1);
    *self = NULL;
}

uint32_t pool_threads(const pool_t *self) { return self ? self->threads : 1; }

static void run_inline(pool_t *self, uint32_t tasks, pool_task_fn *fn, void *arg)
{
    if (self) self->busy = true;
    for (uint32_t task = 0; task < tasks; task++) fn(arg, task, 0);
    if (self) self->busy = false;
}

void pool_run(pool_t *self, uint32_t tasks, pool_task_fn *fn, void *arg)
{
    if (!self || self->threads == 1) {
        ensure(!self || !self->busy);
        run_inline(self, tasks, fn, arg);
        return;
    }
    pthread_mutex_lock(&self->lock);
    ensure(!self->busy);
    self->busy = true;
    self->fn = fn;
    self->arg = arg;
    self->left = tasks;
    const unsigned ended = self->ended;
    atomic_fetch_add(&self->begun, 1);
    for (uint32_t i = 0; i < self->threads; i++) {
        const struct pool_share share = pool_share_of(tasks, 1, self->threads, i);
        self->shares[i] = (struct share){ (uint32_t)share.first, (uint32_t)share.end };
    }
    pthread_mutex_unlock(&self->lock);
    if (tasks > 1) pthread_cond_broadcast(&self->work); // A single task is quicker done here

    pthread_mutex_lock(&self->lock);
    take_tasks(self, 0);
    if (self->left > 0) watch(self, &self->ended, ended);
    while (self->left > 0) pthread_cond_wait(&self->done, &self->lock);
    self->busy = false;
    pthread_mutex_unlock(&self->lock);
}

struct pool_share pool_share_of(uint64_t count, uint64_t grain, uint32_t parts, uint32_t part)
{
    ensure(grain > 0 && part < parts && count <= UINT64_MAX - grain);
    const uint64_t grains = (count + grain - 1) / grain;
    // The first `longer` parts get one grain more
    const uint64_t each = grains / parts, longer = grains % parts;
    const uint64_t first = (each * part + (part < longer ? part : longer)) * grain;
    const uint64_t end = first + (each + (part < longer)) * grain;
    return (struct pool_share){ first < count ? first : count, end < count ? end : count };
}
