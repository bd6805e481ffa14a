// status_line -- a terminal gets its line redrawn four times a second; a pipe, a file or TERM=dumb
// gets a new one every five seconds.

#include "actors/shoal/status_line.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TTY_MS = 250, PLAIN_MS = 5000, WIDTH_DEFAULT = 120, HEIGHT_DEFAULT = 24 };

void status_line_init(struct status_line *self, FILE *out)
{
    const char *terminal = getenv("TERM");
    *self = (struct status_line){
        .out = out,
        .is_tty = isatty(fileno(out)) && !(terminal && strcmp(terminal, "dumb") == 0),
    };
}

bool status_line_due(struct status_line *self, uint64_t now_ms)
{
    if (now_ms < self->due_ms) return false;
    self->due_ms = now_ms + (self->is_tty ? TTY_MS : PLAIN_MS);
    return true;
}

static struct winsize terminal_size(const struct status_line *self)
{
    struct winsize size = { 0 };
    ioctl(fileno(self->out), TIOCGWINSZ, &size);
    if (size.ws_col <= 10) size.ws_col = WIDTH_DEFAULT;
    if (size.ws_row <= 2) size.ws_row = HEIGHT_DEFAULT;
    return size;
}

// The bytes of the first `columns` characters of a line.
static int bytes_of(const char *line, unsigned columns)
{
    int bytes = 0;
    for (; line[bytes] && line[bytes] != '\n'; bytes++)
        if ((line[bytes] & 0xc0) != 0x80 && columns-- == 0) break;
    return bytes;
}

void status_line_draw(const struct status_line *self, const char *line)
{
    const int bytes = bytes_of(line, terminal_size(self).ws_col - 1u);
    if (self->is_tty) fprintf(self->out, "\r\033[K%.*s", bytes, line);
    else fprintf(self->out, "%s\n", line);
    fflush(self->out);
}

void status_line_clear(const struct status_line *self)
{
    if (self->is_tty) fputs("\r\033[K", self->out);
    fflush(self->out);
}

void status_line_draw_block(struct status_line *self, const char *block)
{
    const struct winsize size = terminal_size(self);
    unsigned rows = 0;
    if (!self->is_tty) {
        fprintf(self->out, "%s\n", block);
        fflush(self->out);
        return;
    }
    if (self->rows) fprintf(self->out, "\033[%uA", self->rows); // Up
    for (const char *line = block; *line && rows + 1 < size.ws_row; rows++) {
        fprintf(self->out, "\r\033[K%.*s\n", bytes_of(line, size.ws_col - 1u), line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    fputs("\033[J", self->out); // Nothing is left below
    fflush(self->out);
    self->rows = rows;
}
