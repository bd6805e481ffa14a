#pragma once
// trainer -- holds a replica of the parameters and takes part in the rounds that move it on.
//
//     replica: the newest committed step ─▶ rounds: what leads to the next ─▶ COMMIT ─▶ replica ...
//
// What it computes, claims and signs is decided in common/pace/rounds/rounds_member.h. Pure; the learner,
// the bulk store and the sockets are the shell's (trainer_main.c).

#include "common/pace/rounds/rounds_member.h"

struct trainer {
    struct member member; // First: what all members share
    struct blobs blobs;
    struct replica replica;
    struct rounds_member rounds;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void trainer_init(struct trainer *self);
void trainer_step(void *self, const struct msg *in, struct outbox *out);
