#pragma once
// warmup -- which trainers a Warmup waits for.
//
//     awaited ──reports the model──▶ takes part in the epoch
//        └──does not──▶ late ──late again soon──▶ not awaited ──a while──▶ awaited
//
// An epoch begins once every awaited trainer has reported the model (HOLDS). A trainer that does not, or
// leaves or falls silent instead, costs all others up to warmup_time, in each epoch. So its time is
// limited:
//
// - Late once, it waits for the next epoch, and there it is awaited as all are. So a joiner that loads a
//   large model has two Warmups and the epoch between them.
// - If it is late again within ten times as long as the others waited in vain, no epoch waits for it for
//   ten times as long as they waited now. Then it is awaited again. So one that withholds its report
//   costs about a tenth of the time, and one that needs longer to load loses at most ten Warmups.
// - Meanwhile it is not locked out. It stays pending between the epochs, fetches and serves, and takes
//   part in each epoch for which it reports as soon as the others. It may report from the end of the
//   epoch before on, as they do.
// - If a Warmup leads to no epoch, the next one awaits all: the run may need each of them.
//
// Part of the coordinator's core: pure, one thread; it borrows the turn for the call.

#include "actors/coordinator/holdings.h"

enum warmup_part {
    WARMUP_NO_PART, // It was no trainer of the run when the newest Warmup began, or that is not known
    WARMUP_AWAITED,
    WARMUP_NOT_AWAITED
};

// A crash may lose all of it. By index in the roster; times as turn->now_ms.
struct warmup {
    uint8_t part[MEMBERS_MAX];             // enum warmup_part, in the newest Warmup
    uint64_t late_until_ms[MEMBERS_MAX];   // If it is late before this, it is late again
    uint64_t let_go_until_ms[MEMBERS_MAX]; // It is not awaited in a Warmup that begins before this
};

void warmup_begin(struct warmup *self, const struct turn *turn); // Its phase was entered just now

// An epoch begins now: those that were waited for in vain are late. Call it before the epoch's record.
void warmup_end(struct warmup *self, const struct holdings *holdings, const struct turn *turn);

void warmup_forget(struct warmup *self);                         // All are awaited
void warmup_forget_member(struct warmup *self, uint32_t member); // Another key takes its place

// Whether every awaited trainer that is here has reported something for the present step; and whether
// each of them has reported the run's model, so that all that is missing is not waited for.
bool warmup_have_reported(const struct warmup *self, const struct holdings *holdings,
                          const struct turn *turn);
bool warmup_have_model(const struct warmup *self, const struct holdings *holdings,
                       const struct turn *turn);

// "waiting for trainer.anna.3fa2b4c6d8e0f112 and 1 more to report the model (2 of 4 trainers have)";
// "" if none is awaited any more, or the others have waited for less than a heartbeat. Returns `text`.
char *warmup_print_awaited(const struct warmup *self, const struct holdings *holdings,
                           const struct turn *turn, char *text, size_t max);
