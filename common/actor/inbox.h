#pragma once
// inbox -- letters that have come and wait to be heard, and whose is heard next: senders take turns, by what
// hearing their letters costs (cost.h).
//
//     put ─▶ anna ▪▪▪▪▪▪▪▪      a ring of senders (turns.h), each with its letters in their order
//            ben  ▪         ─▶ next ─▶ charge: what the letter made us do
//            carl ▪▪
//
// So a sender delays the others by at most INBOX_TURN_US in each round of the ring, or by one letter if that
// costs more: the number of its letters and the cost of its questions do it no good.
//
// What waits is bounded. A sender may have as many letters waiting as there are places left, and so
// many bytes ("Dynamic queue length thresholds", Choudhury and Hahne 1998): however many take all that they may,
// there is room for one more letter of somebody else. What is beyond is refused: lost as mail can be
// lost, and its sender repeats what it needs.
//
// A sender of which nothing waits keeps its debt until its place is needed for another.
//
// Pure: a value of about 2 MiB, zeroed at first, most of it never touched; no clock, no memory of its own.
// One thread.

#include "common/base/key.h"
#include "common/base/turns.h"
#include <stddef.h>

enum {
    INBOX_LETTERS = 16384,             // Of all senders
    INBOX_SENDERS = INBOX_LETTERS + 1, // ... and the one that is being heard
    INBOX_BYTES = 256 << 20,
    INBOX_BUCKETS = 4096,
    INBOX_TURN_US = 200
};

struct inbox_letter {
    void *what; // The caller's
    size_t bytes;
    uint32_t next; // Of its sender, or free; as places: 0 is none, n is the one at n - 1
};

struct inbox_sender {
    struct waiter turn; // First: a waiter is its sender's
    struct key key;
    uint32_t first, last, count; // Its letters
    size_t bytes;
    uint32_t chain;         // The next in its bucket
    uint32_t before, after; // Among those of which nothing waits
};

struct inbox {
    struct turns turns;
    struct inbox_letter letters[INBOX_LETTERS];
    struct inbox_sender senders[INBOX_SENDERS];
    uint32_t buckets[INBOX_BUCKETS];
    uint32_t count, letters_used, free_letter;
    uint32_t senders_used, idle_first, idle_last; // Idle: the longest first
    size_t bytes;
    struct inbox_sender *heard; // Whose letter next gave out, until it is charged
};

// Puts a letter last. False: there is no room for it, and it stays the caller's.
bool inbox_put(struct inbox *self, const struct key *sender, void *what, size_t bytes);

// Takes out the letter that is heard next; NULL: none waits. It must be charged before the next one.
void *inbox_next(struct inbox *self);

// What the letter that inbox_next gave out has cost.
void inbox_charge(struct inbox *self, uint64_t us);
