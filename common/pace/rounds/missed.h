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
// and of a member that the rounds wait for, late or not (waits.h)
//
//     the rounds wait for trainer.anna.3fa2 for more than a tenth of the time: of late up to 1.8
//     s, when half of the results took 0.03 s; a result is late after min_round_train_time (now 2 s) or
//     more
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

// Of late `member` let a round wait up to so long beyond what half of its results took.
void missed_waits(const struct turn *turn, uint32_t member, uint32_t waited_ms, uint32_t half_ms,
                  char ret_text[MISSED_BYTES]);
