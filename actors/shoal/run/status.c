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
#include "actors/shoal/run/ledger_report.h"
#include "actors/shoal/run/run_view.h"
#include "actors/shoal/run/watch.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "actors/shoal/status_line.h"
#include "common/actor/command.h"
#include "common/actor/run_words.h"
#include "common/actor/tap.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/run/lags.h"
#include "common/run/older.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum {
    ANSWER_MS = 2500,
    HEARD_MS = 1000, // For the answers about the actors, which the broker gives at once; --watch
                     // asks again after it
    MEMBERS_SHOWN = 40,
    NAME_WIDTH = 32,    // At least: that of all names without labels
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

static json_t *hash_to_json(const struct hash *hash)
{
    char hex[HASH_HEX];
    return hash_is_none(hash) ? json_null() : json_string(hash_to_hex(hash, hex));
}

static json_t *key_to_json(const struct key *key)
{
    char hex[KEY_HEX];
    return key_is_none(key) ? json_null() : json_string(key_to_hex(key, hex));
}

static json_t *heard_to_json(const struct last_heard *heard, bool was_told)
{
    if (!was_told || heard->ms_ago == NEVER_HEARD) return json_null();
    return json_integer((json_int_t)heard->ms_ago);
}

static json_t *members_to_json(const struct status *self, const struct run_view *view)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < view->roster.count; i++) {
        const struct wire_member *member = &view->roster.members[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "name", member->name, "role",
                      wire_enum_name(&wire_enum_role, member->role), "state",
                      wire_enum_name(&wire_enum_member_state, member->state), "endpoint",
                      member->endpoint, "key", key_to_json(&member->key), "connected",
                      self->was_told[i] ? json_boolean(self->members[i].connected) : json_null(),
                      "heard_ms_ago", heard_to_json(&self->members[i], self->was_told[i])));
    }
    return list;
}

// 0 stands for none: before the first step, and between two epochs.
static json_t *loss_to_json(double loss) { return loss > 0 ? json_real(loss) : json_null(); }

static json_t *rate_to_json(double rate) { return rate > 0 ? json_real(rate) : json_null(); }

static json_t *older_to_json(const struct wire_older_saves *older)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++) {
        const struct wire_saved_step *save = older_saves_at(older, i);
        if (hash_is_none(&save->digest)) break;
        json_array_append_new(list, json_pack("{s:I, s:o}", "step", (json_int_t)save->step,
                                              "digest", hash_to_json(&save->digest)));
    }
    return list;
}

static json_t *checkpoint_to_json(const struct wire_run *now)
{
    if (hash_is_none(&now->checkpoint_digest)) return json_null();
    return json_pack("{s:I, s:s, s:o}", "step", (json_int_t)now->checkpoint_step, "name",
                     now->checkpoint_name, "digest", hash_to_json(&now->checkpoint_digest));
}

static json_t *steps_to_json(const struct view_window *window)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "window", (json_int_t)window->commit_window, "step",
                     (json_int_t)window->end, "steps", (json_int_t)window->commit_steps, "samples",
                     (json_int_t)window->commit_samples);
}

static json_t *commit_to_json(const struct run_view *view)
{
    const struct wire_commit *commit = &view->round.last;
    if (view->window.commit_steps) return steps_to_json(&view->window);
    if (commit->round == 0) return json_null();
    return json_pack("{s:I, s:I, s:s, s:i, s:I, s:i, s:i}", "round", (json_int_t)commit->round,
                     "step", (json_int_t)commit->step, "outcome",
                     wire_enum_name(&wire_enum_outcome, commit->outcome), "accepted",
                     (int)view->round.accepted_count, "samples", (json_int_t)commit->samples,
                     "votes", (int)commit->votes, "elected", (int)commit->elected);
}

static bool is_dead(const struct status *self)
{
    return self->was_told_of_coordinator && !last_heard_is_alive(&self->coordinator);
}

// Negative: unknown, or the coordinator is dead.
static double left_s(const struct status *self, const struct run_view *view)
{
    return is_dead(self) ? -1 : run_words_left_s(&view->now);
}

static bool has_tasks(const struct wire_task_counts *tasks)
{
    return tasks->todo || tasks->pending || tasks->done || tasks->failed;
}

static uint64_t count_tasks(const struct wire_task_counts *tasks)
{
    return tasks->todo + tasks->pending + tasks->done + tasks->failed;
}

static json_t *tasks_to_json(const struct wire_task_counts *tasks)
{
    if (!has_tasks(tasks)) return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pass", (json_int_t)tasks->pass,
                     "tasks", (json_int_t)count_tasks(tasks), "todo", (json_int_t)tasks->todo,
                     "pending", (json_int_t)tasks->pending, "done", (json_int_t)tasks->done,
                     "failed", (json_int_t)tasks->failed, "pushes", (json_int_t)tasks->pushes,
                     "discarded", (json_int_t)tasks->discarded);
}

// The trainer that a line of PUSHES is of. The roster may be behind it.
static const char *pusher_name(const struct run_view *view, const struct wire_push_line *line)
{
    return line->member < view->roster.count ? view->roster.members[line->member].name : "?";
}

// By the least lag of each bin: {"0": 12, "1": 3, "2": 0, "4": 0, ...}.
static json_t *lags_to_json(const struct wire_lags *lags)
{
    json_t *object = json_object();
    char first[24];
    for (uint32_t bin = 0; bin < LAGS_BINS; bin++) {
        snprintf(first, sizeof first, "%" PRIu64, lags_first(bin));
        json_object_set_new(object, first, json_integer((json_int_t)lags_at(lags, bin)));
    }
    return object;
}

static json_t *pushes_to_json(const struct run_view *view)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < view->pushes.count; i++) {
        const struct wire_push_line *line = &view->pushes.lines[i];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:f, s:o}", "name", pusher_name(view, line), "pushes",
                            (json_int_t)line->pushes, "discarded", (json_int_t)line->discarded,
                            "samples_per_s", (double)line->samples_per_s, "lags",
                            lags_to_json(&line->lags)));
    }
    return list;
}

static json_t *view_to_json(const struct status *self, const struct run_view *view)
{
    const char *run = self->command.run_id;
    const struct wire_run *now = &view->now;
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "schema", "shoal.status.1", "run",
        run, "incarnation", (json_int_t)view->incarnation, "phase", run_view_phase(view), "epoch",
        (json_int_t)now->epoch, view->unit ? view->unit->name : "round", (json_int_t)now->round,
        "step", (json_int_t)now->step, "total_steps", (json_int_t)now->total_steps, "phase_left_ms",
        (json_int_t)now->phase_left_ms, "pausing", now->pausing);
    json_t *rest = json_pack(
        "{s:o, s:b, s:s, s:i, s:i, s:o, s:f, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o}",
        "heard_ms_ago", heard_to_json(&self->coordinator, self->was_told_of_coordinator), "stale",
        is_dead(self), "lacks", now->lacks, "healthy", (int)now->healthy, "pending",
        (int)now->pending, "loss", loss_to_json((double)now->loss), "tokens_per_s",
        (double)now->tokens_per_s, "samples_done", (json_int_t)now->samples_done, "tokens_done",
        (json_int_t)now->tokens_done, "passes", (json_int_t)now->passes, "digest_step",
        (json_int_t)now->digest_step, "digest", hash_to_json(&now->digest), "checkpoint",
        checkpoint_to_json(now), "older_saves", older_to_json(&now->older), "memory_step",
        (json_int_t)now->memory_step, "last_commit", commit_to_json(view), "members",
        members_to_json(self, view));
    const double left = left_s(self, view);
    if (!object || !rest || json_object_update(object, rest) != 0 ||
        json_object_set_new(object, "seconds_left", left < 0 ? json_null() : json_real(left)) !=
            0 ||
        json_object_set_new(object, "steps_per_s", rate_to_json((double)now->steps_per_s)) != 0 ||
        json_object_set_new(object, "tasks", tasks_to_json(&now->tasks)) != 0 ||
        json_object_set_new(object, "pushes",
                            view->pushes.count ? pushes_to_json(view) : json_null()) != 0)
        return NULL;
    json_decref(rest);
    return object;
}

// "7.0s ago"
static const char *show_heard(const struct last_heard *heard, char text[SHOW_MAX])
{
    char duration[SHOW_MAX];
    if (heard->ms_ago == NEVER_HEARD) snprintf(text, SHOW_MAX, "long ago");
    else
        snprintf(text, SHOW_MAX, "%.32s ago",
                 show_duration((double)heard->ms_ago / 1000, duration));
    return text;
}

// A life of the coordinator is numbered by the time of day of its start, in milliseconds.
static const char *show_start(uint64_t incarnation, char text[SHOW_MAX])
{
    const time_t at = (time_t)(incarnation / 1000);
    struct tm day;
    if (incarnation == 0) snprintf(text, SHOW_MAX, "never");
    else if (!localtime_r(&at, &day) || strftime(text, SHOW_MAX, "%Y-%m-%d %H:%M:%S", &day) == 0)
        snprintf(text, SHOW_MAX, "?");
    return text;
}

// The names are as wide as the longest that is shown.
static int wider(int width, const char *name)
{
    return (int)strlen(name) > width ? (int)strlen(name) : width;
}

static void print_members(const struct status *self, const struct run_view *view)
{
    char text[SHOW_MAX];
    int width = NAME_WIDTH;
    for (uint32_t i = 0; i < view->roster.count && i < MEMBERS_SHOWN; i++)
        width = wider(width, view->roster.members[i].name);
    for (uint32_t i = 0; i < view->roster.count && i < MEMBERS_SHOWN; i++) {
        const struct last_heard *heard = &self->members[i];
        printf("  %-*s %-10s %-22s", width, view->roster.members[i].name,
               wire_enum_name(&wire_enum_member_state, view->roster.members[i].state),
               view->roster.members[i].endpoint);
        if (self->was_told[i] && !heard->connected) printf("  not connected");
        if (self->was_told[i] && heard->ms_ago != NEVER_HEARD)
            printf("%s heard %s", heard->connected ? " " : ",", show_heard(heard, text));
        putchar('\n');
    }
    if (view->roster.count > MEMBERS_SHOWN)
        printf("  ... and %u more; --json lists all\n", view->roster.count - MEMBERS_SHOWN);
}

// "   window 12", "   40.1 steps/s". What is not known is not said.
static void print_unit(const struct run_view *view)
{
    if (view->unit) printf("   %s %" PRIu64, view->unit->name, view->now.round);
}

// As `shoal train` calls them: of parameters alone, or with what the optimizer keeps.
static const char *digest_name(const struct run_view *view)
{
    const bool has_state = view->unit && view->unit->config != FRAME_ROUNDS_CONFIG;
    return has_state ? "state digest" : "digest";
}

// How many steps the newest checkpoint or save lacks.
static uint64_t steps_since(const struct wire_run *now)
{
    return now->step > now->checkpoint_step ? now->step - now->checkpoint_step : 0;
}

static void print_rate(const struct run_view *view)
{
    if (view->now.steps_per_s > 0) printf("%.3g steps/s   ", (double)view->now.steps_per_s);
}

static void print_older(const struct wire_older_saves *older)
{
    for (unsigned i = 0; i < OLDER_SAVES_MAX; i++) {
        const struct wire_saved_step *save = older_saves_at(older, i);
        if (hash_is_none(&save->digest)) break;
        printf("%s %" PRIu64, i ? "," : "  older saves: steps", save->step);
    }
    if (!hash_is_none(&older->first.digest)) printf(" (shoal restore --step)\n");
}

static void print_tasks(const struct wire_task_counts *tasks)
{
    if (!has_tasks(tasks)) return;
    printf("  tasks of pass %" PRIu64 ": %" PRIu64 " todo, %" PRIu64 " pending, %" PRIu64
           " done, %" PRIu64 " failed, of %" PRIu64 "   pushes %" PRIu64 ", discarded %" PRIu64
           "\n",
           tasks->pass, tasks->todo, tasks->pending, tasks->done, tasks->failed, count_tasks(tasks),
           tasks->pushes, tasks->discarded);
}

// A line for each trainer: how fast it is, and how many pushes of others came between its pulls and its pushes.
static void print_pushes(const struct run_view *view)
{
    char text[SHOW_MAX];
    int width = NAME_WIDTH;
    if (view->pushes.count == 0) return;
    for (uint32_t i = 0; i < view->pushes.count; i++)
        width = wider(width, pusher_name(view, &view->pushes.lines[i]));
    printf("\n  %-*s %9s %8s %9s   pushes by lag:", width, "trainer", "samples/s", "pushes",
           "discarded");
    for (uint32_t bin = 0; bin < LAGS_BINS; bin++) printf(" %6s", show_lag(bin, text));
    putchar('\n');
    for (uint32_t i = 0; i < view->pushes.count; i++) {
        const struct wire_push_line *line = &view->pushes.lines[i];
        printf("  %-*s %9.3g %8" PRIu64 " %9" PRIu64 "                 ", width,
               pusher_name(view, line), (double)line->samples_per_s, line->pushes, line->discarded);
        for (uint32_t bin = 0; bin < LAGS_BINS; bin++)
            printf(" %6" PRIu64, lags_at(&line->lags, bin));
        putchar('\n');
    }
}

static void print_view(const struct status *self, const struct run_view *view)
{
    char a[SHOW_MAX], b[SHOW_MAX], hex[HASH_HEX], lacks[RUN_WORDS_MAX], loss[RUN_WORDS_LOSS_MAX];
    char silent[RUN_WORDS_MAX], start[SHOW_MAX];
    const struct wire_run *now = &view->now;
    printf("run %s: ", self->command.run_id);
    if (is_dead(self))
        printf("coordinator last heard %s; its last word was: ", show_heard(&self->coordinator, a));
    printf("%s%s", run_view_phase(view), now->pausing ? ", pausing" : "");
    // While steps are made, the time left of the run tells more.
    if (now->phase_left_ms && !is_dead(self) && !phase_makes_steps(now->phase))
        printf(", at most %s more", show_duration(now->phase_left_ms / 1000.0, a));
    if (left_s(self, view) > 0) printf(", about %s left", show_duration(left_s(self, view), a));
    else if (!is_dead(self) && run_words_silent(now, silent)[0]) printf(", %s", silent);
    if (now->lacks[0]) printf("\n  %s", run_words_lacks(now, lacks));
    printf("\n\n  epoch %" PRIu64, now->epoch);
    print_unit(view);
    printf("   step %" PRIu64 " of %" PRIu64 "   pass %" PRIu64 "\n", now->step, now->total_steps,
           now->passes);
    printf("  loss %s   ", run_words_loss((double)now->loss, loss));
    print_rate(view);
    printf("%s tokens/s   %s tokens trained   coordinator started %s\n",
           show_count(now->tokens_per_s, a), show_count((double)now->tokens_done, b),
           show_start(view->incarnation, start));
    if (self->was_told_of_coordinator && !is_dead(self))
        printf("  coordinator heard %s\n", show_heard(&self->coordinator, a));
    print_tasks(&now->tasks);
    if (!hash_is_none(&now->digest))
        printf("  %s %s of %s\n", digest_name(view), hash_to_hex(&now->digest, hex),
               show_digest_step(now->digest_step, now->step, a));
    if (!hash_is_none(&now->checkpoint_digest))
        printf("  checkpoint %s, %" PRIu64 " step%s ago, digest %.16s\n", now->checkpoint_name,
               steps_since(now), show_s(steps_since(now)),
               hash_to_hex(&now->checkpoint_digest, hex));
    else printf("  no checkpoint yet\n");
    print_older(&now->older);
    if (now->memory_step > now->checkpoint_step)
        printf("  step %" PRIu64
               " is kept in the trainers' memory: if one dies, the run goes on there\n",
               now->memory_step);
    printf("  %u trainer%s healthy, %u pending\n\n", now->healthy, show_s(now->healthy),
           now->pending);
    print_members(self, view);
    print_pushes(view);
}

// --tasks: a line each, its name first. All of them are of one instant.
static int show_tasks(const struct status *self, const struct run_view *view, struct why *why)
{
    const struct wire_task_counts *tasks = &view->now.tasks;
    if (!has_tasks(tasks))
        return why_set(
            why, FAULT_UNSUPPORTED,
            "--tasks: run \"%s\" has no tasks: only with strategy.server.mode = \"async\" "
            "are tasks dealt, once a data-provider says how long a pass is",
            self->command.run_id);
    json_t *object = tasks_to_json(tasks);
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

static int judge_coordinator(const struct status *self, struct why *why)
{
    char text[SHOW_MAX];
    if (!is_dead(self)) return 0;
    return why_set(why, FAULT_UNREACHABLE,
                   "the coordinator of run \"%s\" is %s, last heard %s: check that it runs",
                   self->command.run_id, self->coordinator.connected ? "silent" : "not connected",
                   show_heard(&self->coordinator, text));
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
    const struct watch_heard heard = { self->was_told_of_coordinator ? &self->coordinator : NULL,
                                       self->members, self->was_told, tap_silent_ms(tap) };
    char *block = NULL;
    size_t bytes;
    if (self->command.json) return shoal_print_json(view_to_json(self, view), why);
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
    else if (rc == 0 && self->command.json) rc = shoal_print_json(view_to_json(self, view), why);
    else if (rc == 0) print_view(self, view);
    if (rc == 0) rc = judge_coordinator(self, why);
    tap_close(&tap);
    identity_destroy(&identity);
    free(view);
    return rc;
}

// ---- from the ledger ----------------------------------------------------------------------------

static const struct run_unit *report_unit(const struct ledger_report *report)
{
    return run_words_unit(report->has_leases    ? FRAME_LEASES_CONFIG
                          : report->has_windows ? FRAME_WINDOWS_CONFIG
                                                : FRAME_ROUNDS_CONFIG);
}

static const char *report_phase(const struct ledger_report *report)
{
    return run_words_phase(report_unit(report), report->phase);
}

// Rounds that came to nothing are counted apart; windows, and the groups of leases, as they are.
static bool has_rounds(const struct ledger_report *report)
{
    return !report->has_windows && !report->has_leases;
}

static json_t *kinds_to_json(const struct ledger_report *report)
{
    json_t *object = json_object();
    for (uint16_t kind = 0; kind < REPORT_KINDS_MAX; kind++)
        if (report->of_kind[kind])
            json_object_set_new(object, wire_kind_name(kind),
                                json_integer((json_int_t)report->of_kind[kind]));
    return object;
}

static json_t *shares_to_json(const struct ledger_report *report)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < report->members_count; i++) {
        const struct report_member *member = &report->members[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", member->name, "role",
                            wire_enum_name(&wire_enum_role, member->role), "state",
                            wire_enum_name(&wire_enum_member_state, member->state), "results",
                            (json_int_t)member->results, "samples", (json_int_t)member->samples,
                            "windows", (json_int_t)member->windows));
    }
    return list;
}

// `holds` is null if the records could not be verified.
static json_t *evidence_to_json(const struct ledger_report *report)
{
    const bool is_verified = report->unverified_fault == 0;
    json_t *holds = is_verified ? json_boolean(!report->disproof[0]) : json_null();
    json_t *object = json_pack("{s:o, s:s}", "holds", holds, "reason",
                               is_verified ? report->disproof : report->unverified.text);
    for (int i = 0; report->proved_names && i < PACE_COUNTS_MAX && report->proved_names[i]; i++)
        json_object_set_new(object, report->proved_names[i],
                            json_integer((json_int_t)report->proved[i]));
    return object;
}

static json_t *report_to_json(const struct ledger_report *report)
{
    char units[16];
    snprintf(units, sizeof units, "%ss", report_unit(report)->name);
    json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "schema", "shoal.ledger.1", "run",
                               report->run, "incarnation", (json_int_t)report->incarnation,
                               "records", (json_int_t)report->records, "phase",
                               report_phase(report), "records_by_kind", kinds_to_json(report));
    json_t *counts = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "starts",
        (json_int_t)report->starts, units,
        (json_int_t)(has_rounds(report) ? report->rounds : report->windows), "commits",
        (json_int_t)report->commits, "voids", (json_int_t)report->voids, "distinct_steps",
        (json_int_t)report->steps, "steps_undone", (json_int_t)report->steps_undone, "steps_twice",
        (json_int_t)report->steps_twice, "steps_skipped", (json_int_t)report->steps_skipped,
        "last_step", (json_int_t)report->last_step, "samples", (json_int_t)report->samples,
        "samples_twice", (json_int_t)report->samples_twice, "samples_missing",
        (json_int_t)report->samples_missing, "restores", (json_int_t)report->restores);
    json_t *ends = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:s, s:o, s:o, s:o}", "epoch",
        (json_int_t)report->epoch, "epochs_trained", (json_int_t)report->epochs, "epoch_ends",
        (json_int_t)report->epoch_ends, "digest_step", (json_int_t)report->end.step, "digest",
        hash_to_json(&report->end.digest), "checkpoints", (json_int_t)report->checkpoints,
        "checkpoint_step", (json_int_t)report->checkpoint.step, "checkpoint_name",
        report->checkpoint.name, "checkpoint_digest", hash_to_json(&report->checkpoint.digest),
        "members", shares_to_json(report), "evidence", evidence_to_json(report));
    if (!object || !counts || !ends || json_object_update(object, counts) ||
        json_object_update(object, ends))
        return NULL;
    json_decref(counts);
    json_decref(ends);
    return object;
}

static void print_evidence(const struct ledger_report *report)
{
    if (report->unverified_fault < 0) {
        printf("  evidence NOT VERIFIED: %s\n", report->unverified.text);
        return;
    }
    printf("  evidence verified:");
    for (int i = 0; report->proved_names && i < PACE_COUNTS_MAX && report->proved_names[i]; i++)
        printf("%s %" PRIu64 " %s", i ? "," : "", report->proved[i], report->proved_names[i]);
    printf("\n");
    if (report->disproof[0]) printf("           DOES NOT HOLD: %s\n", report->disproof);
}

static void print_share(const struct report_member *member, const struct ledger_report *report,
                        int width)
{
    printf("  %-*s %-10s ", width, member->name,
           wire_enum_name(&wire_enum_member_state, member->state));
    if (report->has_windows) printf("in %6" PRIu64 " windows\n", member->windows);
    else
        printf("%6" PRIu64 " %s, %8" PRIu64 " samples\n", member->results,
               report->has_leases ? "tasks" : "results", member->samples);
}

static void print_report(const struct ledger_report *report)
{
    char hex[HASH_HEX], start[SHOW_MAX], units[16];
    int width = NAME_WIDTH;
    snprintf(units, sizeof units, "%ss", report_unit(report)->name);
    printf("run %s, from the ledger: %s, coordinator started %s\n\n", report->run,
           report_phase(report), show_start(report->incarnation, start));
    printf("  records  %" PRIu64, report->records);
    if (!has_rounds(report) && report->steps)
        printf(", %.3g a step", (double)report->records / (double)report->steps);
    printf("\n");
    for (uint16_t kind = 0; kind < REPORT_KINDS_MAX; kind++)
        if (report->of_kind[kind])
            printf("    %-20s %" PRIu64 "\n", wire_kind_name(kind), report->of_kind[kind]);
    printf("  commits  %" PRIu64 ", %s %" PRIu64 "; steps %" PRIu64 " distinct, %" PRIu64
           " twice, %" PRIu64 " skipped, %" PRIu64 " undone by restores; last step %" PRIu64 "\n",
           report->commits, has_rounds(report) ? "void rounds" : units,
           has_rounds(report) ? report->voids : report->windows, report->steps, report->steps_twice,
           report->steps_skipped, report->steps_undone, report->last_step);
    printf("  samples  %" PRIu64 ", %" PRIu64 " twice, %" PRIu64 " missing\n", report->samples,
           report->samples_twice, report->samples_missing);
    print_evidence(report);
    if (report->epoch_ends)
        printf("  %s %s of step %" PRIu64 "\n", has_rounds(report) ? "digest  " : "state digest",
               hash_to_hex(&report->end.digest, hex), report->end.step);
    if (report->checkpoints)
        printf("  newest checkpoint  %s, digest %.16s\n", report->checkpoint.name,
               hash_to_hex(&report->checkpoint.digest, hex));
    for (uint32_t i = 0; i < report->members_count; i++)
        width = wider(width, report->members[i].name);
    for (uint32_t i = 0; i < report->members_count; i++)
        print_share(&report->members[i], report, width);
}

static int show_ledger(const struct status *self, struct why *why)
{
    struct ledger_report report = { 0 };
    int rc = ledger_report_read(self->ledger, why, &report);
    if (rc < 0) return rc;
    if (self->command.json) rc = shoal_print_json(report_to_json(&report), why);
    else print_report(&report);
    if (rc == 0 && report.unverified_fault < 0)
        rc = why_set(why, report.unverified_fault, "%s", report.unverified.text);
    if (rc == 0 && report.disproof[0])
        rc = why_set(why, FAULT_CORRUPT, "the ledger does not prove what it says: %s",
                     report.disproof);
    ledger_report_free(&report);
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
    if (self->ledger) return show_ledger(self, why);
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
