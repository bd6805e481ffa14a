// zmq-monitor -- a read-only observer of a run: it prints the current state at once, and then every
// broadcast. With --once it ends when the current state is complete.

#include "actors/zmq-monitor/lines.h"
#include "common/actor/command.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { TOPICS_MAX = 32, ONCE_MS = 5000 };

struct monitor {
    struct command command;
    const char *topics;
    bool once;
    uint64_t count_max; // Lines to print; 0: no end
    struct lines lines;
};

// ---- the loop -----------------------------------------------------------------------------------

// True when the work is done: enough lines are printed, or with --once the whole state.
static bool take_all(struct monitor *self, struct tap *tap)
{
    struct letter letter;
    for (;;) {
        enum tap_result result = tap_take(tap, &letter);
        if (result == TAP_NOTHING) return false;
        if (result == TAP_COMPLETE && self->once) return true;
        if (result == TAP_BAD) lines_drop(&self->lines, &letter);
        if (result != TAP_FRAME) continue;
        lines_print(&self->lines, &letter);
        if (self->lines.printed == self->count_max || ferror(stdout)) return true;
    }
}

static int watch(struct monitor *self, struct tap *tap, int signals, struct why *why)
{
    uint64_t until_ms = self->once ? clock_ms() + ONCE_MS : UINT64_MAX;
    while (clock_ms() < until_ms) {
        if (tap_wait(tap, signals, until_ms)) return 0;
        if (!take_all(self, tap)) continue;
        if (ferror(stdout)) return why_set(why, FAULT_IO, "standard output: %s", strerror(errno));
        if (self->once && self->lines.printed == 0)
            return why_set(why, FAULT_UNREACHABLE,
                           "the broker at %s knows nothing of run \"%s\": no coordinator has "
                           "published yet, or it is another --run-id",
                           self->command.server_addr, self->command.run_id);
        return 0;
    }
    return tap_no_answer(tap, self->command.server_addr, ONCE_MS, why);
}

static int watch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    ensure(signals >= 0);
    return signals;
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
    self->lines.json = self->command.json;
    int signals = watch_signals();
    rc = tap_open(&options, why, &tap);
    if (rc == 0) rc = watch(self, tap, signals, why);
    tap_close(&tap);
    identity_destroy(&identity);
    close(signals);
    lines_end(&self->lines);
    return rc;
}

// ---- command line -------------------------------------------------------------------------------

static const struct flag flags[] = {
    FLAG("topic", 0, "LIST", TO_TEXT(struct monitor, topics),
         "Only these, with commas between: RUN ROSTER ROUND COMMIT EPOCH_END BEAT CLAIM "
         "PROGRESS (all)"),
    FLAG("once", 0, NULL, TO_SWITCH(struct monitor, once), "Print the current state and end"),
    FLAG("count", 'n', "N", TO_NUMBER(struct monitor, count_max, 1, UINT64_MAX),
         "End after N lines"),
    FLAG("gaps", 'g', NULL, TO_SWITCH(struct monitor, lines.shows_gaps),
         "Report on stderr which rounds' news did not arrive"),
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
    return fault_exit(run(&self, &why), &why);
}
