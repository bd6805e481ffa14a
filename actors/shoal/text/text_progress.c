// The first line is due only after an interval, so work that takes no time prints nothing.
#include "actors/shoal/text/text_progress.h"
#include "actors/shoal/show.h"
#include "common/base/clock.h"
#include <stdio.h>

void text_progress_init(struct text_progress *self, const char *what, uint64_t bytes_all)
{
    *self = (struct text_progress){ .what = what, .bytes_all = bytes_all };
    self->began_ms = clock_ms();
    status_line_init(&self->line, stderr);
    status_line_due(&self->line, self->began_ms); // Sets the time of the first line
}

double text_progress_seconds(const struct text_progress *self)
{
    return (double)(clock_ms() - self->began_ms) / 1000;
}

void text_progress_say(struct text_progress *self, const char *line)
{
    if (status_line_due(&self->line, clock_ms())) status_line_draw(&self->line, line);
}

void text_progress_tick(struct text_progress *self, uint64_t bytes, uint64_t made)
{
    char line[STATUS_LINE_MAX], bar[SHOW_MAX], count[SHOW_MAX], left[SHOW_MAX], what[100] = "";
    const double seconds = text_progress_seconds(self), done = (double)bytes;
    show_bar(self->bytes_all ? done / (double)self->bytes_all : 0, 12, bar);
    show_count((double)made, count);
    if (self->what) snprintf(what, sizeof what, "  %s %s", count, self->what);
    show_duration(done > 0 ? seconds * ((double)self->bytes_all - done) / done : -1, left);
    snprintf(line, sizeof line, "%s %.1f of %.1f MB%s  %.1f MB/s  ETA %s", bar, done / 1e6,
             (double)self->bytes_all / 1e6, what, seconds > 0 ? done / 1e6 / seconds : 0, left);
    text_progress_say(self, line);
}

void text_progress_skip(void *context, const char *text)
{
    struct text_progress *self = context;
    status_line_clear(&self->line);
    fprintf(stderr, "passed over: %s\n", text);
}

void text_progress_end(struct text_progress *self) { status_line_clear(&self->line); }
