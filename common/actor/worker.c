// A thread and two queues of parcels: the kind and the packed body. The descriptor of a queue is an eventfd. It is
// written after a parcel was put into an empty queue, and read, under the queue's lock, by a taker that leaves the
// queue empty. It is written without the lock, because the thread that it wakes would otherwise wait for the lock.
// So a taker may take the parcel before it is written: then the descriptor is readable although the queue is empty,
// until the next take.

#include "common/actor/worker.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

struct parcel {
    STAILQ_ENTRY(parcel) near;
    uint16_t kind; // FRAME_NONE: the thread must end; WAKE: no job, the thread is only woken
    size_t count;
    _Alignas(16) uint8_t body[];
};
STAILQ_HEAD(parcels, parcel);

struct queue {
    pthread_mutex_t lock;
    struct parcels parcels;
    int fd;
};

struct worker {
    enum port port;
    worker_body *body;
    void *arg;
    pthread_t thread;
    struct queue jobs, answers;
    struct wire_arena arena; // Of the job in hand
    struct parcel *job;      // In hand
    bool has_ended;
    uint8_t *scratch;
    size_t scratch_max;
};

enum { JOB_ARENA = 64 << 20, ANSWER_MAX = 8 << 20, WAKE = UINT16_MAX };

// ---- queues -------------------------------------------------------------------------------------

static void queue_open(struct queue *self)
{
    ensure(pthread_mutex_init(&self->lock, NULL) == 0);
    STAILQ_INIT(&self->parcels);
    self->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ensure(self->fd >= 0);
}

static void queue_put(struct queue *self, uint16_t kind, const uint8_t *body, size_t count)
{
    struct parcel *parcel = malloc(sizeof *parcel + count);
    ensure(parcel);
    parcel->kind = kind;
    parcel->count = count;
    if (count > 0) memcpy(parcel->body, body, count);
    ensure(pthread_mutex_lock(&self->lock) == 0);
    const bool was_empty = STAILQ_EMPTY(&self->parcels);
    STAILQ_INSERT_TAIL(&self->parcels, parcel, near);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    if (was_empty) ensure(eventfd_write(self->fd, 1) == 0);
}

// The caller frees it. NULL: there is none.
static struct parcel *queue_take(struct queue *self)
{
    eventfd_t ignored;
    ensure(pthread_mutex_lock(&self->lock) == 0);
    struct parcel *parcel = STAILQ_FIRST(&self->parcels);
    if (parcel) STAILQ_REMOVE_HEAD(&self->parcels, near);
    if (STAILQ_EMPTY(&self->parcels)) eventfd_read(self->fd, &ignored);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    return parcel;
}

static void queue_close(struct queue *self)
{
    struct parcel *parcel;
    while ((parcel = queue_take(self))) free(parcel);
    close(self->fd);
    pthread_mutex_destroy(&self->lock);
}

static const void *unpack(const struct parcel *parcel, struct wire_arena *arena)
{
    struct wire_refusal refusal;
    const void *body;
    ensure(wire_unpack_body(parcel->body, parcel->count, parcel->kind, arena, &body, &refusal));
    return body;
}

// ---- life ---------------------------------------------------------------------------------------

static void *run(void *arg)
{
    struct worker *self = arg;
    self->body(self, self->arg);
    return NULL;
}

struct worker *worker_new(enum port port, worker_body *body, void *arg)
{
    struct worker *self = calloc(1, sizeof *self);
    ensure(self);
    *self = (struct worker){ .port = port, .body = body, .arg = arg, .scratch_max = ANSWER_MAX };
    self->arena =
        (struct wire_arena){ .bytes = malloc(JOB_ARENA), .max = JOB_ARENA }; // Touched as needed
    self->scratch = malloc(ANSWER_MAX);
    ensure(self->arena.bytes && self->scratch);
    queue_open(&self->jobs);
    queue_open(&self->answers);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // The new thread inherits it
    ensure(pthread_create(&self->thread, NULL, run, self) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return self;
}

void worker_destroy(struct worker **self_p)
{
    struct worker *self = *self_p;
    if (!self) return;
    queue_put(&self->jobs, FRAME_NONE, NULL, 0);
    ensure(pthread_join(self->thread, NULL) == 0);
    queue_close(&self->jobs);
    queue_close(&self->answers);
    free(self->job);
    free(self->arena.bytes);
    free(self->scratch);
    free(self);
    *self_p = NULL;
}

// ---- the shell's side ---------------------------------------------------------------------------

enum port worker_port(const struct worker *self) { return self->port; }
int worker_answers_fd(const struct worker *self) { return self->answers.fd; }

void worker_send(struct worker *self, uint16_t kind, const uint8_t *body, size_t count)
{
    queue_put(&self->jobs, kind, body, count);
}

// Strings and lists are copied out by unpacking; views of bytes would point into the parcel, and no
// answer has any.
bool worker_take(struct worker *self, struct wire_arena *arena, uint16_t *ret_kind,
                 const void **ret_body)
{
    struct parcel *parcel = queue_take(&self->answers);
    if (!parcel) return false;
    *ret_kind = parcel->kind;
    *ret_body = unpack(parcel, arena);
    free(parcel);
    return true;
}

// ---- the thread's side --------------------------------------------------------------------------

int worker_jobs_fd(const struct worker *self) { return self->jobs.fd; }

void worker_answer(struct worker *self, uint16_t kind, const void *body)
{
    size_t count = wire_pack_body(kind, body, self->scratch, self->scratch_max);
    ensure(count > 0);
    queue_put(&self->answers, kind, self->scratch, count);
}

void worker_wake(struct worker *self) { queue_put(&self->jobs, WAKE, NULL, 0); }

enum worker_turn worker_next(struct worker *self, int timeout_ms, struct job *ret_job)
{
    if (self->has_ended) return WORKER_END;
    struct parcel *parcel = queue_take(&self->jobs);
    if (!parcel && timeout_ms != 0) {
        struct pollfd item = { .fd = self->jobs.fd, .events = POLLIN };
        ensure(poll(&item, 1, timeout_ms) >= 0 || errno == EINTR);
        parcel = queue_take(&self->jobs);
    }
    if (!parcel) return WORKER_QUIET;
    free(self->job);
    self->job = parcel;
    self->has_ended = parcel->kind == FRAME_NONE;
    if (self->has_ended) return WORKER_END;
    if (parcel->kind == WAKE) return WORKER_QUIET;
    self->arena.used = 0;
    ret_job->kind = parcel->kind;
    ret_job->body = unpack(parcel, &self->arena);
    return WORKER_JOB;
}
