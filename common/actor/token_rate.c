// Marks are commits. Those that follow each other within MARK_MS become one, so that a minute of
// the fastest rounds has room; how many commits they were is kept, since the mean time between
// commits tells when the next is late.

#include "common/actor/token_rate.h"
#include <string.h>

enum { MARK_MS = 1000 };

static void drop_oldest(struct token_rate *self)
{
    memmove(self->marks, self->marks + 1, --self->count * sizeof *self->marks);
}

void token_rate_hear(struct token_rate *self, uint64_t now_ms, uint64_t tokens_done, uint64_t steps)
{
    uint64_t commits = 0;
    if (self->count && tokens_done < self->marks[self->count - 1].tokens) self->count = 0;
    if (self->count) {
        if (tokens_done == self->marks[self->count - 1].tokens) return;
        commits = self->marks[self->count - 1].commits + 1;
    }
    // The beginning was in the middle of a run: its first commit is a better one.
    if (self->count == 1 && self->marks[0].tokens > 0 && self->marks[0].commits == 0)
        self->count = 0;
    if (self->count >= 2 && now_ms < self->marks[self->count - 2].at_ms + MARK_MS) self->count--;
    if (self->count == TOKEN_RATE_MARKS_MAX) drop_oldest(self);
    self->marks[self->count].at_ms = now_ms;
    self->marks[self->count].tokens = tokens_done;
    self->marks[self->count].steps = steps;
    self->marks[self->count++].commits = commits;
    while (self->count > 2 && now_ms >= self->marks[1].at_ms + TOKEN_RATE_MS) drop_oldest(self);
}

// The tokens of a commit were made from the commit before it to its own instant, evenly: so where
// a minute ago lies between two commits, only a part of the second counts.
struct token_pace token_rate_pace(const struct token_rate *self, uint64_t now_ms)
{
    struct token_pace pace = { 0 };
    uint32_t from = 0;
    if (self->count == 0) return pace;
    const uint32_t newest = self->count - 1;
    const uint64_t at_ms = self->marks[newest].at_ms;
    pace.silent_ms = now_ms - at_ms;
    if (self->count < 2) return pace;
    while (from + 1 < newest && now_ms >= self->marks[from + 1].at_ms + TOKEN_RATE_MS) from++;
    const uint64_t began_ms = self->marks[from].at_ms;
    const uint64_t commits = self->marks[newest].commits - self->marks[from].commits;
    const uint64_t round_ms = (at_ms - began_ms) / commits;
    if (at_ms - began_ms < TOKEN_RATE_LEAST_MS ||
        (pace.silent_ms > TOKEN_RATE_SILENT_MS && pace.silent_ms > 3 * round_ms))
        return pace;
    const uint64_t next_ms = self->marks[from + 1].at_ms; // Of the mark behind the oldest
    double skipped = 0;                                   // Part of the first commit
    if (now_ms > began_ms + TOKEN_RATE_MS && now_ms < next_ms + TOKEN_RATE_MS)
        skipped = (double)(now_ms - TOKEN_RATE_MS - began_ms) / (double)(next_ms - began_ms);
    // The time beyond a round of the usual length counts.
    const uint64_t late_ms = pace.silent_ms > round_ms ? pace.silent_ms - round_ms : 0;
    const double took_ms =
        (double)(at_ms - began_ms + late_ms) - skipped * (double)(next_ms - began_ms);
    if (took_ms <= 0) return pace;
    const uint64_t tokens = self->marks[newest].tokens - self->marks[from].tokens;
    const uint64_t steps = self->marks[newest].steps - self->marks[from].steps;
    const double tokens_off =
        skipped * (double)(self->marks[from + 1].tokens - self->marks[from].tokens);
    const double steps_off =
        skipped * (double)(self->marks[from + 1].steps - self->marks[from].steps);
    pace.tokens_per_s = ((double)tokens - tokens_off) * 1000 / took_ms;
    pace.steps_per_s = ((double)steps - steps_off) * 1000 / took_ms;
    return pace;
}
