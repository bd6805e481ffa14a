#pragma once
// status_line -- one line about the progress of work, or a block of lines: redrawn in place on a
// terminal, printed again every few seconds elsewhere.
//
//     if (status_line_due(&line, now_ms)) status_line_draw(&line, "step 7/460");
//
// It changes no setting of the terminal, so nothing needs to be restored, however the process ends.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { STATUS_LINE_MAX = 640 }; // Bytes of a line, its zero included

struct status_line {
    FILE *out;       // Borrowed
    uint64_t due_ms; // When the line is next drawn; 0: at once
    bool is_tty;     // The line can be redrawn in place
    unsigned rows;   // Of the block drawn last; the cursor is below it
};

void status_line_init(struct status_line *self, FILE *out);

// Whether it is time to draw; the next time is set then.
bool status_line_due(struct status_line *self, uint64_t now_ms);

// Draws the line, on a terminal cut to its width (120 columns if it says 10 or fewer).
void status_line_draw(const struct status_line *self, const char *line);

// Removes the line from a terminal; the cursor is then at its beginning.
void status_line_clear(const struct status_line *self);

// Draws lines, each ended by a newline. On a terminal they take the place of the block before, cut
// to its width and height; elsewhere an empty line follows. UTF-8; a character takes one column.
void status_line_draw_block(struct status_line *self, const char *block);
