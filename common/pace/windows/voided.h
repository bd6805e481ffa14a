#pragma once
// voided -- a step that no group can take: a number of its gradient is not finite, or a token of its
// samples is none of the vocabulary. It counts for nobody, and nobody is put out for it.
//
//     STANDS broken, unsound ─▶ LEVEL, STEPS closed at that step, voided ─▶ the same samples again
//                                                       voided twice    ─▶ RECORD_PAUSE, in words
//
// Once may be an accident of one machine, and costs a break. Twice is the data, the rate or a
// machine that must be looked at: no further try would end better, so the run pauses and names the
// step, the samples and the member. After a resume it has two tries again.
//
// Pure.

#include "common/pace/windows/windows.h"

enum { VOIDED_MAX = 2 }; // In a row; then the run pauses

// How often in a row `step` has been void by now.
static inline uint32_t voided_times(const struct wire_voided *self, uint64_t step)
{
    return self->times > 0 && self->step == step ? self->times : 0;
}

// ---- the durable half, and the verifier of a ledger ----------------------------------------------

void voided_hear_steps(struct wire_voided *self, const struct wire_steps *steps);
void voided_hear_phase(struct wire_voided *self, const struct wire_record_phase *phase);

// Whether the run pauses, or has paused, because a step was void too often.
bool voided_pauses(const struct run *run);

// ---- the coordinator's half -----------------------------------------------------------------------

// What a closing of the open windows at `end` says, by what their members said; times 0: the step
// `end` is not void.
struct wire_voided voided_find(const struct windows *self, const struct turn *turn, uint64_t end);

// Records the pause if it is due: also after a crash between the step's record and the pause's.
void voided_pause(const struct turn *turn);

// Once that is recorded: a note, and the pause if it is due.
void voided_settle(const struct turn *turn, const struct wire_voided *voided);

// "the gradient of trainer b, of samples 160..171, is not finite".
void voided_words(const struct run *run, const struct wire_voided *voided, char *text, size_t max);
