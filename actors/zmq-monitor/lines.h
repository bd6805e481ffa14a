#pragma once
// lines -- frames as lines on the standard output, and what is missing between them.
//
// As text with the time before it, or as JSON. Every round opens with a ROUND and ends with a COMMIT, and
// their numbers have no holes: where there is one, news was lost on its way to us. One thread.

#include "common/actor/tap.h"

struct lines {
    bool json;
    bool shows_gaps;                  // Say on stderr which rounds' news did not come
    uint64_t printed, dropped;        // Lines; frames that could not be taken
    uint64_t last_opened, last_ended; // Rounds of the newest ROUND and COMMIT
    uint64_t missing;                 // ROUND and COMMIT frames that did not come
    char *line;                       // Grows to the longest
    size_t line_max;
}; // Zeroed but for the first two: nothing printed

void lines_print(struct lines *self, const struct letter *letter);
void lines_drop(struct lines *self, const struct letter *letter); // Says why, on stderr
void lines_end(struct lines *self);                               // The sum of the gaps, if wanted
