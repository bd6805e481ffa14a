#pragma once
// news -- what everybody is told, and what is told again to those who missed it.
//
// Part of the coordinator's core: pure.

#include "common/actor/msg.h"
#include "common/wire/wire.h"

struct turn;

void news_run(const struct turn *turn);
void news_round(const struct turn *turn);
void news_roster(const struct turn *turn);
void news_beat(const struct turn *turn);
void news_hear_ask(const struct turn *turn, const struct msg *in);

// The phase has been entered: roster and run are told, and the log says why.
void news_phase(const struct turn *turn, const char *cause);

// The end of an epoch, at the present step. Its list is turn->scratch.
struct wire_epoch_end news_epoch_end(const struct turn *turn, uint64_t epoch,
                                     const struct hash *digest);
