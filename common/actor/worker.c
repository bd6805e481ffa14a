// A zactor whose pipe carries jobs one way and answers the other, each as two frames: the kind, and
// the packed body. The pipe has no limit, so neither side waits for the other. All signals are
// blocked in the thread. A wake is an eventfd beside the pipe, which any thread may write to.

#include "common/actor/worker.h"
#include "common/base/ensure.h"
#include <czmq.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct worker {
    enum port port;
    worker_body *body;
    void *arg;
    zactor_t *actor;
    zsock_t *pipe; // The thread's end
    int wake_fd;
    struct wire_arena arena; // Of the job in hand
    zframe_t *frame;
    _Atomic bool ended;
    uint8_t *scratch;
    size_t scratch_max;
};

enum { JOB_ARENA = 64 << 20, ANSWER_MAX = 8 << 20 };

static void run(zsock_t *pipe, void *arg)
{
    struct worker *self = arg;
    self->pipe = pipe;
    zsock_signal(pipe, 0);
    self->body(self, self->arg);
    self->pipe = NULL;
    atomic_store(&self->ended, true);
}

struct worker *worker_new(enum port port, worker_body *body, void *arg)
{
    struct worker *self = calloc(1, sizeof *self);
    ensure(self);
    *self = (struct worker){ .port = port, .body = body, .arg = arg, .scratch_max = ANSWER_MAX };
    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ensure(self->wake_fd >= 0);
    self->arena =
        (struct wire_arena){ .bytes = malloc(JOB_ARENA), .max = JOB_ARENA }; // Touched as needed
    self->scratch = malloc(ANSWER_MAX);
    ensure(self->arena.bytes && self->scratch);
    zsys_init();            // The next call needs the lock that this one makes
    zsys_set_pipehwm(0);    // Neither side ever waits for the other to drain
    zsys_handler_set(NULL); // Signals are the shell's, not CZMQ's
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // The new thread inherits it: no signal reaches it
    self->actor = zactor_new(run, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ensure(self->actor);
    return self;
}

void worker_destroy(struct worker **self_p)
{
    struct worker *self = *self_p;
    if (!self) return;
    zactor_destroy(&self->actor);      // Sends $TERM and waits for the thread
    ensure(atomic_load(&self->ended)); // ... and whatever it wrote is seen here
    zframe_destroy(&self->frame);
    close(self->wake_fd);
    free(self->arena.bytes);
    free(self->scratch);
    free(self);
    *self_p = NULL;
}

enum port worker_port(const struct worker *self) { return self->port; }
void *worker_socket(struct worker *self) { return zsock_resolve(self->actor); }
void *worker_pipe(struct worker *self) { return zsock_resolve(self->pipe); }

// Two frames: the kind, and the packed body.
void worker_send(struct worker *self, uint16_t kind, const uint8_t *body, size_t count)
{
    zsock_t *socket = zactor_sock(self->actor);
    ensure(zmq_send(zsock_resolve(socket), &kind, sizeof kind, ZMQ_SNDMORE) == sizeof kind);
    ensure(zmq_send(zsock_resolve(socket), body, count, 0) == (int)count);
}

void worker_answer(struct worker *self, uint16_t kind, const void *body)
{
    size_t count = wire_pack_body(kind, body, self->scratch, self->scratch_max);
    void *socket = zsock_resolve(self->pipe);
    ensure(count > 0);
    ensure(zmq_send(socket, &kind, sizeof kind, ZMQ_SNDMORE) == sizeof kind);
    ensure(zmq_send(socket, self->scratch, count, 0) == (int)count);
}

static bool readable(void *socket, int timeout_ms)
{
    zmq_pollitem_t item = { .socket = socket, .events = ZMQ_POLLIN };
    return zmq_poll(&item, 1, timeout_ms) > 0;
}

bool worker_take(struct worker *self, struct wire_arena *arena, uint16_t *ret_kind,
                 const void **ret_body)
{
    void *socket = worker_socket(self);
    struct wire_refusal refusal;
    if (!readable(socket, 0)) return false;
    ensure(zmq_recv(socket, ret_kind, sizeof *ret_kind, 0) == sizeof *ret_kind);
    zframe_t *frame = zframe_recv(zactor_sock(self->actor));
    ensure(frame);
    // Strings and lists are copied out by unpacking; byte views would point into the frame, and no
    // answer has any.
    ensure(wire_unpack_body(zframe_data(frame), zframe_size(frame), *ret_kind, arena, ret_body,
                            &refusal));
    zframe_destroy(&frame);
    return true;
}

// False: no job came in time, or the thread was woken.
static bool wait_for_job(struct worker *self, int timeout_ms)
{
    zmq_pollitem_t items[] = {
        { .socket = zsock_resolve(self->pipe), .events = ZMQ_POLLIN },
        { .fd = self->wake_fd, .events = ZMQ_POLLIN },
    };
    eventfd_t count;
    if (zmq_poll(items, 2, timeout_ms) <= 0) return false;
    if (items[1].revents) eventfd_read(self->wake_fd, &count);
    return items[0].revents != 0;
}

void worker_wake(struct worker *self) { ensure(eventfd_write(self->wake_fd, 1) == 0); }

enum worker_turn worker_next(struct worker *self, int timeout_ms, struct job *ret_job)
{
    void *socket = zsock_resolve(self->pipe);
    uint8_t head[16];
    struct wire_refusal refusal;
    if (!wait_for_job(self, timeout_ms)) return WORKER_QUIET;
    int count = zmq_recv(socket, head, sizeof head, 0);
    int more = 0;
    size_t size = sizeof more;
    zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
    if (count != sizeof ret_job->kind || !more) return WORKER_END; // "$TERM", or interrupted
    memcpy(&ret_job->kind, head, sizeof ret_job->kind);
    zframe_destroy(&self->frame);
    self->frame = zframe_recv(self->pipe);
    ensure(self->frame);
    self->arena.used = 0;
    ensure(wire_unpack_body(zframe_data(self->frame), zframe_size(self->frame), ret_job->kind,
                            &self->arena, &ret_job->body, &refusal));
    return WORKER_JOB;
}
