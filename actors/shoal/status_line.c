// status_line -- a terminal gets its line redrawn four times a second; a pipe, a file or TERM=dumb
// gets a new one every five seconds.

#include "actors/shoal/status_line.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TTY_MS = 250, PLAIN_MS = 5000, WIDTH_DEFAULT = 120 };

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

static int terminal_width(const struct status_line *self)
{
    struct winsize size;
    const bool known = ioctl(fileno(self->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 10;
    return known ? size.ws_col : WIDTH_DEFAULT;
}

void status_line_draw(const struct status_line *self, const char *line)
{
    if (self->is_tty) fprintf(self->out, "\r\033[K%.*s", terminal_width(self) - 1, line);
    else fprintf(self->out, "%s\n", line);
    fflush(self->out);
}

void status_line_clear(const struct status_line *self)
{
    if (self->is_tty) fputs("\r\033[K", self->out);
    fflush(self->out);
}
