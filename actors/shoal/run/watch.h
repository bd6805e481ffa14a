#pragma once
// watch -- what `shoal status --watch` shows of a run, and what it measures for that from the news:
//
//     run demo: RoundTrain, at most 5.2s more; coordinator heard 0.3s ago
//     step 123 of 460 [######..................] epoch 4, round 131
//     loss 2.314  █▆▅▄▃▃▂▂▁▁
//     18.4k tokens/s, 252k tokens so far, about 3m05s left
//
//       member             state    tokens/s  heard     now
//       trainer.anna.3fa2  healthy     4.62k  0.3s ago  computes
//       trainer.91c0       healthy     4.55k  0.2s ago  has its result, waits for the others
//
// Tokens/s are those of RUN. A member's are its share of them: that of its results in the newest
// commits; under windows, of its part of the batches, as it reports it. Pure: the caller passes messages in.

#include "actors/shoal/run/run_view.h"
#include "common/actor/last_heard.h"
#include <stdio.h>

enum { WATCH_LOSSES = 40, WATCH_MEMBERS = 24 }; // Shown

struct watch {
    double samples[MEMBERS_MAX], all_samples; // By member, and together; older ones weigh less
    uint64_t loss_step;                       // Of the newest loss
    double loss;                              // The newest; 0: none yet
    double losses[WATCH_LOSSES]; // Means of `per_loss` steps each, since the watch began
    unsigned losses_count, per_loss, in_newest; // Of the newest: so many steps so far
};

// What the broker says of the actors, at the time of drawing.
struct watch_heard {
    const struct last_heard *coordinator; // NULL: it has not answered
    const struct last_heard *members;     // By member, where was_told
    const bool *was_told;
    uint64_t broker_silent_ms;
};

// Zeroed memory; about 130 KiB. `heard`: what run_view_hear returned for the message.
void watch_hear(struct watch *self, const struct run_view *view, unsigned heard);

// Whether the broker is asked about this member: it is shown, or was there lately.
bool watch_shows(const struct run_view *view, uint32_t index);

// Writes lines, each ended by a newline. `utf8`: the curve of the loss in block characters.
void watch_draw(FILE *out, const struct watch *self, const char *run, const struct run_view *view,
                const struct watch_heard *heard, bool utf8);
