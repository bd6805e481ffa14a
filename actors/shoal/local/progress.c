// progress -- two numbers are estimated here, and the rest is copied from the news: steps per
// second, over a window of about half a minute, and the loss, as a running mean over rounds. Both
// start when the first step is done, so that the start-up of the run does not count. The time left
// follows from them, and counts down. Tokens per second are the coordinator's: one number for all that show it.

#include "actors/shoal/local/progress.h"
#include "actors/shoal/show.h"
#include "common/actor/run_words.h"
#include <inttypes.h>

enum { PACE_MS = 30000 };

void progress_init(struct progress *self, FILE *out, const double *baselines, uint64_t now_ms)
{
    *self = (struct progress){ .baselines = baselines, .began_ms = now_ms };
    status_line_init(&self->line, out);
}

// Taken at commits, so that the place of the present within a round does not count.
static void take_pace(struct progress *self, uint64_t step, uint64_t now_ms)
{
    const bool begins = self->from_ms == 0 || step < self->from_step;
    self->at_ms = now_ms;
    self->at_step = step;
    if (begins) {
        if (step == 0) return; // The first step shows that it has begun
        self->from_ms = now_ms;
        self->from_step = step;
        self->steps_per_s = 0;
        return;
    }
    const uint64_t took_ms = now_ms - self->from_ms;
    if (took_ms < 2000) return;
    self->steps_per_s = (double)(step - self->from_step) * 1000 / (double)took_ms;
    if (took_ms < PACE_MS) return;
    // Half of the window goes, in whole steps: the pace neither jumps nor remembers for ever.
    const uint64_t steps = step - self->from_step, gone = steps / 2;
    self->from_step += gone;
    self->from_ms += steps ? took_ms * gone / steps : 0;
}

void progress_hear(struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    double loss = (double)view->now.loss;
    if (view->now.step != self->at_step) take_pace(self, view->now.step, now_ms);
    if (!(loss > 0)) return;
    self->loss = self->loss > 0 ? self->loss + 0.1 * (loss - self->loss) : loss;
}

// The time since the newest commit goes off, but no more than a round of it: a late one ends later.
double progress_left_s(const struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    const struct wire_run *now = &view->now;
    if (now->step >= now->total_steps) return 0;
    if (!(self->steps_per_s > 0)) return -1;
    const double left = (double)(now->total_steps - now->step) / self->steps_per_s;
    const double since = (double)(now_ms - self->at_ms) / 1000, round = 1 / self->steps_per_s;
    return left - (since < round ? since : round);
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
    char lacks[RUN_WORDS_MAX];
    const struct wire_run *now = &view->now;
    show_duration((double)(now_ms - self->began_ms) / 1000, spent);
    if (!view->has_run) {
        snprintf(line, STATUS_LINE_MAX, "%s  waiting for the coordinator", spent);
        return;
    }
    put_loss(self, loss, sizeof loss);
    show_bar(now->total_steps ? (double)now->step / (double)now->total_steps : 0, 12, bar);
    show_count((double)now->tokens_per_s, rate);
    run_words_lacks(now, lacks);
    show_duration(progress_left_s(self, view, now_ms), left);
    snprintf(line, STATUS_LINE_MAX,
             "%s  %-12s %s step %" PRIu64 "/%" PRIu64 "  epoch %" PRIu64
             "  %s  %s tok/s  %u healthy %u pending  "
             "%s%.200s",
             spent, run_view_phase(view), bar, now->step, now->total_steps, now->epoch, loss, rate,
             now->healthy, now->pending, lacks[0] ? "" : "ETA ", lacks[0] ? lacks : left);
}

uint64_t progress_tick(struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    char line[STATUS_LINE_MAX];
    if (status_line_due(&self->line, now_ms)) {
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
