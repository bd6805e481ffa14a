#pragma once
// step_line -- the line that a trainer writes to the log when its replica has taken a step, or several of
// a window: step, loss, learning rate, the run's tokens per second.
//
//     round.trained name=trainer.3fa2b1c4d5e6f708 step=100 loss=2.713 lr=0.0004 tokens_per_s=12345
//
// The loss is that of the trainer's own samples. In a run of windows the line is step.trained, and the
// loss that of the whole batch.
//
// It follows from what the pace of the run tells of the step in struct member, whatever the pace.
// The loss is left out where the trainer trained nothing for the step; the rate is 0 where the pace
// has none.

#include "common/member/member.h"

enum { STEP_LINE_MAX = 256 };

// The line of the newest step that the replica has taken. False: there is none for a step for which
// the trainer trained nothing, because it catches up or waits for the next epoch.
bool step_line(const struct member *member, char text[STEP_LINE_MAX]);
