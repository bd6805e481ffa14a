#pragma once
// parts -- a role is a list of parts. A part has its own state. It hears every message, and then
// does what is due.
//
//     message ─▶ member_hear ─▶ each part hears ─▶ position kept ─▶ each part looks ─▶ finished?
//
//     trainer        replica, pace, blobs, the final report
//     checkpointer   saving, replica, pace, registering, blobs
//     witness        pace, blobs
//     data provider  pace; its shell serves the samples
//
// The life of a process is the same in every role and is handled here and in member.c: JOURNAL,
// START, QUIT, LEAVE, and the end of the run. Parts send their frames in the order of the list.
//
// Part of a core: pure.

#include "common/member/member.h"

struct blobs;
struct replica;

// One message, and everything that parts work on. Valid for one step.
struct member_turn {
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
    // Takes what concerns it from the message; then, once all parts have heard it, does what is due.
    void (*hear)(void *self, const struct member_turn *turn);
    void (*look)(void *self, const struct member_turn *turn);
    // Called in each turn once the run is finished, until it returns true: the role's work is done
    // and its final report is sent. At most one part of a list has it.
    bool (*done)(void *self, const struct member_turn *turn);
};

// Takes one message through the list. When the run is finished, a role without a `done` ends the
// process. A role with one stays, because peers may need what it holds; after that QUIT ends it at
// once, without LEAVE's answer. A guest ends in any case: the owner's machines serve its peers.
void parts_step(struct member_turn *turn, const struct part *parts);
