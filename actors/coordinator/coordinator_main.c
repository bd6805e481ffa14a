// shoal-coordinator -- keeps one run: its configuration, its ledger, its core.

#include "actors/coordinator/coordinator.h"
#include "actors/coordinator/rules_shell.h"
#include "common/actor/command.h"
#include "common/actor/shell.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/instance.h"
#include "common/base/log.h"
#include "common/bulk/blob_store.h"
#include "common/config/run_config.h"
#include "common/data/source.h"
#include "common/ledger/ledger.h"
#include "common/ledger/stored.h"
#include "common/model/model_config.h"
#include "common/net/signed_frame.h"
#include "common/optimizer/payload.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    SNAPSHOT_EVERY = 1000,
    RECORD_MAX = 8 << 20,
    SNAPSHOT_BYTES_MAX = 32 << 20,
    ROOM_WARN_PERCENT = 80
};

struct keeper {
    struct command command;
    const char *state_path, *server_port, *state_dir;
    bool begin_anew;                 // What members know of other ledgers is given up: now,
    uint64_t anew_unix_ms, anew_seq; // and as far as it is of before this, when so many were here
    struct run_config config;
    struct ledger *ledger;
    struct shell *shell;
    struct coordinator *core;
    struct identity *identity;
    uint8_t *buffer;
    struct wire_arena arena;
    uint64_t snapshot_seq;   // After which a snapshot is due
    unsigned warned_percent; // Of the ledger's room
    char model_json[65536];
    uint32_t model_bytes;
    uint64_t instance; // Of this life, for the broker
};

// ---- the rules of the run -----------------------------------------------------------------------

// Only this key can make it, and makes it again after every restart.
static struct hash audit_secret(const struct keeper *self)
{
    static const char domain[] = "shoal audit secret 1";
    struct signature signature;
    char text[sizeof domain + sizeof self->config.run_id];
    const int count = snprintf(text, sizeof text, "%s %s", domain, self->config.run_id);
    identity_sign(self->identity, text, (size_t)count, &signature);
    return hash_of(signature.bytes, sizeof signature.bytes);
}

static int read_model(struct keeper *self, const char *folder, struct why *why)
{
    char path[512];
    snprintf(path, sizeof path, "%s/config.json", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return why_set(why, fault_from_errno(errno),
                       "%s: %s; [model.LLM.checkpoint] names a Hugging Face folder "
                       "(make one with shoal init-model)",
                       path, strerror(errno));
    ssize_t count = read(fd, self->model_json, sizeof self->model_json);
    close(fd);
    if (count <= 0 || count == sizeof self->model_json)
        return why_set(why, FAULT_LIMIT, "%s: %zd bytes, allowed 1..%zu", path, count,
                       sizeof self->model_json - 1);
    self->model_bytes = (uint32_t)count;
    return 0;
}

// Every result of the run is so long, by the model's shape and the compression alone.
static int size_payloads(const struct keeper *self, struct why *why, struct wire_config *frame)
{
    struct model_shape shape;
    chunks_t *chunks;
    payload_form_t *form;
    int rc = model_shape_from_config_json(self->model_json, self->model_bytes, why, &shape);
    if (rc == 0)
        rc = payload_form_of_model(&shape, frame->chunk, frame->topk, frame->one_bit, why, &chunks,
                                   &form);
    if (rc < 0) return rc;
    const size_t bytes = payload_bytes(form);
    payload_form_destroy(&form);
    chunks_destroy(&chunks);
    if (bytes > BLOB_BYTES_MAX)
        return why_set(why, FAULT_LIMIT,
                       "a result of this model has %zu bytes, allowed 1..%d; a smaller "
                       "compression_topk makes it smaller",
                       bytes, BLOB_BYTES_MAX);
    frame->payload_bytes = (uint32_t)bytes;
    return 0;
}

static int make_rules(struct keeper *self, struct why *why, struct rules *ret_rules)
{
    const struct run_config *config = &self->config;
    struct rules rules;
    rules_of_config(config, &rules);
    rules.owner = *identity_key(self->identity);
    rules.audit_secret = audit_secret(self);
    struct wire_config *frame = &rules.frame;
    if (config->optimizer != CONFIG_OPTIMIZER_DISTRO)
        return why_set(why, FAULT_UNSUPPORTED,
                       "model.LLM.optimizer: AdamW exchanges no results, so a run cannot be made "
                       "of it; write Distro, or use shoal train");
    int rc = config_resolve(&config->origin, config->checkpoint_folder, frame->genesis,
                            sizeof frame->genesis);
    if (rc == 0) rc = read_model(self, frame->genesis, why);
    if (rc == 0) rc = size_payloads(self, why, frame);
    if (rc == 0) rc = source_of_config(config, why, &frame->data);
    frame->model = (struct wire_bytes){ (const uint8_t *)self->model_json, self->model_bytes };
    if (rc == 0) *ret_rules = rules;
    return rc;
}

// ---- the ledger as the core's disk --------------------------------------------------------------

static int disk_begin(void *arg, struct why *why)
{
    return ledger_begin(((struct keeper *)arg)->ledger, why);
}

static int disk_store(void *arg, uint16_t kind, const uint8_t *body, size_t count, struct why *why)
{
    struct keeper *self = arg;
    struct wire_refusal refusal;
    const void *record;
    self->arena.used = 0;
    ensure(wire_unpack_body(body, count, kind, &self->arena, &record, &refusal));
    size_t bytes = wire_pack_record(kind, record, self->buffer, RECORD_MAX);
    ensure(bytes > 0);
    const uint64_t *step = NULL;
    if (kind == FRAME_RECORD_COMMIT) {
        const struct wire_commit *commit = record;
        if (commit->outcome == OUTCOME_COMMITTED) step = &commit->step;
    }
    uint64_t seq;
    return ledger_append(self->ledger, self->buffer, bytes, step, why, &seq);
}

// While there is time to make room: once a percent, from 80 on.
static void look_at_room(struct keeper *self)
{
    uint64_t bytes, bytes_max;
    ledger_room(self->ledger, &bytes, &bytes_max);
    const unsigned percent = (unsigned)(100 * (bytes >> 12) / (bytes_max >> 12));
    if (percent < ROOM_WARN_PERCENT || percent <= self->warned_percent) return;
    self->warned_percent = percent;
    log_line(LOG_WARNING,
             "ledger.filling percent=%u mib=%llu; the run halts when it is full: raise "
             "ledger.map_mib_max, %llu, in %s and start the coordinator again",
             percent, (unsigned long long)(bytes >> 20), (unsigned long long)(bytes_max >> 20),
             self->state_path);
}

static int disk_commit(void *arg, struct why *why)
{
    struct keeper *self = arg;
    struct run *run = &self->core->run;
    if (run->log_seq >= self->snapshot_seq + SNAPSHOT_EVERY) {
        struct wire_snapshot snapshot = run_to_snapshot(run, self->core->scratch);
        size_t bytes =
            wire_pack_record(FRAME_SNAPSHOT, &snapshot, self->buffer, SNAPSHOT_BYTES_MAX);
        ensure(bytes > 0);
        failpoint("ledger_snapshot");
        int rc = ledger_put_snapshot(self->ledger, self->buffer, bytes, why);
        if (rc < 0) return rc;
        self->snapshot_seq = run->log_seq;
    }
    int rc = ledger_commit(self->ledger, why);
    if (rc < 0) return rc;
    uint64_t head;
    struct hash chain;
    ledger_head(self->ledger, &head, &chain);
    ensure(head == run->log_seq && hash_equal(&chain, &run->chain)); // What is true is on disk
    look_at_room(self);
    return 0;
}

// What a member says that this coordinator once said. Only what our own key signed for this very run
// counts: nobody else can say that the ledger fell behind. A life is named by the time of its start, so
// what the owner has given up is known by it; but of this very run never what was ahead of this ledger.
static int hear_position(struct keeper *self, const struct wire_position *said, struct why *why)
{
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    const struct key *own = identity_key(self->identity);
    self->arena.used = 0;
    if (!wire_unpack(said->beat, said->beat_bytes, WIRE_NEWS, &self->arena, &head, &body,
                     &refusal) ||
        head.kind != FRAME_BEAT || strcmp(head.run, self->config.run_id) != 0)
        return 0;
    const struct wire_beat *beat = body;
    if (!key_equal(&head.sender, own) || !signed_frame_verify(said->beat, said->beat_bytes, &head))
        return 0;
    const bool of_this_run = beat->born_unix_ms == self->core->run.born_unix_ms;
    const bool given_up =
        head.incarnation < self->anew_unix_ms && (!of_this_run || beat->log_seq <= self->anew_seq);
    if (of_this_run) {
        const int rc = ledger_covers(self->ledger, beat->log_seq, &beat->chain, why);
        return rc == FAULT_CORRUPT && given_up ? 0 : rc;
    }
    if (given_up) return 0;
    if (self->begin_anew) { // This very process has the word, and its clock is behind that life's
        self->anew_unix_ms = head.incarnation + 1;
        return instance_write(self->state_dir, "begun-anew", self->anew_unix_ms, why);
    }
    return why_set(
        why, FAULT_CORRUPT,
        "members know another run of this name and key, as far as record "
        "%llu. Its ledger was lost, or is in another --state-dir than %s. Put it back; or give "
        "that run up and start once with --begin-anew",
        (unsigned long long)beat->log_seq, self->state_dir);
}

// Answers ASK commits: those from a step on, one COMMIT a mail, signed now.
static int disk_job(void *arg, uint16_t kind, const void *body, struct why *why)
{
    struct keeper *self = arg;
    if (kind == FRAME_POSITION) return hear_position(self, body, why);
    const struct wire_recite recite = *(const struct wire_recite *)body;
    ensure(kind == FRAME_RECITE);
    failpoint("recite");
    for (uint64_t step = recite.from_step; step < recite.from_step + recite.count; step++) {
        uint64_t seq;
        struct record record;
        const void *commit;
        int rc = ledger_find(self->ledger, step, why, &seq);
        if (rc == FAULT_NOT_FOUND) return 0;
        if (rc == 0) rc = ledger_read(self->ledger, seq, why, &record);
        if (rc < 0) return rc == FAULT_NOT_FOUND ? 0 : rc;
        rc = stored_unpack_kind("ledger record", seq, record.bytes, record.count,
                                FRAME_RECORD_COMMIT, &self->arena, why, &commit);
        if (rc < 0) return rc;
        shell_mail(self->shell, recite.to, FRAME_COMMIT, commit);
    }
    return 0;
}

// ---- recovery -----------------------------------------------------------------------------------

struct replaying {
    struct keeper *keeper;
    struct why *why;
};

static int replay(void *arg, const struct record *record)
{
    struct replaying *self = arg;
    struct run *run = &self->keeper->core->run;
    uint16_t kind;
    const void *body;
    int rc = stored_unpack("ledger record", record->seq, record->bytes, record->count,
                           &self->keeper->arena, self->why, &kind, &body);
    if (rc < 0) return rc;
    run_apply(run, kind, body);
    ensure(run->log_seq == record->seq);
    return 0;
}

static int recover(struct keeper *self, struct why *why)
{
    struct snapshot snapshot;
    int rc = ledger_snapshot(self->ledger, why, &snapshot);
    if (rc < 0) return rc;
    if (ledger_damaged_snapshots(self->ledger) > 0)
        log_line(LOG_WARNING,
                 "ledger.damaged_snapshots count=%u; the records tell the same, and were read "
                 "instead; look at this disk",
                 ledger_damaged_snapshots(self->ledger));
    if (snapshot.seq > 0) {
        const void *body;
        rc = stored_unpack_kind("the snapshot after ledger record", snapshot.seq, snapshot.bytes,
                                snapshot.count, FRAME_SNAPSHOT, &self->arena, why, &body);
        if (rc < 0) return rc;
        run_from_snapshot(&self->core->run, body);
        self->snapshot_seq = snapshot.seq;
    }
    uint64_t head;
    ledger_head(self->ledger, &head, &self->core->run.chain);
    struct replaying replaying = { self, why };
    if (head > snapshot.seq)
        rc = ledger_each(self->ledger, snapshot.seq + 1, replay, &replaying, why);
    if (rc == 0 && head > 0)
        log_line(LOG_INFO, "ledger.recovered records=%llu from_snapshot=%llu step=%llu phase=%s",
                 (unsigned long long)head, (unsigned long long)snapshot.seq,
                 (unsigned long long)self->core->run.step, run_phase_name(self->core->run.phase));
    return rc;
}

// The configuration that the run was begun with lies beside the ledger, so that a state.toml that
// makes it another run is refused by the first key that differs.
static int compare_config(struct keeper *self, const char *state_dir, struct why *why)
{
    char path[512];
    static struct run_config first;
    static struct config_faults faults;
    struct config_difference difference;
    snprintf(path, sizeof path, "%s/state.toml", state_dir);
    if (hash_equal(&self->core->run.config, &self->core->rules.config)) return 0;
    if (config_load_run(path, &first, &faults) == 0 &&
        config_first_difference(&first, &self->config, &difference))
        return why_set(why, FAULT_FOREIGN,
                       "%s makes this another run than the one in %s: %s was %s, now is %s; "
                       "put it back, or begin a new run in another --state-dir, with --begin-anew",
                       self->state_path, state_dir, difference.path, difference.a, difference.b);
    return why_set(why, FAULT_FOREIGN,
                   "the run in %s was begun by another version of this program, for which %s meant "
                   "something else; finish it with that version, or begin a new run in another "
                   "--state-dir, with --begin-anew",
                   state_dir, self->state_path);
}

static int copy_file(const char *from, const char *to, struct why *why)
{
    char bytes[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t count = -1;
    if (failpoint("config_copy") == 0 && in >= 0 && out >= 0)
        while ((count = read(in, bytes, sizeof bytes)) > 0)
            if (write(out, bytes, (size_t)count) != count) {
                count = -1;
                break;
            }
    if (count == 0 && fsync(out) != 0) count = -1;
    int error = errno;
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return count == 0 ? 0 : why_set(why, fault_from_errno(error), "%s: %s", to, strerror(error));
}

// Members know their coordinator by its key: the run belongs to the one that began it, whose public
// half lies beside the ledger.
static int write_owner(const struct keeper *self, const char *path, struct why *why)
{
    char hex[KEY_HEX];
    key_to_hex(identity_key(self->identity), hex);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t count = fd < 0 ? -1 : write(fd, hex, KEY_HEX - 1);
    bool durable = count == KEY_HEX - 1 && failpoint("owner_sync") == 0 && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0) close(fd);
    return durable ? 0 : why_set(why, fault_from_errno(error), "%s: %s", path, strerror(error));
}

static int compare_owner(const struct keeper *self, const char *path, struct why *why)
{
    char hex[KEY_HEX] = "", owner[KEY_HEX] = "";
    key_to_hex(identity_key(self->identity), hex);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, owner, KEY_HEX - 1);
    if (fd >= 0) close(fd);
    if (count == KEY_HEX - 1 && strcmp(hex, owner) == 0) return 0;
    return why_set(
        why, FAULT_FOREIGN,
        "%s: the run belongs to key %.16s, this process has %.16s; give it the key that the "
        "run was begun with",
        path, count > 0 ? owner : "(none)", hex);
}

// The owner's word that what members know of another run of this name, or of an older copy of this one
// that was up for a while, is given up. It is said once, and holds as long as the ledger does: a new one
// in its place is no longer what was meant.
static int take_anew(struct keeper *self, const char *dir, struct why *why)
{
    int rc = 0;
    if (self->begin_anew)
        log_line(
            LOG_WARNING,
            "ledger.begun_anew records=%llu: what members know of others until now is given up; "
            "once is enough, leave --begin-anew out from now on",
            (unsigned long long)self->core->run.log_seq);
    if (self->begin_anew || self->core->run.log_seq == 0) {
        rc = instance_write(dir, "begun-anew-after", self->core->run.log_seq, why);
        if (rc == 0)
            rc = instance_write(dir, "begun-anew", self->begin_anew ? clock_unix_ms() : 0, why);
    }
    if (rc == 0) rc = instance_read(dir, "begun-anew-after", why, &self->anew_seq);
    return rc < 0 ? rc : instance_read(dir, "begun-anew", why, &self->anew_unix_ms);
}

static int open_run(struct keeper *self, struct why *why)
{
    const char *dir = self->state_dir =
        self->command.state_dir ? self->command.state_dir : "coordinator-state";
    char copy[512], owner[512];
    struct rules rules;
    struct ledger_options options = { .map_bytes_start = self->config.map_mib_start << 20,
                                      .map_bytes_max = self->config.map_mib_max << 20 };
    self->buffer = malloc(SNAPSHOT_BYTES_MAX);
    self->arena = (struct wire_arena){ .bytes = malloc(64 << 20), .max = 64 << 20 };
    self->core = calloc(1, sizeof *self->core);
    ensure(self->buffer && self->arena.bytes && self->core);
    int rc = make_rules(self, why, &rules);
    if (rc == 0) rc = ledger_open(dir, self->config.run_id, &options, why, &self->ledger);
    if (rc < 0) return rc;
    coordinator_init(self->core, &rules);
    rc = instance_take(dir, clock_unix_ms(), why, &self->instance);
    if (rc == 0) rc = recover(self, why);
    if (rc < 0) return rc;
    failpoint("ledger_recovered");
    snprintf(copy, sizeof copy, "%s/state.toml", dir);
    snprintf(owner, sizeof owner, "%s/owner", dir);
    if (self->core->run.log_seq > 0) {
        rc = compare_config(self, dir, why);
        if (rc == 0) rc = compare_owner(self, owner, why);
    } else {
        rc = copy_file(self->state_path, copy, why);
        if (rc == 0) rc = write_owner(self, owner, why);
    }
    return rc < 0 ? rc : take_anew(self, dir, why);
}

// ---- the process --------------------------------------------------------------------------------

static void step(void *state, const struct msg *in, struct outbox *out)
{
    if (in->kind == FRAME_QUIT) outbox_quit(out, EX_OK, "stopped; the ledger goes on from here");
    else coordinator_step(state, in, out);
}

static int run(struct keeper *self, struct why *why)
{
    // Higher than ever before, also if the ledger is an older copy that does not know of all lives.
    const uint64_t known = self->core->run.incarnation, now_ms = clock_unix_ms();
    const uint64_t incarnation = now_ms > known ? now_ms : known + 1;
    static const struct actor actor = { "coordinator", sizeof(struct coordinator), step };
    static const char *const deaf_to[] = { "CLAIM",  "PROGRESS",  "RUN",  "ROSTER", "ROUND",
                                           "COMMIT", "EPOCH_END", "BEAT", NULL };
    struct shell_options options = {
        .actor = &actor,
        .state = self->core,
        .identity = self->identity,
        .role = ACTOR_COORDINATOR,
        .run = self->config.run_id,
        .broker = &self->command.ticket,
        .deaf_to = deaf_to,
        .incarnation = incarnation,
        .instance = self->instance,
        .disk = { .arg = self,
                  .begin = disk_begin,
                  .store = disk_store,
                  .commit = disk_commit,
                  .job = disk_job },
        .verbose = self->command.verbose,
    };
    int rc = shell_new(&options, why, &self->shell);
    if (rc < 0) return rc;
    if (self->config.data_location == CONFIG_DATA_SERVER &&
        hash_is_none(&self->config.dataset_digest))
        log_line(
            LOG_WARNING,
            "data.unpinned [data] dataset_digest is not set, so the first data-provider to "
            "join decides what is trained on; shoal manifest --data-config data.toml prints it");
    log_line(LOG_INFO, "coordinator.ready run=%s incarnation=%llu", self->config.run_id,
             (unsigned long long)options.incarnation);
    rc = shell_run(self->shell, why);
    shell_destroy(&self->shell);
    return rc;
}

enum { BEGIN_ANEW = 256 };
static const struct argp_option options[] = {
    { "state", 's', "FILE", 0, "The run's state.toml", 0 },
    { "begin-anew", BEGIN_ANEW, NULL, 0, "Give up what members know of other runs or copies", 0 },
    { "server-port", 'p', "PORT", 0, "Of the broker on this machine, instead of --server-addr", 0 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct keeper *self = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = &self->command;
    else if (key == 's') self->state_path = arg;
    else if (key == 'p') self->server_port = arg;
    else if (key == BEGIN_ANEW) self->begin_anew = true;
    else if (key == ARGP_KEY_END && !self->state_path) argp_error(state, "--state FILE is needed");
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

int main(int argc, char **argv)
{
    static struct keeper self;
    static struct config_faults faults;
    static char address[300];
    static const struct argp_child children[] = { { &command_argp, 0, NULL, 1 }, { 0 } };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Keeps one run of Shoal: members, phases, rounds, commits.\n\n"
        "  shoal-coordinator -i secret.key --state config/demo/state.toml\n"
        "  shoal-coordinator -i secret.key --state run.toml --state-dir /var/lib/shoal/run\n",
        children,
        NULL,
        NULL
    };
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    int rc = config_load_run(self.state_path, &self.config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return fault_exit_code(rc);
    if (self.server_port) snprintf(address, sizeof address, "127.0.0.1:%s", self.server_port);
    else snprintf(address, sizeof address, "%s", self.config.broker_mail);
    if (self.server_port) self.command.server_addr = address;
    rc = command_check_broker(&self.command, address, &why);
    if (rc == 0) rc = command_identity(&self.command, &why, &self.identity);
    if (rc == 0) rc = open_run(&self, &why);
    if (rc == 0) rc = run(&self, &why);
    ledger_close(&self.ledger);
    identity_destroy(&self.identity);
    return rc < 0 ? fault_exit(rc, &why) : rc;
}
