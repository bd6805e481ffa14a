#pragma once
// async_trainer -- a trainer of an asynchronous run: when it pushes and pulls, and what a push is.
//
//     batch ─▶ async_trainer_add ─▶ async_trainer_due ──▶ ASYNC_PUSH_DUE: async_trainer_mean, a push to all servers,
//                    ▲                    │                     async_trainer_pushed when all have answered
//                    └────────────────────┤
//                                         └───▶ ASYNC_PULL_DUE: the pull from all servers, async_trainer_pulled
//
//     push_every 2, pull_every 3      batch    1    2    3    4    5    6   ...     a push goes before a pull
//                                              ·  push pull push   ·  push,pull
//
// It pushes every `push_every` batches, and pushes what is left at the end of a task: a task is finished only when all of
// it is pushed. So the count of batches until a push begins at 0 with each task. Those until a pull are counted over the
// borders of tasks, and from its last pull on. A server that has found a push stale has it pull at once.
//
// A push is the mean gradient of its samples, clipped by the norm of the whole of it, before it is cut into the
// shares of the servers: each would see its own share alone. Each push has one sequence number, the same at all
// servers, from 1. A retry has the number and the bits of the first time: between async_trainer_mean and
// async_trainer_pushed nothing is added.
//
// Batches may have different numbers of samples. The gradient of a batch is the mean over its samples; they are
// summed in units of the first batch's samples, so that a push of one batch is the gradient of that batch, bit for
// bit, and batches of one size are added as they are. Each float is rounded in one order, whatever the number of
// threads.
//
// Pure; one thread, and those of the pool.

#include "common/base/fault.h"
#include "common/kernel/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct async_trainer {
    uint32_t push_every, pull_every; // Batches; at least 1
    uint32_t batches;                // In the sum
    uint32_t since_pull;             // Batches since the last pull
    uint64_t first_samples, samples; // Of the first batch in the sum, and of all
    uint64_t sequence;               // Of the newest push
    bool is_mean;                    // The sum is the mean that is being pushed
    bool must_pull;                  // A push was stale
};

void async_trainer_init(struct async_trainer *self, uint32_t push_every, uint32_t pull_every);

// A batch: its mean gradient, `floats` numbers, over at least one sample. `sum` is the caller's, the same in all
// calls; what it has before the first batch of a push means nothing. `sum` may be `gradient` if push_every is 1.
void async_trainer_add(struct async_trainer *self, pool_t *pool, float *sum, const float *gradient,
                       uint64_t floats, uint64_t samples);

// What is to be done now, in this order; `task_ends`: there is no further batch in the task.
enum async_due { ASYNC_PUSH_DUE = 1, ASYNC_PULL_DUE = 2 };
unsigned async_trainer_due(const struct async_trainer *self, bool task_ends);

// Makes of the sum what is pushed, and numbers it: self->sequence. Scaled to clip_norm if it is longer; 0: never.
// *ret_norm is the norm it had. FAULT_NAN: it has a number that is not finite; it is dropped, has no number, and the
// next batch begins a sum.
int async_trainer_mean(struct async_trainer *self, pool_t *pool, float *sum, uint64_t floats,
                       double clip_norm, struct why *why, double *ret_norm);

// All servers have dealt with it. stale: one of them has discarded it.
void async_trainer_pushed(struct async_trainer *self, bool stale);
void async_trainer_pulled(struct async_trainer *self); // From all servers

// A batch of the task could not be computed, or a server has refused the push: what is in the sum is dropped, and
// it pulls before it goes on.
void async_trainer_drop(struct async_trainer *self);
