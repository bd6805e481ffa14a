#pragma once
// cost -- what it costs an actor to hear a letter and to do what follows, in microseconds of one processor. One
// table for all that counts work: the shell charges senders by it (inbox.h), the broker takes the frames of a
// kind from its sender's budget by it (broker/gate.c), and the simulator lets that time pass (tests/sim/work.c).
//
// The figures are of one core of a server of 2021 (cost_bench), rounded up. They need not be right: who
// sends twice as much must pay twice as much, and who asks for much must pay more than who asks for
// little.
//
// Pure; any thread.

#include "common/actor/msg.h"

enum {
    COST_HEAR_US = 40,    // A body is unpacked, and the core decides
    COST_VERIFY_US = 60,  // A signature is checked
    COST_SAY_US = 50,     // A frame is packed and signed
    COST_BYTES_A_US = 50, // ... and so many bytes of it, or of one that is heard, take another
    COST_READ_US = 30,    // A record is read from the ledger
    COST_STORE_US = 100   // A record is stored: its part of the sync
};

// Before anything follows from it.
uint64_t cost_of_hearing(uint16_t kind, uint64_t bytes);

// Of an effect: mail, news, a record, commits from the ledger. All others cost nothing here.
uint64_t cost_of_effect(const struct effect *effect);

// Of the effects that have been added to an outbox since it had `count`.
uint64_t cost_of_effects(const struct outbox *out, uint32_t count);

// How many frames of a budget one frame of this kind to a coordinator takes, at least 1: what it may lead to
// there, beside the cheapest letter. A role that sends all that it needs stays far below its budget.
uint32_t cost_in_frames(uint16_t kind);

// The same of news, which the broker sends to everybody and everybody unpacks. A trainer has three in a round; so
// few that no burst of them fills a subscriber's queue.
enum { COST_NEWS_FRAMES = 8 };
