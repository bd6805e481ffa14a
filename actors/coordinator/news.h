#pragma once
// news -- what everybody is told, and what is told again to those who missed it.
//
// Part of the coordinator's core: pure.

#include "common/actor/msg.h"
#include "common/wire/wire.h"

struct turn;

// What was told, and what is due whether or not it differs.
struct news {
    bool told;       // False: nothing, in this life or to this life of the broker
    bool beat_due;   // The heartbeat: the time left and the trainers' progress are told again
    bool roster_due; // The delay that gathers changes of it is over
    uint64_t beat_seq, open, roster_version;
    struct wire_run run;
};

// At the end of a turn: tells what differs from what was told, each once at most. `lacks`: what the run waits
// for, or NULL.
void news_settle(struct news *self, const struct turn *turn, const char *lacks);
void news_hear_ask(const struct turn *turn, const struct msg *in, const char *lacks);

// The end of an epoch, at the present step. Its lists are turn->lists.
struct wire_epoch_end news_epoch_end(const struct turn *turn, uint64_t epoch,
                                     const struct hash *digest);
