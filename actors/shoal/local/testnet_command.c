// testnet start, up -- one run whose processes are all children of this one. The flags are read
// first, since a wrong one must stop us before anything starts. Then the run goes until it is
// finished or interrupted. `testnet start` is Psyche's local testnet, without tmux: its keys are
// known to all, and with --random-kill-num some trainers are killed in turns, each time when a round
// or a window has opened. `up` starts the folder that `shoal init` made, with keys of its own, and prints the
// ticket by which others join; with --systemd it starts the same actors as services.

#include "actors/shoal/local/kill_list.h"
#include "actors/shoal/local/last_up.h"
#include "actors/shoal/local/lost_steps.h"
#include "actors/shoal/local/progress.h"
#include "actors/shoal/local/saving.h"
#include "actors/shoal/local/services.h"
#include "actors/shoal/run/ledger_report.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "actors/shoal/local/testnet.h"
#include "common/actor/command.h"
#include "common/base/clock.h"
#include "common/kernel/pool.h"
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <unistd.h>

enum { KILL_INTERVAL_S = 120, KILL_INTERVAL_MAX_S = 86400, UP_PORT = 5550 };

struct wish {
    struct testnet_options options;
    const char *word, *clients, *kills, *allowed, *log, *seed;
    uint64_t port;
    double interval_s;
};

struct session {
    struct testnet net;
    struct progress progress;
    struct kill_list victims;
    char moved[400];     // A line about the broker's address, if it is not that of the command line
    struct last_up last; // Of `up`
    char advice[1500];   // Behind a fault; "": none
    uint32_t kills;      // At each interval
    uint64_t interval_ms, kill_ms; // kill_ms: the next kill, at the round or window that opens then
    struct lost_steps lost;
    bool is_unsaved;        // Several saves were due, and none has become whole
    uint64_t unsaved_since; // The newest save then
};

// ---- killing ------------------------------------------------------------------------------------

static void say(void *arg, const char *line)
{
    progress_event(&((struct session *)arg)->progress, clock_ms(), line);
}

// Kills right after a round has opened, since most work is lost there; or a window.
static void kill_some(struct session *self, uint64_t now_ms)
{
    const struct run_view *view = self->net.view;
    kill_list_draw(&self->victims, self->kills);
    for (uint32_t i = 0; i < self->kills; i++) {
        struct child *child = &self->net.trainers[self->victims.clients[i] - 1];
        char line[128];
        if (!child->pid) continue; // It has died, and is not started again yet
        snprintf(line, sizeof line, "kill -9 %s (pid %d) in %s of %s %" PRIu64, child->name,
                 (int)child->pid, view->unit->training, view->unit->name,
                 view->window.number ? view->window.number : view->round.opened.round);
        say(self, line);
        fleet_kill(child);
    }
    self->kill_ms = now_ms + self->interval_ms;
}

static void say_lost(struct session *self, const struct wire_run *now)
{
    char line[LOST_STEPS_LINE];
    if (lost_steps_hear(&self->lost, now, self->net.config.progress_step - 1, line))
        say(self, line);
}

// Once, when saves begin to fail, and once more when there is one again.
static void say_unsaved(struct session *self, const struct wire_run *now)
{
    char line[256];
    if (now->unsaved_steps && !self->is_unsaved) {
        snprintf(line, sizeof line,
                 "no save for %" PRIu64 " steps: several were due. save.failed, save.unfinished or "
                 "save.skipped in %.100s/trainer-*.log says why",
                 now->unsaved_steps, self->net.log_dir);
        say(self, line);
        self->unsaved_since = now->checkpoint_step;
    }
    if (!now->unsaved_steps && self->is_unsaved && now->checkpoint_step > self->unsaved_since)
        say(self, "the run is saved again");
    self->is_unsaved = now->unsaved_steps > 0;
}

// A run that its owner has paused stays so until he says otherwise.
static void say_rest(struct session *self, const struct run_view *view)
{
    char line[1200];
    const bool waits_for_owner = view->now.phase == PHASE_PAUSED && self->net.options.own_keys &&
                                 !self->net.asked_to_stop && !saving_will_resume(&self->net);
    snprintf(line, sizeof line, "%s", run_view_phase(view));
    if (waits_for_owner)
        snprintf(
            line, sizeof line,
            "%s; shoal resume --ticket %.500s/ticket -i %.500s/keys/coordinator.key lets it go on",
            run_view_phase(view), self->net.state_dir, self->net.state_dir);
    say(self, line);
}

static void hear(void *arg, const struct msg *msg, unsigned heard)
{
    struct session *self = arg;
    const struct run_view *view = self->net.view;
    uint64_t now_ms = clock_ms();
    (void)msg;
    if (heard & VIEW_COMMIT) progress_hear(&self->progress, view);
    if (heard & VIEW_RUN) say_lost(self, &view->now);
    if (heard & VIEW_RUN) say_unsaved(self, &view->now);
    self->lost.step = view->now.step;
    if (heard & VIEW_REBORN) say(self, "the coordinator is back, in a new life");
    if (heard & VIEW_PHASE &&
        (view->now.phase == PHASE_PAUSED || view->now.phase == PHASE_FINISHED))
        say_rest(self, view);
    if (heard & (VIEW_ROUND | VIEW_WINDOW) && self->kills > 0 && now_ms >= self->kill_ms)
        kill_some(self, now_ms);
}

// ---- running ------------------------------------------------------------------------------------

static int watch(struct session *self, struct why *why)
{
    struct saving resuming = { 0 };
    int rc = 0;
    while (rc == 0 && !self->net.asked_to_stop && self->net.view->now.phase != PHASE_FINISHED) {
        const uint64_t due_ms = progress_tick(&self->progress, self->net.view, clock_ms());
        uint64_t resume_ms;
        rc = saving_resume(&resuming, &self->net, clock_ms(), why, &resume_ms);
        if (rc == 0) rc = testnet_turn(&self->net, resume_ms < due_ms ? resume_ms : due_ms, why);
    }
    return rc;
}

// Saves what only the trainers hold, after the first interrupt or a fault `rc` of a child. The next interrupt stops at
// once. A child that cannot be kept does not end it: the others still hold the state. Returns the first fault.
static int save(struct session *self, int rc, struct why *why)
{
    struct saving saving;
    struct why other = { 0 };
    char line[160];
    uint64_t now_ms = clock_ms();
    const bool begins = saving_begin(&saving, &self->net, now_ms, &other);
    if (begins && rc < 0) say(self, why->text);
    if (other.text[0]) say(self, other.text);
    if (!begins) return rc;
    snprintf(line, sizeof line, "saving step %" PRIu64 "; interrupt%s to stop at once", saving.step,
             rc < 0 ? "" : " again");
    self->net.asked_to_stop = true;
    say(self, line);
    while (!saving_is_over(&saving, &self->net, now_ms)) {
        const uint64_t order_ms = saving_order(&saving, &self->net, now_ms);
        const uint64_t due_ms = progress_tick(&self->progress, self->net.view, now_ms);
        const uint64_t until_ms = order_ms < due_ms ? order_ms : due_ms;
        const int turned = testnet_turn(&self->net, until_ms, rc < 0 ? &other : why);
        if (rc == 0) rc = turned;
        now_ms = clock_ms();
    }
    return rc;
}

static void say_started(const struct session *self, const struct testnet_options *options)
{
    fputs(self->moved, stdout);
    fputs(self->last.words, stdout);
    printf("run \"%s\": ", self->net.config.run_id);
    if (self->net.servers_count)
        printf("%u parameter server%s and ", self->net.servers_count,
               show_s(self->net.servers_count));
    printf("%u trainer%s, broker at %s, logs in %s\n", options->trainers, show_s(options->trainers),
           self->net.ticket.address, self->net.log_dir);
    if (!options->own_keys)
        printf("The keys are small numbers and not secret: not for real runs. ");
    printf("Watch with: shoal status --watch --ticket %s\n", self->net.ticket_path);
    if (options->own_keys)
        way_in_print(&self->net.options.way_in, &self->net.config, &self->net.ticket);
    if (options->own_keys)
        fputs(way_in_trusts(&self->net.options.way_in, &self->net.config), stdout);
    fflush(stdout);
}

// The digest is the one that `shoal train` prints, if it takes the same steps. What is at risk is lost
// unless a trainer on another machine lives and holds it.
static void say_end(const struct session *self, int rc, uint64_t at_risk, bool may_lose)
{
    const struct wire_run *now = &self->net.view->now;
    const bool has_state = config_sums(&self->net.config);
    char hex[HASH_HEX];
    const bool finished = now->phase == PHASE_FINISHED;
    printf("%s at step %" PRIu64 "; all processes have stopped\n",
           finished ? "finished"
           : rc < 0 ? "ended"
                    : "interrupted",
           now->step);
    if (!finished && !may_lose && now->step > 0 && now->checkpoint_step == now->step)
        printf("%s has all steps\n", now->checkpoint_name);
    if (finished && now->digest_step == now->step && !hash_is_none(&now->digest))
        printf("%s %s\n", has_state ? "state digest" : "digest", hash_to_hex(&now->digest, hex));
    char count[32] = "steps";
    if (at_risk) snprintf(count, sizeof count, "%" PRIu64 " step%s", at_risk, show_s(at_risk));
    if (may_lose)
        printf("%s since %s may be lost: only trainers of other machines can hold them now\n",
               count,
               hash_is_none(&now->checkpoint_digest) ? "the beginning, as there is no checkpoint,"
                                                     : now->checkpoint_name);
}

// A run may finish without a checkpoint, as its trainers hold the state: its checkpointer comes too late for a short
// run, or is on another machine. `saves` is the folder of its saves, or empty.
static void say_model(const struct wire_run *now, const char *model, const char *saves)
{
    if (now->checkpoint_name[0] && access(model, F_OK) == 0) {
        printf("The model:\n\n  shoal sample --model %s\n", model);
        return;
    }
    printf("No checkpoint of the last step was written here: no checkpointer was there in time, or "
           "it failed\n");
    if (now->checkpoint_pieces && now->checkpoint_step == now->step)
        printf("The state is the save %s in %s: \"shoal checkpoint export\" makes a model of it\n",
               now->checkpoint_name, saves);
    else if (saves[0])
        printf("A save of it may be in %s: \"shoal checkpoint verify\" says whether it is whole\n",
               saves);
}

// The coordinator has refused its ledger, in words about flags of its own. What the owner of the folder
// can do.
static void advise(struct session *self)
{
    struct ledger_report report = { 0 };
    struct why why = { 0 };
    char ledger[PATH_MAX + 16], loss[WHY_MAX + 64];
    const struct child *coordinator = self->net.coordinator;
    if (!coordinator || coordinator->ended_with != EX_DATAERR) return;
    snprintf(ledger, sizeof ledger, "%s/coordinator", self->net.state_dir);
    const int rc = ledger_report_read(ledger, &why, &report);
    if (rc == FAULT_NOT_FOUND) return; // It has not begun: what it said is all there is to say
    if (rc < 0) snprintf(loss, sizeof loss, "Its ledger cannot be read: %s", why.text);
    else if (report.commits == 0)
        snprintf(loss, sizeof loss, "No step was committed yet, so nothing is lost");
    else
        snprintf(loss, sizeof loss,
                 "It has %" PRIu64 " steps: put back what was changed, to keep them",
                 report.last_step);
    snprintf(self->advice, sizeof self->advice,
             "%.600s. To begin the run anew, rename %.600s and start again. The keys, the ticket "
             "and the "
             "checkpoints of the run are in that folder, so friends need the new ticket\n",
             loss, self->net.state_dir);
    ledger_report_free(&report);
}

static int run(struct session *self, const struct testnet_options *options, struct why *why)
{
    progress_init(&self->progress, stdout, NULL, clock_ms());
    int rc = testnet_start(&self->net, options, why);
    if (rc == 0 && options->own_keys) rc = last_up_keep(&self->last, self->net.state_dir, why);
    if (rc == 0) {
        self->kill_ms = clock_ms() + self->interval_ms;
        say_started(self, options);
        rc = watch(self, why);
        if (rc < 0 || self->net.asked_to_stop) rc = save(self, rc, why);
    }
    progress_end(&self->progress);
    const struct wire_run now = self->net.view->now;
    const bool finished = now.phase == PHASE_FINISHED;
    const uint64_t at_risk = saving_at_risk(&self->net);
    const bool may_lose = saving_may_lose(&self->net);
    char model[PATH_MAX + 64], saves[PATH_MAX];
    snprintf(saves, sizeof saves, "%s",
             config_sums(&self->net.config) ? self->net.config.checkpoint_shared_dir : "");
    testnet_checkpoint_path(&self->net, now.checkpoint_name, model, sizeof model);
    testnet_stop(&self->net);
    if (rc == 0 || self->net.view->has_run) say_end(self, rc, at_risk, may_lose);
    if (rc < 0) advise(self);
    testnet_free(&self->net);
    if (rc == 0 && finished) say_model(&now, model, saves);
    if (rc == 0 && !finished) return 130;
    return rc;
}

// ---- command line -------------------------------------------------------------------------------

static int read_kills(const struct wish *wish, struct session *self, struct why *why)
{
    uint64_t kills = 0, seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return why_set(why, FAULT_IO, "getrandom: %s", strerror(errno));
    int rc = wish->seed ? command_number("--seed", wish->seed, 0, UINT64_MAX, why, &seed) : 0;
    if (rc == 0)
        rc = kill_list_parse(wish->allowed, wish->options.trainers, seed, why, &self->victims);
    if (rc == 0 && wish->kills)
        rc = command_number("--random-kill-num", wish->kills, 0, self->victims.count, why, &kills);
    self->kills = (uint32_t)kills;
    self->interval_ms = (uint64_t)(wish->interval_s * 1000);
    return rc;
}

static int read_wish(struct wish *wish, struct session *self, struct why *why)
{
    struct testnet_options *options = &wish->options;
    uint64_t clients = 0;
    if (!wish->clients) return why_set(why, FAULT_USAGE, "--num-clients N is needed");
    if (!options->config_dir)
        return why_set(why, FAULT_USAGE, "--config-path DIR is needed: the folder of state.toml");
    int rc = command_number("--num-clients", wish->clients, 1, TESTNET_TRAINERS_MAX, why, &clients);
    if (rc == 0 && wish->log && strcmp(wish->log, "info") != 0 && strcmp(wish->log, "debug") != 0)
        rc = why_set(why, FAULT_USAGE, "--log %s: info or debug", wish->log);
    options->trainers = (uint32_t)clients;
    options->way_in.port = (uint32_t)wish->port;
    options->debug = wish->log && strcmp(wish->log, "debug") == 0;
    return rc == 0 ? read_kills(wish, self, why) : rc;
}

static const struct flag flags[] = {
    FLAG("num-clients", 0, "N", TO_TEXT(struct wish, clients), "Trainers, 1 to 256", .group = 1),
    FLAG("config-path", 'c', "DIR", TO_TEXT(struct wish, options.config_dir),
         "The folder of state.toml, data.toml, and the model and data they name", .group = 1),
    FLAG("server-port", 's', "PORT", TO_NUMBER(struct wish, port, 1, 65536 - POST_PORTS),
         "The broker uses this port and the one above (20000)", .group = 1),
    FLAG("state-dir", 0, "DIR", TO_TEXT(struct wish, options.state_dir),
         "State of the children (testnet-state); an existing one is continued", .group = 1),
    FLAG("random-kill-num", 0, "N", TO_TEXT(struct wish, kills),
         "Kill N trainers with SIGKILL at each interval (0)", .group = 2),
    FLAG("allowed-to-kill", 0, "LIST", TO_TEXT(struct wish, allowed),
         "Kill only these trainers, numbered from 1 (all)", .group = 2),
    FLAG("random-kill-interval", 0, "S", TO_REAL(struct wish, interval_s, 0.1, KILL_INTERVAL_MAX_S),
         "Seconds between kills (120)", .group = 2),
    FLAG("seed", 0, "N", TO_TEXT(struct wish, seed),
         "Seed that draws the trainers to kill (random)", .group = 2),
    FLAG("threads", 0, "N", TO_TEXT(struct wish, options.threads),
         "Compute threads of each trainer (1)", .group = 3),
    FLAG("micro-batch-size", 0, "N", TO_TEXT(struct wish, options.micro_batch),
         "Micro batch size of each trainer (4)", .group = 3),
    FLAG("log", 0, "FILTER", TO_TEXT(struct wish, log), "info or debug (info)", .group = 3),
    FLAG("write-log", 0, "DIR", TO_TEXT(struct wish, options.log_dir),
         "Folder of the children's logs (<state-dir>/logs)", .group = 3),
    // Psyche's
    FLAG_OF_PSYCHE("first-client-checkpoint",
                   "all begin with the model that state.toml names in [model.LLM.checkpoint]"),
    FLAG_OF_PSYCHE("write-distro-data", "results are kept by the checkpointer"),
    FLAG_OF_PSYCHE("tui", "there is no terminal interface; use zmq-monitor beside it"),
    FLAG_OF_PSYCHE("hf-token", "nothing is downloaded"),
    FLAG_OF_PSYCHE("wandb-project", "there is no W&B export; use zmq-monitor --json"),
    FLAG_OF_PSYCHE("wandb-group", "there is no W&B export"),
    FLAG_OF_PSYCHE("wandb-entity", "there is no W&B export"),
    FLAG_OF_PSYCHE("optim-stats", "there are no optimizer statistics"),
    FLAG_OF_PSYCHE("eval-tasks", "use shoal eval on a checkpoint"),
    FLAG_OF_PSYCHE("events-dir",
                   "the coordinator's ledger is the event log: shoal status --ledger"),
    { 0 },
};

static int check_word(const void *line, struct why *why)
{
    const struct wish *wish = line;
    if (strcmp(wish->word, "start") == 0) return 0;
    return why_set(why, FAULT_USAGE, "\"%s\" is unknown; the only word of testnet is `start`",
                   wish->word);
}

static const struct command_line line = {
    .flags = flags,
    .usage = "start",
    .about = "A whole run on this machine: broker, coordinator, data-provider, checkpointer and "
             "trainers, restarted when they die. Its keys are not secret: never for real runs. "
             "Ends with 0 when the run is finished.\n\n"
             "  shoal testnet start --num-clients 4 --config-path run\n"
             "  shoal testnet start --num-clients 4 -c run --random-kill-num 1 "
             "--random-kill-interval 20\n",
    .arguments = TO_TEXT(struct wish, word),
    .none = "`shoal testnet start` is the only form",
    .check = check_word,
};

int shoal_testnet(int argc, char **argv)
{
    static struct session self;
    static struct wish wish = {
        .options = { .state_dir = "testnet-state", .hear = hear, .say = say, .arg = &self },
        .port = 20000,
        .interval_s = KILL_INTERVAL_S
    };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &wish, &why);
    if (rc == 0) rc = read_wish(&wish, &self, &why);
    if (rc == 0) rc = run(&self, &wish.options, &why);
    return rc < 0 ? fault_exit(rc, &why) : rc;
}

// ---- up -----------------------------------------------------------------------------------------

struct up {
    const char *dir, *bind;
    // Remembered (last_up.h). trainers NULL: as many as the run begins with; standby NULL: none
    const char *trainers, *threads, *label, *standby;
    uint64_t port, server_port;
    bool systemd;
    char last[TICKET_ADDRESS_MAX + 1]; // The broker's address of last time; "": there was none
};

static const struct flag up_flags[] = {
    FLAG("trainers", 0, "N", TO_TEXT(struct up, trainers),
         "Trainers on this machine (that of last time; at first as many as the run begins with)"),
    FLAG("standby", 0, "N", TO_TEXT(struct up, standby),
         "Parameter servers that take the place of one that dies (that of last time; at first 0)"),
    FLAG("bind", 'b', "ADDRESS", TO_TEXT(struct up, bind),
         "Address of this machine that others can reach (that of last time; at first 127.0.0.1: "
         "nobody else)"),
    FLAG("port", 0, "N", TO_NUMBER(struct up, port, 1, 65536 - POST_PORTS),
         "The broker uses this port and the one above, the other actors the next ones (that of "
         "last time, 5550; where nobody else can come, the others take any free ones)"),
    FLAG("server-port", 's', "PORT", TO_NUMBER(struct up, server_port, 1, 65536 - POST_PORTS),
         "The same for the broker alone"),
    FLAG("name", 0, "LABEL", TO_TEXT(struct up, label),
         "A word that others see beside the trainers' keys: anna makes anna-1, anna-2 .. (that of "
         "last "
         "time; at first none)"),
    FLAG("threads", 0, "N", TO_TEXT(struct up, threads),
         "Compute threads of each trainer (that of last time; at first 1)"),
    FLAG("systemd", 0, NULL, TO_SWITCH(struct up, systemd),
         "As services that `make install` has put here, at each boot too; needs root"),
    { 0 },
};

static int check_up(const void *wish, struct why *why)
{
    const struct up *up = wish;
    if (!up->port || !up->server_port) return 0;
    return why_set(why, FAULT_USAGE, "--port and --server-port: one of them, for one broker");
}

static const struct command_line up_line = {
    .flags = up_flags,
    .usage = "DIR",
    .about =
        "Starts a run that `shoal init` made: broker, coordinator, data-provider, checkpointer, "
        "parameter servers if it has any, and trainers, restarted when they die. Goes on where the "
        "last `up` stopped. Ends with "
        "0 when the run is finished.\n\n"
        "  shoal up my-run\n"
        "  shoal up my-run --bind 203.0.113.7        others join with the ticket it prints\n"
        "  sudo shoal up my-run --systemd            starts services and ends\n",
    .arguments = TO_TEXT(struct up, dir),
    .none = "the folder of a run is needed; `shoal init` makes one",
    .check = check_up,
};

// The run begins with init_min_clients trainers: by default we start as many.
static int read_run(const struct up *up, struct why *why, struct run_config *ret_config,
                    struct testnet_options *options)
{
    static struct config_faults faults;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/state.toml", up->dir);
    const int rc = config_load_run(path, ret_config, &faults);
    if (rc < 0) {
        config_faults_print(&faults, stderr);
        return why_set(why, rc, "%s is refused (see above)", path);
    }
    uint64_t trainers = ret_config->init_min_clients, threads, standby = 0;
    if (up->trainers &&
        command_number("--trainers", up->trainers, 1, TESTNET_TRAINERS_MAX, why, &trainers) < 0)
        return FAULT_USAGE;
    if (up->threads &&
        command_number("--threads", up->threads, 1, POOL_THREADS_MAX, why, &threads) < 0)
        return FAULT_USAGE;
    if (up->standby &&
        command_number("--standby", up->standby, 0, TESTNET_STANDBY_MAX, why, &standby) < 0)
        return FAULT_USAGE;
    if (standby > 0 && config_servers(ret_config) == 0)
        return why_set(why, FAULT_USAGE,
                       "--standby %s: the run has no parameter servers; strategy.kind of %s is not "
                       "\"server\"",
                       up->standby, path);
    options->trainers = (uint32_t)trainers;
    options->standby = (uint32_t)standby;
    if (options->trainers > TESTNET_TRAINERS_MAX)
        return why_set(why, FAULT_USAGE, "init_min_clients %u of %s: give --trainers, 1 to %d",
                       options->trainers, path, TESTNET_TRAINERS_MAX);
    return 0;
}

// The label of the last trainer is the longest.
static int check_label(const char *label, uint32_t trainers, struct why *why)
{
    char last[64];
    if (!label) return 0;
    snprintf(last, sizeof last, "%.40s-%" PRIu32, label, trainers);
    return command_check_label(last, why);
}

// What the command line leaves open is as it was last time.
static void remember(struct up *up, const char *state_dir, struct last_up *last)
{
    last_up_take(
        last, state_dir,
        (const char *const[LAST_UP_FLAGS]){ up->trainers, up->threads, up->label, up->standby });
    up->trainers = last_up_value(last, 0);
    up->threads = last_up_value(last, 1);
    up->label = last_up_value(last, 2);
    up->standby = last_up_value(last, 3);
}

// The broker's address of last time is in the ticket that the run's folder has. What the command line
// leaves open is taken from there. A ticket that cannot be read is a fault: others would look for us in vain.
static int find_way_in(struct up *up, const char *state_dir, struct why *why,
                       struct way_in *ret_way_in)
{
    static char host[TICKET_ADDRESS_MAX + 1];
    char path[PATH_MAX + 16];
    struct ticket ticket;
    struct why unread = { 0 };
    const uint64_t port = up->port ? up->port : up->server_port;
    *ret_way_in = (struct way_in){ .bind = up->bind, .port = port ? (uint32_t)port : UP_PORT };
    snprintf(path, sizeof path, "%s/ticket", state_dir);
    if (access(path, F_OK) == 0) {
        const int rc = ticket_read(path, &unread, &ticket);
        if (rc < 0)
            return why_set(why, rc,
                           "%s. It has the address of last time: remove it, and give --bind and "
                           "--port again",
                           unread.text);
        const char *colon = strrchr(ticket.address, ':');
        const uint64_t last_port = colon ? strtoull(colon + 1, NULL, 10) : 0;
        snprintf(up->last, sizeof up->last, "%s", ticket.address);
        snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - ticket.address) : 0,
                 ticket.address);
        if (!up->bind && host[0]) ret_way_in->bind = host;
        if (!port && last_port > 0 && last_port <= 65536 - POST_PORTS)
            ret_way_in->port = (uint32_t)last_port;
    }
    if (up->port || way_in_is_open(ret_way_in))
        ret_way_in->members_port = ret_way_in->port + POST_PORTS;
    return 0;
}

// What is not on the command line is said, and what is not as it was. "": neither.
static void word_way_in(const struct up *up, const struct way_in *way_in, char *text, size_t max)
{
    char now[TICKET_ADDRESS_MAX + 16];
    snprintf(now, sizeof now, "%.100s:%u", way_in_address(way_in), way_in->port);
    text[0] = 0;
    if (up->last[0] && strcmp(now, up->last) != 0)
        snprintf(text, max,
                 "the broker is at %s now, and was at %s last time: a ticket of that time does not "
                 "lead here\n",
                 now, up->last);
    else if (up->last[0] && !up->bind && strcmp(way_in_address(way_in), WAY_IN_DEFAULT) != 0)
        snprintf(text, max, "at %s, as last time; --bind changes it\n", now);
}

static int start_services(const struct up *up, const struct testnet_options *options,
                          const struct run_config *config, struct why *why)
{
    struct services_options services = { .dir = up->dir,
                                         .config = config,
                                         .way_in = options->way_in,
                                         .trainers = options->trainers,
                                         .standby = options->standby,
                                         .threads = up->threads,
                                         .label = up->label };
    way_in_set_members(&services.way_in, config, options->trainers + options->standby);
    const int rc = way_in_check_link(&services.way_in, config, why);
    return rc < 0 ? rc : services_start(&services, why);
}

int shoal_up(int argc, char **argv)
{
    static struct session self;
    static struct run_config config;
    struct up up = { 0 };
    struct why why = { 0 };
    char state_dir[PATH_MAX];
    struct testnet_options options = {
        .state_dir = state_dir, .own_keys = true, .hear = hear, .say = say, .arg = &self
    };
    int rc = command_parse(&up_line, argc, argv, &up, &why);
    if (rc == 0) snprintf(state_dir, sizeof state_dir, "%s/run", up.dir);
    if (rc == 0) remember(&up, state_dir, &self.last);
    if (rc == 0) rc = read_run(&up, &why, &config, &options);
    if (rc == 0) rc = check_label(up.label, options.trainers, &why);
    if (rc == 0 && !up.systemd) rc = services_check_foreground(up.dir, config.run_id, &why);
    if (rc == 0) rc = find_way_in(&up, state_dir, &why, &options.way_in);
    if (rc < 0) return fault_exit(rc, &why);
    word_way_in(&up, &options.way_in, self.moved, sizeof self.moved);
    options.config_dir = up.dir;
    options.threads = up.threads;
    options.label = up.label;
    rc = up.systemd ? start_services(&up, &options, &config, &why) : run(&self, &options, &why);
    if (rc == 0 && up.systemd) {
        fputs(self.moved, stdout);
        fputs(self.last.words, stdout);
        fputs(way_in_trusts(&options.way_in, &config), stdout);
    }
    if (rc == 0) return 0;
    const int code = rc < 0 ? fault_exit(rc, &why) : rc;
    fputs(self.advice, stderr);
    return code;
}
