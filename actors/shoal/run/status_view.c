// status_view -- first the JSON of a run's parts and of the whole; then the same for people.

#include "actors/shoal/run/status_view.h"
#include "actors/shoal/shoal.h"
#include "common/actor/run_words.h"
#include "common/run/lags.h"
#include "common/run/older.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>

enum { MEMBERS_SHOWN = 40 };

// ---- JSON ---------------------------------------------------------------------------------------

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

static json_t *coordinator_to_json(const struct watch_heard *heard)
{
    return heard->coordinator ? heard_to_json(heard->coordinator, true) : json_null();
}

static json_t *members_to_json(const struct run_view *view, const struct watch_heard *heard)
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
                      heard->was_told[i] ? json_boolean(heard->members[i].connected) : json_null(),
                      "heard_ms_ago", heard_to_json(&heard->members[i], heard->was_told[i])));
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
                                              "digest", shoal_hash(&save->digest)));
    }
    return list;
}

static json_t *checkpoint_to_json(const struct wire_run *now)
{
    if (hash_is_none(&now->checkpoint_digest)) return json_null();
    return json_pack("{s:I, s:s, s:o}", "step", (json_int_t)now->checkpoint_step, "name",
                     now->checkpoint_name, "digest", shoal_hash(&now->checkpoint_digest));
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

bool status_is_dead(const struct watch_heard *heard)
{
    return heard->coordinator && !last_heard_is_alive(heard->coordinator);
}

// Negative: unknown, or the coordinator is dead.
static double left_s(const struct run_view *view, const struct watch_heard *heard)
{
    return status_is_dead(heard) ? -1 : run_words_left_s(&view->now);
}

static bool has_tasks(const struct wire_task_counts *tasks)
{
    return tasks->todo || tasks->pending || tasks->done || tasks->failed;
}

static uint64_t count_tasks(const struct wire_task_counts *tasks)
{
    return tasks->todo + tasks->pending + tasks->done + tasks->failed;
}

json_t *status_tasks_to_json(const struct wire_task_counts *tasks)
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

json_t *status_view_to_json(const char *run, const struct run_view *view,
                            const struct watch_heard *heard)
{
    const struct wire_run *now = &view->now;
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "schema", "shoal.status.1", "run",
        run, "incarnation", (json_int_t)view->incarnation, "phase", run_view_phase(view), "epoch",
        (json_int_t)now->epoch, view->unit ? view->unit->name : "round", (json_int_t)now->round,
        "step", (json_int_t)now->step, "total_steps", (json_int_t)now->total_steps, "phase_left_ms",
        (json_int_t)now->phase_left_ms, "pausing", now->pausing);
    json_t *rest = json_pack(
        "{s:o, s:b, s:s, s:i, s:i, s:o, s:f, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o}",
        "heard_ms_ago", coordinator_to_json(heard), "stale", status_is_dead(heard), "lacks",
        now->lacks, "healthy", (int)now->healthy, "pending", (int)now->pending, "loss",
        loss_to_json((double)now->loss), "tokens_per_s", (double)now->tokens_per_s, "samples_done",
        (json_int_t)now->samples_done, "tokens_done", (json_int_t)now->tokens_done, "passes",
        (json_int_t)now->passes, "digest_step", (json_int_t)now->digest_step, "digest",
        shoal_hash(&now->digest), "checkpoint", checkpoint_to_json(now), "older_saves",
        older_to_json(&now->older), "memory_step", (json_int_t)now->memory_step, "last_commit",
        commit_to_json(view), "members", members_to_json(view, heard));
    const double left = left_s(view, heard);
    if (!object || !rest || json_object_update(object, rest) != 0 ||
        json_object_set_new(object, "seconds_left", left < 0 ? json_null() : json_real(left)) !=
            0 ||
        json_object_set_new(object, "steps_per_s", rate_to_json((double)now->steps_per_s)) != 0 ||
        json_object_set_new(object, "unsaved_steps",
                            json_integer((json_int_t)now->unsaved_steps)) != 0 ||
        json_object_set_new(object, "tasks", status_tasks_to_json(&now->tasks)) != 0 ||
        json_object_set_new(object, "pushes",
                            view->pushes.count ? pushes_to_json(view) : json_null()) != 0)
        return NULL;
    json_decref(rest);
    return object;
}

// ---- for people ---------------------------------------------------------------------------------

const char *status_show_heard(const struct last_heard *heard, char text[SHOW_MAX])
{
    char duration[SHOW_MAX];
    if (heard->ms_ago == NEVER_HEARD) snprintf(text, SHOW_MAX, "long ago");
    else
        snprintf(text, SHOW_MAX, "%.32s ago",
                 show_duration((double)heard->ms_ago / 1000, duration));
    return text;
}

static void print_members(const struct run_view *view, const struct watch_heard *heard)
{
    char text[SHOW_MAX];
    int width = SHOW_NAMES;
    for (uint32_t i = 0; i < view->roster.count && i < MEMBERS_SHOWN; i++)
        width = show_wider(width, view->roster.members[i].name);
    for (uint32_t i = 0; i < view->roster.count && i < MEMBERS_SHOWN; i++) {
        const struct last_heard *of = &heard->members[i];
        printf("  %-*s %-10s %-22s", width, view->roster.members[i].name,
               wire_enum_name(&wire_enum_member_state, view->roster.members[i].state),
               view->roster.members[i].endpoint);
        if (heard->was_told[i] && !of->connected) printf("  not connected");
        if (heard->was_told[i] && of->ms_ago != NEVER_HEARD)
            printf("%s heard %s", of->connected ? " " : ",", status_show_heard(of, text));
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
    int width = SHOW_NAMES;
    if (view->pushes.count == 0) return;
    for (uint32_t i = 0; i < view->pushes.count; i++)
        width = show_wider(width, pusher_name(view, &view->pushes.lines[i]));
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

void status_view_print(const char *run, const struct run_view *view,
                       const struct watch_heard *heard)
{
    char a[SHOW_MAX], b[SHOW_MAX], hex[HASH_HEX], lacks[RUN_WORDS_MAX], loss[RUN_WORDS_LOSS_MAX];
    char silent[RUN_WORDS_MAX], start[SHOW_MAX];
    const struct wire_run *now = &view->now;
    printf("run %s: ", run);
    if (status_is_dead(heard))
        printf("coordinator last heard %s; its last word was: ",
               status_show_heard(heard->coordinator, a));
    printf("%s%s", run_view_phase(view), now->pausing ? ", pausing" : "");
    // While steps are made, the time left of the run tells more.
    if (now->phase_left_ms && !status_is_dead(heard) && !phase_makes_steps(now->phase))
        printf(", at most %s more", show_duration(now->phase_left_ms / 1000.0, a));
    if (left_s(view, heard) > 0) printf(", about %s left", show_duration(left_s(view, heard), a));
    else if (!status_is_dead(heard) && run_words_silent(now, silent)[0]) printf(", %s", silent);
    if (now->lacks[0]) printf("\n  %s", run_words_lacks(now, lacks));
    printf("\n\n  epoch %" PRIu64, now->epoch);
    print_unit(view);
    printf("   step %" PRIu64 " of %" PRIu64 "   pass %" PRIu64 "\n", now->step, now->total_steps,
           now->passes);
    printf("  loss %s   ", run_words_loss((double)now->loss, loss));
    print_rate(view);
    printf("%s tokens/s   %s tokens trained   coordinator started %s\n",
           now->tokens_per_s > 0 ? show_count(now->tokens_per_s, a) : "-",
           show_count((double)now->tokens_done, b), show_start(view->incarnation, start));
    if (heard->coordinator && !status_is_dead(heard))
        printf("  coordinator heard %s\n", status_show_heard(heard->coordinator, a));
    print_tasks(&now->tasks);
    if (!hash_is_none(&now->digest))
        printf("  %s %s of step %" PRIu64 "\n", digest_name(view), hash_to_hex(&now->digest, hex),
               now->digest_step);
    if (!hash_is_none(&now->checkpoint_digest))
        printf("  %s %s, %" PRIu64 " step%s ago, digest %.16s\n",
               now->checkpoint_pieces ? "save" : "checkpoint", now->checkpoint_name,
               steps_since(now), show_s(steps_since(now)),
               hash_to_hex(&now->checkpoint_digest, hex));
    else printf("  no checkpoint yet\n");
    print_older(&now->older);
    if (now->unsaved_steps)
        printf("  no save for %" PRIu64 " steps: several were due. save.failed, save.unfinished or "
               "save.skipped in the trainers' logs says why\n",
               now->unsaved_steps);
    if (now->memory_step > now->checkpoint_step)
        printf("  step %" PRIu64
               " is kept in the members' memory: if one dies, the run goes on there\n",
               now->memory_step);
    printf("  %u trainer%s healthy, %u pending\n\n", now->healthy, show_s(now->healthy),
           now->pending);
    print_members(view, heard);
    print_pushes(view);
}
