#pragma once
// trainer -- holds a replica of the parameters and takes part in what moves it on.
//
//     replica: the newest committed step ─▶ pace: what leads to the next ─▶ replica ...
//
// A parameter server has the same parts: its role says that it holds a share of the state, and computes nothing.
//
// What it computes and signs is decided by the run's pace (common/pace). Pure; the learner, the bulk
// store and the sockets are the shell's (trainer_main.c).

#include "common/member/pace_part.h"
#include "common/member/replica.h"

struct trainer {
    struct member member; // First: what all members share
    struct blobs blobs;
    struct replica replica;
    struct pace_part pace;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void trainer_init(struct trainer *self);
void trainer_init_server(struct trainer *self);
void trainer_step(void *self, const struct msg *in, struct outbox *out);
