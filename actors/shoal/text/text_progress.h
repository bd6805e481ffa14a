#pragma once
// text_progress -- the progress of work on a text, as one line on stderr: redrawn in place on a
// terminal, elsewhere printed again every few seconds.

#include "actors/shoal/status_line.h"

struct text_progress {
    const char *what; // What is made of the text: "tokens"; NULL: not shown
    uint64_t bytes_all, began_ms;
    struct status_line line;
};

void text_progress_init(struct text_progress *self, const char *what, uint64_t bytes_all);

// Prints if it is time.
void text_progress_tick(struct text_progress *self, uint64_t bytes, uint64_t made);

// A line of another kind, under the same rule.
void text_progress_say(struct text_progress *self, const char *line);

double text_progress_seconds(const struct text_progress *self); // Since init
// A line that stays, about a bad record that is passed over. A corpus_skip_fn; self is a struct
// text_progress.
void text_progress_skip(void *self, const char *text);

void text_progress_end(struct text_progress *self); // Leaves the cursor on an empty line
