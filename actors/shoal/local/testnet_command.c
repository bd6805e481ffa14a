// testnet start -- Psyche's local testnet, without tmux: a run of child processes under one roof.

#include "actors/shoal/local/kill_list.h"
#include "actors/shoal/local/progress.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/local/testnet.h"
#include "common/actor/command.h"
#include "common/base/clock.h"
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>

enum {
    KEY_KILLS = 1000,
    KEY_ALLOWED,
    KEY_INTERVAL,
    KEY_LOG,
    KEY_WRITE_LOG,
    KEY_STATE_DIR,
    KEY_THREADS,
    KEY_MICRO_BATCH,
    KEY_SEED,
    KEY_REFUSED
};

// Psyche's flags that have no thing here.
static const struct {
    const char *flag, *reason;
} refused[] = {
    { "first-client-checkpoint",
      "all begin with the model that state.toml names in [model.LLM.checkpoint]" },
    { "write-distro-data", "results are kept by the checkpointer" },
    { "tui", "there is no terminal interface; use zmq-monitor beside it" },
    { "hf-token", "nothing is downloaded" },
    { "wandb-project", "there is no W&B export; use zmq-monitor --json" },
    { "wandb-group", "there is no W&B export" },
    { "wandb-entity", "there is no W&B export" },
    { "optim-stats", "there are no optimizer statistics" },
    { "eval-tasks", "use shoal eval on a checkpoint" },
    { "events-dir", "the coordinator's ledger is the event log: shoal status --ledger" },
};
enum { REFUSED = sizeof refused / sizeof *refused };

struct wish {
    struct testnet_options options;
    const char *clients, *port, *kills, *allowed, *interval, *log, *seed;
};

struct session {
    struct testnet net;
    struct progress progress;
    struct kill_list victims;
    uint32_t kills;                // Each time
    uint64_t interval_ms, kill_ms; // kill_ms: the next time, once a round opens
};

// ---- killing ------------------------------------------------------------------------------------

static void say(void *arg, const char *line)
{
    progress_event(&((struct session *)arg)->progress, clock_ms(), line);
}

// Only where it hurts: right after a round has opened.
static void kill_some(struct session *self, uint64_t now_ms)
{
    kill_list_draw(&self->victims, self->kills);
    for (uint32_t i = 0; i < self->kills; i++) {
        struct child *child = &self->net.trainers[self->victims.clients[i] - 1];
        char line[128];
        snprintf(line, sizeof line, "kill -9 %s (pid %d) in RoundTrain of round %llu", child->name,
                 (int)child->pid, (unsigned long long)self->net.view->round);
        say(self, line);
        fleet_kill(&self->net.fleet, child);
    }
    self->kill_ms = now_ms + self->interval_ms;
}

static void hear(void *arg, const struct msg *msg, unsigned heard)
{
    struct session *self = arg;
    const struct run_view *view = self->net.view;
    uint64_t now_ms = clock_ms();
    (void)msg;
    if (heard & VIEW_COMMIT) progress_hear(&self->progress, view);
    if (heard & VIEW_REBORN) say(self, "the coordinator is back, in a new life");
    if (heard & VIEW_PHASE &&
        (view->now.phase == PHASE_PAUSED || view->now.phase == PHASE_FINISHED))
        say(self, run_view_phase(view));
    if (heard & VIEW_ROUND && self->kills > 0 && now_ms >= self->kill_ms) kill_some(self, now_ms);
}

// ---- running ------------------------------------------------------------------------------------

static int watch(struct session *self, struct why *why)
{
    int rc = 0;
    while (rc == 0 && !self->net.asked_to_stop && self->net.view->now.phase != PHASE_FINISHED) {
        uint64_t due_ms = progress_tick(&self->progress, self->net.view, clock_ms());
        rc = testnet_turn(&self->net, due_ms, why);
    }
    return rc;
}

static int run(struct session *self, const struct testnet_options *options, struct why *why)
{
    progress_init(&self->progress, stdout, NULL, 0, clock_ms());
    int rc = testnet_start(&self->net, options, why);
    if (rc == 0) {
        self->progress.seq_len = (uint32_t)self->net.config.max_seq_len;
        self->kill_ms = clock_ms() + self->interval_ms;
        printf("run \"%s\": %u trainers, broker at %s, logs in %s\nThe keys are numbers that "
               "anybody can guess: not "
               "for real runs. Watch with: zmq-monitor --ticket %s\n",
               self->net.config.run_id, options->trainers, self->net.ticket.address,
               self->net.log_dir, self->net.ticket_path);
        rc = watch(self, why);
    }
    progress_end(&self->progress);
    bool finished = self->net.view->now.phase == PHASE_FINISHED;
    uint64_t step = self->net.view->now.step;
    testnet_stop(&self->net);
    testnet_free(&self->net);
    if (rc == 0)
        printf("%s at step %llu; everybody has stopped\n", finished ? "finished" : "interrupted",
               (unsigned long long)step);
    if (rc == 0 && !finished) return 130;
    return rc;
}

// ---- command line -------------------------------------------------------------------------------

static int read_kills(const struct wish *line, struct session *self, struct why *why)
{
    uint64_t kills = 0, seed = 0;
    double interval = 120;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return why_set(why, FAULT_IO, "getrandom: %s", strerror(errno));
    int rc = line->seed ? command_number("--seed", line->seed, 0, UINT64_MAX, why, &seed) : 0;
    if (rc == 0)
        rc = kill_list_parse(line->allowed, line->options.trainers, seed, why, &self->victims);
    if (rc == 0 && line->kills)
        rc = command_number("--random-kill-num", line->kills, 0, self->victims.count, why, &kills);
    if (rc == 0 && line->interval)
        rc = shoal_real("--random-kill-interval", line->interval, 0.1, 86400, why, &interval);
    self->kills = (uint32_t)kills;
    self->interval_ms = (uint64_t)(interval * 1000);
    return rc;
}

static int read_line(struct wish *line, struct session *self, struct why *why)
{
    struct testnet_options *options = &line->options;
    uint64_t clients = 0, port = 20000;
    if (!line->clients) return why_set(why, FAULT_USAGE, "--num-clients N is needed");
    if (!options->config_dir)
        return why_set(why, FAULT_USAGE, "--config-path DIR is needed: the folder of state.toml");
    int rc = command_number("--num-clients", line->clients, 1, TESTNET_TRAINERS_MAX, why, &clients);
    if (rc == 0 && line->port)
        rc = command_number("--server-port", line->port, 1, 65536 - POST_PORTS, why, &port);
    if (rc == 0 && line->log && strcmp(line->log, "info") != 0 && strcmp(line->log, "debug") != 0)
        rc = why_set(why, FAULT_USAGE, "--log %s: info or debug", line->log);
    options->trainers = (uint32_t)clients;
    options->port = (uint32_t)port;
    options->debug = line->log && strcmp(line->log, "debug") == 0;
    return rc == 0 ? read_kills(line, self, why) : rc;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wish *self = state->input;
    switch (key) {
    case 'n': self->clients = arg; break;
    case 'c': self->options.config_dir = arg; break;
    case 's': self->port = arg; break;
    case KEY_KILLS: self->kills = arg; break;
    case KEY_ALLOWED: self->allowed = arg; break;
    case KEY_INTERVAL: self->interval = arg; break;
    case KEY_LOG: self->log = arg; break;
    case KEY_WRITE_LOG: self->options.log_dir = arg; break;
    case KEY_STATE_DIR: self->options.state_dir = arg; break;
    case KEY_THREADS: self->options.threads = arg; break;
    case KEY_MICRO_BATCH: self->options.micro_batch = arg; break;
    case KEY_SEED: self->seed = arg; break;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0 || strcmp(arg, "start") != 0)
            argp_error(state, "\"%s\"; the only thing a testnet does is `start`", arg);
        break;
    case ARGP_KEY_NO_ARGS: argp_error(state, "`shoal testnet start` is meant"); break;
    default:
        if (key < KEY_REFUSED || key >= KEY_REFUSED + REFUSED) return ARGP_ERR_UNKNOWN;
        argp_error(state, "--%s is Psyche's and not supported: %s", refused[key - KEY_REFUSED].flag,
                   refused[key - KEY_REFUSED].reason);
    }
    return 0;
}

static struct argp_option options[12 + REFUSED + 1] = {
    { "num-clients", 'n', "N", 0, "Trainers, 1 to 256", 1 },
    { "config-path", 'c', "DIR", 0,
      "The folder of state.toml, data.toml, and the model and data they name", 1 },
    { "server-port", 's', "PORT", 0, "Of the broker, and the one above (20000)", 1 },
    { "state-dir", KEY_STATE_DIR, "DIR", 0,
      "What the children keep (testnet-state); the same again goes on", 1 },
    { "random-kill-num", KEY_KILLS, "N", 0, "Kill so many trainers with SIGKILL each time (0)", 2 },
    { "allowed-to-kill", KEY_ALLOWED, "LIST", 0, "Only these, numbered from 1 (all)", 2 },
    { "random-kill-interval", KEY_INTERVAL, "S", 0, "Seconds between the times (120)", 2 },
    { "seed", KEY_SEED, "N", 0, "Of who is killed (random)", 2 },
    { "threads", KEY_THREADS, "N", 0, "Compute threads of each trainer (1)", 3 },
    { "micro-batch-size", KEY_MICRO_BATCH, "N", 0, "Of each trainer (4)", 3 },
    { "log", KEY_LOG, "FILTER", 0, "info or debug (info)", 3 },
    { "write-log", KEY_WRITE_LOG, "DIR", 0, "Where each child's log goes (<state-dir>/logs)", 3 },
};

int shoal_testnet(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "start",
        "A whole run on this machine: broker, coordinator, data-provider, checkpointer and "
        "trainers, restarted "
        "when they die. Its keys are not secret: never for real runs. Ends with 0 when the run is "
        "finished.\n\n"
        "  shoal testnet start --num-clients 4 --config-path run\n"
        "  shoal testnet start -n 4 -c run --random-kill-num 1 --random-kill-interval 20\n",
        NULL,
        NULL,
        NULL
    };
    static struct wish line;
    static struct session self;
    struct why why = { 0 };
    for (int i = 0; i < REFUSED; i++)
        options[12 + i] = (struct argp_option){
            refused[i].flag, KEY_REFUSED + i, "X", OPTION_HIDDEN | OPTION_ARG_OPTIONAL, NULL, 4
        };
    line.options.state_dir = "testnet-state";
    argp_parse(&argp, argc, argv, 0, NULL, &line);
    line.options.hear = hear;
    line.options.say = say;
    line.options.arg = &self;
    int rc = read_line(&line, &self, &why);
    if (rc == 0) rc = run(&self, &line.options, &why);
    return rc < 0 ? fault_exit(rc, &why) : rc;
}
