#pragma once
// witness_actor -- a standalone witness: a member without parameters, in runs that elect such
// witnesses. What it sends in a round is decided in common/pace/rounds/rounds_member.h. Pure.

#include "common/pace/rounds/rounds_member.h"

struct witness_actor {
    struct member member; // First: what all members share
    struct blobs blobs;
    struct rounds_member rounds;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void witness_actor_init(struct witness_actor *self);
void witness_actor_step(void *self, const struct msg *in, struct outbox *out);
