#pragma once
// data_provider -- a member that has the run's samples, and whom trainers ask for them.
//
//     JOIN (samples, manifest digest) ─▶ ADMITTED ─▶ PING, PING, PING ... ─▶ LEAVE, or the run is finished
//
// The samples themselves go over the bulk plane, which is the shell's; what the run needs to know
// of them (how many a pass has, their manifest and their order) is said in JOIN and goes on
// record with the first source. Who holds another dataset is refused, and ends. Pure.

#include "common/pace/rounds/round_view.h"

struct data_provider {
    struct member member; // Its `samples` and `data` are filled in by the shell
    struct round_view view;
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void data_provider_init(struct data_provider *self);
void data_provider_step(void *self, const struct msg *in, struct outbox *out);
