// log_shell -- shows each record of the ledger to the pace of the run, which says whether it commits steps. If it does,
// a row is due. The row is written at the end of the turn of the shell's loop, when what follows from the record has
// been sent: a slow disk does not hold that back.

#include "actors/coordinator/log_shell.h"
#include "common/base/clock.h"
#include "common/base/folder.h"
#include "common/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char columns[] =
    "step,tokens,loss,learning_rate,seconds,tokens_per_s,results,unix_ms\n";

// ---- life ---------------------------------------------------------------------------------------

// Where the last whole line ends: the process before this one may have been killed while it wrote.
static off_t end_of_lines(int fd, off_t bytes)
{
    char byte;
    while (bytes > 0 && (pread(fd, &byte, 1, bytes - 1) != 1 || byte != '\n')) bytes--;
    return bytes;
}

static int open_csv(struct log_shell *self, struct why *why)
{
    char path[PATH_MAX];
    struct stat file = { 0 };
    if (snprintf(path, sizeof path, "%s/run.csv", self->dir) >= (int)sizeof path)
        return why_set(why, FAULT_LIMIT, "--log %s: the path is too long", self->dir);
    self->csv = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (self->csv < 0 || fstat(self->csv, &file) != 0)
        return why_set(why, fault_from_errno(errno), "--log: %s: %s", path, strerror(errno));
    self->csv_bytes = end_of_lines(self->csv, file.st_size);
    if (self->csv_bytes < file.st_size && ftruncate(self->csv, self->csv_bytes) != 0)
        return why_set(why, fault_from_errno(errno), "--log: %s: %s", path, strerror(errno));
    if (self->csv_bytes > 0) return 0;
    const int rc = event_file_append(self->csv, &self->csv_bytes, columns, sizeof columns - 1, why);
    return rc < 0 ? why_wrap(why, rc, "--log: %s", path) : 0;
}

int log_shell_open(struct log_shell *self, uint64_t incarnation, struct why *why)
{
    self->csv = self->events.fd = -1;
    if (!self->dir) return 0;
    int rc = folder_make(self->dir, 0755, why);
    if (rc == 0) rc = open_csv(self, why);
    if (rc == 0)
        rc = event_file_create(&self->events, self->dir, clock_unix_ms(), incarnation, why);
    return rc;
}

void log_shell_close(struct log_shell *self)
{
    if (!self->dir) return;
    event_file_close(&self->events);
    if (self->csv > 0) close(self->csv); // 0: never opened
    self->csv = -1;
}

// ---- rows ---------------------------------------------------------------------------------------

void log_shell_hear(struct log_shell *self, uint16_t kind, const void *record)
{
    if (!self->dir) return;
    const struct pace *pace = self->core->pace;
    if (interval_length(pace->commits(kind, record)) == 0) return;
    self->facts = pace_facts(pace, record);
    self->has_commit = true;
}

struct row {
    uint64_t step, tokens, unix_ms;
    double loss, seconds, tokens_per_s; // 0: not known
};

// After a restore there are fewer tokens than before: no rate then.
static struct row make_row(struct log_shell *self)
{
    const uint64_t now_ms = clock_ms(), before = self->tokens;
    const struct run *run = &self->core->run;
    struct row row = { .step = run->step,
                       .tokens = run->samples_done * self->core->rules.seq_len,
                       .unix_ms = clock_unix_ms(),
                       .loss = (double)self->core->news.run.loss };
    if (self->commit_ms && now_ms > self->commit_ms && row.tokens > before) {
        row.seconds = (double)(now_ms - self->commit_ms) / 1000;
        row.tokens_per_s = (double)(row.tokens - before) / row.seconds;
    }
    self->commit_ms = now_ms;
    self->tokens = row.tokens;
    return row;
}

static int write_csv(struct log_shell *self, const struct row *row, struct why *why)
{
    char line[320], loss[32] = "", seconds[32] = "", rate[32] = "";
    if (row->loss > 0) snprintf(loss, sizeof loss, "%.9g", row->loss);
    if (row->seconds > 0) snprintf(seconds, sizeof seconds, "%.6g", row->seconds);
    if (row->seconds > 0) snprintf(rate, sizeof rate, "%.6g", row->tokens_per_s);
    const int count = snprintf(line, sizeof line,
                               "%" PRIu64 ",%" PRIu64 ",%s,%.9g,%s,%s,%" PRIu32 ",%" PRIu64 "\n",
                               row->step, row->tokens, loss, (double)self->facts.lr, seconds, rate,
                               self->facts.results, row->unix_ms);
    return event_file_append(self->csv, &self->csv_bytes, line, (size_t)count, why);
}

static int write_events(struct log_shell *self, const struct row *row, struct why *why)
{
    struct event_scalar scalars[EVENT_SCALARS_MAX];
    size_t count = 0;
    scalars[count++] = (struct event_scalar){ "learning_rate", self->facts.lr };
    scalars[count++] = (struct event_scalar){ "results", (float)self->facts.results };
    if (row->loss > 0) scalars[count++] = (struct event_scalar){ "loss", (float)row->loss };
    if (row->seconds > 0)
        scalars[count++] = (struct event_scalar){ "tokens_per_s", (float)row->tokens_per_s };
    return event_file_add(&self->events, row->unix_ms, row->step, scalars, count, why);
}

void log_shell_turn(void *arg)
{
    struct log_shell *self = arg;
    struct why why = { 0 };
    if (!self->has_commit) return;
    self->has_commit = false;
    const struct row row = make_row(self);
    int rc = write_csv(self, &row, &why);
    const int events = write_events(self, &row, rc == 0 ? &why : NULL); // The first fault is told
    if (rc == 0) rc = events;
    if (rc < 0 && !self->failed)
        log_line(LOG_WARNING,
                 "log.failed dir=%s reason=\"%s\"; rows are lost until it can be "
                 "written again",
                 self->dir, why.text);
    self->failed = rc < 0;
}
