#pragma once
// news -- what everybody is told (RUN, ROSTER, BEAT and what the pace has open), and the answers to
// ASK for a member that missed it.
//
// News may be lost. Each frame has the whole newest state, so the next one replaces a lost one. The roster alone may
// have megabytes: it is told whole (ROSTER) every ten seconds at most, or at once if more than 64 of its lines have
// changed since; between these times its changes (MEMBERS).
// A member that has missed a ROSTER sees the gap and asks.
//
// The loss in RUN is the lower median of the losses that live trainers report in their PINGs; 0 is no report. Fewer than
// half of those that report cannot push it beyond what the others report. No member is asked how fast the run is: the shell measures
// that by commits and fills it in (coordinator_main.c).
//
// Part of the coordinator's core: pure, one thread; it borrows the turn for the call.

#include "common/actor/msg.h"
#include "common/wire/wire.h"

struct turn;

// What was told last, and what must be told in this turn.
struct news {
    bool told;     // False: nothing was told since this coordinator or its broker started
    bool beat_due; // The heartbeat is due: it repeats the time left and the trainers' progress
    bool roster_delay_over;                 // The delay that gathers changes of the roster is over
    uint64_t beat_log_seq, open_number;     // Of the last BEAT; of what was open (pace.h)
    uint64_t roster_version, whole_version; // Of the last ROSTER or MEMBERS; of the last ROSTER
    uint64_t whole_ms;   // No ROSTER before this, unless the changes do not fit in a MEMBERS
    struct wire_run run; // The last RUN
};

// After each decision of a turn: tells what differs from what was told, each frame at most once a call. `lacks`: what
// the run waits for or what its newest step has missed, as a sentence; "" if nothing.
void news_settle(struct news *self, const struct turn *turn, const char *lacks);

// Answers ASK by mail to its sender.
void news_hear_ask(const struct turn *turn, const struct msg *in, const char *lacks);

// EPOCH_END for the present step. Its lists lie in turn->lists, until that memory is used again.
struct wire_epoch_end news_epoch_end(const struct turn *turn, uint64_t epoch,
                                     const struct hash *digest);
