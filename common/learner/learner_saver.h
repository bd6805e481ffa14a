#pragma once
// learner_saver -- a member's part of a save in pieces (common/checkpoint/pieces.h): its share of the state is
// copied, and a thread writes the copy to the shared folder beside what follows. Which steps are saved, and who is
// told of it, is the strategy's: learner_pieces.c for windows, learner_leases_save.c for leases.
//
//     learner_saver_open ─▶ learner_saver_take ─▶ (the thread) ─▶ learner_saver_result: what became of it, and a line
//                                                                 in the log
//
// That a save failed is a line in the log: training goes on. For the learner's files alone; on its thread.

#include "common/checkpoint/saver.h"
#include "common/learner/learner_inside.h"
#include <limits.h>

// All zeros: not open yet.
struct learner_saver {
    saver_t *saver;
    char root[PATH_MAX];   // Of the run
    uint64_t born_unix_ms; // Of the run whose root that is
    uint64_t bytes;        // Room for a copy of the share
};

struct learner_saver_place {
    const char *shared_dir;
    uint32_t keep;
    uint64_t born_unix_ms;
    uint64_t bytes; // Of the parts of a save
};

// Whether the shared folder serves. A full disk passes, and is a line in the log.
int learner_saver_check(const char *shared_dir, struct why *why);

// Whether it is open there, with as much room.
bool learner_saver_fits(const struct learner_saver *self, const struct learner_saver_place *place);

// Takes the memory. After a fault, which it logs, nothing is saved. Not while it is open.
void learner_saver_open(struct learner *learner, struct learner_saver *self,
                        const struct learner_saver_place *place, struct why *why);

// Copies our share of the state as it is, and has it written. `save->root`, `run` and what else the place says do not
// matter. `more` is NULL, or one part beside the state, of a save whose members have taken different pushes: then
// what members have alike is as the first one has it. FAULT_BUSY: an earlier one is still being written.
// FAULT_NOT_FOUND: it is not open.
int learner_saver_take(struct learner *learner, struct learner_saver *self,
                       const struct pieces_save *save, struct interval share,
                       const struct pieces_part *more, struct why *why);

bool learner_saver_is_writing(const struct learner_saver *self);
bool learner_saver_has_ended(const struct learner_saver *self); // There is a result to ask for

// True: a save has ended since the last call; the log has a line for it. _wait: the one that is being written, if one
// is. _close: the same, and it is not open any more.
bool learner_saver_result(struct learner_saver *self, struct saver_result *ret_result);
bool learner_saver_wait(struct learner_saver *self, struct saver_result *ret_result);
bool learner_saver_close(struct learner_saver *self, struct saver_result *ret_result);
