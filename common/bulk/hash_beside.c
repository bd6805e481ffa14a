// hash_beside -- a queue of runs that have bytes to hash. The thread takes a part of the first run, releases the lock,
// hashes the part, and puts the run behind the others if it has more.

#include "common/bulk/hash_beside.h"
#include "common/base/ensure.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { PART = 256 << 10 };

TAILQ_HEAD(runs, hash_run);

struct hash_beside {
    pthread_t thread;
    pthread_mutex_t lock; // Guards all below, and `given` and `done` of each run
    pthread_cond_t given, done;
    struct runs runs;       // Those with more bytes given than done
    struct hash_run *first; // The one that is being hashed; NULL: none
    bool ends;
};

static void lock(struct hash_beside *self) { ensure(pthread_mutex_lock(&self->lock) == 0); }
static void unlock(struct hash_beside *self) { ensure(pthread_mutex_unlock(&self->lock) == 0); }

static void hash_part(struct hash_beside *self, struct hash_run *run)
{
    const size_t rest = run->given - run->done, count = rest < PART ? rest : PART;
    self->first = run;
    unlock(self);
    hasher_add(&run->hasher, run->bytes + run->done, count);
    lock(self);
    self->first = NULL;
    run->done += count;
    TAILQ_REMOVE(&self->runs, run, line);
    if (run->done < run->given) TAILQ_INSERT_TAIL(&self->runs, run, line);
    ensure(pthread_cond_signal(&self->done) == 0);
}

static void *work(void *arg)
{
    struct hash_beside *self = arg;
    lock(self);
    while (!self->ends) {
        struct hash_run *run = TAILQ_FIRST(&self->runs);
        if (run) hash_part(self, run);
        else ensure(pthread_cond_wait(&self->given, &self->lock) == 0);
    }
    unlock(self);
    return NULL;
}

struct hash_beside *hash_beside_new(void)
{
    struct hash_beside *self = calloc(1, sizeof *self);
    sigset_t all, before; // Signals are for the main thread
    ensure(self && pthread_mutex_init(&self->lock, NULL) == 0);
    ensure(pthread_cond_init(&self->given, NULL) == 0);
    ensure(pthread_cond_init(&self->done, NULL) == 0);
    TAILQ_INIT(&self->runs);
    sigfillset(&all);
    ensure(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    ensure(pthread_create(&self->thread, NULL, work, self) == 0);
    ensure(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return self;
}

void hash_beside_destroy(struct hash_beside **self_p)
{
    struct hash_beside *self = *self_p;
    if (!self) return;
    lock(self);
    ensure(TAILQ_EMPTY(&self->runs));
    self->ends = true;
    ensure(pthread_cond_signal(&self->given) == 0);
    unlock(self);
    ensure(pthread_join(self->thread, NULL) == 0);
    pthread_cond_destroy(&self->given);
    pthread_cond_destroy(&self->done);
    pthread_mutex_destroy(&self->lock);
    free(self);
    *self_p = NULL;
}

// ---- runs -----------------------------------------------------------------------------------

void hash_run_begin(struct hash_run *self, struct hash_beside *beside, const uint8_t *bytes)
{
    *self = (struct hash_run){ .beside = beside, .bytes = bytes };
    hasher_init(&self->hasher);
}

void hash_run_give(struct hash_run *self, size_t count)
{
    struct hash_beside *beside = self->beside;
    if (!beside) {
        hasher_add(&self->hasher, self->bytes + self->given, count - self->given);
        self->given = self->done = count;
        return;
    }
    lock(beside);
    const bool waits = self->done < self->given;
    self->given = count;
    if (!waits && self->done < count) {
        TAILQ_INSERT_TAIL(&beside->runs, self, line);
        ensure(pthread_cond_signal(&beside->given) == 0);
    }
    unlock(beside);
}

struct hash hash_run_end(struct hash_run *self)
{
    struct hash_beside *beside = self->beside;
    if (beside) {
        lock(beside);
        while (self->done < self->given)
            ensure(pthread_cond_wait(&beside->done, &beside->lock) == 0);
        unlock(beside);
    }
    return hasher_end(&self->hasher);
}

void hash_run_drop(struct hash_run *self)
{
    struct hash_beside *beside = self->beside;
    if (beside) {
        lock(beside);
        const bool hashes = beside->first == self;
        if (hashes) self->given = self->done; // So that the part in hand is its last
        while (beside->first == self) ensure(pthread_cond_wait(&beside->done, &beside->lock) == 0);
        if (!hashes && self->done < self->given) TAILQ_REMOVE(&beside->runs, self, line);
        unlock(beside);
    }
    hasher_end(&self->hasher);
}
