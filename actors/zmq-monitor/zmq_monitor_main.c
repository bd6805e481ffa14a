// zmq-monitor -- a read-only tap on a run: what is, at once, and then every broadcast.

#include "common/actor/tap.h"
#include "common/actor/command.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

enum { TOPICS_MAX = 32, LINE_BYTES = 64 << 10, LINE_BYTES_MAX = 256 << 20, ONCE_MS = 5000 };

struct monitor {
    struct command command;
    const char *topics;
    bool once, shows_gaps;
    uint64_t count_max, printed, bad;
    uint64_t last_opened, last_ended, missing; // Rounds of which no ROUND or no COMMIT came
    char *line;
    size_t line_max;
};

// ---- printing -----------------------------------------------------------------------------------

static size_t print(const struct monitor *self, const struct letter *letter)
{
    struct wire_head head = tap_head(letter);
    const struct msg *msg = &letter->msg;
    return self->command.json
               ? wire_print_json(&head, msg->kind, msg->body, self->line, self->line_max)
               : wire_print(msg->kind, msg->body, self->line, self->line_max);
}

// The line in self->line, which grows to what it takes.
static void make_line(struct monitor *self, const struct letter *letter)
{
    size_t needed = print(self, letter);
    if (needed < self->line_max) return;
    ensure(needed < LINE_BYTES_MAX); // A frame is at most 4 MiB
    self->line_max = needed + 1;
    self->line = realloc(self->line, self->line_max);
    ensure(self->line);
    print(self, letter);
}

static void show(struct monitor *self, const struct letter *letter)
{
    make_line(self, letter);
    if (!self->command.json) {
        char time[LOG_TIME];
        printf("%s ", log_time(time));
    }
    puts(self->line);
    fflush(stdout);
    self->printed++;
}

// Every round opens with a ROUND and ends with a COMMIT, and their numbers have no holes.
static void look_for_gap(struct monitor *self, const struct letter *letter)
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
        fprintf(stderr, "gap: no %s of the %llu rounds before round %llu\n",
                wire_kind_name(letter->msg.kind), (unsigned long long)(round - *last - 1),
                (unsigned long long)round);
    }
    if (round > *last) *last = round;
}

// ---- the loop -----------------------------------------------------------------------------------

static bool is_enough(const struct monitor *self)
{
    return self->count_max && self->printed >= self->count_max;
}

// True when there is nothing left to do: enough was printed, or all of the state.
static bool take_all(struct monitor *self, struct tap *tap)
{
    struct letter letter;
    for (;;) {
        enum tap_result result = tap_take(tap, &letter);
        if (result == TAP_NOTHING) return false;
        if (result == TAP_COMPLETE && self->once) return true;
        if (result == TAP_BAD) {
            self->bad++;
            fprintf(stderr, "frame dropped: %s\n", letter.reason);
        }
        if (result != TAP_FRAME) continue;
        if (self->shows_gaps) look_for_gap(self, &letter);
        show(self, &letter);
        if (is_enough(self) || ferror(stdout)) return true;
    }
}

static int watch(struct monitor *self, struct tap *tap, int signals, struct why *why)
{
    uint64_t until_ms = self->once ? clock_ms() + ONCE_MS : UINT64_MAX;
    while (clock_ms() < until_ms) {
        if (tap_wait(tap, signals, until_ms)) return 0;
        if (!take_all(self, tap)) continue;
        if (ferror(stdout)) return why_set(why, FAULT_IO, "standard output: %s", strerror(errno));
        if (self->once && self->printed == 0)
            return why_set(why, FAULT_UNREACHABLE,
                           "the broker at %s knows nothing of run \"%s\": no coordinator has "
                           "published yet, or it is another --run-id",
                           self->command.server_addr, self->command.run_id);
        return 0;
    }
    return tap_no_answer(tap, self->command.server_addr, ONCE_MS, why);
}

static int run(struct monitor *self, struct why *why)
{
    uint16_t kinds[TOPICS_MAX];
    struct tap_options options = { .broker = &self->command.ticket,
                                   .role = ACTOR_MONITOR,
                                   .kinds = kinds };
    struct identity *identity = NULL;
    struct tap *tap = NULL;
    int rc = command_check_broker(&self->command, "127.0.0.1:5550", why);
    if (rc == 0 && !self->command.run_id)
        rc = why_set(why, FAULT_USAGE, "--run-id ID (or RUN_ID) is needed");
    if (rc == 0 && self->topics)
        rc = tap_parse_topics(self->topics, TOPICS_MAX, why, kinds, &options.kinds_count);
    if (rc == 0 && (self->command.identity_path || command_env(IDENTITY_ENV)))
        rc = command_identity(&self->command, why, &identity);
    if (rc < 0) return rc;
    options.identity = identity;
    options.run = self->command.run_id;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    ensure(signals >= 0);
    rc = tap_open(&options, why, &tap);
    if (rc == 0) rc = watch(self, tap, signals, why);
    tap_close(&tap);
    identity_destroy(&identity);
    close(signals);
    if (self->shows_gaps)
        fprintf(stderr,
                "gaps: %llu ROUND or COMMIT frames did not arrive, %llu were dropped as bad\n",
                (unsigned long long)self->missing, (unsigned long long)self->bad);
    return rc;
}

// ---- command line -------------------------------------------------------------------------------

static const struct flag flags[] = {
    FLAG("topic", 't', "LIST", TO_TEXT(struct monitor, topics),
         "Only these, with commas between: RUN ROSTER ROUND COMMIT EPOCH_END BEAT CLAIM "
         "PROGRESS (all)"),
    FLAG("once", 0, NULL, TO_SWITCH(struct monitor, once), "Print the current state and end"),
    FLAG("count", 'n', "N", TO_NUMBER(struct monitor, count_max, 1, UINT64_MAX),
         "End after N lines"),
    FLAG("gaps", 'g', NULL, TO_SWITCH(struct monitor, shows_gaps),
         "Say on stderr which rounds' news did not arrive"),
    FLAGS_OF(command_flags, struct monitor, command),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Shows what is broadcast in a run; changes and slows nothing.\n\n"
             "  zmq-monitor --ticket ticket               (or TICKET; `shoal invite` makes one)\n"
             "  zmq-monitor --topic RUN --json | jq .body.loss\n",
};

int main(int argc, char **argv)
{
    static struct monitor self;
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    self.line_max = LINE_BYTES;
    self.line = malloc(self.line_max);
    ensure(self.line);
    rc = run(&self, &why);
    free(self.line);
    return fault_exit(rc, &why);
}
