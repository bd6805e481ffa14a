#pragma once
// lines -- prints frames as lines on the standard output, and counts the frames that were lost.
//
//     18:36:15.123 trainer.3fa2b1c4d5e6f708 PROGRESS round=7 step=6 loss=2.71 ...
//     {"unix_ms":1795372575123,"from":"trainer.anna.3fa2b1c4d5e6f708","kind":"PROGRESS", ... }
//
// The sender's label is known once a ROSTER was heard; until then the name is without it.
//
// A line is text, or JSON; both begin with the time and the sender. A number that frames
// carry as the bits of a float (lr_bits) is printed as a number (lr). Every round opens with a
// ROUND and ends with a COMMIT, and the numbers of rounds have no gaps. So a gap means that news
// was lost on its way to us. The same holds for WINDOW by its number, and for STEPS by its steps.
// One thread.

#include "common/actor/tap.h"
#include "common/run/roster.h"

enum { LINES_COUNTED = 4 }; // Kinds of news that have no gaps

struct lines {
    bool json;
    bool shows_gaps;                  // Report on stderr which news of steps were lost
    const char *member;               // Only frames of senders that are called so: the beginning of
                                      // the name, of its label or of its key. NULL: of all
    bool hides_roster, hides_members; // ROSTER and MEMBERS only for the labels
    struct roster *roster;            // The newest; NULL: none was heard
    uint64_t roster_incarnation;      // Of the coordinator that told it
    uint64_t printed, dropped;        // Lines printed; frames dropped as bad
    uint64_t hidden;                  // Frames of other senders than `member`
    uint64_t last[LINES_COUNTED];     // By kind: the newest number, or the end of the newest steps
    uint64_t missing[LINES_COUNTED];  // By kind: frames that were lost; of STEPS, the steps
    char *line;                       // Grows to the longest
    size_t line_max;
}; // Zeroed but for the first five: nothing printed

void lines_print(struct lines *self, const struct letter *letter);
void lines_drop(struct lines *self, const struct letter *letter); // Prints the reason on stderr
void lines_end(struct lines *self);                               // Prints the sum of the gaps
