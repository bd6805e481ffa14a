// Opens what a member needs in this order: command line, identity, state directory with journal,
// blob store and bulk server, workers, shell. An address that others cannot reach is refused before
// the workers start. Then it runs the shell's loop and closes all in reverse.
// What an earlier process left (journal, checkpoint, blobs) enters the core as its first messages.
// After each turn the bulk server learns which members of the roster may fetch.

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/patience.h"
#include "common/member/member_shell.h"
#include "common/actor/journal.h"
#include "common/actor/run_end.h"
#include "common/actor/run_words.h"
#include "common/actor/shell.h"
#include "common/bulk/fetcher.h"
#include "common/base/ensure.h"
#include "common/base/instance.h"
#include "common/ledger/stored.h"
#include "common/member/blobs.h"
#include "common/member/step_line.h"
#include "common/net/announce.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GUESTS_TURN_MAX = 64 };

struct running {
    struct member_options *options;
    const struct member_process *process;
    struct member *member; // The first field of the actor's state
    struct identity *identity;
    char dir[PATH_MAX], blobs[PATH_MAX + 16];
    struct journal *journal;
    uint64_t instance; // Number of this process; its frames carry it as their incarnation, too
    blob_store_t *store;
    bulk_server_t *server;
    struct worker *workers[2];
    uint32_t workers_count;
    struct shell *shell;
    uint64_t steps_told; // Of a trainer: steps_taken of the newest line
    struct wire_journal promised;
    struct wire_load resume;
    struct wire_inherited inherited;
    struct wire_blob left[BLOBS_INHERITED_MAX]; // In the blob store, from an earlier process
    struct key guests[MEMBERS_MAX];    // By index in the roster: keys the bulk server was told of
    uint8_t guest_states[MEMBERS_MAX]; // 1 + the state that each key had then; 0: not told yet
    char guest_names[MEMBERS_MAX][ACTOR_NAME_MAX + 1];
    uint64_t guests_version;     // The roster version that the bulk server knows in full
    pthread_mutex_t guests_lock; // For writing guests, states and names, and for the fetcher
    struct fetch_namer namer;
    uint8_t record[JOURNAL_RECORD_MAX];
};

// ---- disk: the journal --------------------------------------------------------------------------

static int disk_begin(void *arg, struct why *why)
{
    (void)arg, (void)why;
    return 0;
}

static int disk_store(void *arg, uint16_t kind, const uint8_t *body, size_t count, struct why *why)
{
    struct running *self = arg;
    (void)why;
    ensure(kind == FRAME_JOURNAL && count <= sizeof self->record);
    struct wire_arena arena = { .bytes = self->record, .max = sizeof self->record };
    struct wire_refusal refusal;
    const void *promised;
    ensure(wire_unpack_body(body, count, kind, &arena, &promised, &refusal));
    self->promised = *(const struct wire_journal *)promised; // The newest of a turn is enough
    return 0;
}

static int disk_commit(void *arg, struct why *why)
{
    struct running *self = arg;
    size_t count =
        wire_pack_record(FRAME_JOURNAL, &self->promised, self->record, sizeof self->record);
    ensure(count > 0);
    return journal_write(self->journal, self->record, count, why);
}

// Runs before any later job, so that what learner and fetcher store afterwards stays. The fetcher
// gets the same FORGET and removes the files.
static int disk_job(void *arg, uint16_t kind, const void *body, struct why *why)
{
    const struct running *self = arg;
    const struct wire_forget *job = body;
    (void)why;
    for (uint32_t i = 0; kind == FRAME_FORGET && i < job->blobs_count; i++)
        blob_store_drop(self->store, &job->blobs[i].hash);
    return 0;
}

static int read_journal(struct running *self, struct why *why)
{
    const uint8_t *bytes;
    size_t count = journal_read(self->journal, &bytes);
    if (count == 0) return 0;
    struct wire_arena arena = { .bytes = self->record, .max = sizeof self->record };
    const void *body;
    char what[sizeof self->dir + 32];
    snprintf(what, sizeof what, "%s/journal, record", self->dir);
    int rc = stored_unpack_kind(what, 1, bytes, count, FRAME_JOURNAL, &arena, why, &body);
    if (rc < 0) return rc;
    self->promised = *(const struct wire_journal *)body;
    return 0;
}

// ---- parts --------------------------------------------------------------------------------------

// Without --state-dir the folder is named after role and key. The label has no part in it: an actor
// that comes back with another --name must find its journal.
static int open_dir(struct running *self, struct why *why)
{
    const struct command *command = &self->options->command;
    char plain[ACTOR_NAME_MAX + 1];
    actor_name_plain(self->member->name, plain);
    if (command->state_dir && strlen(command->state_dir) >= sizeof self->dir)
        return why_set(why, FAULT_RANGE, "--state-dir has %zu bytes, allowed are %zu",
                       strlen(command->state_dir), sizeof self->dir - 1);
    if (command->state_dir) snprintf(self->dir, sizeof self->dir, "%s", command->state_dir);
    else snprintf(self->dir, sizeof self->dir, "%s-state", plain);
    int rc = journal_open(self->dir, why, &self->journal);
    if (rc == 0) rc = instance_take(self->dir, clock_unix_ms(), why, &self->instance);
    if (rc == 0) rc = read_journal(self, why);
    if (rc < 0 || !self->process->keeps_blobs) return rc;
    snprintf(self->blobs, sizeof self->blobs, "%s/blobs", self->dir);
    if (mkdir(self->blobs, 0700) != 0 && errno != EEXIST)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->blobs, strerror(errno));
    return 0;
}

static int refuse_port(const char *port, struct why *why)
{
    const struct why before = *why;
    return why_set(why, FAULT_BUSY,
                   "%.1000s: port %s is taken; --bind-p2p-port chooses another one", before.text,
                   port);
}

static int open_bulk(struct running *self, struct why *why)
{
    struct member_options *options = self->options;
    const struct member_process *process = self->process;
    struct member *member = self->member;
    char endpoint[128];
    // A member may have promised to serve the bytes, also after a restart of the process. Only the
    // checkpointer's blobs are fsynced, and so survive a power cut. There is no bytes_max, because
    // the store is opened before the run tells how large a blob is. The core wants only blobs that
    // its pace needs.
    struct blob_store_options store = { .dir = process->keeps_blobs ? self->blobs : NULL,
                                        .lazy = member->role != ACTOR_CHECKPOINTER };
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%s", options->bulk_bind, options->bulk_port);
    int rc = blob_store_new(&store, why, &self->store);
    if (rc < 0) return rc;
    self->inherited.blobs = self->left;
    self->inherited.blobs_count = blob_store_list(self->store, self->left, BLOBS_INHERITED_MAX);
    struct bulk_server_options server = { .identity = self->identity,
                                          .endpoint = endpoint,
                                          .run = options->command.run_id,
                                          .store = self->store,
                                          .answer = process->answer,
                                          .arg = process->answer_arg,
                                          .description = process->description,
                                          .description_bytes = process->description_bytes,
                                          .seq_len = process->seq_len };
    rc = bulk_server_new(&server, why, &self->server);
    if (rc == FAULT_BUSY) return refuse_port(options->bulk_port, why);
    if (rc < 0) return rc;
    const struct announce how = { .bulk_bind = options->bulk_bind,
                                  .announce = options->announce,
                                  .broker = options->command.server_addr };
    return announce_endpoint(&how, bulk_server_endpoint(self->server), why, member->endpoint);
}

// Tells the bulk server which keys may fetch: all members of the roster but the ejected ones.
// Converting a key takes a tenth of a millisecond, so a large roster takes several turns.
static void let_guests_in(void *arg)
{
    struct running *self = arg;
    const struct member *member = self->member;
    uint32_t done = 0;
    if (member->roster.version == self->guests_version) return;
    for (uint32_t i = 0; i < member->roster.count; i++) {
        const struct wire_member *guest = &member->roster.members[i];
        bool known = self->guest_states[i] && key_equal(&self->guests[i], &guest->key) &&
                     strcmp(self->guest_names[i], guest->name) == 0;
        bool is_in = guest->state != MEMBER_EJECTED;
        if (known && is_in == (self->guest_states[i] != 1 + MEMBER_EJECTED)) continue;
        if (++done > GUESTS_TURN_MAX) return;
        pthread_mutex_lock(&self->guests_lock);
        self->guests[i] = guest->key;
        self->guest_states[i] = (uint8_t)(1 + guest->state);
        memcpy(self->guest_names[i], guest->name, sizeof self->guest_names[i]);
        pthread_mutex_unlock(&self->guests_lock);
        bulk_server_admit(self->server, &guest->key, is_in);
    }
    self->guests_version = member->roster.version;
}

// On the fetcher's thread. A member that was not told to the bulk server yet is named by its key.
static void name_of(void *arg, const struct key *key, char ret_name[ACTOR_NAME_MAX + 1])
{
    struct running *self = arg;
    char hex[KEY_HEX];
    snprintf(ret_name, ACTOR_NAME_MAX + 1, "key %.16s", key_to_hex(key, hex));
    pthread_mutex_lock(&self->guests_lock);
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
        if (!self->guest_states[i] || !key_equal(&self->guests[i], key)) continue;
        memcpy(ret_name, self->guest_names[i], sizeof self->guest_names[i]);
        break;
    }
    pthread_mutex_unlock(&self->guests_lock);
}

static bool is_admitted(const void *arg)
{
    const struct running *self = arg;
    return self->member->admitted || self->member->finished;
}

static bool is_hint(const void *arg, uint16_t kind)
{
    const struct running *self = arg;
    return kind != FRAME_NONE && kind == self->member->hint_kind;
}

static const struct run_unit *unit_of(const struct member *member)
{
    return run_words_unit(member->config.strategy.kind);
}

// A trainer's own loss and step: the others have none.
static void say_status(const void *arg, char text[SHELL_STATUS_MAX])
{
    const struct running *self = arg;
    const struct member *member = self->member;
    const bool trains = role_takes_steps(member->role);
    char words[RUN_WORDS_MAX], behind[64] = "";
    if (!member->has_run) {
        snprintf(text, SHELL_STATUS_MAX, "joining run \"%s\"", member->run);
        return;
    }
    if (trains && member->step_held + 1 < member->now.step)
        snprintf(behind, sizeof behind, "; catching up: it holds step %" PRIu64, member->step_held);
    snprintf(
        text, SHELL_STATUS_MAX, "%s%s",
        run_words_status(unit_of(member), &member->now, trains ? (double)member->loss : 0, words),
        behind);
}

static void say_lacks(const void *arg, char text[SHELL_STATUS_MAX])
{
    const struct running *self = arg;
    const struct member *member = self->member;
    char words[RUN_WORDS_MAX] = "";
    if (member->has_run && self->options->guest) run_words_lacks_for_guest(&member->now, words);
    else if (member->has_run) run_words_lacks(&member->now, words);
    if (member->has_run && !words[0] && member_is_pending(member))
        run_words_pending(unit_of(member), member->role, &member->now, words);
    snprintf(text, SHELL_STATUS_MAX, "%s", words);
}

// A guest has no other view of the run than its log.
static void say_progress(const void *arg, char text[SHELL_STATUS_MAX])
{
    const struct running *self = arg;
    struct wire_run now = self->member->now;
    char words[RUN_WORDS_MAX], left[RUN_WORDS_MAX];
    text[0] = 0;
    if (!self->member->has_run || now.phase == PHASE_FINISHED) return;
    if (now.lacks[0] && !run_words_is_past(&now)) return;
    now.lacks[0] = 0; // A line of its own has it
    snprintf(text, SHELL_STATUS_MAX, "run.progress %s%s",
             run_words_status(unit_of(self->member), &now, (double)now.loss, words),
             run_words_left(&now, left));
}

// The last trainers may have left, and no loss is reported then.
static void say_end(const struct running *self)
{
    const struct wire_run *now = &self->member->now;
    char loss[RUN_WORDS_LOSS_MAX];
    log_line(LOG_INFO,
             "run.over The run \"%s\" is finished: step %" PRIu64 " of %" PRIu64
             ", loss %s. Its model is with the run's owner: ask there for it. A trainer has it in "
             "memory only, so %s has nothing that `shoal export` reads",
             self->member->run, now->step, now->total_steps,
             run_words_loss((double)now->loss, loss), self->dir);
}

// For the next `shoal join`. Without it that one only waits.
static void keep_end(const struct running *self)
{
    const struct wire_run *now = &self->member->now;
    struct run_end end = { .broker = self->options->command.ticket.server,
                           .step = now->step,
                           .total_steps = now->total_steps };
    struct why why = { 0 };
    snprintf(end.run, sizeof end.run, "%s", self->member->run);
    if (run_end_keep(self->dir, &end, &why) < 0)
        log_line(LOG_WARNING, "run.over is not kept: %s", why.text);
}

static void after_turn(void *arg)
{
    struct running *self = arg;
    const struct member *member = self->member;
    char text[STEP_LINE_MAX];
    let_guests_in(self);
    if (!role_takes_steps(member->role) || member->steps_taken == self->steps_told) return;
    self->steps_told = member->steps_taken;
    if (step_line(member, text)) log_line(LOG_INFO, "%s", text);
}

static int open_workers(struct running *self, struct why *why)
{
    self->namer = (struct fetch_namer){ .name_of = name_of, .arg = self };
    const struct member_place place = { .options = self->options,
                                        .member = self->member,
                                        .identity = self->identity,
                                        .store = self->store,
                                        .namer = &self->namer,
                                        .bulk_endpoint = bulk_server_endpoint(self->server),
                                        .instance = self->instance };
    member_worker_fn *const *open = self->process->workers;
    int rc = 0;
    while (rc == 0 && self->workers_count < 2 && open[self->workers_count]) {
        rc = open[self->workers_count](&place, why, &self->workers[self->workers_count]);
        self->workers_count += rc == 0;
    }
    return rc;
}

static int open_shell(struct running *self, struct why *why)
{
    const struct member_options *options = self->options;
    const struct member *member = self->member;
    static const char *const deaf_to[] = { "PROGRESS", NULL };
    static const char *const deaf_to_claims[] = { "PROGRESS", "CLAIM", NULL };
    const bool may_witness = member->role == ACTOR_TRAINER || member->role == ACTOR_WITNESS;
    struct shell_options shell = {
        .actor = self->process->actor,
        .state = self->member,
        .identity = self->identity,
        .role = member->role,
        .name = member->name,
        .run = options->command.run_id,
        .broker = &options->command.ticket,
        .follows_news = true,
        .deaf_to = may_witness ? deaf_to : deaf_to_claims,
        .incarnation = self->instance,
        .instance = self->instance,
        .workers_count = self->workers_count,
        .after_turn = after_turn,
        .after_turn_arg = self,
        .status = say_status,
        .lacks = say_lacks,
        .progress = options->guest ? say_progress : NULL,
        .is_guest = options->guest,
        .is_admitted = is_admitted,
        .is_hint = is_hint,
        .disk = { .arg = self,
                  .begin = disk_begin,
                  .store = disk_store,
                  .commit = disk_commit,
                  .job = disk_job },
        .verbose = options->command.verbose,
    };
    memcpy(shell.workers, self->workers, sizeof self->workers);
    int first = 0;
    if (self->promised.first.number || self->promised.second.number ||
        self->promised.position.log_seq || !key_is_none(&self->promised.owner)) {
        shell.first[first].kind = FRAME_JOURNAL;
        shell.first[first++].body = &self->promised;
    }
    if (self->resume.path[0]) {
        shell.first[first].kind = FRAME_RESUME;
        shell.first[first++].body = &self->resume;
    }
    if (self->inherited.blobs_count) {
        shell.first[first].kind = FRAME_INHERITED;
        shell.first[first++].body = &self->inherited;
    }
    return shell_new(&shell, why, &self->shell);
}

static void prepare_member(struct running *self)
{
    const struct member_process *process = self->process;
    self->member = calloc(1, process->actor->size);
    ensure(self->member);
    struct member *member = self->member;
    process->init(member);
    member->key = *identity_key(self->identity);
    actor_name_with(member->role, self->options->label ? self->options->label : "", &member->key,
                    member->name);
    snprintf(member->run, sizeof member->run, "%s", self->options->command.run_id);
    member->coordinator = self->options->command.ticket.owner;
    member->is_guest = self->options->guest;
    member->samples = process->samples;
    member->data = process->data;
    member->positions = process->positions;
    member->address.is_checked = !self->options->unchecked_address;
}

static int check_line(struct member_options *options, struct why *why)
{
    struct command *command = &options->command;
    int rc = command_check_label(options->label, why);
    if (rc == 0) rc = command_check_broker(command, NULL, why);
    if (rc == 0 && !command->run_id)
        rc = why_set(why, FAULT_USAGE, "--run-id ID (or RUN_ID) is needed");
    return rc;
}

int member_run(struct member_options *options, const struct member_process *process)
{
    struct running *self = calloc(1, sizeof *self);
    ensure(self);
    ensure(pthread_mutex_init(&self->guests_lock, NULL) == 0);
    shell_block_signals();
    patience_set(true);
    self->options = options;
    self->process = process;
    struct why why = { 0 };
    int rc = check_line(options, &why);
    if (rc == 0) rc = command_identity(&options->command, &why, &self->identity);
    if (rc == 0) {
        prepare_member(self);
        command_log(&options->command, self->member->name);
        rc = open_dir(self, &why);
    }
    if (rc == 0 && process->find) rc = process->find(options, &why, &self->resume);
    if (rc == 0) rc = open_bulk(self, &why);
    if (rc == 0) rc = open_workers(self, &why);
    if (rc == 0) rc = open_shell(self, &why);
    if (rc == 0) {
        const struct member *member = self->member;
        log_line(LOG_INFO, "actor.ready name=%s run=%s broker=%s bulk=%s", member->name,
                 member->run, options->command.server_addr, member->endpoint);
        rc = shell_run(self->shell, &why);
        if (rc == 0 && member->is_guest && member->finished) say_end(self), keep_end(self);
    }
    shell_destroy(&self->shell);
    for (uint32_t i = 0; i < self->workers_count; i++) worker_destroy(&self->workers[i]);
    bulk_server_destroy(&self->server);
    blob_store_destroy(&self->store);
    journal_close(&self->journal);
    identity_destroy(&self->identity);
    pthread_mutex_destroy(&self->guests_lock);
    free(self->member);
    free(self);
    return rc < 0 ? log_exit(rc, &why) : rc;
}

// ---- command line -------------------------------------------------------------------------------

const struct flag member_flags[] = {
    FLAG("announce", 0, "HOST[:PORT]", TO_TEXT(struct member_options, announce),
         "Address at which peers reach us, if not that of --bulk-bind: behind NAT", .group = 1),
    FLAG("bulk-bind", 0, "HOST", TO_TEXT(struct member_options, bulk_bind),
         "Address at which peers fetch from us (127.0.0.1)", .group = 1),
    FLAG("bind-p2p-port", 0, "PORT", TO_TEXT(struct member_options, bulk_port),
         "Its port (any free one; env BIND_P2P_PORT)", .env = "BIND_P2P_PORT", .group = 1),
    FLAG("unchecked-address", 0, NULL, TO_SWITCH(struct member_options, unchecked_address),
         "Join although the coordinator cannot reach that address (a router without hairpin): if "
         "others cannot either, each step waits for us",
         .group = 1),
    FLAG("name", 0, "LABEL", TO_TEXT(struct member_options, label),
         "A word that others see beside our key, such as anna: " ACTOR_LABEL_RULE " (none)",
         .group = 1),
    FLAGS_OF(command_flags, struct member_options, command),
    { 0 },
};

int member_main(int argc, char **argv, const struct command_line *line, const char *log,
                struct member_options *options, const struct member_process *process)
{
    struct why why = { 0 };
    const int rc = command_parse(line, argc, argv, options, &why);
    if (rc < 0) return fault_exit(rc, &why);
    command_log(&options->command, log);
    return member_run(options, process);
}
