// progress -- one number is estimated here, the loss, as a running mean over rounds. The rest is copied
// from the news, so that all screens show the same.

#include "actors/shoal/local/progress.h"
#include "actors/shoal/show.h"
#include "common/actor/run_words.h"
#include "common/run/phase.h"
#include <inttypes.h>

enum { SILENT_MS = 5000 }; // It says BEAT once a second

void progress_init(struct progress *self, FILE *out, const double *baselines, uint64_t now_ms)
{
    *self = (struct progress){ .baselines = baselines, .began_ms = now_ms };
    status_line_init(&self->line, out);
}

void progress_hear(struct progress *self, const struct run_view *view)
{
    const double loss = (double)view->now.loss;
    if (!(loss > 0)) return;
    self->loss = self->loss > 0 ? self->loss + 0.1 * (loss - self->loss) : loss;
}

// "loss 1.912 (below order 1: 2.30)": the best of the baselines that it has passed.
static size_t put_loss(const struct progress *self, char *line, size_t max)
{
    char loss[RUN_WORDS_LOSS_MAX];
    const int count = snprintf(line, max, "loss %s", run_words_loss(self->loss, loss));
    if (!(self->loss > 0) || !self->baselines) return (size_t)count;
    return (size_t)count +
           (size_t)snprintf(line + count, max - (size_t)count, " [order 0: %.2f  1: %.2f  2: %.2f]",
                            self->baselines[0], self->baselines[1], self->baselines[2]);
}

// What is not known is not said.
static void put_left(const struct wire_run *now, char text[RUN_WORDS_MAX])
{
    char left[SHOW_MAX];
    const double left_s = run_words_left_s(now);
    if (left_s < 0) run_words_silent(now, text);
    else snprintf(text, RUN_WORDS_MAX, "ETA %s", show_duration(left_s, left));
}

static void put_line(const struct progress *self, const struct run_view *view, uint64_t now_ms,
                     char line[STATUS_LINE_MAX])
{
    char bar[SHOW_MAX], rate[SHOW_MAX], spent[SHOW_MAX], loss[120], end[RUN_WORDS_MAX];
    const struct wire_run *now = &view->now;
    show_duration((double)(now_ms - self->began_ms) / 1000, spent);
    if (!view->has_run) {
        snprintf(line, STATUS_LINE_MAX, "%s  waiting for the coordinator", spent);
        return;
    }
    const bool waits = now->pending > 0 && phase_makes_steps(now->phase);
    put_loss(self, loss, sizeof loss);
    show_bar(now->total_steps ? (double)now->step / (double)now->total_steps : 0, 12, bar);
    if (now->tokens_per_s > 0) show_count((double)now->tokens_per_s, rate);
    else strcpy(rate, "-"); // Not known yet
    if (view->beats && now_ms - self->heard_ms > SILENT_MS)
        snprintf(end, sizeof end, "the coordinator has said nothing for %" PRIu64 " s",
                 (now_ms - self->heard_ms) / 1000);
    else if (!run_words_lacks(now, end)[0]) put_left(now, end);
    snprintf(line, STATUS_LINE_MAX,
             "%s  %-12s %s step %" PRIu64 "/%" PRIu64 "  epoch %" PRIu64
             "  %s  %s tok/s  %u healthy %u pending%s  "
             "%.200s",
             spent, run_view_phase(view), bar, now->step, now->total_steps, now->epoch, loss, rate,
             now->healthy, now->pending, waits ? " (until the next epoch)" : "", end);
}

uint64_t progress_tick(struct progress *self, const struct run_view *view, uint64_t now_ms)
{
    char line[STATUS_LINE_MAX];
    if (self->beats != view->beats) self->beats = view->beats, self->heard_ms = now_ms;
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
