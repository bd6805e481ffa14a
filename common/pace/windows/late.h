#pragma once
// late -- the coordinator's word on a member of the group that is late: the members find it out
// (common/run/lateness.h, in the learner) and say it in STANDS. It changes nothing but what the owner
// reads, and that a member that has been said is left out the first time that a step takes longer than
// step_timeout (level.c), not the second.
//
// Pure; one thread.

#include "common/pace/turn.h"

struct late {
    uint32_t by, member; // Who said so, and of whom
    char words[224];     // For the owner; "": nobody is late
    uint64_t noted_ms;   // When the log had the last line of it
};

// What a member has said in STANDS. The first one that says who is late is quoted until it says
// otherwise: the others say the same, or have a slow line of their own. Who speaks of itself says nothing. The log has one
// line each step_timeout, however often a member changes its word.
void late_hear(struct late *self, const struct turn *turn, uint32_t by,
               const struct wire_stands *said);

bool late_is_said(const struct late *self, uint32_t member);

// The group is another one now.
void late_forget(struct late *self);

// "trainer bob is late: its part of a step took 3.7 s, those of the others 0.9 s". NULL: nobody is.
const char *late_words(const struct late *self);
