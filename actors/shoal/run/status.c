// status -- the state of a run, from one of two sources. If neither flags nor environment name a
// broker, the run is one of those that services of this machine take part in (installed.h). Live:
// we connect as an observer and hear the news that the broker keeps; once they are complete, we ask
// the broker when it last heard the coordinator and each member, and print all of it. A coordinator
// that is dead or silent is a fault after that: what is printed is then its last word. With
// --ledger: we read the coordinator's ledger, verify it, and print counts and the verdict; a ledger
// that does not prove itself, or that cannot be verified, is a fault after it is printed. With
// --watch: we stay connected, ask the broker again every second, and draw what watch.h measures
// until the run is finished or the user ends it. With --tasks: the tasks of the pass by state, for programs.

#include "actors/shoal/run/installed.h"
#include "actors/shoal/run/run_view.h"
#include "actors/shoal/run/status_ledger.h"
#include "actors/shoal/run/status_view.h"
#include "actors/shoal/run/watch.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "actors/shoal/status_line.h"
#include "common/actor/command.h"
#include "common/actor/tap.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/run/phase.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    ANSWER_MS = 2500,
    HEARD_MS = 1000,    // For the answers about the actors, which the broker gives at once; --watch
                        // asks again after it
    MEMBERS_ASKED = 200 // The broker takes so many letters of an observer in a burst
};

struct status {
    struct command command;
    const char *ledger;
    bool watch, tasks;
    struct last_heard coordinator;
    struct last_heard members[MEMBERS_MAX]; // By index in the roster
    bool was_told[MEMBERS_MAX];             // The broker has answered about that member
    bool was_told_of_coordinator;
};

// ---- live ---------------------------------------------------------------------------------------

// --tasks: a line each, its name first. All of them are of one instant.
static int show_tasks(const struct status *self, const struct run_view *view, struct why *why)
{
    json_t *object = status_tasks_to_json(&view->now.tasks);
    if (!json_is_object(object))
        return why_set(
            why, FAULT_UNSUPPORTED,
            "--tasks: run \"%s\" has no tasks: only with strategy.server.mode = \"async\" "
            "are tasks dealt, once a data-provider says how long a pass is",
            self->command.run_id);
    if (self->command.json) {
        json_object_set_new(object, "schema", json_string("shoal.tasks.1"));
        json_object_set_new(object, "run", json_string(self->command.run_id));
        return shoal_print_json(object, why);
    }
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
        printf("%s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
    json_decref(object);
    return 0;
}

static struct watch_heard heard_of(const struct status *self, const struct tap *tap)
{
    return (struct watch_heard){ self->was_told_of_coordinator ? &self->coordinator : NULL,
                                 self->members, self->was_told, tap_silent_ms(tap) };
}

// Hears the news that the broker keeps. FAULT_UNREACHABLE says whether the broker or the
// coordinator is silent.
static int hear_state(const struct status *self, struct tap *tap, struct run_view *view,
                      struct why *why)
{
    uint64_t until_ms = clock_ms() + ANSWER_MS;
    bool complete = false;
    while (!complete && !tap_is_refused(tap) && clock_ms() < until_ms) {
        struct letter letter;
        tap_wait(tap, -1, until_ms);
        for (enum tap_result got; !complete && (got = tap_take(tap, &letter)) != TAP_NOTHING;) {
            if (got == TAP_FRAME) run_view_hear(view, &letter.msg);
            complete = got == TAP_COMPLETE;
        }
    }
    if (view->has_run) return 0;
    if (tap_is_refused(tap) || !tap_is_connected(tap))
        return tap_no_answer(tap, self->command.server_addr, ANSWER_MS, why);
    return why_set(why, FAULT_UNREACHABLE,
                   "the broker at %s knows nothing of run \"%s\": no coordinator has "
                   "published yet, or it is another --run-id",
                   self->command.server_addr, self->command.run_id);
}

// True for members of which the broker may know something; the others are gone for good.
static bool is_asked(const struct run_view *view, uint32_t index)
{
    const uint8_t state = view->roster.members[index].state;
    return index < MEMBERS_ASKED && state != MEMBER_WITHDRAWN && state != MEMBER_EJECTED;
}

static uint32_t note_heard(struct status *self, const struct run_view *view,
                           const struct letter *letter)
{
    struct last_heard heard;
    const char *name = tap_heard(letter, &heard);
    if (!name) return 0;
    if (strcmp(name, "coordinator") == 0) {
        self->coordinator = heard;
        self->was_told_of_coordinator = true;
        return 1;
    }
    for (uint32_t i = 0; i < view->roster.count; i++)
        if (strcmp(view->roster.members[i].name, name) == 0) {
            self->members[i] = heard;
            self->was_told[i] = true;
        }
    return 1;
}

// Asks the broker when it last heard the coordinator and the members. An actor without an answer
// stays as it is: not told.
static void ask_heard(struct status *self, struct tap *tap, struct run_view *view)
{
    uint32_t waited = 1;
    struct letter letter;
    tap_ask_heard(tap, "coordinator");
    for (uint32_t i = 0; i < view->roster.count; i++)
        if (is_asked(view, i)) {
            tap_ask_heard(tap, view->roster.members[i].name);
            waited++;
        }
    for (const uint64_t until_ms = clock_ms() + HEARD_MS; waited && clock_ms() < until_ms;) {
        tap_wait(tap, -1, until_ms);
        for (enum tap_result got; waited && (got = tap_take(tap, &letter)) != TAP_NOTHING;)
            if (got == TAP_HEARD) waited -= note_heard(self, view, &letter);
            else if (got == TAP_FRAME) run_view_hear(view, &letter.msg);
    }
}

static int judge_coordinator(const struct status *self, const struct tap *tap, struct why *why)
{
    const struct watch_heard heard = heard_of(self, tap);
    char text[SHOW_MAX];
    if (!status_is_dead(&heard)) return 0;
    return why_set(why, FAULT_UNREACHABLE,
                   "the coordinator of run \"%s\" is %s, last heard %s: check that it runs",
                   self->command.run_id, self->coordinator.connected ? "silent" : "not connected",
                   status_show_heard(&self->coordinator, text));
}

// ---- live, again and again ----------------------------------------------------------------------

// Time goes on for those that do not answer: adds it to when they were last heard.
static void pass_time(struct status *self, const struct run_view *view, uint64_t ms)
{
    if (self->coordinator.ms_ago != NEVER_HEARD) self->coordinator.ms_ago += ms;
    for (uint32_t i = 0; i < view->roster.count; i++)
        if (self->members[i].ms_ago != NEVER_HEARD) self->members[i].ms_ago += ms;
}

static void ask_again(struct tap *tap, const struct run_view *view)
{
    uint32_t asked = 0;
    tap_ask_heard(tap, "coordinator");
    for (uint32_t i = 0; i < view->roster.count && asked < WATCH_MEMBERS; i++)
        if (watch_shows(view, i)) tap_ask_heard(tap, view->roster.members[i].name), asked++;
}

static bool is_utf8(void)
{
    const char *locale = command_env("LC_ALL");
    if (!locale) locale = command_env("LC_CTYPE");
    if (!locale) locale = command_env("LANG");
    return locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}

static int draw(struct status *self, struct status_line *line, const struct watch *watch,
                const struct run_view *view, const struct tap *tap, struct why *why)
{
    const struct watch_heard heard = heard_of(self, tap);
    char *block = NULL;
    size_t bytes;
    if (self->command.json)
        return shoal_print_json(status_view_to_json(self->command.run_id, view, &heard), why);
    FILE *out = open_memstream(&block, &bytes);
    ensure(out);
    watch_draw(out, watch, self->command.run_id, view, &heard, is_utf8());
    ensure(fclose(out) == 0);
    status_line_draw_block(line, block);
    free(block);
    return ferror(stdout) ? why_set(why, FAULT_IO, "standard output") : 0;
}

static void hear_more(struct status *self, struct tap *tap, struct run_view *view,
                      struct watch *watch)
{
    struct letter letter;
    for (enum tap_result got; (got = tap_take(tap, &letter)) != TAP_NOTHING;)
        if (got == TAP_HEARD) note_heard(self, view, &letter);
        else if (got == TAP_FRAME) watch_hear(watch, view, run_view_hear(view, &letter.msg));
}

// SIGINT, SIGTERM and SIGHUP arrive here.
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    const int signals = signalfd(-1, &set, SFD_CLOEXEC);
    ensure(signals >= 0);
    return signals;
}

static int watch_live(struct status *self, struct tap *tap, struct run_view *view, struct why *why)
{
    struct watch *watch = calloc(1, sizeof *watch);
    struct status_line line;
    const int signals = open_signals();
    uint64_t ask_ms = 0, passed_ms = clock_ms();
    bool asked_to_stop = false;
    int rc = 0;
    ensure(watch);
    status_line_init(&line, stdout);
    line.is_tty = line.is_tty && !self->command.json;
    watch_hear(watch, view, VIEW_RUN);
    while (rc == 0 && !asked_to_stop && view->now.phase != PHASE_FINISHED) {
        asked_to_stop = tap_wait(tap, signals, line.due_ms < ask_ms ? line.due_ms : ask_ms);
        const uint64_t now_ms = clock_ms();
        pass_time(self, view, now_ms - passed_ms);
        passed_ms = now_ms;
        hear_more(self, tap, view, watch);
        if (now_ms >= ask_ms) ask_again(tap, view), ask_ms = now_ms + HEARD_MS;
        if (status_line_due(&line, now_ms)) rc = draw(self, &line, watch, view, tap, why);
        if (rc == 0 && tap_is_refused(tap))
            rc = tap_no_answer(tap, self->command.server_addr, ANSWER_MS, why);
    }
    if (rc == 0) rc = draw(self, &line, watch, view, tap, why);
    close(signals);
    free(watch);
    return rc;
}

static int show_once(const struct status *self, const struct tap *tap, const struct run_view *view,
                     struct why *why)
{
    const char *run = self->command.run_id;
    const struct watch_heard heard = heard_of(self, tap);
    if (self->command.json) return shoal_print_json(status_view_to_json(run, view, &heard), why);
    status_view_print(run, view, &heard);
    return 0;
}

static int show_live(struct status *self, struct why *why)
{
    static const uint16_t kinds[] = { FRAME_RUN,       FRAME_ROSTER, FRAME_MEMBERS,  FRAME_COMMIT,
                                      FRAME_EPOCH_END, FRAME_WINDOW, FRAME_GROUP,    FRAME_PUSHES,
                                      FRAME_ROUND,     FRAME_STEPS,  FRAME_PROGRESS, FRAME_BEAT };
    enum { KINDS_ONCE = 8, KINDS_WATCHED = sizeof kinds / sizeof *kinds };
    struct tap_options options = { .broker = &self->command.ticket,
                                   .run = self->command.run_id,
                                   .role = ACTOR_MONITOR,
                                   .kinds = kinds,
                                   .kinds_count = self->watch ? KINDS_WATCHED : KINDS_ONCE };
    struct tap *tap = NULL;
    struct identity *identity = NULL; // Needed only for a broker that does not admit every key
    struct run_view *view = calloc(1, sizeof *view);
    ensure(view);
    int rc = 0;
    if (self->command.identity_path || command_env(IDENTITY_ENV))
        rc = command_identity(&self->command, why, &identity);
    options.identity = identity;
    if (rc == 0) rc = tap_open(&options, why, &tap);
    if (rc == 0) rc = hear_state(self, tap, view, why);
    if (rc == 0) ask_heard(self, tap, view);
    if (rc == 0 && self->tasks) rc = show_tasks(self, view, why);
    else if (rc == 0 && self->watch) rc = watch_live(self, tap, view, why);
    else if (rc == 0) rc = show_once(self, tap, view, why);
    if (rc == 0) rc = judge_coordinator(self, tap, why);
    tap_close(&tap);
    identity_destroy(&identity);
    free(view);
    return rc;
}

// ---- of the services of this machine ------------------------------------------------------------

static int refuse_to_choose(const struct installed_run *runs, uint32_t count, struct why *why)
{
    char names[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof names; i++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", runs[i].run);
    return why_set(why, FAULT_USAGE,
                   "services of this machine take part in %u runs: %s; choose one with --run-id",
                   count, names);
}

// The broker's ticket is for root and the group shoal.
static int check_ticket(struct why *why)
{
    if (access(INSTALLED_TICKET, R_OK) == 0) return 0;
    if (errno == ENOENT)
        return why_set(why, FAULT_UNREACHABLE,
                       "no broker of this machine has left a ticket in %s; `systemctl status "
                       "shoal-broker` shows whether it runs",
                       INSTALLED_TICKET);
    return why_set(
        why, fault_from_errno(errno),
        "%s: %s; root and members of the group shoal may read it: sudo, or --ticket TICKET",
        INSTALLED_TICKET, strerror(errno));
}

// Fills in run and ticket where neither flags nor environment say which broker is meant.
static int find_installed(struct command *command, struct why *why)
{
    static struct installed_run runs[INSTALLED_RUNS_MAX];
    if (command->ticket_text || command->server_addr || command->server_key) return 0;
    const uint32_t count = installed_runs("", runs);
    const struct installed_run *run = NULL;
    for (uint32_t i = 0; i < count && !run; i++)
        if (!command->run_id || strcmp(runs[i].run, command->run_id) == 0) run = &runs[i];
    if (!command->run_id && count > 1) return refuse_to_choose(runs, count, why);
    if (!run) {
        if (access(INSTALLED_TICKET, R_OK) == 0) command->ticket_text = INSTALLED_TICKET;
        return 0;
    }
    command->run_id = run->run;
    command->ticket_text = run->ticket;
    return strcmp(run->ticket, INSTALLED_TICKET) == 0 ? check_ticket(why) : 0;
}

// ---- command line -------------------------------------------------------------------------------

static const struct flag flags[] = {
    FLAG("ledger", 'l', "DIR", TO_TEXT(struct status, ledger),
         "Read the ledger in the coordinator's state directory instead: draw all rounds again, "
         "verify the signatures in it, write nothing. Exit code 65 if a check fails, 66 or 78 if "
         "the state.toml in DIR is missing or invalid: then nothing is verified"),
    FLAG(
        "watch", 0, NULL, TO_SWITCH(struct status, watch),
        "Redraw four times a second, or print every five seconds where there is no terminal, until "
        "the run is finished or Ctrl-C"),
    FLAG("tasks", 0, NULL, TO_SWITCH(struct status, tasks),
         "Print how many tasks of the pass are todo, pending, done and failed, and nothing else; "
         "of a run with strategy.server.mode = \"async\""),
    FLAGS_OF(command_flags, struct status, command),
    { 0 },
};

// "my-run" is meant, or the folder that `shoal join` made.
static const char *say_stray(const char *argument, char text[COMMAND_STRAY_MAX])
{
    static const char *const tickets[] = { "run/ticket", "ticket" };
    char path[COMMAND_STRAY_MAX];
    for (size_t i = 0; i < sizeof tickets / sizeof *tickets; i++) {
        snprintf(path, sizeof path, "%.300s/%s", argument, tickets[i]);
        if (access(path, F_OK) != 0) continue;
        snprintf(text, COMMAND_STRAY_MAX, "%.300s is the folder of a run: --ticket %.320s",
                 argument, path);
        return text;
    }
    snprintf(text, COMMAND_STRAY_MAX, "%.300s: --ticket %.300s?", argument, argument);
    return strncmp(argument, "shoal:", 6) == 0 || access(argument, F_OK) == 0 ? text : NULL;
}

static const struct command_line line = {
    .flags = flags,
    .stray = say_stray,
    .about = "Shows the state of a run.\n\n"
             "  shoal status                              the run of this machine's services\n"
             "  shoal status --ticket ticket              (or TICKET; `shoal invite` makes one)\n"
             "  shoal status --ticket ticket --watch\n"
             "  shoal status --ticket ticket --tasks\n"
             "  shoal status --ledger coordinator-state --json\n\n"
             "Exit code 69 if the coordinator is dead or silent, or no broker answers.\n",
};

static int run(struct status *self, struct why *why)
{
    if (self->ledger && self->watch)
        return why_set(why, FAULT_USAGE,
                       "--watch and --ledger: a ledger does not tell what is new");
    if (self->tasks && (self->ledger || self->watch))
        return why_set(why, FAULT_USAGE, "--tasks prints what the run is at now: drop --%s",
                       self->ledger ? "ledger" : "watch");
    if (self->ledger) return status_ledger(self->ledger, self->command.json, why);
    int rc = find_installed(&self->command, why);
    if (rc == 0) rc = command_check_broker(&self->command, SHOAL_BROKER, why);
    if (rc == 0 && !self->command.run_id)
        rc = why_set(why, FAULT_USAGE, "--run-id ID (or RUN_ID) or --ledger DIR is needed");
    return rc < 0 ? rc : show_live(self, why);
}

int shoal_status(int argc, char **argv)
{
    static struct status self;
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
