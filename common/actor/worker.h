#pragma once
// worker -- a thread behind a port of a core, for slow work: the learner, the fetcher.
//
//     core ──effect to PORT_X──▶ shell ──job──▶ worker thread (own loop, own sockets)
//          ◀──── struct msg ──── shell ◀─answer─┘
//
// Jobs and answers are bodies of LOCAL kinds of frames.def, packed, in two queues without a limit, so
// that neither side waits for the other. A worker answers in its own time and order; meanwhile the
// core goes on. All signals are blocked in the thread.
//
// Each queue has a descriptor that is readable while something waits, and now and then when nothing does. A thread
// that finds its queue empty polls the descriptor, together with all else that it waits for.

#include "common/actor/msg.h"

struct worker; // Both sides hold it; each calls only its own functions

// The thread's body. It returns when worker_next says so; `arg` is what worker_new was given.
typedef void worker_body(struct worker *self, void *arg);

// ---- the shell's side ---------------------------------------------------------------------------

// Starts the thread. `port` says which effects it takes. Never NULL.
struct worker *worker_new(enum port port, worker_body *body, void *arg);

// Asks the thread to end, waits for it, and frees. NULL allowed.
void worker_destroy(struct worker **self_p);

enum port worker_port(const struct worker *self);
int worker_answers_fd(const struct worker *self);
void worker_send(struct worker *self, uint16_t kind, const uint8_t *body, size_t count);

// Takes the next answer if one waits: its kind, and its body unpacked into the arena. False: none.
bool worker_take(struct worker *self, struct wire_arena *arena, uint16_t *ret_kind,
                 const void **ret_body);

// ---- the thread's side --------------------------------------------------------------------------

struct job {
    uint16_t kind;
    const void *body; // Unpacked; valid until the next worker_next
};

enum worker_turn { WORKER_JOB, WORKER_QUIET, WORKER_END };

// Waits up to timeout_ms (-1: for ever) for a job. QUIET: none came in time, or worker_wake was
// called. END: return from the body.
enum worker_turn worker_next(struct worker *self, int timeout_ms, struct job *ret_job);

// Ends the present wait of the body, in worker_next or on worker_jobs_fd, or its next wait. The only function here
// that may be called by a thread that the body has started.
void worker_wake(struct worker *self);

// For a worker that polls its own sockets, too: when it is readable, call worker_next (self, 0, ...).
int worker_jobs_fd(const struct worker *self);

void worker_answer(struct worker *self, uint16_t kind, const void *body);
