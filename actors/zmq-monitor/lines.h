#pragma once
// lines -- prints frames as lines on the standard output, and counts the frames that were lost.
//
// A line is text with the time before it, or JSON. Every round opens with a ROUND and ends with a
// COMMIT, and the numbers of rounds have no gaps. So a gap means that news was lost on its way to
// us. One thread.

#include "common/actor/tap.h"

struct lines {
    bool json;
    bool shows_gaps;                  // Report on stderr which rounds' news were lost
    uint64_t printed, dropped;        // Lines printed; frames dropped as bad
    uint64_t last_opened, last_ended; // Rounds of the newest ROUND and COMMIT
    uint64_t missing;                 // ROUND and COMMIT frames that were lost
    char *line;                       // Grows to the longest
    size_t line_max;
}; // Zeroed but for the first two: nothing printed

void lines_print(struct lines *self, const struct letter *letter);
void lines_drop(struct lines *self, const struct letter *letter); // Prints the reason on stderr
void lines_end(struct lines *self);                               // Prints the sum of the gaps
