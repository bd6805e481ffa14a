#pragma once
// saving -- what `up` does when it is interrupted for the first time, or when a child cannot be kept, and after that at
// its next start. The run is told to pause, as by `shoal pause`: its epoch ends, the checkpoint of its last step is
// written, and no other epoch begins, so the actors can be stopped. The next `up` has it go on. In a phase without
// steps the coordinator is told to have a checkpoint written, as by `shoal checkpoint`.
//
//     interrupted ─▶ saving_begin ─▶ order, order ... ─▶ saving_is_over ─▶ the actors are stopped
//     started again ─▶ saving_resume ... ─▶ the run goes on
//
// The file <state_dir>/paused-to-stop says that it was `up` that had the run paused. A run that its owner has paused
// stays so.
//
// Only a run whose members trust one another needs it: there the newest state is in the memory of the
// trainers alone. In a run with rounds a checkpointer finds it again from the results on disk.

#include "actors/shoal/local/testnet.h"

struct saving {
    uint64_t step; // The newest when the interrupt came
    uint64_t end_ms, order_ms;
    uint8_t action;
};

// Steps that are in no checkpoint, and so in memory alone, as far as we have heard. 0: none, or the run keeps them
// otherwise.
uint64_t saving_at_risk(const struct testnet *net);

// Some steps may be in memory alone, heard of or not.
bool saving_may_lose(const struct testnet *net);

// False: nothing needs to be saved, or nothing can be; in the latter case `why` may have a text that says what is in the
// way. True, and a text in `why`: the mark cannot be written, so the run is not paused and only a checkpoint is written.
bool saving_begin(struct saving *self, struct testnet *net, uint64_t now_ms, struct why *why);

// Gives the order once a second, as mail may be lost, and returns when it is due again.
uint64_t saving_order(struct saving *self, struct testnet *net, uint64_t now_ms);

// It is saved, the time is up, the second interrupt has come, or broker or coordinator have ended for good.
bool saving_is_over(const struct saving *self, const struct testnet *net, uint64_t now_ms);

// Whether an earlier `up` had the run paused, so that saving_resume has it go on.
bool saving_will_resume(const struct testnet *net);

// Has a run go on that an earlier `up` had paused; `self` is zero at first. Call it at each turn; returns when it
// wants to be called again, UINT64_MAX: all is done. A fault: the run cannot be told.
int saving_resume(struct saving *self, struct testnet *net, uint64_t now_ms, struct why *why,
                  uint64_t *ret_due_ms);
