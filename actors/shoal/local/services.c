// services -- in this order, so that nothing but the coordinator's key is made before all of it is known to fit:
//
//  1. the machine: we are root, systemd runs, the units are installed, the user is there;
//  2. the folder: its run may be named in a unit, and has not begun in the foreground. The address of --bind is one of
//     this machine's;
//  3. what exists: no other run has the broker, an earlier call has left no unit that this one does not count, services
//     can have the folder of saves;
//  4. what each file shall say: state.toml and data.toml with their folders in /etc/shoal, and the settings of each
//     unit. The broker's settings name the coordinator's public key, so the key is made here. Units that save get a
//     drop-in. A file of somebody else's is refused;
//  5. model and tokens are copied, then data.toml and state.toml are written, which shows that the copies are whole.
//     Then come a mark that restarts are pending (RESTARTS_PENDING), the settings of the units, and the drop-ins;
//  6. units that run with settings that have changed are started again, and the mark goes. Then the broker starts, with
//     shoal.target, since it leaves the ticket for the others; then all others start. Last, DIR/run gets the ticket.

#include "actors/shoal/local/service_saves.h"
#include "actors/shoal/local/services.h"
#include "actors/shoal/local/run_files.h"
#include "actors/shoal/local/shown_command.h"
#include "actors/shoal/local/testnet.h"
#include "actors/shoal/run/installed.h"
#include "actors/shoal/show.h"
#include "common/actor/post.h"
#include "common/base/child_output.h"
#include "common/base/dirfile.h"
#include "common/base/durable_file.h"
#include "common/base/ensure.h"
#include "common/base/folder.h"
#include "common/config/data_config.h"
#include "common/crypto/identity.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define ETC              "/etc/shoal"
#define RESTARTS_PENDING "restarts-pending" // In the run's folder: units may run with old settings
#define UNITS            "/etc/systemd/system"

enum {
    SERVICES_MAX = 4 + TESTNET_SERVERS_MAX + TESTNET_TRAINERS_MAX,
    COPIES_MAX = 2,
    FILE_BYTES_MAX = 1 << 20,
    ANSWER_BYTES_MAX = 1 << 16,
    ANSWER_MS = 20000,
    UNITS_A_COMMAND = 16
};

// What stands where we would write a file: nothing; the SAME text; another text that an earlier call wrote (OURS); or a
// file of somebody else (FOREIGN), which is refused.
enum on_disk { ABSENT, SAME, OURS, FOREIGN };

struct service {
    char unit[80]; // Without ".service"
    char settings[600];
    enum on_disk on_disk;
    bool saves; // It has a drop-in, which says `saves_text`
    enum on_disk drop_in;
};

struct copy {
    char from[PATH_MAX], to[PATH_MAX];
};

struct services {
    const struct services_options *options;
    const char *run;
    char etc[96], mark[160]; // The folder of the run; the line that begins our files of settings
    char coordinator_key[KEY_HEX]; // The public one
    char *state, *data; // What state.toml and data.toml shall say; data NULL: there is none
    enum on_disk state_on_disk, data_on_disk;
    bool restarts_pending; // An earlier call has ended before its restarts
    char saves_text[SERVICE_SAVES_TEXT];
    struct copy copies[COPIES_MAX];
    uint32_t copies_count;
    struct service list[SERVICES_MAX]; // The broker first
    uint32_t count;
};

// ---- 1. the machine -----------------------------------------------------------------------------

struct answer {
    char text[ANSWER_BYTES_MAX + 1];
    size_t count;
};

static int take_answer(void *context, const void *bytes, size_t count, struct why *why)
{
    struct answer *answer = context;
    (void)why;
    memcpy(answer->text + answer->count, bytes, count); // At most bytes_max in all
    answer->count += count;
    return 0;
}

static int ask(const char *const argv[], struct answer *answer, struct why *why)
{
    const struct child_limits limits = { .bytes_max = ANSWER_BYTES_MAX, .timeout_ms = ANSWER_MS };
    answer->count = 0;
    const int rc = child_output(argv, &limits, take_answer, answer, why);
    answer->text[answer->count] = 0;
    return rc;
}

static int check_machine(struct answer *answer, struct why *why)
{
    static const char *const show_settings[] = {
        "systemctl", "show", "--property", "EnvironmentFiles", "shoal-broker.service", NULL
    };
    if (geteuid() != 0)
        return why_set(why, FAULT_DENIED,
                       "--systemd writes to " ETC " and starts services: call it as root (sudo)");
    if (sd_booted() <= 0)
        return why_set(why, FAULT_UNAVAILABLE,
                       "no systemd runs here; without --systemd the run goes in the foreground");
    const int rc = ask(show_settings, answer, why);
    if (rc < 0) return rc;
    if (!strstr(answer->text, "/shoal.env"))
        return why_set(why, FAULT_UNAVAILABLE,
                       "the units are not installed: `sudo make install` in the tree, then "
                       "`sudo systemctl daemon-reload`");
    if (!strstr(answer->text, ETC "/shoal.env"))
        return why_set(why, FAULT_UNAVAILABLE,
                       "the units were installed with another sysconfdir and do not read " ETC
                       ": systemd/README.md has the way by hand");
    if (!getpwnam("shoal"))
        return why_set(why, FAULT_UNAVAILABLE,
                       "there is no user shoal: `sudo systemd-sysusers; sudo systemd-tmpfiles "
                       "--create`");
    return 0;
}

// ---- 2. the folder ------------------------------------------------------------------------------

static int check_folder(const struct services *self, struct why *why)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:-_.";
    char path[PATH_MAX];
    const char *dir = self->options->dir;
    if (self->run[0] == '.' || self->run[strspn(self->run, allowed)])
        return why_set(why, FAULT_CONFIG,
                       "run_id \"%s\": units are named after it, so only letters, digits and :-_. "
                       "may be in it",
                       self->run);
    snprintf(path, sizeof path, "%s/run/coordinator", dir);
    if (access(path, F_OK) != 0) return 0;
    return why_set(
        why, FAULT_CONFIG,
        "%s: the run has begun under `shoal up`, and its records are there. `shoal up %s` goes on "
        "with it. To begin the run again as services, remove %s/run. To go on from its newest "
        "checkpoint as services: shoal init NEW --model %s/run/checkpoints/step-... --data ...",
        path, dir, dir, dir);
}

// The run has begun as services if its folder has the ticket that --systemd leaves but no records of a
// coordinator, and the service of this machine has such records.
int services_check_foreground(const char *dir, const char *run, struct why *why)
{
    char ticket[PATH_MAX + 32], own[PATH_MAX + 32], service[128];
    snprintf(ticket, sizeof ticket, "%s/run/ticket", dir);
    snprintf(own, sizeof own, "%s/run/coordinator", dir);
    snprintf(service, sizeof service, "/var/lib/shoal/shoal-coordinator@%s", run);
    if (access(ticket, F_OK) != 0 || access(own, F_OK) == 0 || access(service, F_OK) != 0) return 0;
    return why_set(why, FAULT_CONFIG,
                   "the run has begun as services of this machine, and its records are in %s: "
                   "`sudo shoal up %s --systemd` goes on with it",
                   service, dir);
}

// ---- 3. what exists -----------------------------------------------------------------------------

static int read_file(const char *dir, const char *name, struct why *why, char **ret_text)
{
    size_t count;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", dir, strerror(errno));
    const int rc = dirfile_slurp(fd, name, true, FILE_BYTES_MAX, why, ret_text, &count);
    close(fd);
    return rc < 0 ? why_wrap(why, rc, "%s", dir) : 0;
}

static uint32_t servers_of(const struct services_options *options)
{
    return config_servers(options->config) + options->standby;
}

// Refuses if the coordinator of another run is started here, or will be at boot: a broker has one run.
static int check_others(const struct services *self, struct answer *answer, struct why *why)
{
    static const char *const list_coordinators[] = { "systemctl",
                                                     "list-units",
                                                     "--all",
                                                     "--plain",
                                                     "--full",
                                                     "--no-legend",
                                                     "shoal-coordinator@*.service",
                                                     NULL };
    char own[80], *rest = answer->text;
    const int rc = ask(list_coordinators, answer, why);
    if (rc < 0) return rc;
    const int length = snprintf(own, sizeof own, "shoal-coordinator@%s.service", self->run);
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!line[0] || strncmp(line, own, (size_t)length) == 0) continue;
        return why_set(
            why, FAULT_UNAVAILABLE,
            "%.*s is a service of this machine already, and a broker has one run: end it "
            "first, with `systemctl disable --now $(systemctl list-units --all --plain "
            "--no-legend 'shoal-*' | cut -d ' ' -f 1)`",
            (int)strcspn(line, " "), line);
    }
    return 0;
}

// Refuses if an earlier call made more than `wanted` units of this role: they would go on running. `last`: the highest
// number that a unit can have. `base`: units that the run has in any case; `flag` gives only those beyond.
static int check_left_over(const struct services *self, const char *role, uint32_t wanted,
                           uint32_t last, const char *flag, uint32_t base, struct why *why)
{
    for (; last > wanted; last--) {
        char name[120], *text;
        snprintf(name, sizeof name, "shoal-%s@%s-%" PRIu32 ".env", role, self->run, last);
        if (read_file(ETC, name, NULL, &text) < 0) continue; // Not there, or not to be read
        const bool is_ours = strncmp(text, self->mark, strlen(self->mark)) == 0;
        free(text);
        if (is_ours) break;
    }
    if (last <= wanted) return 0;
    return why_set(why, FAULT_CONFIG,
                   "an earlier call has made %" PRIu32 " %ss services of this machine: give "
                   "%s %" PRIu32 ", or end the others first: sudo systemctl disable --now "
                   "shoal-%s@%s-{%" PRIu32 "..%" PRIu32 "}; sudo rm -f " ETC
                   "/shoal-%s@%s-{%" PRIu32 "..%" PRIu32 "}.env",
                   last, role, flag, last - base, role, self->run, wanted + 1, last, role,
                   self->run, wanted + 1, last);
}

// ---- 4. what each file shall say ----------------------------------------------------------------

// Plans to copy the folder `named`, the value of the setting `key`, into the run's folder in /etc/shoal. A folder
// inside DIR keeps its relative path there, so the setting stays. A folder outside of DIR is copied to `place`, and
// *text is changed to say so. An absolute path or a name such as a..b counts as outside, which does no harm.
static int plan_copy(struct services *self, const struct config_origin *origin, const char *named,
                     const char *table, const char *key, const char *place, char **text,
                     struct why *why)
{
    char path[PATH_MAX], value[PATH_MAX];
    struct copy *copy = &self->copies[self->copies_count++];
    const int rc = config_resolve(origin, named, path, sizeof path);
    if (rc < 0) return why_set(why, rc, "%s: %s", key, named);
    if (!realpath(path, copy->from))
        return why_set(why, fault_from_errno(errno), "%s: %s: %s", key, path, strerror(errno));
    const bool is_outside = named[0] == '/' || strstr(named, "..");
    snprintf(copy->to, sizeof copy->to, "%s/%.1000s", self->etc, is_outside ? place : named);
    snprintf(value, sizeof value, "\"%s\"", place);
    return is_outside ? run_files_set(text, table, key, value, why) : 0;
}

static int plan_data(struct services *self, struct why *why)
{
    static struct data_config config;
    static struct config_faults faults;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/data.toml", self->options->dir);
    int rc = config_load_data(path, &config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return why_set(why, rc, "%s is refused (see above)", path);
    rc = read_file(self->options->dir, "data.toml", why, &self->data);
    return rc < 0 ? rc
                  : plan_copy(self, &config.origin, config.dir, "", "dir", "data/train",
                              &self->data, why);
}

static int plan_run(struct services *self, struct why *why)
{
    const struct run_config *config = self->options->config;
    int rc = read_file(self->options->dir, "state.toml", why, &self->state);
    if (rc == 0)
        rc = plan_copy(self, &config->origin, config->checkpoint_folder, "model.LLM.checkpoint.Hub",
                       "repo_id", "model", &self->state, why);
    if (rc < 0) return rc;
    if (config->data_location == CONFIG_DATA_SERVER) return plan_data(self, why);
    return config->data_location == CONFIG_DATA_LOCAL
               ? plan_copy(self, &config->origin, config->data_local, "model.LLM.data_location",
                           "Local", "data", &self->state, why)
               : 0;
}

static struct service *add(struct services *self, const char *role, uint32_t number)
{
    ensure(self->count < SERVICES_MAX);
    struct service *service = &self->list[self->count++];
    char instance[64] = "", of_several[16] = "";
    if (number) snprintf(of_several, sizeof of_several, "-%" PRIu32, number);
    // The unit of the broker is no template: a machine has one broker
    if (role[0] != 'b') snprintf(instance, sizeof instance, "@%s%s", self->run, of_several);
    snprintf(service->unit, sizeof service->unit, "shoal-%s%s", role, instance);
    snprintf(service->settings, sizeof service->settings, "%s", self->mark);
    return service;
}

__attribute__((format(printf, 2, 3))) static void set(struct service *service, const char *format,
                                                      ...)
{
    const size_t used = strlen(service->settings), max = sizeof service->settings - used;
    va_list args;
    va_start(args, format);
    ensure((size_t)vsnprintf(service->settings + used, max, format, args) < max);
    va_end(args);
}

// RUN_ID and TICKET are always set: those of shoal.env may be another run's. A member that others
// reach also gets an address and a fixed port.
static void add_actor(struct services *self, const char *role, uint32_t number, const char *flags)
{
    const struct way_in *way_in = &self->options->way_in;
    const bool serves = strcmp(role, "coordinator") != 0;
    struct service *service = add(self, role, number);
    set(service, "RUN_ID=%s\nTICKET=" INSTALLED_TICKET "\n", self->run);
    if (serves && way_in->members_port) {
        const uint32_t index = self->count - 3; // Without broker, coordinator, this one
        set(service, "BIND_P2P_PORT=%" PRIu32 "\n", way_in_member_port(way_in, index));
    }
    const bool binds = serves && way_in->bind;
    if (!binds && !flags[0]) return;
    set(service, "FLAGS=%s%s%s%s\n", binds ? "--bulk-bind " : "", binds ? way_in->bind : "",
        binds && flags[0] ? " " : "", flags);
}

// Makes the coordinator's key before its unit would, because the broker's settings name it. The key belongs to the
// unit's user. A key that is there stays.
static int make_coordinator_key(struct services *self, struct why *why)
{
    char dir[128], path[160];
    struct identity *identity;
    const struct passwd *user = getpwnam("shoal"); // check_machine has seen it
    ensure(user);
    snprintf(dir, sizeof dir, "/var/lib/shoal/shoal-coordinator@%s", self->run);
    snprintf(path, sizeof path, "%s/secret.key", dir);
    int rc = folder_make(dir, 0750, why);
    if (rc == 0 && access(path, F_OK) != 0) {
        fprintf(stderr, "writes %s\n", path);
        rc = identity_create(path, why);
    }
    if (rc == 0) rc = identity_load(path, NULL, why, &identity);
    if (rc < 0) return rc;
    key_to_hex(identity_key(identity), self->coordinator_key);
    identity_destroy(&identity);
    return chown(dir, user->pw_uid, user->pw_gid) == 0 &&
                   chown(path, user->pw_uid, user->pw_gid) == 0
               ? 0
               : why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
}

// The actors of this machine reach the broker at 127.0.0.1, so with an address for others it listens
// on all addresses.
static void plan_services(struct services *self)
{
    const struct services_options *options = self->options;
    char flags[200];
    struct service *broker = add(self, "broker", 0);
    set(broker, "SERVER_PORT=%" PRIu32 "\nOWNER=%s\n", options->way_in.port, self->coordinator_key);
    if (way_in_is_open(&options->way_in)) set(broker, "FLAGS=--bind 0.0.0.0\n");
    snprintf(flags, sizeof flags, "--log /var/lib/shoal/shoal-coordinator@%s/metrics", self->run);
    add_actor(self, "coordinator", 0, flags);
    if (self->data) add_actor(self, "data-provider", 0, "");
    snprintf(flags, sizeof flags, "--keep-steps %" PRIu64, options->config->checkpoint_keep);
    add_actor(self, "checkpointer", 0, flags);
    for (uint32_t i = 1; i <= servers_of(options); i++) {
        add_actor(self, "parameter-server", i, "");
        self->list[self->count - 1].saves = service_saves_are_on(options->config);
    }
    for (uint32_t i = 1; i <= options->trainers; i++) {
        char name[64] = "";
        if (options->label)
            snprintf(name, sizeof name, "--name %.40s-%" PRIu32 "%s", options->label, i,
                     options->threads ? " " : "");
        snprintf(flags, sizeof flags, "%s%s%.20s", name, options->threads ? "--threads " : "",
                 options->threads ? options->threads : "");
        add_actor(self, "trainer", i, flags);
        self->list[self->count - 1].saves = service_saves_are_on(options->config);
    }
    service_saves_print(options->config, self->mark, self->saves_text);
}

// A file that begins with `mark` is ours and may be changed; `mark` NULL: one that differs is never ours.
static int compare(const char *dir, const char *name, const char *wanted, const char *mark,
                   struct why *why, enum on_disk *ret_on_disk)
{
    char *text;
    const int rc = read_file(dir, name, why, &text);
    *ret_on_disk = ABSENT;
    if (rc == FAULT_NOT_FOUND) return 0;
    if (rc < 0) return rc;
    *ret_on_disk = strcmp(text, wanted) == 0                        ? SAME
                   : mark && strncmp(text, mark, strlen(mark)) == 0 ? OURS
                                                                    : FOREIGN;
    free(text);
    if (*ret_on_disk != FOREIGN) return 0;
    return why_set(why, FAULT_CONFIG,
                   "%s/%s stands there and says something else than this run needs; it is not "
                   "touched: look at it, move it away, and call this again",
                   dir, name);
}

static const char *drop_in_dir(const struct service *service, char dir[120])
{
    snprintf(dir, 120, UNITS "/%s.service.d", service->unit);
    return dir;
}

static int check_files(struct services *self, struct why *why)
{
    char pending[PATH_MAX];
    snprintf(pending, sizeof pending, "%s/" RESTARTS_PENDING, self->etc);
    self->restarts_pending = access(pending, F_OK) == 0;
    int rc = compare(self->etc, "state.toml", self->state, NULL, why, &self->state_on_disk);
    if (rc == 0 && self->data)
        rc = compare(self->etc, "data.toml", self->data, NULL, why, &self->data_on_disk);
    for (uint32_t i = 0; i < self->count && rc == 0; i++) {
        struct service *service = &self->list[i];
        char name[96];
        snprintf(name, sizeof name, "%s.env", service->unit);
        rc = compare(ETC, name, service->settings, self->mark, why, &service->on_disk);
        if (rc < 0 || !service->saves) continue;
        char dir[120];
        rc = compare(drop_in_dir(service, dir), SERVICE_SAVES_FILE, self->saves_text, self->mark,
                     why, &service->drop_in);
    }
    return rc;
}

// ---- 5. copies and files ------------------------------------------------------------------------

// state.toml is written after the copies: if it stands, they are whole. -L: a snapshot folder of a Hugging Face cache
// has links to ../../blobs, which lead nowhere from the copy; so it gets the files themselves.
static int copy_folders(struct services *self, struct why *why)
{
    int rc = 0;
    umask(022); // The user shoal reads them
    for (uint32_t i = 0; i < self->copies_count && self->state_on_disk != SAME && rc == 0; i++) {
        const struct copy *copy = &self->copies[i];
        struct arguments args = { 0 };
        rc = folder_make(copy->to, 0755, why);
        if (rc < 0) return rc;
        arguments_add(&args, "cp");
        arguments_add(&args, "-rL");
        arguments_add(&args, "--no-preserve=mode");
        arguments_add(&args, "--no-target-directory");
        arguments_add(&args, "%s", copy->from);
        arguments_add(&args, "%s", copy->to);
        rc = shown_command_run(&args, why);
    }
    return rc;
}

static int write_file(const char *dir, const char *name, const char *text, enum on_disk on_disk,
                      bool shows, struct why *why)
{
    if (on_disk == SAME) return 0;
    fprintf(stderr, "%s %s/%s%s\n", on_disk == OURS ? "changes" : "writes", dir, name,
            shows ? ":" : "");
    for (const char *line = text; shows && *line;) {
        const size_t count = strcspn(line, "\n");
        fputs("    ", stderr);
        fwrite(line, 1, count + (line[count] == '\n'), stderr);
        line += count + (line[count] == '\n');
    }
    return durable_file_write(dir, name, text, strlen(text), why);
}

// Whether this unit, if it runs, has old settings: its own have changed, or its drop-in, or the broker's, whose address
// an actor reads at its start; or an earlier call has changed some and not come to the restarts.
static bool must_restart(const struct services *self, uint32_t i)
{
    const struct service *service = &self->list[i];
    const bool drop_in_changes =
        service->saves && service->on_disk != ABSENT && service->drop_in != SAME;
    return self->restarts_pending || service->on_disk == OURS || self->list[0].on_disk == OURS ||
           drop_in_changes;
}

// RESTARTS_PENDING is written before any settings change and removed after the restarts: so if this
// call ends in between, the next one restarts the units though it finds their files as they should be.
static int note_restarts(const struct services *self, struct why *why)
{
    static const char text[] =
        "`shoal up --systemd` has changed settings and must restart units.\n";
    bool any = false;
    for (uint32_t i = 0; i < self->count; i++) any = any || must_restart(self, i);
    return any ? write_file(self->etc, RESTARTS_PENDING, text,
                            self->restarts_pending ? SAME : ABSENT, false, why)
               : 0;
}

static int forget_restarts(const struct services *self, struct why *why)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" RESTARTS_PENDING, self->etc);
    if (access(path, F_OK) != 0) return 0;
    fprintf(stderr, "removes %s\n", path);
    return unlink(path) == 0
               ? 0
               : why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
}

// Gives the folder of saves to the services, writes their drop-ins, and has systemd read its units again if one has
// changed.
static int write_drop_ins(struct services *self, struct why *why)
{
    struct arguments reload = { 0 };
    bool changed = false;
    int rc = service_saves_give(self->options->config, why);
    for (uint32_t i = 0; i < self->count && rc == 0; i++) {
        const struct service *service = &self->list[i];
        char dir[120];
        if (!service->saves || service->drop_in == SAME) continue;
        rc = folder_make(drop_in_dir(service, dir), 0755, why);
        if (rc == 0)
            rc = write_file(dir, SERVICE_SAVES_FILE, self->saves_text, service->drop_in, true, why);
        changed = true;
    }
    arguments_add(&reload, "systemctl");
    arguments_add(&reload, "daemon-reload");
    return rc < 0 || !changed ? rc : shown_command_run(&reload, why);
}

static int write_files(struct services *self, struct why *why)
{
    int rc = folder_make(self->etc, 0755, why);
    if (rc == 0 && self->data)
        rc = write_file(self->etc, "data.toml", self->data, self->data_on_disk, false, why);
    if (rc == 0)
        rc = write_file(self->etc, "state.toml", self->state, self->state_on_disk, false, why);
    if (rc == 0) rc = note_restarts(self, why);
    for (uint32_t i = 0; i < self->count && rc == 0; i++) {
        const struct service *service = &self->list[i];
        char name[96];
        snprintf(name, sizeof name, "%s.env", service->unit);
        rc = write_file(ETC, name, service->settings, service->on_disk, true, why);
    }
    return rc < 0 ? rc : write_drop_ins(self, why);
}

// ---- 6. the units -------------------------------------------------------------------------------

// `systemctl WORDS UNIT...` for some units at a time; with `restarts_only`, for those that must restart.
static int command_units(const struct services *self, const char *const words[], uint32_t from,
                         uint32_t to, bool restarts_only, struct why *why)
{
    int rc = 0;
    while (from < to && rc == 0) {
        struct arguments args = { 0 };
        uint32_t count = 0;
        arguments_add(&args, "systemctl");
        for (int i = 0; words[i]; i++) arguments_add(&args, "%s", words[i]);
        for (; from < to && count < UNITS_A_COMMAND; from++) {
            if (restarts_only && !must_restart(self, from)) continue;
            arguments_add(&args, "%s", self->list[from].unit);
            count++;
        }
        if (count) rc = shown_command_run(&args, why);
    }
    return rc;
}

static int start_units(const struct services *self, struct why *why)
{
    static const char *const again[] = { "try-restart", NULL },
                             *const with_target[] = { "enable", "--now", "shoal.target", NULL },
                             *const others[] = { "enable", "--now", NULL };
    int rc = command_units(self, again, 0, self->count, true, why);
    if (rc == 0) rc = forget_restarts(self, why);
    if (rc == 0) rc = command_units(self, with_target, 0, 1, false, why);
    if (rc == 0) rc = command_units(self, others, 1, self->count, false, why);
    return rc < 0 ? why_wrap(why, rc, "`systemctl status 'shoal-*'` tells more") : 0;
}

// Puts the ticket into the folder, as a start in the foreground does: for people who join from other machines, and so
// that the next call knows the address.
static int keep_ticket(const struct services *self, const struct ticket *ticket, struct why *why)
{
    char dir[PATH_MAX], text[TICKET_TEXT_MAX], line[TICKET_TEXT_MAX + 1];
    snprintf(dir, sizeof dir, "%.4000s/run", self->options->dir);
    const int rc = folder_make(dir, 0755, why);
    if (rc < 0) return rc;
    const int count = snprintf(line, sizeof line, "%s\n", ticket_print(ticket, text));
    fprintf(stderr, "writes %s/ticket\n", dir);
    return durable_file_write(dir, "ticket", line, (size_t)count, why);
}

static int report(const struct services *self, struct why *why)
{
    const struct services_options *options = self->options;
    struct ticket ticket;
    const int rc = ticket_read(INSTALLED_TICKET, why, &ticket);
    if (rc < 0) return rc;
    snprintf(ticket.address, sizeof ticket.address, "%.60s:%" PRIu32,
             way_in_address(&options->way_in), options->way_in.port);
    snprintf(ticket.run, sizeof ticket.run, "%s", self->run);
    ticket.has_invitation = false;
    const int kept = keep_ticket(self, &ticket, why);
    if (kept < 0) return kept;
    static struct installed_run runs[INSTALLED_RUNS_MAX];
    const bool is_one_of_several = installed_runs("", runs) > 1;
    const uint32_t count = servers_of(options);
    char status[100], servers[60] = "";
    if (count)
        snprintf(servers, sizeof servers, "%" PRIu32 " parameter server%s and ", count,
                 show_s(count));
    snprintf(status, sizeof status, "shoal status%s%s", is_one_of_several ? " --run-id " : "",
             is_one_of_several ? self->run : "");
    printf(
        "run \"%s\" as services of this machine, with %s%" PRIu32
        " trainer%s, at each boot too; broker at %s\n"
        "Each has a key and a folder of its own below /var/lib/shoal; the keys in %s/run are not "
        "used.\n\n"
        "  %-36s  where the run stands\n"
        "  %-36s  what each one does\n"
        "  %-36s  all leave the run and end\n\n",
        self->run, servers, options->trainers, show_s(options->trainers), ticket.address,
        options->dir, status, "systemctl status 'shoal-*'", "systemctl stop shoal.target");
    way_in_print(&options->way_in, options->config, &ticket);
    return 0;
}

int services_start(const struct services_options *options, struct why *why)
{
    static struct services self;
    static struct answer answer;
    self = (struct services){ .options = options, .run = options->config->run_id };
    snprintf(self.etc, sizeof self.etc, ETC "/%s", self.run);
    snprintf(self.mark, sizeof self.mark, "# Made by `shoal up --systemd` for run \"%s\"\n",
             self.run);
    int rc = check_machine(&answer, why);
    if (rc == 0) rc = check_folder(&self, why);
    if (rc == 0) rc = way_in_check(&options->way_in, why);
    if (rc == 0) rc = check_others(&self, &answer, why);
    if (rc == 0)
        rc = check_left_over(&self, "trainer", options->trainers, TESTNET_TRAINERS_MAX,
                             "--trainers", 0, why);
    if (rc == 0)
        rc = check_left_over(&self, "parameter-server", servers_of(options), TESTNET_SERVERS_MAX,
                             "--standby", config_servers(options->config), why);
    if (rc == 0) rc = service_saves_check(options->config, why);
    if (rc == 0) rc = plan_run(&self, why);
    if (rc == 0) rc = make_coordinator_key(&self, why);
    if (rc == 0) plan_services(&self);
    if (rc == 0) rc = check_files(&self, why);
    if (rc == 0) rc = copy_folders(&self, why);
    if (rc == 0) rc = write_files(&self, why);
    if (rc == 0) rc = start_units(&self, why);
    if (rc == 0) rc = report(&self, why);
    free(self.state);
    free(self.data);
    return rc;
}
