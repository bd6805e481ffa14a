#pragma once
// overdue -- are saves in pieces due and none becomes whole? The trainers know why (save.failed, save.unfinished,
// save.skipped in their logs); here it is only seen that nothing comes. Pure: the caller passes the time in.

#include "common/wire/wire.h"

enum { OVERDUE_MS = 30000 };

struct overdue_rules {      // Of the configuration
    uint64_t first_step;    // With which the run began
    uint64_t steps, passes; // A save is due after every so many; both 0: there are no saves
    uint64_t batch;         // Samples of a step
};

struct overdue { // Zero at first
    uint64_t saved_step, since_ms;
};

// How many steps have been made since the newest save or checkpoint, if at least three saves were due since and it is
// OVERDUE_MS old; else 0. Passes count once the run knows how long one is. Call it with each RUN.
uint64_t overdue_steps(struct overdue *self, const struct overdue_rules *rules,
                       const struct wire_run *now, uint64_t now_ms);
