#pragma once
// cost -- what it costs an actor to hear a letter and to do what follows, in microseconds of one processor. All
// places that count work use it: the shell charges senders (inbox.h), the simulator lets that time pass
// (tests/sim/work.c), and by its second table (cost_in_frames) the broker charges a sender's budget (broker/gate.c).
//
// The figures are of one core of a server of 2021, rounded up. They need not be exact. A sender of twice as much must
// pay twice as much, and a question with much work must cost more than one with little.
//
// Pure; any thread.

#include "common/actor/msg.h"

enum {
    COST_HEAR_US = 40,    // A body is unpacked, and the core decides
    COST_VERIFY_US = 60,  // A signature is checked
    COST_SAY_US = 50,     // A frame is packed and signed
    COST_BYTES_A_US = 50, // Bytes of a frame, sent or heard, that take one more microsecond
    COST_READ_US = 30,    // A record is read from the ledger
    COST_STORE_US = 100   // A record is stored: its part of the sync
};

// Of a letter itself, without the effects that follow.
uint64_t cost_of_hearing(uint16_t kind, uint64_t bytes);

// Of an effect: mail, news, a record, commits from the ledger. All others cost nothing here.
uint64_t cost_of_effect(const struct effect *effect);

// Of the effects that have been added to an outbox since it had `count`.
uint64_t cost_of_effects(const struct outbox *out, uint32_t count);

// How many frames of its sender's budget (broker/budget.h) one frame of this kind takes, at least
// 1: the work that it may cause at its receiver, compared with that of the cheapest letter; of a
// letter between members also the bytes that it takes of the receiver's line: what a member may send
// in a second of such letters, rounds left out, is at most 1 Mbit/s. An actor that sends all that its
// role needs stays far below its budget.
uint32_t cost_in_frames(uint16_t kind);

// COST_NEWS_FRAMES: the same of news, which the broker sends to everybody and everybody unpacks. A trainer has three
// in a round; so few that no burst of them fills a subscriber's queue.
// COST_ROUND_FRAMES: what each round adds to a member's budget: its three news, a vote, a finding and a REVEAL.
enum { COST_NEWS_FRAMES = 8, COST_ROUND_FRAMES = 44 };
