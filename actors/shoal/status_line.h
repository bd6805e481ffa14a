#pragma once
// status_line -- one line about the progress of work: redrawn in place on a terminal, printed again
// every few seconds elsewhere.
//
//     if (status_line_due(&line, now_ms)) status_line_draw(&line, "step 7/460");

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { STATUS_LINE_MAX = 480 }; // Bytes of a line, its zero included

struct status_line {
    FILE *out;       // Borrowed
    uint64_t due_ms; // When the line is next drawn; 0: at once
    bool is_tty;     // The line can be redrawn in place
};

void status_line_init(struct status_line *self, FILE *out);

// Whether it is time to draw; the next time is set then.
bool status_line_due(struct status_line *self, uint64_t now_ms);

// Draws the line, on a terminal cut to its width.
void status_line_draw(const struct status_line *self, const char *line);

// Removes the line from a terminal; the cursor is then at its beginning.
void status_line_clear(const struct status_line *self);
