#pragma once
// epoch -- the phases around the steps: waiting, warm-up, cooldown, pause; who holds which parameters;
// checkpoints, and the owner's orders.
//
// Hearing only records what a message says. epoch_settle alone decides which phase follows.
//
// Part of the coordinator's core: pure.

#include "common/pace/pace.h"

struct holding {
    uint64_t step;
    struct hash digest;
    bool known;
};

// All of it may be forgotten: it is rebuilt from what members say again.
struct epoch {
    struct holding holdings[MEMBERS_MAX]; // What each says it holds
    uint32_t holding;                     // How many have said so since the phase began
    uint64_t control_number;              // Of the newest order of this life, and
    bool control_done;                    // whether it was carried out
};

void epoch_hear_holds(struct epoch *self, const struct turn *turn, const struct msg *in);
void epoch_hear_checkpoint(const struct turn *turn, const struct msg *in);
void epoch_hear_control(struct epoch *self, const struct turn *turn, const struct msg *in);
void epoch_hear_arrival(struct epoch *self, uint32_t member); // Another process is at this place

// What the run waits for, in plain words, or NULL.
const char *epoch_lacks(const struct turn *turn);

// Does what has ripened, in whichever phase. `live`: the live half of the pace.
void epoch_settle(struct epoch *self, void *live, const struct turn *turn);
