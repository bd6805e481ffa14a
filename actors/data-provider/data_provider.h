#pragma once
// data_provider -- a member that has the run's samples and serves them to trainers.
//
//     JOIN (samples, manifest digest, positions) ─▶ ADMITTED ─▶ PING, PING, PING ... ─▶ LEAVE, or the run ends
//
// The shell serves the samples over the bulk plane. JOIN tells what the run must know of them:
// their number, their manifest and their order. The coordinator records the dataset of the first data provider (that
// must be the one that [data] dataset_digest pins, if it is set). A data provider with another dataset is refused, and
// its process ends. Before the first round, window or lease another dataset is accepted if no other data provider is in
// the run. A run whose trainers read the data themselves refuses none. Pure.

#include "common/member/pace_part.h"

struct data_provider {
    struct member member; // Its `samples`, `data` and `positions` are filled in by the shell
    struct pace_part pace;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void data_provider_init(struct data_provider *self);
void data_provider_step(void *self, const struct msg *in, struct outbox *out);
