#pragma once
// inbox -- letters that have come and wait to be heard. It decides which is heard next: senders take turns, by the
// time that their letters cost (cost.h).
//
//     put ─▶ anna ▪▪▪▪▪▪▪▪      a ring of senders (turns.h), each with its letters in their order
//            ben  ▪         ─▶ next ─▶ charge: what the letter made us do
//            carl ▪▪
//
// So a sender delays the others by at most INBOX_TURN_US in each round of the ring, or by one letter if that
// costs more. It gains nothing by many letters or by costly questions.
//
// The inbox is bounded. A sender may have at most as many letters waiting as there are places left, and as many
// bytes as are left ("Dynamic queue length thresholds", Choudhury and Hahne 1998). So each sender that takes all it
// may leaves half of the room to the others. One letter of a new sender is taken as long as there is any room: it
// takes fifteen greedy senders to use up all letters, and seven, with frames of 4 MiB, to use up all bytes. A letter
// without room is refused: it is lost, as mail can be, and its sender repeats what it needs.
//
// A sender without a letter here keeps its debt until its place is needed for another one.
//
// Pure: a value of about 2 MiB, zeroed at first, most of it never touched; no clock, no memory of its own.
// One thread.

#include "common/base/key.h"
#include "common/base/turns.h"
#include <stddef.h>

enum {
    INBOX_LETTERS = 16384,             // Of all senders
    INBOX_SENDERS = INBOX_LETTERS + 1, // One for each letter, and the one that is being heard
    INBOX_BYTES = 256 << 20,
    INBOX_BUCKETS = 4096,
    INBOX_TURN_US = 200
};

struct inbox_letter {
    void *what; // The caller's
    size_t bytes;
    uint32_t next; // Letter of the same sender, or free one. Places: 0 is none, n is index n - 1
};

struct inbox_sender {
    struct waiter turn; // First: a waiter is its sender's
    struct key key;
    uint32_t first, last, count; // Its letters
    size_t bytes;
    uint32_t chain;         // The next in its bucket
    uint32_t before, after; // In the list of idle senders
};

struct inbox {
    struct turns turns;
    struct inbox_letter letters[INBOX_LETTERS];
    struct inbox_sender senders[INBOX_SENDERS];
    uint32_t buckets[INBOX_BUCKETS];
    uint32_t count, letters_used, free_letter;
    uint32_t senders_used, idle_first, idle_last; // First: idle for longest
    size_t bytes;
    struct inbox_sender *heard; // Sender of the letter that is out, until it is charged
};

// Puts a letter last. False: there is no room for it, and it stays the caller's.
bool inbox_put(struct inbox *self, const struct key *sender, void *what, size_t bytes);

// Takes out the letter that is heard next; NULL: none waits. Charge it before the next call (ensured).
void *inbox_next(struct inbox *self);

// What the letter that inbox_next gave out has cost.
void inbox_charge(struct inbox *self, uint64_t us);
