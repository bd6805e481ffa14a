// shoal-coordinator -- keeps one run. This file has its flags, its start, and what the shell adds to the core: speeds
// and overdue saves in RUN, and the questions of REACH.
//
// The start goes in the order in which one thing needs the other: the configuration, the key, the rules, the ledger,
// the number of this process, the check that the run belongs to this configuration and key, the sockets of REACH, the
// files of --log, then the shell with the core.

#include "actors/coordinator/disk_shell.h"
#include "actors/coordinator/genesis_shell.h"
#include "actors/coordinator/overdue.h"
#include "actors/coordinator/reach_shell.h"
#include "common/actor/command.h"
#include "common/actor/run_words.h"
#include "common/actor/token_rate.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/instance.h"
#include "common/base/log.h"
#include "common/learner/run_check.h"
#include "common/net/addresses.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct keeper {
    struct command command;
    const char *server_port;
    struct run_config config;
    struct identity *identity;
    struct coordinator *core;
    char *model; // config.json of the model: the core's rules point into it
    struct run_folder folder;
    struct disk_shell disk;
    struct log_shell log;
    struct reach_shell *reach;
    uint64_t instance; // The number of this process, for the broker
    struct token_rate rate;
    struct overdue overdue;
    struct wire_run now; // The newest RUN, as it was sent
};

static int open_run(struct keeper *self, struct why *why)
{
    struct run_folder *folder = &self->folder;
    struct rules rules;
    const struct ledger_options options = { .map_bytes_start = self->config.map_mib_start << 20,
                                            .map_bytes_max = self->config.map_mib_max << 20 };
    folder->path = self->command.state_dir ? self->command.state_dir : "coordinator-state";
    self->core = calloc(1, sizeof *self->core);
    ensure(self->core);
    int rc = genesis_rules(&self->config, self->identity, why, &rules, &self->model);
    if (rc < 0) return rc;
    coordinator_init(self->core, &rules);
    self->disk = (struct disk_shell){ .core = self->core, .folder = folder, .log = &self->log };
    self->log.core = self->core;
    rc = disk_shell_open(&self->disk, &options, why);
    if (rc == 0) rc = instance_take(folder->path, clock_unix_ms(), why, &self->instance);
    if (rc < 0) return rc;
    const struct run *run = &self->core->run;
    rc = run->log_seq == 0
             ? run_folder_begin(folder, self->identity, why)
             : run_folder_compare(folder, &self->config, &run->config, self->identity, why);
    return rc < 0 ? rc : run_folder_take_anew(folder, run->log_seq, why);
}

// The core tells RUN when something has changed. While no step is made, only the time since the newest step
// does: then RUN goes out with each heartbeat, so that nobody shows an old rate.
static void repeat_run(const struct keeper *self, struct outbox *out)
{
    bool has_run = false, has_beat = false;
    for (uint32_t i = 0; i < out->count; i++) {
        has_run = has_run || out->effects[i].kind == FRAME_RUN;
        has_beat = has_beat || out->effects[i].kind == FRAME_BEAT;
    }
    if (has_beat && !has_run && self->core->news.told &&
        phase_makes_steps(self->core->news.run.phase))
        outbox_news(out, FRAME_RUN, &self->core->news.run);
}

// REACH is not for the core: nothing on record follows from it. A JOIN that comes while its sender's
// address is tried, or soon after nobody was found there, is left out: a member repeats it, unless it
// is told that nobody reaches it.
static void step(void *state, const struct msg *in, struct outbox *out)
{
    struct keeper *self = state;
    if (in->kind == FRAME_QUIT) outbox_quit(out, EX_OK, "stopped; the ledger goes on from here");
    else if (in->kind == FRAME_REACH && strcmp(in->run, self->config.run_id) == 0)
        reach_shell_hear(self->reach, in);
    else if (in->kind == FRAME_JOIN && reach_shell_holds_back(self->reach, in)) return;
    else coordinator_step(self->core, in, out);
    repeat_run(self, out);
}

static void tell_reach(void *arg, const struct reach_answer *answer)
{
    struct keeper *self = arg;
    shell_mail(self->disk.shell, answer->to, answer->kind,
               answer->kind == FRAME_ACK ? (const void *)&answer->ack : &answer->refused);
}

static void take_reach(void *arg) { reach_shell_take(((struct keeper *)arg)->reach); }

// Saves in pieces are the members' work: the core puts on record what they say is whole, and does not notice that
// none came.
static uint64_t find_unsaved(struct keeper *self, const struct wire_run *run)
{
    const struct run_config *config = &self->config;
    const bool saves = config_sums(config) && config->checkpoint_shared_dir[0];
    const struct overdue_rules rules = { .first_step = config->progress_step - 1,
                                         .steps = saves ? config->checkpoint_steps : 0,
                                         .passes = saves ? config->checkpoint_passes : 0,
                                         .batch = config->batch_end };
    const uint64_t unsaved = overdue_steps(&self->overdue, &rules, run, clock_ms());
    if (unsaved && !self->now.unsaved_steps)
        log_line(
            LOG_WARNING,
            "save.overdue step=%" PRIu64 " unsaved_steps=%" PRIu64
            ": several saves were due, and none has become whole; save.failed, save.unfinished or "
            "save.skipped in the trainers' logs says why",
            run->step, unsaved);
    return unsaved;
}

// RUN has the tokens and steps per second that commits give, for all that show them; the core leaves them
// 0. What trainers report in PING is of the time in which they compute, and nobody checks it. A run that
// waits for members, is paused or finished has none, and the time until it goes on does not count.
static void fill_in(void *arg, uint16_t kind, void *body)
{
    struct keeper *self = arg;
    struct wire_run *run = body;
    if (kind != FRAME_RUN) return;
    const uint64_t now_ms = clock_ms();
    const bool rests = run->phase == PHASE_PAUSED || run->phase == PHASE_FINISHED ||
                       (run->phase == PHASE_WAITING && run->lacks[0] && !run_words_is_past(run));
    if (rests) self->rate = (struct token_rate){ 0 };
    else if (phase_makes_steps(run->phase) || self->rate.count)
        token_rate_hear(&self->rate, now_ms, run->tokens_done, run->step);
    const struct token_pace pace = token_rate_pace(&self->rate, now_ms);
    run->tokens_per_s = (float)pace.tokens_per_s;
    run->steps_per_s = (float)pace.steps_per_s;
    run->silent_ms = pace.silent_ms < UINT32_MAX ? (uint32_t)pace.silent_ms : UINT32_MAX;
    run->unsaved_steps = find_unsaved(self, run);
    self->now = *run;
}

static void say_status(const void *arg, char text[SHELL_STATUS_MAX])
{
    const struct keeper *self = arg;
    const struct wire_run *now = &self->now;
    const struct run_unit *unit = run_words_unit(self->core->rules.frame.strategy.kind);
    char words[RUN_WORDS_MAX];
    snprintf(text, SHELL_STATUS_MAX, "%s, %u trainer%s healthy, %u pending",
             run_words_status(unit, now, (double)now->loss, words), now->healthy,
             now->healthy == 1 ? "" : "s", now->pending);
}

static void say_lacks(const void *arg, char text[SHELL_STATUS_MAX])
{
    char words[RUN_WORDS_MAX];
    snprintf(text, SHELL_STATUS_MAX, "%s",
             run_words_lacks(&((const struct keeper *)arg)->now, words));
}

static void write_log(void *arg) { log_shell_turn(&((struct keeper *)arg)->log); }

// "HOST:PORT", or with tcp:// before it.
static bool address_is_local(const char *address)
{
    char host[ADDRESSES_TEXT_MAX];
    const char *from = strncmp(address, "tcp://", 6) == 0 ? address + 6 : address;
    const char *colon = strrchr(from, ':');
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - from) : 0, from);
    return addresses_is_loopback(host) || strcmp(host, "localhost") == 0;
}

static int run(struct keeper *self, struct why *why)
{
    // Greater than every earlier one. If the ledger is an older copy that lacks some starts, the clock makes it
    // greater, unless it was set back as well.
    const uint64_t known = self->core->run.incarnation, now_ms = clock_unix_ms();
    const uint64_t incarnation = now_ms > known ? now_ms : known + 1;
    static const struct actor actor = { sizeof(struct keeper), step };
    int rc =
        reach_shell_new(self->identity, self->config.run_id, tell_reach, self, why, &self->reach);
    if (rc < 0) return rc;
    struct shell_options options = {
        .actor = &actor,
        .state = self,
        .identity = self->identity,
        .role = ACTOR_COORDINATOR,
        .run = self->config.run_id,
        .broker = &self->command.ticket,
        .incarnation = incarnation,
        .instance = self->instance,
        .status = say_status,
        .lacks = say_lacks,
        .fill_in = fill_in,
        .ready_fd = reach_shell_fd(self->reach),
        .take = take_reach,
        .after_turn = write_log,
        .after_turn_arg = self,
        .disk = disk_shell_port(&self->disk),
        .verbose = self->command.verbose,
    };
    rc = log_shell_open(&self->log, incarnation, why);
    if (rc == 0) rc = shell_new(&options, why, &self->disk.shell);
    if (rc < 0) return rc;
    if (self->config.data_location == CONFIG_DATA_SERVER &&
        hash_is_none(&self->config.dataset_digest))
        log_line(LOG_WARNING,
                 "data.unpinned [data] dataset_digest is not set, so the first data-provider that "
                 "joins decides the run's data; shoal manifest --data-config data.toml prints it");
    const char *genesis = self->core->rules.frame.genesis;
    if (hash_is_none(&self->config.model_digest) && !run_has_weights(genesis))
        log_line(
            LOG_WARNING,
            "model.unpinned %s has no weights and [model] digest is not set, so the run begins "
            "with whatever %s of its first trainers have",
            genesis, config_sums(&self->config) ? "more than half" : "two thirds");
    const bool trusts_all = config_sums(&self->config);
    if (trusts_all && !address_is_local(self->command.ticket.address))
        log_line(
            LOG_WARNING,
            "run.trusts_all every trainer that the broker admits is trusted, and under --admit "
            "open that is everybody that knows its key; --admit allowlist=FILE or invite "
            "admits only whom you name");
    if (!trusts_all && self->config.min_clients == 1)
        log_line(LOG_WARNING,
                 "run.trusts_one min_clients is 1: any trainer that is left alone decides what "
                 "the run's parameters are; among strangers, raise it");
    log_line(LOG_INFO, "coordinator.ready run=%s incarnation=%" PRIu64, self->config.run_id,
             options.incarnation);
    rc = shell_run(self->disk.shell, why);
    shell_destroy(&self->disk.shell);
    return rc;
}

static void close_run(struct keeper *self)
{
    log_shell_close(&self->log);
    reach_shell_destroy(&self->reach);
    disk_shell_close(&self->disk);
    identity_destroy(&self->identity);
    free(self->core);
    free(self->model);
}

// ---- command line -------------------------------------------------------------------------------

static const struct flag flags[] = {
    FLAG("state", 0, "FILE", TO_TEXT(struct keeper, folder.state_path), "The run's state.toml",
         .needed = true),
    FLAG("log", 0, "DIR", TO_TEXT(struct keeper, log.dir),
         "Write step, loss, learning rate and tokens/s there, as CSV and for TensorBoard"),
    FLAG("begin-anew", 0, NULL, TO_SWITCH(struct keeper, folder.begin_anew),
         "Give up what members know of other runs or copies"),
    FLAG("server-port", 's', "PORT", TO_TEXT(struct keeper, server_port),
         "Port of the broker on this machine, instead of --server-addr"),
    FLAGS_OF(command_flags, struct keeper, command),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about =
        "Keeps one run of Shoal: members, phases, commits.\n\n"
        "  shoal-coordinator -i secret.key --ticket ticket --state state.toml\n"
        "  shoal-coordinator -i secret.key --ticket ticket --state state.toml --state-dir run\n",
};

// Members with a ticket that names another owner would not follow this coordinator.
static int check_owner(const struct keeper *self, struct why *why)
{
    const struct key *owner = &self->command.ticket.owner, *own = identity_key(self->identity);
    char hex[KEY_HEX], own_hex[KEY_HEX];
    if (key_is_none(owner) || key_equal(owner, own)) return 0;
    return why_set(why, FAULT_DENIED,
                   "the run's owner is %s, as --owner or the ticket says, and the key of -i is %s: "
                   "give the owner's key, or another ticket",
                   key_to_hex(owner, hex), key_to_hex(own, own_hex));
}

// Whether this run can use [checkpoint] shared_dir; `shoal train` has rules of its own.
static int check_saves(const struct keeper *self, struct why *why)
{
    const struct run_config *config = &self->config;
    const char *path = self->folder.state_path, *dir = config->checkpoint_shared_dir;
    if (!dir[0]) return 0;
    if (!config_sums(config))
        return why_set(why, FAULT_CONFIG,
                       "checkpoint.shared_dir of %s: members of a run of strategy distro do not "
                       "trust one another with parts of the state; take it out and start a "
                       "shoal-checkpointer",
                       path);
    _Static_assert(sizeof((struct wire_windows_config *)0)->shared_dir ==
                       sizeof((struct wire_leases_config *)0)->shared_dir,
                   "both paces have room for the same paths");
    if (strlen(dir) >= sizeof((struct wire_windows_config *)0)->shared_dir)
        return why_set(why, FAULT_CONFIG,
                       "checkpoint.shared_dir of %s: it has %zu characters, allowed 1 to %zu in a "
                       "run",
                       path, strlen(dir), sizeof((struct wire_windows_config *)0)->shared_dir - 1);
    return 0;
}

int main(int argc, char **argv)
{
    static struct keeper self;
    static struct config_faults faults;
    static char address[300];
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    command_log(&self.command, "coordinator");
    rc = config_load_run(self.folder.state_path, &self.config, &faults);
    config_faults_log(&faults);
    if (rc < 0) return fault_exit_code(rc);
    rc = check_saves(&self, &why);
    if (rc < 0) return log_exit(rc, &why);
    if (self.server_port) snprintf(address, sizeof address, "127.0.0.1:%s", self.server_port);
    else snprintf(address, sizeof address, "%s", self.config.broker_mail);
    if (self.server_port) self.command.server_addr = address;
    rc = command_check_broker(&self.command, address, &why);
    if (rc == 0) rc = command_identity(&self.command, &why, &self.identity);
    if (rc == 0) rc = check_owner(&self, &why);
    if (rc == 0) rc = open_run(&self, &why);
    if (rc == 0) rc = run(&self, &why);
    close_run(&self);
    return rc < 0 ? log_exit(rc, &why) : rc;
}
