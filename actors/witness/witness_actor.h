#pragma once
// witness_actor -- a standalone witness: a member without parameters, in runs that elect such
// witnesses. What it sends is decided by the run's pace (common/pace). Pure.

#include "common/member/blobs.h"
#include "common/member/pace_part.h"

struct witness_actor {
    struct member member; // First: what all members share
    struct blobs blobs;
    struct pace_part pace;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void witness_actor_init(struct witness_actor *self);
void witness_actor_step(void *self, const struct msg *in, struct outbox *out);
