#pragma once
// lost_steps -- what `up` says when the run goes back: nobody holds its newest step, or its owner has ordered
// it. Pure. RUN names the newest restore of the run's whole history, so the first RUN that is heard says
// nothing: its restore was before this `up`, whatever other news said of steps by then.
//
//     if (heard & VIEW_RUN && lost_steps_hear (&self, &view->now, begin, line)) say (line);
//     self.step = view->now.step;

#include "common/wire/wire.h"

enum { LOST_STEPS_LINE = 200 };

struct lost_steps {
    uint64_t step; // Of the news before
    bool knows;    // A RUN was heard, and the rest is of the newest one
    uint64_t restored_epoch, restore_point_step;
};

// `begin`: the steps that were done before the run. True: the run went back, and `line` says where to and where
// that state was.
bool lost_steps_hear(struct lost_steps *self, const struct wire_run *now, uint64_t begin,
                     char line[LOST_STEPS_LINE]);
