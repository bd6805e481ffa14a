// Each frame is printed in one line. ROUND and COMMIT frames are numbered by their round, so a jump
// in the numbers tells how many were lost.

#include "actors/zmq-monitor/lines.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES = 64 << 10, LINE_BYTES_MAX = 256 << 20 };

static size_t print(const struct lines *self, const struct letter *letter)
{
    struct wire_head head = tap_head(letter);
    const struct msg *msg = &letter->msg;
    return self->json ? wire_print_json(&head, msg->kind, msg->body, self->line, self->line_max)
                      : wire_print(msg->kind, msg->body, self->line, self->line_max);
}

// Prints into self->line, which grows as needed.
static void make_line(struct lines *self, const struct letter *letter)
{
    size_t needed = print(self, letter);
    if (needed < self->line_max) return;
    ensure(needed < LINE_BYTES_MAX); // A frame is at most 4 MiB
    self->line_max = needed < LINE_BYTES ? LINE_BYTES : needed + 1;
    self->line = realloc(self->line, self->line_max);
    ensure(self->line);
    print(self, letter);
}

static void look_for_gap(struct lines *self, const struct letter *letter)
{
    uint64_t *last, round;
    if (letter->msg.kind == FRAME_ROUND) {
        last = &self->last_opened;
        round = ((const struct wire_round *)letter->msg.body)->round;
    } else if (letter->msg.kind == FRAME_COMMIT) {
        last = &self->last_ended;
        round = ((const struct wire_commit *)letter->msg.body)->round;
    } else return;
    if (*last && round > *last + 1) {
        self->missing += round - *last - 1;
        fprintf(stderr, "gap: no %s of the %" PRIu64 " rounds before round %" PRIu64 "\n",
                wire_kind_name(letter->msg.kind), (uint64_t)(round - *last - 1), round);
    }
    if (round > *last) *last = round;
}

void lines_print(struct lines *self, const struct letter *letter)
{
    if (self->shows_gaps) look_for_gap(self, letter);
    make_line(self, letter);
    if (!self->json) {
        char time[LOG_TIME];
        printf("%s ", log_time(time));
    }
    puts(self->line);
    fflush(stdout);
    self->printed++;
}

void lines_drop(struct lines *self, const struct letter *letter)
{
    self->dropped++;
    fprintf(stderr, "frame dropped: %s\n", letter->reason);
}

void lines_end(struct lines *self)
{
    if (self->shows_gaps)
        fprintf(stderr,
                "gaps: %" PRIu64 " ROUND or COMMIT frames did not arrive, %" PRIu64
                " were dropped as bad\n",
                self->missing, self->dropped);
    free(self->line);
}
