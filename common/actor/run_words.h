#pragma once
// run_words -- what the newest RUN of a run says, in words: the same in `shoal status`, in the demo
// and in the Status of the units. Pure.

#include "common/wire/wire.h"

enum { RUN_WORDS_MAX = 256 };

// What the steps of a run are made in. It follows from the kind of its strategy's part of CONFIG.
struct run_unit {
    uint16_t config;
    const char *name;     // "round"
    const char *training; // PHASE_TRAIN in words: "RoundTrain", which is Psyche's; "Train"
    bool lets_in;         // An epoch may end early for a trainer that joined while steps were made
    const char *trained;  // The name of a trainer's line about a step
};

// NULL: of no kind that is known here; CONFIG has not been heard yet, say.
const struct run_unit *run_words_unit(uint16_t config);

// A phase in words. `unit` may be NULL.
const char *run_words_phase(const struct run_unit *unit, uint8_t phase);

// "waiting for 1 more trainer (init_min_clients 4)", "waiting: no witness is in the run", "the round's
// time was up without the results of .."; "" if it lacks nothing.
char *run_words_lacks(const struct wire_run *now, char text[RUN_WORDS_MAX]);

// Whether nothing waits for what it lacks: it was missed in a round that is over
// (common/pace/rounds/missed.h); or a trainer is late, left out or waits to join, whose name comes first.
bool run_words_is_past(const struct wire_run *now);

// What a trainer or parameter server waits for that joined while steps were made: "waiting for the next epoch: this
// trainer joined after the present one had begun (step 40 of 6000)", and under windows "; it may end
// early to let it in"; "standing by: the run has its parameter servers, and this one takes the place of one that
// dies (step 40 of 6000)"; "" in a phase that makes no steps. `unit` may be NULL.
char *run_words_pending(const struct run_unit *unit, uint8_t role, const struct wire_run *now,
                        char text[RUN_WORDS_MAX]);

// The same for somebody who takes part in the run of another: the owner's actors are the owner's
// business, and names of settings say nothing. "waiting: the owner's data-provider is not there".
char *run_words_lacks_for_guest(const struct wire_run *now, char text[RUN_WORDS_MAX]);

// "2.713"; "3.4e+38" where most trainers say so; "-" if none is known (0).
enum { RUN_WORDS_LOSS_MAX = 16 };
const char *run_words_loss(double loss, char text[RUN_WORDS_LOSS_MAX]);

// Seconds until the last step at the steps per second of RUN: the one time left that all screens and
// logs show. Negative: unknown, as no step is made now.
double run_words_left_s(const struct wire_run *now);

// "no step for 8 s", once that is too long; "" before, and in a phase in which none is expected.
char *run_words_silent(const struct wire_run *now, char text[RUN_WORDS_MAX]);

// ", about 5 min left", or ", no step for 8 s"; "" if neither is known.
char *run_words_left(const struct wire_run *now, char text[RUN_WORDS_MAX]);

// "RoundTrain: step 100 of 460, loss 2.713, 12345 tokens/s". `loss`: 0 if none is known. The rate is
// named while there is one, what the run waits for while it waits. `unit` may be NULL.
char *run_words_status(const struct run_unit *unit, const struct wire_run *now, double loss,
                       char text[RUN_WORDS_MAX]);
