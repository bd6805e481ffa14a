#pragma once
// unread -- which trainers cannot read the save at which the run is (UNREAD), and what they can read.
//
//     all were stopped ─▶ each reads the newest save, step 300: damaged ─▶ UNREAD 300, "I can read 200"
//                     └─▶ all that are here say so, and nobody holds step 300 ─▶ unread_older: step 200
//
// One trainer that can read the newest save is enough: the others fetch the state from it. So nothing is given up because
// one trainer cannot read, or says so. A save that is given up stays in its folder.
//
// A crash may lose all of it: trainers say it again. Part of the coordinator's core: pure, one thread; it borrows the
// turn for the call.

#include "common/pace/turn.h"

struct unread {
    struct {
        uint64_t step, readable;
        struct hash digest;
    } of[MEMBERS_MAX]; // By index in the roster
    uint32_t newest;   // Who said so last, and why
    char because[sizeof((struct wire_unread *)0)->because];
};

void unread_hear(struct unread *self, const struct turn *turn, const struct msg *in); // UNREAD
void unread_forget_member(struct unread *self, uint32_t member); // Another process has this index
void unread_forget(struct unread *self); // The run goes back: no word counts any more

// The run is at a save that none of the trainers that are here can read. Whether one of them holds that state is for
// the caller to say.
bool unread_by_all(const struct unread *self, const struct turn *turn);

// The newest of the older saves that one of them can read; NULL: there is none.
const struct run_point *unread_older(const struct unread *self, const struct turn *turn);

// "t1 cannot read the save of step 300: ...", and what that means for the run. Returns `text`; "": nobody says so.
char *unread_print(const struct unread *self, const struct turn *turn, char *text, size_t max);
