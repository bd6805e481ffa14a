// testnet -- starts a whole run and keeps it alive. The start goes in this order, so that a mistake
// shows before any process runs: check the configuration, take the folder's lock, check that the
// ports are free, make folders, keys and the ticket, then start broker, coordinator and members.
// After that each turn of the loop waits, reaps and restarts children (fleet.h), and passes the news to the caller.
// Stopping goes the other way round: members first, so that the coordinator hears them leave.

#include "actors/shoal/local/testnet.h"
#include "common/base/bytes.h"
#include "common/base/durable_file.h"
#include "common/base/ensure.h"
#include "common/base/folder.h"
#include "common/base/instance_lock.h"
#include "common/checkpoint/shared_dir.h"
#include "common/config/data_config.h"
#include "common/net/curve.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

// ---- folders and keys ---------------------------------------------------------------------------

// Of state_dir and log_dir. A run's frames carry paths of at most 255 bytes; we append up to two names to these.
enum { DIR_BYTES_MAX = 180 };

static void key_path(const struct testnet *self, const char *name, char path[PATH_MAX])
{
    ensure(snprintf(path, PATH_MAX, "%s/keys/%s.key", self->state_dir, name) < PATH_MAX);
}

// The secret is the number, big-endian, as in Psyche's testnet (64 hexadecimal digits there).
static int make_numbered_key(const char *path, uint32_t number, struct why *why)
{
    uint8_t secret[SECRET_BYTES] = { 0 };
    be_put(secret + SECRET_BYTES - 4, number, 4);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) return 0;
    const ssize_t count = fd < 0 ? -1 : write(fd, secret, sizeof secret);
    const int error = count < 0 ? errno : ENOSPC; // A short write: the disk is full
    if (fd >= 0) close(fd);
    if (count == sizeof secret) return 0;
    if (fd >= 0) unlink(path); // The next start would refuse a part of a key
    return why_set(why, fault_from_errno(error), "%s: %s", path, strerror(error));
}

// `number` 0: a random secret, unless there is a key already; else the secret is that number. ret_key, unless NULL: the
// public key; of the broker, the key of its connections.
static int make_key(const struct testnet *self, const char *name, uint32_t number, struct why *why,
                    struct key *ret_key)
{
    char path[PATH_MAX];
    struct identity *identity;
    key_path(self, name, path);
    int rc = number                    ? make_numbered_key(path, number, why)
             : access(path, F_OK) == 0 ? 0
                                       : identity_create(path, why);
    if (rc == 0) rc = identity_load(path, NULL, why, &identity);
    if (rc < 0) return rc;
    if (ret_key && strcmp(name, "broker") == 0) *ret_key = curve_server_key(identity);
    else if (ret_key) *ret_key = *identity_key(identity);
    identity_destroy(&identity);
    return 0;
}

// ---- the children -------------------------------------------------------------------------------

static struct arguments *add(struct testnet *self, const char *name, const char *program)
{
    struct arguments *args = &fleet_add(&self->fleet, name, program, self->log_dir)->arguments;
    if (self->options.debug) arguments_add(args, "-v");
    arguments_add(args, "--identity-secret-key-path=%s/keys/%s.key", self->state_dir, name);
    return args;
}

// What all but the broker take: where the broker is, and a folder of their own.
static struct arguments *add_actor(struct testnet *self, const char *name, const char *program)
{
    struct arguments *args = add(self, name, program);
    arguments_add(args, "--ticket=%s", self->ticket_path);
    arguments_add(args, "--state-dir=%s/%s", self->state_dir, name);
    return args;
}

// A member serves samples, results or parameters to the others, from this address and port.
static struct arguments *add_member(struct testnet *self, const char *name, const char *program)
{
    const uint32_t before = self->fleet.count - self->members_from; // Members that have a port
    struct arguments *args = add_actor(self, name, program);
    const uint32_t port = way_in_member_port(&self->options.way_in, before);
    if (port) arguments_add(args, "--bind-p2p-port=%u", port);
    arguments_add(args, "--bulk-bind=%s", way_in_address(&self->options.way_in));
    return args;
}

static void add_servers(struct testnet *self)
{
    self->servers = &self->fleet.children[self->fleet.count];
    for (uint32_t i = 0; i < self->servers_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "parameter-server-%u", i + 1);
        add_member(self, name, "shoal-parameter-server");
    }
}

static void add_trainers(struct testnet *self)
{
    const struct testnet_options *options = &self->options;
    self->trainers = &self->fleet.children[self->fleet.count];
    for (uint32_t i = 0; i < options->trainers; i++) {
        char name[32];
        snprintf(name, sizeof name, "trainer-%u", i + 1);
        struct arguments *args = add_member(self, name, "shoal-trainer");
        if (options->label) arguments_add(args, "--name=%s-%u", options->label, i + 1);
        if (options->threads) arguments_add(args, "--threads=%s", options->threads);
        if (options->micro_batch)
            arguments_add(args, "--micro-batch-size=%s", options->micro_batch);
    }
}

static void add_children(struct testnet *self)
{
    char hex[KEY_HEX];
    struct arguments *args = add(self, "broker", "shoal-broker");
    arguments_add(args, "--server-port=%u", self->options.way_in.port);
    arguments_add(args, "--bind=%s", way_in_address(&self->options.way_in));
    arguments_add(args, "--owner=%s", key_to_hex(&self->ticket.owner, hex));
    self->coordinator = &self->fleet.children[self->fleet.count];
    args = add_actor(self, "coordinator", "shoal-coordinator");
    arguments_add(args, "--state=%s", self->state_toml);
    arguments_add(args, "--log=%s/metrics", self->state_dir);
    self->members_from = self->fleet.count;
    if (self->config.data_location == CONFIG_DATA_SERVER) {
        args = add_member(self, "data-provider", "shoal-data-provider");
        arguments_add(args, "--data-config=%s", self->data_toml);
    }
    args = add_member(self, "checkpointer", "shoal-checkpointer");
    arguments_add(args, "--checkpoint-dir=%s/checkpoints", self->state_dir);
    arguments_add(args, "--keep-steps=%" PRIu64, self->config.checkpoint_keep);
    add_servers(self);
    add_trainers(self);
}

// ---- starting -----------------------------------------------------------------------------------

// Each trainer checks the folder, too, but its error would stand only in its log.
static int check_shared_dir(const struct testnet *self, struct why *why)
{
    const char *folder = self->config.checkpoint_shared_dir;
    if (!folder[0] || !config_sums(&self->config)) return 0;
    const int rc = shared_dir_check(folder, why);
    if (rc == 0 || rc == FAULT_DISK_FULL) return 0; // Room may come; a trainer warns of it
    return why_wrap(why, FAULT_CONFIG, "checkpoint.shared_dir of %s", self->state_toml);
}

// Loads and checks the configuration, and sets what follows from it in `self`.
static int load_config(struct testnet *self, struct why *why)
{
    static struct config_faults faults;
    static struct data_config data;
    char dir[PATH_MAX];
    if (!realpath(self->options.config_dir, dir))
        return why_set(why, fault_from_errno(errno), "the folder %s: %s", self->options.config_dir,
                       strerror(errno));
    ensure(snprintf(self->state_toml, PATH_MAX, "%.*s/state.toml", PATH_MAX - 16, dir) < PATH_MAX);
    ensure(snprintf(self->data_toml, PATH_MAX, "%.*s/data.toml", PATH_MAX - 16, dir) < PATH_MAX);
    int rc = config_load_run(self->state_toml, &self->config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return why_set(why, rc, "%s is refused (see above)", self->state_toml);
    self->servers_count = config_servers(&self->config);
    if (self->servers_count) self->servers_count += self->options.standby;
    rc = check_shared_dir(self, why);
    if (rc < 0) return rc;
    if (self->config.data_location != CONFIG_DATA_SERVER) return 0;
    rc = config_load_data(self->data_toml, &data, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0)
        return why_set(why, rc, "%s is refused (see above); the run's data comes from a Server",
                       self->data_toml);
    if (data.seq_len != self->config.max_seq_len)
        return why_set(why, FAULT_CONFIG,
                       "%s: seq_len %" PRIu64 ", but max_seq_len of %s is %" PRIu64,
                       self->data_toml, data.seq_len, self->state_toml, self->config.max_seq_len);
    return 0;
}

// The broker's address and key, and the coordinator's key, for our children and for tools such as zmq-monitor. Makes
// both keys. The next `up` reads the address from the ticket, so an earlier ticket stays if this one cannot be written.
static int make_ticket(struct testnet *self, struct why *why)
{
    char text[TICKET_TEXT_MAX + 1];
    int rc = make_key(self, "broker", 0, why, &self->ticket.server);
    if (rc == 0) rc = make_key(self, "coordinator", 0, why, &self->ticket.owner);
    if (rc < 0) return rc;
    snprintf(self->ticket.address, sizeof self->ticket.address, "%s:%u",
             way_in_address(&self->options.way_in), self->options.way_in.port);
    memccpy(self->ticket.run, self->config.run_id, 0, WIRE_RUN_MAX);
    ensure(snprintf(self->ticket_path, PATH_MAX, "%s/ticket", self->state_dir) < PATH_MAX);
    strcat(ticket_print(&self->ticket, text), "\n");
    rc = durable_file_write(self->state_dir, "ticket", text, strlen(text), why);
    return rc < 0 ? why_wrap(why, rc, "%s", self->ticket_path) : 0;
}

// The lock's file contains the process id of its holder.
static int refuse_second(const struct testnet *self, struct why *why)
{
    char path[PATH_MAX + 16];
    int holder = 0;
    snprintf(path, sizeof path, "%s/lock", self->state_dir);
    FILE *file = fopen(path, "re");
    const bool has_holder = file && fscanf(file, "%d", &holder) == 1;
    if (file) fclose(file);
    return has_holder ? why_set(why, FAULT_BUSY, "this run is up already (process %d)", holder)
                      : why_set(why, FAULT_BUSY, "this run is up already");
}

static int lock_state(struct testnet *self, struct why *why)
{
    const int fd = open(self->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->state_dir, strerror(errno));
    const int rc = instance_lock_take(fd, self->state_dir, "lock", why, &self->lock);
    close(fd);
    return rc == FAULT_BUSY ? refuse_second(self, why) : rc;
}

static int take_folder(struct testnet *self, struct why *why)
{
    const int rc = folder_resolve(self->options.state_dir, DIR_BYTES_MAX, self->state_dir, why);
    return rc < 0 ? rc : lock_state(self, why);
}

// The folders of logs and keys, a key for each actor, and the ticket.
static int make_keys_and_folders(struct testnet *self, struct why *why)
{
    const struct testnet_options *options = &self->options;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/logs", self->state_dir);
    int rc = folder_resolve(options->log_dir ? options->log_dir : path, DIR_BYTES_MAX,
                            self->log_dir, why);
    snprintf(path, sizeof path, "%s/keys", self->state_dir);
    if (rc == 0) rc = folder_make(path, 0700, why);
    static const char *const names[] = { "data-provider", "checkpointer" };
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++)
        rc = make_key(self, names[i], 0, why, NULL);
    if (rc == 0) rc = make_ticket(self, why);
    for (uint32_t i = 0; i < self->servers_count && rc == 0; i++) {
        char name[32];
        snprintf(name, sizeof name, "parameter-server-%u", i + 1);
        rc = make_key(self, name, 0, why, &self->server_keys[i]);
    }
    for (uint32_t i = 0; i < options->trainers && rc == 0; i++) {
        char name[32];
        snprintf(name, sizeof name, "trainer-%u", i + 1);
        rc = make_key(self, name, options->own_keys ? 0 : i + 1, why, &self->keys[i]);
    }
    return rc;
}

// Checked before the start: a broker that is already on these ports may belong to another testnet,
// whose trainers have the same keys as ours.
static int check_ports(struct testnet *self, struct why *why)
{
    const uint32_t standby = self->servers_count - config_servers(&self->config);
    way_in_set_members(&self->options.way_in, &self->config, self->options.trainers + standby);
    const int rc = way_in_check_link(&self->options.way_in, &self->config, why);
    return rc < 0 ? rc : way_in_check_ports(&self->options.way_in, why);
}

// SIGHUP: the session ends, as with its ssh connection. Under nohup SIGHUP is ignored, and we do not watch it: a
// blocked signal is queued even if it is ignored. SIGPIPE is blocked, because Ctrl-C also ends the reader of our lines
// (`| tee`), and we must still stop the children.
static void watch_signals(struct testnet *self)
{
    struct sigaction hangup;
    sigset_t set, blocked;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigaction(SIGHUP, NULL, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
    blocked = set;
    sigaddset(&blocked, SIGPIPE);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    self->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    ensure(self->signals >= 0);
}

int testnet_start(struct testnet *self, const struct testnet_options *options, struct why *why)
{
    ensure(options->trainers >= 1 && options->trainers <= TESTNET_TRAINERS_MAX &&
           options->standby <= TESTNET_STANDBY_MAX);
    *self = (struct testnet){ .options = *options, .lock = -1, .signals = -1 };
    self->view = calloc(1, sizeof *self->view);
    ensure(self->view);
    watch_signals(self);
    int rc = fleet_init(&self->fleet, options->say, options->arg, why);
    if (rc == 0) rc = load_config(self, why);
    if (rc == 0) rc = take_folder(self, why);
    if (rc == 0) rc = check_ports(self, why);
    if (rc == 0) rc = make_keys_and_folders(self, why);
    if (rc < 0) return rc;
    add_children(self);
    ensure(options->late < options->trainers); // The late ones are the last children
    for (uint32_t i = 0; i < self->fleet.count - options->late && rc == 0; i++)
        rc = fleet_start(&self->fleet.children[i], why);
    return rc < 0 ? rc : testnet_become_observer(self, why);
}

int testnet_start_late(struct testnet *self, struct why *why)
{
    int rc = 0;
    for (uint32_t i = self->fleet.count - self->options.late; i < self->fleet.count && rc == 0; i++)
        rc = fleet_start(&self->fleet.children[i], why);
    return rc;
}

// ---- the loop -----------------------------------------------------------------------------------

// The end of a session is told more than once, by the kernel and by the shell: SIGHUP never insists.
static void take_signals(struct testnet *self)
{
    struct signalfd_siginfo info;
    while (read(self->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) {
            self->insists |= self->asked_to_stop && info.ssi_signo != SIGHUP;
            self->asked_to_stop = true;
        }
}

// An order was refused, because the coordinator has seen a number as high (`round`): one of ours, or of an operator
// whose clock is ahead of ours. The next order gets a higher one.
static void hear_refused(struct testnet *self, const struct wire_refused *refused)
{
    if (refused->kind == FRAME_CONTROL && refused->reason == REFUSAL_STALE &&
        refused->round >= self->order_number)
        self->order_number = refused->round + 1;
}

static void take_news(struct testnet *self)
{
    struct letter letter;
    for (enum tap_result got; (got = tap_take(self->tap, &letter)) != TAP_NOTHING;) {
        if (got != TAP_FRAME) continue;
        unsigned heard = run_view_hear(self->view, &letter.msg);
        if (letter.msg.kind == FRAME_REFUSED && strcmp(letter.from, "coordinator") == 0)
            hear_refused(self, letter.msg.body);
        if (self->options.hear) self->options.hear(self->options.arg, &letter.msg, heard);
    }
}

// Broker and coordinator end by a signal of ours alone, also when the run is finished. If somebody else has told one of
// them to end, the others wait for it for ever.
static int check_both_are_here(const struct testnet *self, struct why *why)
{
    const struct child *gone = testnet_gone(self);
    return !gone ? 0
                 : why_set(why, FAULT_UNAVAILABLE,
                           "the %s was told to end, and not by us: the run stands without it",
                           gone->name);
}

int testnet_turn(struct testnet *self, uint64_t until_ms, struct why *why)
{
    uint64_t due_ms = fleet_due_ms(&self->fleet);
    if (tap_wait(self->tap, self->signals, due_ms < until_ms ? due_ms : until_ms))
        take_signals(self);
    int rc = fleet_reap(&self->fleet, why);
    if (rc == 0) rc = fleet_tick(&self->fleet, why);
    if (rc == 0 && !self->asked_to_stop) rc = check_both_are_here(self, why);
    take_news(self); // After a fault, too: the caller's view has all that came
    return rc;
}

// The broker tells the new observer all state that it keeps.
static int open_tap(struct testnet *self, const struct identity *identity, struct why *why)
{
    const struct tap_options tap = { .broker = &self->ticket,
                                     .run = self->config.run_id,
                                     .identity = identity,
                                     .role = identity ? ACTOR_OPERATOR : ACTOR_MONITOR };
    tap_close(&self->tap);
    return tap_open(&tap, why, &self->tap);
}

int testnet_become_owner(struct testnet *self, struct why *why)
{
    char path[PATH_MAX];
    key_path(self, "coordinator", path);
    const int rc = self->owner ? 0 : identity_load(path, NULL, why, &self->owner);
    return rc < 0 ? rc : open_tap(self, self->owner, why);
}

int testnet_become_observer(struct testnet *self, struct why *why)
{
    return open_tap(self, NULL, why);
}

void testnet_stop(struct testnet *self)
{
    tap_close(&self->tap);
    if (!self->fleet.children) return;
    fleet_stop(&self->fleet, self->members_from, self->signals);
    fleet_stop(&self->fleet, 0, self->signals);
}

void testnet_free(struct testnet *self)
{
    fleet_free(&self->fleet);
    if (self->signals >= 0) close(self->signals);
    self->signals = -1;
    instance_lock_release(self->lock);
    self->lock = -1;
    identity_destroy(&self->owner);
    free(self->view);
    self->view = NULL;
}

void testnet_checkpoint_path(const struct testnet *self, const char *name, char *ret_path,
                             size_t max)
{
    const char *slash = strrchr(name, '/');
    snprintf(ret_path, max, "%s/checkpoints/%s", self->state_dir, slash ? slash + 1 : name);
}
