#pragma once
// parts -- a role is a list of parts. A part has a state of its own; it hears every message, and does
// what can be done then.
//
//     message ─▶ member_hear ─▶ each part hears ─▶ position kept ─▶ each part looks ─▶ finished?
//
//     trainer        replica, rounds, blobs, the last word
//     checkpointer   the newest round, saving, replica, replay, registering, blobs
//     witness        rounds, blobs
//     data provider  the newest round; the samples are its shell's
//
// The life of a process is the same in every role, and is led here and in member.c: JOURNAL, START,
// QUIT, LEAVE, and the end of the run. The order of a list is the order of what a role says.
//
// Part of a core: pure.

#include "common/member/member.h"

struct blobs;
struct replica;

// One message, and all that parts work on. Lives for one step.
struct turn {
    struct member *member;
    struct blobs *blobs;     // NULL: the role fetches nothing
    struct replica *replica; // NULL: the role holds no parameters
    const struct msg *in;
    struct outbox *out;
    unsigned heard; // What the message brought, enum heard; filled in by parts_step
};

// Each of the three functions is given `self`, and may be NULL. A list ends with a `self` of NULL.
struct part {
    void *self;
    void (*hear)(void *self, const struct turn *turn); // Takes from the message what concerns it
    void (*look)(void *self, const struct turn *turn); // All parts have heard: does what is due
    // Called once the run is finished, until it returns true: nothing is left to do, and the last word
    // is said. At most one part of a list has it.
    bool (*done)(void *self, const struct turn *turn);
};

// Takes one message through the list. At the end of a run a role ends if no part of it has a `done`. The
// others stay, because peers may lack what they hold; once they are done they stop without asking.
void parts_step(struct turn *turn, const struct part *parts);
