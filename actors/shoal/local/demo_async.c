// demo_async -- the demo of strategy `server` in mode `async`. Four trainers pull tasks and push to three parameter servers; a
// fourth one stands by. Each trainer has a quota of processor time (quota.h); together the quotas are less than the
// machine has. The quota of the last trainer is a third of each other's. Two passes over a short text:
//
//     first pass    nothing is disturbed. It is reported how long it took, the pushes by lag, and those that were
//                   discarded
//     second pass   a trainer is killed: its task is dealt to another one, and the others go on. When it is back, an
//                   epoch ends for it. Then a parameter server of the group is killed: the run goes back to the newest
//                   copies that servers keep of one another's shares, with the one that stood by or the one that is
//                   started again
//
// Then the same run in step, with the same quotas, until its first pass is over. Of each of the two runs the checkpoint
// at the end of its first pass is scored, on text that no trainer was given.

#include "actors/shoal/local/demo_play.h"
#include "actors/shoal/local/quota.h"
#include "actors/shoal/local/run_files.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "common/base/clock.h"
#include "common/base/dirfile.h"
#include "common/base/durable_file.h"
#include "common/base/folder.h"
#include "common/config/toml_shim.h"
#include "common/run/lags.h"
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    PASS_SAMPLES = 3840,
    PUSH_SAMPLES = 4, // As config/demo/async.toml has it
    PASS_STEPS = PASS_SAMPLES / PUSH_SAMPLES,
    STEP_PUSHES = DEMO_TRAINERS, // In step, the parts of all trainers are one step
    SLOW = 3,                    // Indices of trainers
    KILLED = 1,
    SLOW_BY = 3,       // The quota of each other trainer by that of the slow one
    TRAINER_AT = 1060, // Steps
    SERVER_AT = 1200,
};
#define USED           0.7 // Of the processors, by all trainers together. The rest is for the servers
#define PARTS          (DEMO_TRAINERS - 1 + 1.0 / SLOW_BY)
#define RATIO_MAX      0.6  // Of the time of a pass in step
#define LOSS_ABOVE_MAX 0.05 // The held-out loss may be above that in step by this fraction of it

// One pass of a run: from its first group, or window, on.
struct pass {
    uint64_t steps, began_ms, ended_ms;
    char checkpoint[128]; // Of the step at its end; "": not registered yet
    struct evaluation heldout;
};

static struct {
    struct quota quotas[DEMO_TRAINERS];
    struct pass async, sync;
    double full_fraction; // Of one processor, for each trainer except the slow one
    // Of the first pass, by trainer: those of groups that are over, and those of the group in hand.
    struct wire_push_line sums[DEMO_TRAINERS], lines[DEMO_TRAINERS];
    bool in_pass; // The group in hand began in the first pass
    uint64_t kill_ms, kill_step, kill_group, kill_instance, back_ms;
    uint32_t server_killed; // Its index
    uint64_t server_ms, server_step, server_group, server_instance, server_back_ms,
        server_back_step;
} on = { .async.steps = PASS_STEPS,
         .sync.steps = PASS_STEPS / STEP_PUSHES }; // There is one demo in a process

// ---- quotas -------------------------------------------------------------------------------------

static double count_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// At most one processor for each, however many threads it has.
static double quota_fraction(void)
{
    const double full = USED * count_cores() / PARTS;
    return full < 1 ? full : 1;
}

static void begin_quotas(void)
{
    for (uint32_t i = 0; i < DEMO_TRAINERS; i++)
        on.quotas[i] =
            (struct quota){ .fraction = i == SLOW ? on.full_fraction / SLOW_BY : on.full_fraction };
}

static uint64_t tick_quotas(const struct testnet *net)
{
    uint64_t due_ms = UINT64_MAX;
    for (uint32_t i = 0; i < DEMO_TRAINERS; i++) {
        const uint64_t due = quota_tick(&on.quotas[i], net->trainers[i].pid, clock_us());
        if (due < due_ms) due_ms = due;
    }
    return due_ms;
}

static void lift_quotas(const struct testnet *net)
{
    for (uint32_t i = 0; i < DEMO_TRAINERS && net->trainers; i++) // NULL: the start has failed
        quota_lift(&on.quotas[i], net->trainers[i].pid);
}

static void plan(struct demo *self)
{
    char line[160];
    on.full_fraction = quota_fraction();
    snprintf(line, sizeof line,
             "from the first step on, each trainer has %.2f of a processor, and trainer-%d a third "
             "of that: together %.1f of %.0f processors",
             on.full_fraction, SLOW + 1, on.full_fraction * PARTS, count_cores());
    demo_say(self, line);
}

static uint64_t tick(struct demo *self, uint64_t now_ms)
{
    (void)now_ms;
    if (self->net.view->now.phase != PHASE_FINISHED) return tick_quotas(&self->net);
    lift_quotas(&self->net);
    return UINT64_MAX;
}

// ---- the first pass -----------------------------------------------------------------------------

// The quotas begin with it, so that the slow trainer is in the first group, too.
static void hear_pass(struct pass *pass, const struct run_view *view, unsigned heard,
                      uint64_t now_ms)
{
    const struct wire_run *now = &view->now;
    if (heard & VIEW_WINDOW && !pass->began_ms) pass->began_ms = now_ms, begin_quotas();
    if (pass->began_ms && !pass->ended_ms && now->step >= pass->steps) pass->ended_ms = now_ms;
    if (!pass->checkpoint[0] && now->checkpoint_step == pass->steps)
        snprintf(pass->checkpoint, sizeof pass->checkpoint, "%s", now->checkpoint_name);
}

static void add_line(struct wire_push_line *sum, const struct wire_push_line *line)
{
    sum->pushes += line->pushes;
    sum->discarded += line->discarded;
    if (line->samples_per_s > 0) sum->samples_per_s = line->samples_per_s;
    sum->lags = lags_sum(&sum->lags, &line->lags);
}

// A group is over: what was said last of it is all of it.
static void add_group(void)
{
    for (uint32_t i = 0; i < DEMO_TRAINERS && on.in_pass; i++) add_line(&on.sums[i], &on.lines[i]);
    memset(on.lines, 0, sizeof on.lines);
}

static void hear_pushes(const struct demo *self)
{
    const struct run_view *view = self->net.view;
    for (uint32_t t = 0; t < DEMO_TRAINERS; t++) {
        const uint32_t member = run_view_member(view, &self->net.keys[t]);
        for (uint32_t i = 0; i < view->pushes.count; i++)
            if (view->pushes.lines[i].member == member) on.lines[t] = view->pushes.lines[i];
    }
}

static void hear_group(const struct demo *self)
{
    add_group();
    on.in_pass = self->net.view->now.step < PASS_STEPS && !on.async.ended_ms;
}

// ---- the kills ----------------------------------------------------------------------------------

static void kill_trainer(struct demo *self, uint64_t now_ms)
{
    on.kill_ms = now_ms;
    on.kill_step = self->net.view->now.step;
    on.kill_group = self->net.view->window.number;
    on.kill_instance = demo_instance(self, &self->net.keys[KILLED]);
    demo_kill(self, &self->net.trainers[KILLED], "group", on.kill_step);
}

static void kill_server(struct demo *self, uint64_t now_ms)
{
    const uint32_t index = demo_server_of_group(self);
    if (index == NO_MEMBER) return; // Not known yet: at the next commit
    on.server_killed = index;
    on.server_ms = now_ms;
    on.server_step = self->net.view->now.step;
    on.server_group = self->net.view->window.number;
    on.server_instance = demo_instance(self, &self->net.server_keys[index]);
    demo_kill(self, &self->net.servers[index], "group", on.server_step);
}

// The first group without the process that was killed has three servers; the state is that of the newest copies in memory.
static void hear_replaced(struct demo *self, uint64_t now_ms)
{
    const struct run_view *view = self->net.view;
    char line[200];
    if (!on.server_ms || on.server_back_ms || view->window.number <= on.server_group) return;
    const struct key *key = &self->net.server_keys[on.server_killed];
    if (demo_in_group(self, key) && demo_instance(self, key) == on.server_instance) return;
    on.server_back_ms = now_ms;
    on.server_back_step = view->now.step;
    snprintf(line, sizeof line,
             "three parameter servers are there again: next group %.1f s after the kill, from step "
             "%" PRIu64,
             (double)(now_ms - on.server_ms) / 1000, on.server_back_step);
    demo_say(self, line);
}

// The first group with the new process of the trainer that was killed.
static void hear_back(struct demo *self, uint64_t now_ms)
{
    const struct key *key = &self->net.keys[KILLED];
    char line[120];
    if (!on.kill_ms || on.back_ms || self->net.view->window.number <= on.kill_group ||
        !demo_in_group(self, key) || demo_instance(self, key) == on.kill_instance)
        return;
    on.back_ms = now_ms;
    snprintf(line, sizeof line, "trainer-%d is back in the group, %.1f s after the kill",
             KILLED + 1, (double)(now_ms - on.kill_ms) / 1000);
    demo_say(self, line);
}

static void hear(struct demo *self, unsigned heard, uint64_t now_ms)
{
    const struct run_view *view = self->net.view;
    if (heard & VIEW_WINDOW) hear_group(self);
    if (heard & VIEW_PUSHES) hear_pushes(self);
    hear_pass(&on.async, view, heard, now_ms);
    if (heard & VIEW_WINDOW) hear_replaced(self, now_ms), hear_back(self, now_ms);
    if (!(heard & VIEW_COMMIT) || view->now.phase != PHASE_TRAIN) return;
    if (!on.kill_ms && view->now.step >= TRAINER_AT) kill_trainer(self, now_ms);
    else if (!on.server_ms && view->now.step >= SERVER_AT) kill_server(self, now_ms);
}

// ---- the same in step ---------------------------------------------------------------------------

// Settings that only a run that is not in step has, each on a line of its own.
static void remove_settings(char *text)
{
    static const char *const keys[] = { "\npush_every", "\npull_every", "\nstaleness",
                                        "\ntask_samples", "\ntask_time" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *at = strstr(text, keys[i]);
        char *end = at ? strchr(at + 1, '\n') : NULL;
        if (end) memmove(at, end, strlen(end) + 1);
    }
}

// A step has the parts of all trainers: as many samples more, and as many steps fewer.
static int set_steps(char **text, struct why *why)
{
    static const struct {
        const char *section, *key, *value;
    } settings[] = {
        { "config", "global_batch_size_start", "16" },
        { "config", "global_batch_size_end", "16" },
        { "config", "rounds_per_epoch", "120" },
        { "config", "total_steps", "480" },
        { "model.LLM.lr_schedule.Linear", "warmup_steps", "15" },
        { "model.LLM.lr_schedule.Linear", "total_steps", "480" },
        { "model.LLM.lr_schedule.Linear", "base_lr", "1e-3" },
    };
    _Static_assert(PUSH_SAMPLES * STEP_PUSHES == 16, "a step has the parts of all trainers");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof settings / sizeof *settings; i++)
        rc = run_files_set(text, settings[i].section, settings[i].key, settings[i].value, why);
    return rc;
}

// In step the servers save the state, so a folder for that is needed. They do it once an epoch, but not at the step behind
// the pass: the checkpointer writes the model of that one.
static int set_in_step(const struct demo *self, char **text, struct why *why)
{
    char path[PATH_MAX + 32], value[PATH_MAX + 40];
    snprintf(path, sizeof path, "%s/in-step/saves", self->setup.dir);
    snprintf(value, sizeof value, "\"%s\"", path);
    int rc = folder_make(path, 0755, why);
    if (rc == 0) rc = run_files_set(text, "strategy.server", "mode", "\"sync\"", why);
    if (rc == 0) rc = run_files_set(text, "checkpoint", "shared_dir", value, why);
    if (rc == 0) rc = run_files_set(text, "checkpoint", "steps", "110", why);
    return rc < 0 ? rc : set_steps(text, why);
}

// state.toml and data.toml of the run in step, in <dir>/in-step.
static int copy_settings(const struct demo *self, const char *name, bool is_state, struct why *why)
{
    char from[PATH_MAX + 32], to[PATH_MAX + 32], *text;
    size_t count;
    snprintf(from, sizeof from, "%s/%s", self->setup.dir, name);
    snprintf(to, sizeof to, "%s/in-step", self->setup.dir);
    int rc = dirfile_slurp(AT_FDCWD, from, true, TOML_BYTES_MAX, why, &text, &count);
    if (rc < 0) return rc;
    if (is_state) remove_settings(text);
    rc = is_state ? run_files_set(&text, "model.LLM.checkpoint.Hub", "repo_id", "\"../model\"", why)
                  : run_files_set(&text, "", "dir", "\"../text/pass\"", why);
    if (rc == 0 && is_state) rc = set_in_step(self, &text, why);
    if (rc == 0) rc = durable_file_write(to, name, text, strlen(text), why);
    free(text);
    return rc;
}

static struct testnet in_step = { .lock = -1, .signals = -1 };

static void hear_step(void *arg, const struct msg *msg, unsigned heard)
{
    struct demo *self = arg;
    (void)msg;
    if (heard & VIEW_COMMIT) progress_hear(&self->progress, in_step.view);
    hear_pass(&on.sync, in_step.view, heard, clock_ms());
}

static int watch_step(struct demo *self, struct why *why)
{
    struct testnet *net = &in_step;
    uint64_t moved_ms = clock_ms(), step = 0;
    while (!on.sync.checkpoint[0]) {
        const uint64_t now_ms = clock_ms(), end_ms = moved_ms + self->patience_s * 1000;
        if (net->view->now.step > step) step = net->view->now.step, moved_ms = now_ms;
        if (net->asked_to_stop) return why_set(why, FAULT_INTERRUPTED, "by a signal");
        if (net->view->now.phase == PHASE_FINISHED)
            return why_set(why, FAULT_NOT_FOUND,
                           "in step: the run is over, and no checkpoint of step %" PRIu64
                           " was registered. Logs are in %s",
                           on.sync.steps, net->log_dir);
        if (now_ms >= end_ms)
            return why_set(why, FAULT_TIMEOUT,
                           "in step: step %" PRIu64 ", and none came in the last %" PRIu64
                           " s. Logs are in %s",
                           step, self->patience_s, net->log_dir);
        uint64_t until_ms = progress_tick(&self->progress, net->view, now_ms);
        const uint64_t due_ms = tick_quotas(net);
        if (due_ms < until_ms) until_ms = due_ms;
        const int rc = testnet_turn(net, until_ms < end_ms ? until_ms : end_ms, why);
        if (rc < 0) return rc;
    }
    return 0;
}

static int score(const struct demo *self, const struct testnet *net, struct pass *pass,
                 struct why *why)
{
    struct model_folder model = { 0 };
    char path[PATH_MAX], heldout[PATH_MAX + 32];
    snprintf(heldout, sizeof heldout, "%s/text/heldout", self->setup.dir);
    testnet_checkpoint_path(net, pass->checkpoint, path, sizeof path);
    const struct evaluate_options options = { .data = heldout,
                                              .seq_len = (uint32_t)self->setup.config.max_seq_len,
                                              .token_bytes = 2,
                                              .threads = shoal_threads(),
                                              .stop = demo_is_interrupted };
    int rc = model_folder_load(path, why, &model);
    if (rc == 0) rc = evaluate_heldout(&model, &options, why, &pass->heldout);
    model_folder_free(&model);
    return rc;
}

static int train_in_step(struct demo *self, struct why *why)
{
    char config[PATH_MAX + 32], state[PATH_MAX + 40];
    snprintf(config, sizeof config, "%s/in-step", self->setup.dir);
    snprintf(state, sizeof state, "%s/in-step/run", self->setup.dir);
    const struct testnet_options options = { .config_dir = config,
                                             .state_dir = state,
                                             .trainers = DEMO_TRAINERS,
                                             .way_in.port = (uint32_t)self->port,
                                             .threads = self->threads,
                                             .hear = hear_step,
                                             .say = demo_say,
                                             .arg = self };
    int rc = folder_make(config, 0755, why);
    if (rc == 0) rc = copy_settings(self, "data.toml", false, why);
    if (rc == 0) rc = copy_settings(self, "state.toml", true, why);
    if (rc < 0) return rc;
    self->progress.loss = 0; // That of the other run
    demo_say(self, "the same run in step, mode = \"sync\", until its first pass is over");
    rc = testnet_start(&in_step, &options, why);
    if (rc == 0) rc = watch_step(self, why);
    lift_quotas(&in_step);
    progress_end(&self->progress);
    testnet_stop(&in_step);
    return rc;
}

static int after(struct demo *self, struct why *why)
{
    add_group();
    if (!on.async.checkpoint[0])
        return why_set(why, FAULT_NOT_FOUND, "no checkpoint of step %d was registered", PASS_STEPS);
    int rc = score(self, &self->net, &on.async, why);
    if (rc == 0) rc = train_in_step(self, why);
    if (rc == 0) rc = score(self, &in_step, &on.sync, why);
    self->net.asked_to_stop |= in_step.asked_to_stop;
    testnet_free(&in_step);
    return rc;
}

// ---- the verdict --------------------------------------------------------------------------------

static double seconds(const struct pass *pass)
{
    return (double)(pass->ended_ms - pass->began_ms) / 1000;
}

static double ratio(void) { return seconds(&on.async) / seconds(&on.sync); }
static double loss_above(void) { return on.async.heldout.nats / on.sync.heldout.nats - 1; }

static void judge(struct demo *self)
{
    struct demo_report *report = &self->report;
    uint64_t pushes = 0;
    for (uint32_t i = 0; i < DEMO_TRAINERS; i++) pushes += on.sums[i].pushes;
    if (!(ratio() <= RATIO_MAX))
        demo_report_fail(report, "a pass takes %.2f of the time in step, allowed %.2f", ratio(),
                         RATIO_MAX);
    if (!(loss_above() <= LOSS_ABOVE_MAX))
        demo_report_fail(report,
                         "held-out loss %.4f is %.1f %% above that in step, allowed %.0f %%",
                         on.async.heldout.nats, 100 * loss_above(), 100 * LOSS_ABOVE_MAX);
    if (!(on.async.heldout.nats < self->setup.text.nats[0]))
        demo_report_fail(report, "held-out loss %.4f is not below the order-0 baseline %.4f",
                         on.async.heldout.nats, self->setup.text.nats[0]);
    if (!pushes) demo_report_fail(report, "no trainer said what became of its pushes");
    if (!on.kill_ms) demo_report_fail(report, "no trainer was killed");
    else if (!on.back_ms) demo_report_fail(report, "trainer-%d did not come back", KILLED + 1);
    if (!on.server_ms) demo_report_fail(report, "no parameter server was killed");
    else if (!on.server_back_ms)
        demo_report_fail(report, "no group was seen after the kill of parameter-server-%u",
                         on.server_killed + 1);
}

static void print_pass(const char *what, const struct pass *pass, FILE *out)
{
    fprintf(out, "    %-14s %6.1f s   held-out loss %.4f nats per byte\n", what, seconds(pass),
            pass->heldout.nats);
}

static void print_lags(FILE *out)
{
    char name[16], text[SHOW_MAX];
    fprintf(out, "  pushes of that pass, by the pushes of others that came before them (lag)\n"
                 "    trainer      samples/s  applied discarded  lag");
    for (uint32_t bin = 0; bin < LAGS_BINS; bin++) fprintf(out, " %5s", show_lag(bin, text));
    fprintf(out, "\n");
    for (uint32_t i = 0; i < DEMO_TRAINERS; i++) {
        const struct wire_push_line *line = &on.sums[i];
        snprintf(name, sizeof name, "trainer-%u", i + 1);
        fprintf(out, "    %-12s %9.3g %8" PRIu64 " %9" PRIu64 "     ", name,
                (double)line->samples_per_s, line->pushes, line->discarded);
        for (uint32_t bin = 0; bin < LAGS_BINS; bin++)
            fprintf(out, " %5" PRIu64, lags_at(&line->lags, bin));
        fprintf(out, "\n");
    }
}

static void print(const struct demo *self, FILE *out)
{
    char back[32], last[200];
    fprintf(
        out,
        "  the first pass    %d samples: %d pushes of %d, or in step %d steps of %d; trainer-%d "
        "has a third of the others' time\n",
        PASS_SAMPLES, PASS_STEPS, PUSH_SAMPLES, PASS_STEPS / STEP_PUSHES,
        PUSH_SAMPLES * STEP_PUSHES, SLOW + 1);
    print_pass("not in step", &on.async, out);
    print_pass("in step", &on.sync, out);
    print_lags(out);
    if (on.kill_ms)
        fprintf(out,
                "  kill -9           trainer-%d at step %" PRIu64 "; it is in a group again: %s\n",
                KILLED + 1, on.kill_step, demo_after_s(on.kill_ms, on.back_ms, back));
    if (on.server_ms)
        fprintf(out,
                "  kill -9           parameter-server-%u at step %" PRIu64
                "; three are there again: %s, from step %" PRIu64 "\n",
                on.server_killed + 1, on.server_step,
                demo_after_s(on.server_ms, on.server_back_ms, back), on.server_back_step);
    snprintf(last, sizeof last,
             "with one trainer at a third of the speed a pass takes %.2f of the time in step, and "
             "its held-out loss is %.1f %% %s",
             ratio(), 100 * (loss_above() < 0 ? -loss_above() : loss_above()),
             loss_above() < 0 ? "lower" : "higher");
    demo_report_print_end(&self->report, out, last);
}

static json_t *lags_to_json(void)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < DEMO_TRAINERS; i++) {
        json_t *lags = json_array();
        for (uint32_t bin = 0; bin < LAGS_BINS; bin++)
            json_array_append_new(lags, json_integer((json_int_t)lags_at(&on.sums[i].lags, bin)));
        json_array_append_new(list, json_pack("{s:I, s:I, s:o}", "pushes",
                                              (json_int_t)on.sums[i].pushes, "discarded",
                                              (json_int_t)on.sums[i].discarded, "lags", lags));
    }
    return list;
}

static json_t *to_json(const struct demo *self)
{
    (void)self;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "pass_s", shoal_number(seconds(&on.async)),
                     "pass_in_step_s", shoal_number(seconds(&on.sync)), "ratio",
                     shoal_number(ratio()), "pass_heldout_nats",
                     shoal_number(on.async.heldout.nats), "in_step_heldout_nats",
                     shoal_number(on.sync.heldout.nats), "trainers", lags_to_json());
}

const struct demo_play demo_async = { .strategy = "server",
                                      .mode = "async",
                                      .settings = "async.toml",
                                      .no_digests = true,
                                      .pass_samples = PASS_SAMPLES,
                                      .standby = 1,
                                      .plan = plan,
                                      .hear = hear,
                                      .tick = tick,
                                      .after = after,
                                      .judge = judge,
                                      .print = print,
                                      .to_json = to_json };
