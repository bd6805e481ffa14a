#pragma once
// saving -- what `up` does when it is interrupted for the first time: the coordinator is told to have a
// checkpoint written, as by `shoal checkpoint`, and the actors go on until it is complete.
//
//     interrupted ─▶ saving_begin ─▶ order, order ... ─▶ saving_is_over ─▶ the actors are stopped
//
// Only a run whose members trust one another needs it: there the newest state is in the memory of the
// trainers alone. In a run with rounds a checkpointer finds it again from the results on disk.

#include "actors/shoal/local/testnet.h"

struct saving {
    uint64_t step; // The newest when the interrupt came
    uint64_t end_ms, order_ms;
};

// Steps that are in no checkpoint, and so in memory alone. 0: none, or the run keeps them otherwise.
uint64_t saving_at_risk(const struct testnet *net);

// False: nothing can or need be saved.
bool saving_begin(struct saving *self, struct testnet *net, uint64_t now_ms, struct why *why);

// Gives the order once a second, as mail may be lost, and returns when it is due again.
uint64_t saving_order(struct saving *self, struct testnet *net, uint64_t now_ms);

// It is saved, the time is up, the second interrupt has come, or broker or coordinator have ended for good.
bool saving_is_over(const struct saving *self, const struct testnet *net, uint64_t now_ms);
