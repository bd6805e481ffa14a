#pragma once
// missed -- when the time of a round is up: the trainers whose results it lacks, or the witnesses whose
// votes it lacks, as a sentence for everybody.
//
//     the round's time was up without the results of trainer.anna.3fa2 (2 of 3 witnesses lack them);
//     if unreachable, `shoal doctor` says so; if too slow, raise max_round_train_time (now 30 s)
//
// Only live members are named: no round waits for the others. Nothing is decided by it. Part of the
// coordinator's core: pure.

#include "common/pace/rounds/tally.h"
#include "common/pace/turn.h"
#include "common/run/assignment.h"

enum { MISSED_BYTES = sizeof((struct wire_run *)0)->lacks };

// "" if nothing is missing. Borrows what belongs to the newest round, which is still open.
void missed_sentence(const struct turn *turn, const struct tally *tally, const struct deal *deal,
                     char ret_text[MISSED_BYTES]);
