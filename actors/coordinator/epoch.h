#pragma once
// epoch -- the phases around the steps: waiting, warm-up, cooldown, pause; checkpoints, and the owner's
// orders.
//
// The epoch_hear_ functions record what a message says, and answer it: acknowledged, or refused
// with a reason. epoch_settle decides which phase follows. An order of the owner is carried out at
// once.
//
// Part of the coordinator's core: pure, one thread; it borrows the turn for the call.

#include "actors/coordinator/holdings.h"
#include "actors/coordinator/unread.h"
#include "actors/coordinator/warmup.h"

// A crash may lose all of it.
struct epoch {
    struct holdings holdings;
    struct warmup warmup;
    struct unread unread;
    uint64_t lost_ms; // Since when enough members are here and none holds it; 0: not so
    // Since when nobody here holds it, and too few trainers are here to go back; 0: not so
    uint64_t few_ms;
    // Since when members that are here say by PINGs that they hold it, and none reports it; 0: not so
    uint64_t claimed_ms;
    uint64_t control_number; // The newest order that this life of the coordinator took
    bool control_done;       // That order was carried out
};

void epoch_hear_holds(struct epoch *self, const struct turn *turn, const struct msg *in);
void epoch_hear_checkpoint(const struct turn *turn, const struct msg *in);
void epoch_hear_control(struct epoch *self, const struct turn *turn, const struct msg *in);

// A new process has this index; `is_new_member`: of another key than before.
void epoch_hear_arrival(struct epoch *self, uint32_t member, bool is_new_member);

// Writes in plain words what the run waits for, "" if it waits for nothing; returns `text`.
enum { EPOCH_LACKS_MAX = 224 }; // As in RUN
char *epoch_lacks(const struct epoch *self, const struct turn *turn, char text[EPOCH_LACKS_MAX]);

// Enters the next phase if the present one is over. The caller repeats it until the phase stays.
// `live`: the state of the pace that a crash may lose.
void epoch_settle(struct epoch *self, void *live, const struct turn *turn);
