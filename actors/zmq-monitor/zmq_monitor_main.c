// zmq-monitor -- a read-only observer of a run: it prints the current state at once, and then every
// broadcast. With --once it ends when the current state is complete.
//
// While nothing can come it says so on stderr, within three seconds and then every ten: no broker
// answers, or the broker has heard nothing of the run, or its coordinator is silent. The broker
// tells when it last heard the coordinator; it is asked every ASK_MS. A monitor that has an end
// (--once, --count) ends with 69 if no broker answers at all.

#include "actors/zmq-monitor/lines.h"
#include "common/actor/command.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    TOPICS_MAX = 32,
    ONCE_MS = 5000,
    SILENT_MS = 2000, // The broker answers a HELLO each second
    ASK_MS = 1000,
    WAITING_AGAIN_MS = 10000
};

struct monitor {
    struct command command;
    const char *topics;
    bool once;
    uint64_t count_max; // Lines to print; 0: no end
    struct lines lines;
    uint64_t began_ms, ask_ms, waiting_ms; // waiting_ms: no line about waiting before this
    bool was_heard;                        // The broker has answered about the coordinator:
    struct last_heard coordinator;         // this
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
        if (result == TAP_HEARD) self->was_heard = tap_heard(&letter, &self->coordinator) != NULL;
        if (result != TAP_FRAME) continue;
        lines_print(&self->lines, &letter);
        const bool enough = self->count_max && self->lines.printed == self->count_max;
        if (enough || ferror(stdout)) return true;
    }
}

// What keeps news from coming. False: nothing.
static bool awaits(const struct monitor *self, struct tap *tap, char text[256])
{
    const char *run = self->command.run_id;
    if (tap_silent_ms(tap) >= SILENT_MS)
        snprintf(text, 256, "no broker answers at %s", self->command.server_addr);
    else if (!tap_is_connected(tap) || clock_ms() < self->began_ms + SILENT_MS) return false;
    else if (!tap_knows_run(tap) || (self->was_heard && self->coordinator.ms_ago == NEVER_HEARD))
        snprintf(text, 256, "no coordinator of run \"%s\" yet", run);
    else if (self->was_heard && !last_heard_is_alive(&self->coordinator))
        snprintf(text, 256, "the coordinator of run \"%s\" was last heard %" PRIu64 " s ago", run,
                 (uint64_t)(self->coordinator.ms_ago / 1000));
    else return false;
    return true;
}

// Says what we wait for. FAULT_UNREACHABLE: no broker answers, and the monitor has an end.
static int mind_silence(struct monitor *self, struct tap *tap, struct why *why)
{
    char text[256];
    const uint64_t now_ms = clock_ms();
    if (tap_is_connected(tap) && now_ms >= self->ask_ms) {
        self->ask_ms = now_ms + ASK_MS;
        tap_ask_heard(tap, "coordinator");
    }
    if (now_ms < self->waiting_ms || !awaits(self, tap, text)) return 0;
    const bool has_end = self->once || self->count_max;
    if (has_end && !tap_is_connected(tap) && self->lines.printed == 0)
        return tap_no_answer(tap, self->command.server_addr, SILENT_MS, why);
    self->waiting_ms = now_ms + WAITING_AGAIN_MS;
    fprintf(stderr, "waiting: %s\n", text);
    return 0;
}

// The broker keeps the newest RUN, ROSTER, MEMBERS, EPOCH_END and BEAT: of other topics there is nothing to print.
static int end_of_once(const struct monitor *self, const struct tap *tap, struct why *why)
{
    if (self->lines.printed || self->lines.hidden) return 0;
    if (self->topics && tap_knows_run(tap)) {
        fprintf(stderr,
                "run \"%s\" is known, but the broker keeps no news of --topic %s; without --once "
                "the next ones are printed\n",
                self->command.run_id, self->topics);
        return 0;
    }
    return why_set(why, FAULT_UNREACHABLE,
                   "the broker at %s knows nothing of run \"%s\": no coordinator has "
                   "published yet, or it is another --run-id",
                   self->command.server_addr, self->command.run_id);
}

static int watch(struct monitor *self, struct tap *tap, int signals, struct why *why)
{
    self->began_ms = clock_ms();
    const uint64_t until_ms = self->once ? self->began_ms + ONCE_MS : UINT64_MAX;
    int rc = 0;
    while (rc == 0 && clock_ms() < until_ms) {
        const uint64_t silent_ms = self->began_ms + SILENT_MS;
        if (tap_wait(tap, signals, clock_ms() < silent_ms ? silent_ms : until_ms)) return 0;
        const bool done = take_all(self, tap);
        if (ferror(stdout)) return why_set(why, FAULT_IO, "standard output: %s", strerror(errno));
        if (done) return self->once ? end_of_once(self, tap, why) : 0;
        if (tap_is_refused(tap)) return tap_no_answer(tap, self->command.server_addr, 0, why);
        rc = mind_silence(self, tap, why);
    }
    return rc < 0 ? rc
                  : why_set(why, FAULT_UNREACHABLE,
                            "the broker at %s answers, but the state of run \"%s\" did not come "
                            "within %d s",
                            self->command.server_addr, self->command.run_id, ONCE_MS / 1000);
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

static bool also_hear(uint16_t kind, uint16_t *kinds, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        if (kinds[i] == kind) return false;
    kinds[(*count)++] = kind;
    return true;
}

// The roster has the labels of the senders.
static void also_hear_roster(struct monitor *self, uint16_t *kinds, size_t *count)
{
    self->lines.hides_roster = also_hear(FRAME_ROSTER, kinds, count);
    self->lines.hides_members = also_hear(FRAME_MEMBERS, kinds, count);
}

static int run(struct monitor *self, struct why *why)
{
    uint16_t kinds[TOPICS_MAX + 2];
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
    if (rc == 0 && self->topics) also_hear_roster(self, kinds, &options.kinds_count);
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
         "Only these, with commas between: RUN ROSTER MEMBERS ROUND COMMIT LINKING WINDOW STEPS "
         "GROUP "
         "PUSHES EPOCH_END BEAT CLAIM PROGRESS (all)"),
    FLAG("once", 0, NULL, TO_SWITCH(struct monitor, once), "Print the current state and end"),
    FLAG("count", 'n', "N", TO_NUMBER(struct monitor, count_max, 1, UINT64_MAX),
         "End after N lines"),
    FLAG("member", 0, "NAME", TO_TEXT(struct monitor, lines.member),
         "Only what this actor says: a name as the lines show it, or the beginning of it, of its "
         "label or of its key (coordinator, anna, trainer.3fa2)"),
    FLAG("gaps", 'g', NULL, TO_SWITCH(struct monitor, lines.shows_gaps),
         "Report on stderr which rounds' news, or windows', did not arrive"),
    FLAGS_OF(command_flags, struct monitor, command),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Shows what is broadcast in a run; changes and slows nothing.\n\n"
             "  zmq-monitor --ticket ticket               (or TICKET; `shoal invite` makes one)\n"
             "  zmq-monitor --topic RUN --json | jq .body.loss\n"
             "  zmq-monitor --member anna                 (or trainer.3fa2)\n\n"
             "Ends with 77 if the broker does not admit its key, and with 69 if it has an end\n"
             "(--once, --count) and no broker answers within three seconds.\n",
};

int main(int argc, char **argv)
{
    static struct monitor self;
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    return fault_exit(run(&self, &why), &why);
}
