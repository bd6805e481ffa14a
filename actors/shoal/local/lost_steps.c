// lost_steps -- a restore goes to the newest checkpoint or save, to the copies in the members' memory, or to the
// beginning. RUN names the step alone; which of them it was follows from the steps of the others.

#include "actors/shoal/local/lost_steps.h"
#include "actors/shoal/show.h"
#include <inttypes.h>
#include <stdio.h>

// A checkpoint may have become the newest between the restore and the RUN that we hear.
static const char *place_of(const struct lost_steps *self, const struct wire_run *now,
                            uint64_t begin)
{
    const uint64_t step = now->restored_step;
    if (step == begin) return "its beginning";
    if (step < self->restore_point_step && step == now->restore_point_step)
        return "an older save on disk";
    if (step == self->restore_point_step || step == now->restore_point_step)
        return now->checkpoint_pieces && now->checkpoint_step == step ? "its newest save on disk"
                                                                      : "its newest checkpoint";
    return "kept in the members' memory";
}

bool lost_steps_hear(struct lost_steps *self, const struct wire_run *now, uint64_t begin,
                     char line[LOST_STEPS_LINE])
{
    const bool went_back = self->knows && now->restored_epoch > self->restored_epoch &&
                           self->step > now->restored_step;
    if (went_back)
        snprintf(line, LOST_STEPS_LINE,
                 "the run is back at step %" PRIu64 ", %s: %" PRIu64
                 " step%s after it are lost and trained again",
                 now->restored_step, place_of(self, now, begin), self->step - now->restored_step,
                 show_s(self->step - now->restored_step));
    self->knows = true;
    self->restored_epoch = now->restored_epoch;
    self->restore_point_step = now->restore_point_step;
    return went_back;
}
