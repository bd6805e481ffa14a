#include "actors/shoal/local/progress.h"
#include "actors/shoal/show.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PACE_MS = 30000, WIDTH_DEFAULT = 120 };

void progress_init(struct progress *self, FILE *out, const double *baselines, uint32_t seq_len,
                   uint64_t now_ms)
{
    const char *terminal = getenv("TERM");
    *self = (struct progress){
        .out = out, .baselines = baselines, .seq_len = seq_len, .began_ms = now_ms
    };
    self->is_tty = isatty(fileno(out)) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void progress_hear(struct progress *self, const struct run_view *view)
{
    double loss = (double)view->now.loss;
    if (!(loss > 0)) return;
    self->loss = self->loss > 0 ? self->loss + 0.1 * (loss - self->loss) : loss;
}

static void take_pace(struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    const struct wire_run *now = &view->now;
    if (self->from_ms == 0 || now->step < self->from_step) {
        if (now->step == 0) return; // The first step shows that it has begun
        self->from_ms = now_ms;
        self->from_step = now->step;
        self->from_samples = now->samples_done;
        return;
    }
    double seconds = (double)(now_ms - self->from_ms) / 1000;
    if (seconds < 2) return;
    self->steps_per_s = (double)(now->step - self->from_step) / seconds;
    self->tokens_per_s = (double)(now->samples_done - self->from_samples) * self->seq_len / seconds;
    if (now_ms - self->from_ms < PACE_MS) return;
    // Half of the window goes: the pace neither jumps nor remembers for ever.
    self->from_step += (now->step - self->from_step) / 2;
    self->from_samples += (now->samples_done - self->from_samples) / 2;
    self->from_ms += (now_ms - self->from_ms) / 2;
}

// "loss 1.912 (below order 1: 2.30)": the best of the baselines that it has passed.
static size_t put_loss(const struct progress *self, char *line, size_t max)
{
    if (!(self->loss > 0)) return (size_t)snprintf(line, max, "loss -");
    int count = snprintf(line, max, "loss %.3f", self->loss);
    if (!self->baselines) return (size_t)count;
    return (size_t)count +
           (size_t)snprintf(line + count, max - (size_t)count, " [order 0: %.2f  1: %.2f  2: %.2f]",
                            self->baselines[0], self->baselines[1], self->baselines[2]);
}

size_t progress_line(const struct progress *self, const struct run_view *view, uint64_t now_ms,
                     char *line, size_t max)
{
    char bar[SHOW_MAX], rate[SHOW_MAX], left[SHOW_MAX], spent[SHOW_MAX], loss[120];
    const struct wire_run *now = &view->now;
    show_duration((double)(now_ms - self->began_ms) / 1000, spent);
    if (!view->has_run)
        return (size_t)snprintf(line, max, "%s  waiting for the coordinator", spent);
    double steps = now->total_steps > now->step ? (double)(now->total_steps - now->step) : 0;
    put_loss(self, loss, sizeof loss);
    show_bar(now->total_steps ? (double)now->step / (double)now->total_steps : 0, 12, bar);
    show_count(self->tokens_per_s, rate);
    show_duration(self->steps_per_s > 0 ? steps / self->steps_per_s : -1, left);
    int count =
        snprintf(line, max,
                 "%s  %-12s %s step %llu/%llu  epoch %llu  %s  %s tok/s  %u healthy %u pending  "
                 "ETA %s",
                 spent, run_view_phase(view), bar, (unsigned long long)now->step,
                 (unsigned long long)now->total_steps, (unsigned long long)now->epoch, loss, rate,
                 now->healthy, now->pending, left);
    return (size_t)count < max ? (size_t)count : max - 1;
}

static size_t terminal_width(const struct progress *self)
{
    struct winsize size;
    return ioctl(fileno(self->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col
                                                                                : WIDTH_DEFAULT;
}

uint64_t progress_tick(struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    char line[PROGRESS_LINE_MAX];
    if (now_ms < self->due_ms) return self->due_ms;
    self->due_ms = now_ms + (self->is_tty ? PROGRESS_TTY_MS : PROGRESS_PLAIN_MS);
    take_pace(self, view, now_ms);
    progress_line(self, view, now_ms, line, sizeof line);
    if (self->is_tty) fprintf(self->out, "\r\033[K%.*s", (int)terminal_width(self) - 1, line);
    else fprintf(self->out, "%s\n", line);
    fflush(self->out);
    return self->due_ms;
}

void progress_event(struct progress *self, uint64_t now_ms, const char *line)
{
    char spent[SHOW_MAX];
    show_duration((double)(now_ms - self->began_ms) / 1000, spent);
    fprintf(self->out, "%s%s  %s\n", self->is_tty ? "\r\033[K" : "", spent, line);
    fflush(self->out);
    if (self->is_tty) self->due_ms = 0; // Draw the line again, below
}

void progress_end(struct progress *self)
{
    if (self->is_tty) fputs("\r\033[K", self->out);
    fflush(self->out);
}
