#pragma once
// missed -- when a round is over: the trainers whose results it lacks, or the witnesses whose votes it lacks,
// as a sentence for everybody.
//
//     the round went on after 2.7 s without the results of trainer.anna.3fa2 (3 of 3 votes lack them): it
//     waits 3 times as long as half of them take, at least min_round_train_time (now 2 s)
//
// and if its time was up
//
//     the round's time was up without the results of trainer.anna.3fa2 (2 of 3 votes lack them);
//     if unreachable, `shoal doctor` says so; if too slow, raise max_round_train_time (now 30 s)
//
// Only live members are named: no round waits for the others. Nothing is decided by it. Part of the
// coordinator's core: pure.

#include "common/pace/rounds/tally.h"
#include "common/pace/turn.h"
#include "common/run/assignment.h"

enum { MISSED_BYTES = sizeof((struct wire_run *)0)->lacks };

// "" if nothing is missing. `waited_ms`: how long the round waited for results; 0: its time was up. Borrows
// what belongs to the newest round, which is still open.
void missed_sentence(const struct turn *turn, const struct tally *tally, const struct deal *deal,
                     uint32_t waited_ms, char ret_text[MISSED_BYTES]);
