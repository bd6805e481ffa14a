// One row per step goes to the log and is flushed; one line with a running mean goes to the
// terminal when it is due.
#include "actors/shoal/train/train_report.h"
#include "actors/shoal/show.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static int write_failed(const char *path, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error), "--log %s: %s", path, strerror(error));
}

static bool ends_in(const char *text, const char *end)
{
    const size_t count = strlen(text), end_count = strlen(end);
    return count > end_count && strcmp(text + count - end_count, end) == 0;
}

int train_report_open(struct train_report *self, const char *log, uint64_t first_step,
                      uint64_t total_steps, struct why *why)
{
    *self = (struct train_report){
        .first_step = first_step, .total_steps = total_steps, .loss = NAN, .heldout = NAN
    };
    status_line_init(&self->line, stderr);
    if (!log) return 0;
    self->csv = ends_in(log, ".csv");
    if (!self->csv && !ends_in(log, ".jsonl"))
        return why_set(why, FAULT_USAGE, "--log %s: a name that ends in .csv or .jsonl", log);
    self->path = log;
    self->log = fopen(log, "ae");
    if (!self->log) return write_failed(log, why);
    if (self->csv && ftello(self->log) == 0)
        fputs("step,tokens,batch,loss,learning_rate,gradient_norm,seconds,tokens_per_s,"
              "heldout_loss\n",
              self->log);
    return fflush(self->log) == 0 ? 0 : write_failed(log, why);
}

static int write_row(struct train_report *self, const struct train_row *row, double tokens_per_s,
                     struct why *why)
{
    char heldout[32] = "";
    if (!isnan(row->heldout)) snprintf(heldout, sizeof heldout, "%.9g", row->heldout);
    const char *format =
        self->csv ? "%" PRIu64 ",%" PRIu64 ",%u,%.9g,%.9g,%.9g,%.6g,%.6g,%s\n"
                  : "{\"step\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"batch\":%u,\"loss\":%.9g,"
                    "\"learning_rate\":%.9g,\"gradient_norm\":%.9g,\"seconds\":%.6g,"
                    "\"tokens_per_s\":%.6g,\"heldout_loss\":%s}\n";
    // Flushed, so that each step is visible at once and a crash loses none
    if (fprintf(self->log, format, row->step, row->tokens, row->batch, row->loss, (double)row->rate,
                row->norm, row->seconds, tokens_per_s,
                heldout[0] || self->csv ? heldout : "null") < 0 ||
        fflush(self->log) != 0)
        return write_failed(self->path, why);
    return 0;
}

static void put_line(const struct train_report *self, const struct train_row *row,
                     char line[STATUS_LINE_MAX])
{
    char bar[SHOW_MAX], rate[SHOW_MAX], left[SHOW_MAX], heldout[32] = "";
    const double done = (double)(row->step - self->first_step);
    const double to_do = (double)(self->total_steps - row->step);
    show_bar((double)row->step / (double)self->total_steps, 12, bar);
    show_count(self->seconds > 0 ? self->tokens / self->seconds : 0, rate);
    show_duration(done > 0 ? self->seconds / done * to_do : -1, left);
    if (!isnan(self->heldout)) snprintf(heldout, sizeof heldout, "  held out %.4f", self->heldout);
    snprintf(line, STATUS_LINE_MAX,
             "%s step %" PRIu64 "/%" PRIu64 "  loss %.4f%s  lr %.3g  |g| %.3g  %s tok/s  ETA %s",
             bar, row->step, self->total_steps, self->loss, heldout, (double)row->rate, row->norm,
             rate, left);
}

static void draw(struct train_report *self, const struct train_row *row, uint64_t now_ms)
{
    char line[STATUS_LINE_MAX];
    if (!status_line_due(&self->line, now_ms) && row->step != self->total_steps) return;
    put_line(self, row, line);
    status_line_draw(&self->line, line);
}

int train_report_row(struct train_report *self, const struct train_row *row, uint32_t seq,
                     uint64_t now_ms, struct why *why)
{
    const double tokens = (double)row->batch * seq;
    self->loss = isnan(self->loss) ? row->loss : self->loss + 0.1 * (row->loss - self->loss);
    self->seconds += row->seconds;
    self->tokens += tokens;
    if (!isnan(row->heldout)) self->heldout = row->heldout;
    const int rc =
        self->log ? write_row(self, row, row->seconds > 0 ? tokens / row->seconds : 0, why) : 0;
    draw(self, row, now_ms);
    return rc;
}

void train_report_close(struct train_report *self)
{
    if (self->line.is_tty) fputs("\n", stderr);
    if (self->log) fclose(self->log);
    self->log = NULL;
}
