#pragma once
// data_provider -- a member that has the run's samples and serves them to trainers.
//
//     JOIN (samples, manifest digest) ─▶ ADMITTED ─▶ PING, PING, PING ... ─▶ LEAVE, or the run ends
//
// The shell serves the samples over the bulk plane. JOIN tells what the run must know of them:
// their number, their manifest and their order. The coordinator records that of the first data
// provider, and refuses one with another dataset, which ends. Until the first round one may replace
// another that is gone; a run whose trainers read the data themselves refuses none. Pure.

#include "common/member/pace_part.h"

struct data_provider {
    struct member member; // Its `samples` and `data` are filled in by the shell
    struct pace_part pace;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void data_provider_init(struct data_provider *self);
void data_provider_step(void *self, const struct msg *in, struct outbox *out);
