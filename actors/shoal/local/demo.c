// demo -- four trainers, separate processes with separate keys, train one Llama on real English
// through the whole protocol. A trainer and the coordinator are killed on the way and come back.
//
// In this order: prepare the folder (demo_setup), run the testnet while the play of its strategy
// kills (demo_play.h), wait until each trainer has reported its last digest and the last checkpoint
// is registered, stop all processes, read the ledger, load the checkpoint and score it, then judge
// and print (demo_report). At the end all replicas must hold the same bits, and the held-out loss
// must beat a baseline that only counts bytes.

#include "actors/shoal/local/demo_play.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/actor/run_words.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_WORDS_MS = 15000 };

void demo_say(void *arg, const char *line)
{
    progress_event(&((struct demo *)arg)->progress, clock_ms(), line);
}

bool demo_is_interrupted(void *arg)
{
    (void)arg;
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
           sigismember(&pending, SIGHUP);
}

bool demo_in_group(const struct demo *self, const struct key *key)
{
    const struct run_view *view = self->net.view;
    const uint32_t member = run_view_member(view, key);
    return member != NO_MEMBER && run_view_in_group(view, member);
}

uint64_t demo_instance(const struct demo *self, const struct key *key)
{
    const struct run_view *view = self->net.view;
    const uint32_t member = run_view_member(view, key);
    return member != NO_MEMBER ? view->roster.members[member].instance : 0;
}

uint32_t demo_server_of_group(const struct demo *self)
{
    for (uint32_t i = 0; i < self->net.servers_count; i++)
        if (demo_in_group(self, &self->net.server_keys[i])) return i;
    return NO_MEMBER;
}

void demo_kill(struct demo *self, struct child *victim, const char *group, uint64_t step)
{
    char line[160];
    snprintf(line, sizeof line, "kill -9 %s (pid %d), in %s %" PRIu64 ", step %" PRIu64,
             victim->name, (int)victim->pid, group, self->net.view->window.number, step);
    demo_say(self, line);
    fleet_kill(victim);
}

const char *demo_after_s(uint64_t from_ms, uint64_t to_ms, char text[32])
{
    if (!from_ms || to_ms < from_ms) return "not seen";
    snprintf(text, 32, "after %.1f s", (double)(to_ms - from_ms) / 1000);
    return text;
}

// `mode` NULL: the first one of the strategy.
static const struct demo_play *play_named(const char *strategy, const char *mode)
{
    static const struct demo_play *const plays[] = { &demo_rounds, &demo_windows, &demo_shares,
                                                     &demo_servers, &demo_async };
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++) {
        const bool is_mode = !mode || (plays[i]->mode && strcmp(plays[i]->mode, mode) == 0);
        if (is_mode && strcmp(plays[i]->strategy, strategy) == 0) return plays[i];
    }
    return NULL;
}

static void hear(void *arg, const struct msg *msg, unsigned heard)
{
    struct demo *self = arg;
    const uint64_t now_ms = clock_ms();
    (void)msg;
    if (heard & VIEW_COMMIT) progress_hear(&self->progress, self->net.view);
    self->play->hear(self, heard, now_ms);
}

// ---- the end of the run -------------------------------------------------------------------------

static struct hash last_digest(const struct demo *self, uint32_t trainer)
{
    const struct run_view *view = self->net.view;
    uint32_t member = run_view_member(view, &self->net.keys[trainer]);
    struct hash none = { 0 };
    if (member == UINT32_MAX || view->progress[member].step != view->now.step) return none;
    return view->progress[member].digest;
}

// Every trainer has reported the digest of its last step, and the last checkpoint is registered.
static bool is_complete(const struct demo *self)
{
    const struct wire_run *now = &self->net.view->now;
    for (uint32_t i = 0; i < DEMO_TRAINERS + self->play->late; i++) {
        struct hash digest = last_digest(self, i);
        if (hash_is_none(&digest) && !self->play->no_digests) return false;
    }
    return now->checkpoint_step == now->step && !hash_is_none(&now->checkpoint_digest);
}

static void note_step(struct demo *self, uint64_t now_ms)
{
    const struct wire_run *now = &self->net.view->now;
    if (now->step != self->step) {
        self->step = now->step;
        self->moved_ms = now_ms;
        self->has_missed = false;
    }
    if (run_words_is_past(now)) self->has_missed = true;
    else if (self->has_missed) return;
    run_words_lacks(now, self->lacks);
}

static int watch(struct demo *self, struct why *why)
{
    uint64_t last_words_ms = 0;
    for (;;) {
        uint64_t now_ms = clock_ms();
        bool finished = self->net.view->now.phase == PHASE_FINISHED;
        if (finished && last_words_ms == 0) last_words_ms = now_ms + LAST_WORDS_MS;
        if (finished && (is_complete(self) || now_ms >= last_words_ms)) return 0;
        if (self->net.asked_to_stop) return why_set(why, FAULT_INTERRUPTED, "by a signal");
        note_step(self, now_ms);
        const uint64_t end_ms = self->moved_ms + self->patience_s * 1000;
        if (now_ms >= end_ms)
            return why_set(why, FAULT_TIMEOUT,
                           "step %" PRIu64 " of %" PRIu64 ", and none came in the last %" PRIu64
                           " s; %s. Logs are in %s",
                           self->step, self->setup.config.total_steps, self->patience_s,
                           self->lacks[0] ? self->lacks : "a slower machine needs more --patience",
                           self->net.log_dir);
        uint64_t until_ms = progress_tick(&self->progress, self->net.view, now_ms);
        const uint64_t due_ms = self->play->tick ? self->play->tick(self, now_ms) : end_ms;
        if (due_ms < until_ms) until_ms = due_ms;
        const int rc = testnet_turn(&self->net, until_ms < end_ms ? until_ms : end_ms, why);
        if (rc < 0) return rc;
    }
}

static int write_text(const struct model_folder *model, struct demo_report *report, struct why *why)
{
    static const struct generate_options how = { .seed = 1, .temperature = 0.7f, .top_p = 1 };
    text_codec_t *codec = NULL;
    decoder_t *decoder = NULL;
    int rc = text_codec_open(report->checkpoint_path, model->shape.vocab, why, &codec);
    if (rc == 0) rc = evaluate_decoder(model, 2 * DEMO_SAMPLE_TOKENS, NULL, why, &decoder);
    if (rc == 0)
        rc = evaluate_sample(decoder, codec, report->prompt, DEMO_SAMPLE_TOKENS, &how, why,
                             &report->text);
    decoder_destroy(&decoder);
    text_codec_close(&codec);
    return rc;
}

// Opening a checkpoint verifies it: the digest is that of the state in its files.
static int read_digest(struct demo *self, struct why *why)
{
    checkpoint_t *checkpoint;
    char root[PATH_MAX + 16];
    snprintf(root, sizeof root, "%s/checkpoints", self->net.state_dir);
    const int rc = checkpoint_open(root, self->report.ledger.checkpoint.step,
                                   self->setup.config.run_id, why, &checkpoint);
    if (rc < 0) return rc;
    self->report.checkpoint = checkpoint_info(checkpoint)->digest;
    checkpoint_close(&checkpoint);
    return 0;
}

// Loads the last checkpoint: its digest, its held-out loss, and a text that it writes.
static int examine(struct demo *self, struct why *why)
{
    struct demo_report *report = &self->report;
    struct model_folder model = { 0 };
    char heldout[PATH_MAX + 32];
    snprintf(heldout, sizeof heldout, "%s/text/heldout", self->setup.dir);
    struct evaluate_options options = { .data = heldout,
                                        .seq_len = (uint32_t)self->setup.config.max_seq_len,
                                        .token_bytes = 2,
                                        .threads = shoal_threads(),
                                        .stop = demo_is_interrupted };
    int rc = model_folder_load(report->checkpoint_path, why, &model);
    if (rc < 0) return rc;
    rc = read_digest(self, why);
    if (rc == 0) rc = evaluate_heldout(&model, &options, why, &report->heldout);
    if (rc == 0) rc = write_text(&model, report, why);
    model_folder_free(&model);
    return rc;
}

static int make_report(struct demo *self, struct why *why)
{
    struct demo_report *report = &self->report;
    char ledger[PATH_MAX + 32];
    snprintf(ledger, sizeof ledger, "%s/coordinator", self->net.state_dir);
    int rc = ledger_report_read(ledger, why, &report->ledger);
    if (rc < 0) return rc;
    if (report->ledger.checkpoints == 0)
        return why_set(why, FAULT_NOT_FOUND,
                       "no checkpoint was registered; see %s/checkpointer.log", self->net.log_dir);
    testnet_checkpoint_path(&self->net, report->ledger.checkpoint.name, report->checkpoint_path,
                            sizeof report->checkpoint_path);
    report->setup = &self->setup;
    report->prompt = "And ";
    report->trainers_count = DEMO_TRAINERS + self->play->late;
    report->no_digests = self->play->no_digests;
    memcpy(report->trainers, self->net.keys, sizeof report->trainers);
    const int rc_examined = examine(self, why);
    return rc_examined < 0 || !self->play->after ? rc_examined : self->play->after(self, why);
}

// ---- all of it ----------------------------------------------------------------------------------

static int train(struct demo *self, struct why *why)
{
    char state_dir[PATH_MAX + 8];
    snprintf(state_dir, sizeof state_dir, "%s/run", self->setup.dir);
    struct testnet_options options = { .config_dir = self->setup.dir,
                                       .state_dir = state_dir,
                                       .trainers = DEMO_TRAINERS + self->play->late,
                                       .late = self->play->late,
                                       .standby = self->play->standby,
                                       .way_in.port = (uint32_t)self->port,
                                       .threads = self->threads,
                                       .hear = hear,
                                       .say = demo_say,
                                       .arg = self };
    int rc = testnet_start(&self->net, &options, why);
    const uint64_t began_ms = self->moved_ms = clock_ms();
    self->play->plan(self);
    if (rc == 0) {
        char line[PATH_MAX + 200];
        snprintf(
            line, sizeof line,
            "run \"%s\", %s: broker, coordinator, data-provider, checkpointer and %d trainers; "
            "watch with zmq-monitor --ticket %s",
            self->setup.config.run_id, self->play->strategy, DEMO_TRAINERS, self->net.ticket_path);
        demo_say(self, line);
        rc = watch(self, why);
    }
    self->report.seconds = (clock_ms() - began_ms + 500) / 1000;
    for (uint32_t i = 0; i < DEMO_TRAINERS + self->play->late && rc == 0; i++)
        self->report.digests[i] = last_digest(self, i);
    progress_end(&self->progress);
    testnet_stop(&self->net);
    return rc;
}

static int print_json(const struct demo *self, struct why *why)
{
    json_t *object = demo_report_to_json(&self->report), *more = self->play->to_json(self);
    if (object && more && json_object_update(object, more) != 0) json_decref(object), object = NULL;
    json_decref(more);
    return shoal_print_json(object, why);
}

static int run(struct demo *self, struct why *why)
{
    self->out = self->json ? stderr : stdout;
    progress_init(&self->progress, self->out, NULL, clock_ms());
    const struct demo_place place = { .dir = self->dir,
                                      .config_dir = self->config_path,
                                      .settings = self->play->settings,
                                      .saves = self->play->saves,
                                      .pass_samples = self->play->pass_samples,
                                      .seed = self->seed };
    int rc = demo_set_up(&self->setup, &place, demo_say, self, why);
    if (rc < 0) return rc;
    self->progress.baselines = self->setup.text.nats;
    rc = train(self, why);
    if (rc < 0) return rc;
    demo_say(
        self,
        "finished; all processes have stopped. Reading the ledger, scoring the checkpoint on the "
        "held-out text");
    rc = make_report(self, why);
    if (rc < 0) return rc;
    demo_report_judge(&self->report, self->config_path || self->play->pass_samples);
    self->play->judge(self);
    demo_report_print_run(&self->report, self->out);
    self->play->print(self, self->out);
    if (self->json) rc = print_json(self, why);
    return rc < 0 ? rc : self->report.failures_count > 0;
}

static const struct flag flags[] = {
    FLAG("dir", 0, "DIR", TO_TEXT(struct demo, dir),
         "The demo's folder (shoal-demo); an earlier demo in it is removed"),
    FLAG("port", 0, "PORT", TO_NUMBER(struct demo, port, 1, 65536 - POST_PORTS),
         "The broker uses this port and the one above (5560)"),
    FLAG("patience", 0, "S", TO_NUMBER(struct demo, patience_s, 1, 86400),
         "Fail if no step is committed for so long (90)"),
    FLAG("strategy", 0, "WORD", TO_TEXT(struct demo, strategy),
         "distro, for strangers; allreduce, sharded or server, for members that trust one another "
         "(distro)"),
    FLAG(
        "mode", 0, "WORD", TO_TEXT(struct demo, mode),
        "Of the strategy server: sync, in step; or async, not in step, with one trainer at a third "
        "of the speed, beside the same in step (sync)"),
    FLAG("config-path", 0, "DIR", TO_TEXT(struct demo, config_path),
         "Holds state.toml, data.toml and model.json (config/demo)"),
    FLAG("seed", 0, "N", TO_NUMBER(struct demo, seed, 0, UINT64_MAX),
         "Seed of the first parameters (1)"),
    FLAG("threads", 0, "N", TO_TEXT(struct demo, threads), "Compute threads of each trainer (1)"),
    FLAG("json", 0, NULL, TO_SWITCH(struct demo, json),
         "Print the result as one JSON object; progress goes to stderr"),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Four trainers on this machine learn to write English, in a few minutes and without a "
             "GPU. One of them and the coordinator are killed on the way. Exit code 0 if every "
             "check passes.\n\n"
             "  shoal demo\n"
             "  shoal demo --strategy allreduce --dir /tmp/demo\n",
};

int shoal_demo(int argc, char **argv)
{
    static struct demo self = {
        .dir = "shoal-demo", .strategy = "distro", .port = 5560, .patience_s = 90, .seed = 1
    };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) self.play = play_named(self.strategy, self.mode);
    if (rc == 0 && !self.play && self.mode)
        rc = why_set(&why, FAULT_USAGE,
                     "--strategy %.40s --mode %.40s: server alone has modes, sync and async",
                     self.strategy, self.mode);
    if (rc == 0 && !self.play)
        rc = why_set(&why, FAULT_USAGE,
                     "--strategy %.40s: distro, allreduce, sharded and server have a demo",
                     self.strategy);
    if (rc == 0) rc = run(&self, &why);
    testnet_free(&self.net);
    ledger_report_free(&self.report.ledger);
    if (rc < 0) rc = fault_exit(rc, &why);
    return self.net.asked_to_stop || demo_is_interrupted(NULL) ? 130 : rc;
}
