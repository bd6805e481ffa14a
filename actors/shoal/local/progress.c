// progress -- two numbers are estimated here, and the rest is copied from the news: steps per
// second, over a window of about half a minute, and the loss, as a running mean over rounds. Both
// start when the first step is done, so that the start-up of the run does not count. The time left
// follows from them. Tokens per second are the coordinator's: one number for all that show it.

#include "actors/shoal/local/progress.h"
#include "actors/shoal/show.h"
#include <inttypes.h>

enum { PACE_MS = 30000 };

void progress_init(struct progress *self, FILE *out, const double *baselines, uint64_t now_ms)
{
    *self = (struct progress){ .baselines = baselines, .began_ms = now_ms };
    status_line_init(&self->line, out);
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
        return;
    }
    double seconds = (double)(now_ms - self->from_ms) / 1000;
    if (seconds < 2) return;
    self->steps_per_s = (double)(now->step - self->from_step) / seconds;
    if (now_ms - self->from_ms < PACE_MS) return;
    // Half of the window goes: the pace neither jumps nor remembers for ever.
    self->from_step += (now->step - self->from_step) / 2;
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

static void put_line(const struct progress *self, const struct run_view *view, uint64_t now_ms,
                     char line[STATUS_LINE_MAX])
{
    char bar[SHOW_MAX], rate[SHOW_MAX], left[SHOW_MAX], spent[SHOW_MAX], loss[120];
    const struct wire_run *now = &view->now;
    show_duration((double)(now_ms - self->began_ms) / 1000, spent);
    if (!view->has_run) {
        snprintf(line, STATUS_LINE_MAX, "%s  waiting for the coordinator", spent);
        return;
    }
    double steps = now->total_steps > now->step ? (double)(now->total_steps - now->step) : 0;
    put_loss(self, loss, sizeof loss);
    show_bar(now->total_steps ? (double)now->step / (double)now->total_steps : 0, 12, bar);
    show_count((double)now->tokens_per_s, rate);
    show_duration(self->steps_per_s > 0 ? steps / self->steps_per_s : -1, left);
    snprintf(line, STATUS_LINE_MAX,
             "%s  %-12s %s step %" PRIu64 "/%" PRIu64 "  epoch %" PRIu64
             "  %s  %s tok/s  %u healthy %u pending  "
             "ETA %s",
             spent, run_view_phase(view), bar, now->step, now->total_steps, now->epoch, loss, rate,
             now->healthy, now->pending, left);
}

uint64_t progress_tick(struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    char line[STATUS_LINE_MAX];
    if (status_line_due(&self->line, now_ms)) {
        take_pace(self, view, now_ms);
        put_line(self, view, now_ms, line);
        status_line_draw(&self->line, line);
    }
    return self->line.due_ms;
}

void progress_event(struct progress *self, uint64_t now_ms, const char *line)
{
    char spent[SHOW_MAX];
    show_duration((double)(now_ms - self->began_ms) / 1000, spent);
    status_line_clear(&self->line);
    fprintf(self->line.out, "%s  %s\n", spent, line);
    fflush(self->line.out);
    if (self->line.is_tty) self->line.due_ms = 0; // Draw the line again, below
}

void progress_end(struct progress *self) { status_line_clear(&self->line); }
