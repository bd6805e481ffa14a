// join -- takes part in somebody's run with its ticket and nothing else. In this order: read the
// ticket, look whether the folder knows that this run is finished, find the address of this machine
// that leads to the broker, make a folder with a key, the ticket, our port and label in it, and
// become shoal-trainer, with those as its flags.

#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/actor/run_end.h"
#include "common/base/durable_file.h"
#include "common/base/folder.h"
#include "common/base/process.h"
#include "common/crypto/identity.h"
#include "common/kernel/pool.h"
#include "common/net/addresses.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DIR_BYTES_MAX = 900,
    PORT_LEAST =
        10000, // Of those that we choose: below the ones that the kernel gives to connections
    PORTS = 20000,
    PORT_TRIES = 50
};

struct join {
    const char *text, *dir, *bulk_bind, *announce, *device, *label;
    uint64_t threads, micro_batch, port; // 0: not given
    bool unchecked_address;
    struct ticket ticket;
    char folder[PATH_MAX], key[PATH_MAX], address[ADDRESSES_TEXT_MAX], kept_label[32];
};

// ---- the folder ---------------------------------------------------------------------------------

static const char *name_folder(const struct join *self, char own[64])
{
    snprintf(own, 64, "shoal-%s", self->ticket.run);
    return self->dir ? self->dir : own;
}

// The trainer has seen the end of the run, and the broker may be gone by now. A ticket does not say when its run began, so
// a later run of this name on this broker looks the same from here.
static bool says_finished(const struct join *self)
{
    char own[64], state[PATH_MAX];
    struct run_end end;
    snprintf(state, sizeof state, "%.*s/state", DIR_BYTES_MAX, name_folder(self, own));
    if (!run_end_read(state, self->ticket.run, &self->ticket.server, &end)) return false;
    printf("this run is finished (step %" PRIu64 " of %" PRIu64
           "); ask its owner for the next ticket. If the owner has begun a new run of this name, "
           "remove %s/finished and join again\n",
           end.step, end.total_steps, state);
    return true;
}

// The folder is named after the run, and anybody can make a ticket for a run of that name: a ticket of another broker
// must not get this folder's key and state.
static int check_same_broker(const struct join *self, struct why *why)
{
    char path[PATH_MAX];
    struct ticket before;
    snprintf(path, sizeof path, "%.*s/ticket", DIR_BYTES_MAX, self->folder);
    if (access(path, F_OK) != 0) return 0;
    const int rc = ticket_read(path, why, &before);
    if (rc < 0)
        return why_wrap(why, rc,
                        "--dir: the folder of an earlier join, whose ticket cannot be read; "
                        "remove that file if the new ticket is by the same owner");
    if (key_equal(&before.server, &self->ticket.server)) return 0;
    return why_set(why, FAULT_USAGE,
                   "%s is of a run \"%s\" with another broker, and its key and state belong there: "
                   "--dir NEW for this ticket",
                   self->folder, before.run);
}

// A folder that no join has made stays as it is: its texts may be training data, and a secret key must not lie among
// them.
static int check_empty(const struct join *self, struct why *why)
{
    DIR *list = opendir(self->folder);
    if (!list)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->folder, strerror(errno));
    bool is_empty = true;
    for (const struct dirent *entry; (entry = readdir(list));)
        is_empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(list);
    if (is_empty) return 0;
    return why_set(
        why, FAULT_DENIED,
        "--dir: %s is not empty, and no trainer.key is in it: name a new folder, or that "
        "of an earlier join",
        self->folder);
}

static int make_folder(struct join *self, struct why *why)
{
    char text[TICKET_TEXT_MAX], line[TICKET_TEXT_MAX + 1], own[64];
    int rc = folder_resolve(name_folder(self, own), DIR_BYTES_MAX, self->folder, why);
    if (rc == 0) rc = check_same_broker(self, why);
    if (rc < 0) return rc;
    snprintf(self->key, sizeof self->key, "%.*s/trainer.key", DIR_BYTES_MAX, self->folder);
    if (access(self->key, F_OK) != 0) {
        rc = check_empty(self, why);
        if (rc == 0) rc = identity_create(self->key, why);
    }
    if (rc < 0) return rc;
    const int count = snprintf(line, sizeof line, "%s\n", ticket_print(&self->ticket, text));
    return durable_file_write(self->folder, "ticket", line, (size_t)count, why);
}

// ---- what the folder keeps ----------------------------------------------------------------------

enum { LINE_BYTES = 32 };

// The first line of a file of the folder; "" if there is no such file, or it is empty.
static int read_line(const struct join *self, const char *name, char line[LINE_BYTES],
                     struct why *why)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", DIR_BYTES_MAX, self->folder, name);
    line[0] = 0;
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT) return 0;
    if (!file) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    errno = 0;
    const int error = fgets(line, LINE_BYTES, file) || feof(file) ? 0 : errno;
    fclose(file);
    if (error) return why_set(why, fault_from_errno(error), "%s: %s", path, strerror(error));
    line[strcspn(line, "\n")] = 0;
    return 0;
}

static int write_line(const struct join *self, const char *name, const char *line, struct why *why)
{
    char text[LINE_BYTES + 1];
    const int count = snprintf(text, sizeof text, "%s\n", line);
    return durable_file_write(self->folder, name, text, (size_t)count, why);
}

// The label of an earlier join holds until another one is given, or the empty one.
static int find_label(struct join *self, struct why *why)
{
    if (self->label) return write_line(self, "name", self->label, why);
    int rc = read_line(self, "name", self->kept_label, why);
    if (rc == 0) rc = command_check_label(self->kept_label, why);
    if (rc < 0) return why_wrap(why, rc, "%s/name, which an earlier join kept", self->folder);
    if (self->kept_label[0]) self->label = self->kept_label;
    return 0;
}

// The folder keeps the port, so that a firewall or a router needs to be told once.
static int read_port(struct join *self, struct why *why)
{
    char line[LINE_BYTES];
    const int rc = read_line(self, "port", line, why);
    if (rc < 0) return rc;
    if (!line[0]) return 0;
    if (command_number("", line, 1, 65535, NULL, &self->port) < 0)
        return why_set(why, FAULT_FORMAT,
                       "%s/port has \"%s\": one port is wanted, 1 to 65535; remove the file, and "
                       "another port is chosen",
                       self->folder, line);
    return 0;
}

// A host that is no IPv4 address in numbers (a name, an interface, *): the port must be free at every address.
static bool is_free(const char *host, uint64_t port)
{
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        address.sin_addr.s_addr = htonl(INADDR_ANY);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool is_bound =
        fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) close(fd);
    return is_bound;
}

// The port above it is for our links, if the run has them. Where none is found free, the last one is
// taken: the trainer's bind says why it is not free.
static int choose_port(struct join *self, struct why *why)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        uint32_t draw;
        if (getrandom(&draw, sizeof draw, 0) != sizeof draw)
            return why_set(why, FAULT_IO, "getrandom: %s", strerror(errno));
        self->port = PORT_LEAST + draw % PORTS;
        const char *host = self->bulk_bind ? self->bulk_bind : self->address;
        if (is_free(host, self->port) && is_free(host, self->port + 1)) break;
    }
    return 0;
}

static int find_port(struct join *self, struct why *why)
{
    char line[LINE_BYTES];
    const bool is_given = self->port != 0;
    int rc = is_given ? 0 : read_port(self, why);
    if (rc < 0 || (self->port && !is_given)) return rc;
    if (!self->port) rc = choose_port(self, why);
    if (rc < 0) return rc;
    snprintf(line, sizeof line, "%u", (unsigned)self->port);
    return write_line(self, "port", line, why);
}

// ---- our address --------------------------------------------------------------------------------

static int find_address(struct join *self, struct why *why)
{
    const int rc = addresses_towards(self->ticket.address, why, self->address);
    if (rc == FAULT_NOT_FOUND)
        return why_set(why, FAULT_UNREACHABLE,
                       "the ticket's broker %s: no such host; ask for a new ticket",
                       self->ticket.address);
    return rc < 0 ? why_wrap(why, rc, "the ticket's broker") : 0;
}

// ---- the trainer --------------------------------------------------------------------------------

static void add_number(struct arguments *args, const char *name, uint64_t value)
{
    if (value) arguments_add(args, "--%s=%" PRIu64, name, value);
}

// "10.77.0.2:39131; a firewall must let that port in". Behind NAT others see another address and port.
static void say_where(const struct join *self, const char *bind)
{
    const char *ipv6_ends = self->announce ? strchr(self->announce, ']') : NULL;
    const char *port = ipv6_ends ? ipv6_ends : self->announce;
    const bool has_port = port && strchr(port, ':');
    fprintf(stderr, "joining run \"%s\" at %s; others fetch from us at %s", self->ticket.run,
            self->ticket.address, self->announce ? self->announce : bind);
    if (!has_port) fprintf(stderr, ":%" PRIu64, self->port);
    if (self->announce) fprintf(stderr, ", which must lead to %s:%" PRIu64, bind, self->port);
    fprintf(stderr,
            "; a firewall must let that port in, and the one above if the run's strategy is "
            "allreduce, sharded or server. The key is %s\n",
            self->key);
    fprintf(stderr, "watch with: shoal status --watch --ticket %s/ticket -i %s/trainer.key\n",
            self->folder, self->folder);
}

static int become_trainer(const struct join *self, struct why *why)
{
    static struct arguments args;
    char own[PATH_MAX] = "";
    if (readlink("/proc/self/exe", own, sizeof own - 1) > 0 && strrchr(own, '/'))
        *strrchr(own, '/') = 0;
    arguments_add(&args, "%s/shoal-trainer", own);
    arguments_add(&args, "--identity-secret-key-path=%s", self->key);
    arguments_add(&args, "--ticket=%s/ticket", self->folder);
    arguments_add(&args, "--state-dir=%s/state", self->folder);
    arguments_add(&args, "--guest");
    const char *bind = self->bulk_bind ? self->bulk_bind : self->address;
    arguments_add(&args, "--bulk-bind=%s", bind);
    if (self->announce) arguments_add(&args, "--announce=%s", self->announce);
    if (self->unchecked_address) arguments_add(&args, "--unchecked-address");
    if (self->device) arguments_add(&args, "--device=%s", self->device);
    if (self->label && self->label[0]) arguments_add(&args, "--name=%s", self->label);
    add_number(&args, "bind-p2p-port", self->port);
    add_number(&args, "threads", self->threads);
    add_number(&args, "micro-batch-size", self->micro_batch);
    say_where(self, bind);
    execv(args.list[0], args.list);
    return why_set(why, fault_from_errno(errno), "%s: %s", args.list[0], strerror(errno));
}

static int run(struct join *self, struct why *why)
{
    int rc = ticket_read(self->text, why, &self->ticket);
    if (rc < 0) return rc;
    if (!self->ticket.run[0])
        return why_set(why, FAULT_USAGE,
                       "the ticket names no run; ask for one made with `shoal invite --run-id ID`");
    if (says_finished(self)) return 0;
    if (!self->bulk_bind) rc = find_address(self, why);
    if (rc == 0) rc = make_folder(self, why);
    if (rc == 0) rc = find_port(self, why);
    if (rc == 0) rc = find_label(self, why);
    return rc < 0 ? rc : become_trainer(self, why);
}

static const struct flag flags[] = {
    FLAG("dir", 0, "DIR", TO_TEXT(struct join, dir),
         "Folder of our key and state (shoal-RUN); an existing one is continued"),
    FLAG("announce", 0, "HOST[:PORT]", TO_TEXT(struct join, announce),
         "Address at which the others reach us, if not that of --bulk-bind: behind NAT"),
    FLAG("bulk-bind", 0, "HOST", TO_TEXT(struct join, bulk_bind),
         "Address at which the others fetch from us (the one that leads to the broker)"),
    FLAG("bind-p2p-port", 0, "PORT", TO_NUMBER(struct join, port, 1, 65535),
         "Its port, which the folder keeps (that of last time, at first any free one; env "
         "BIND_P2P_PORT)",
         .env = "BIND_P2P_PORT"),
    FLAG("unchecked-address", 0, NULL, TO_SWITCH(struct join, unchecked_address),
         "As of shoal-trainer: join although the coordinator cannot reach that address; if the "
         "others cannot either, each step waits for us"),
    FLAG("device", 0, "WORD", TO_TEXT(struct join, device), "As of shoal-trainer (cpu)"),
    FLAG("name", 0, "LABEL", TO_TEXT(struct join, label),
         "A word that the others see beside our key, such as anna: " ACTOR_LABEL_RULE
         "; the folder keeps it (that of last time, at first none)"),
    FLAG("threads", 't', "N", TO_NUMBER(struct join, threads, 1, POOL_THREADS_MAX),
         "Compute threads (1)"),
    FLAG("micro-batch-size", 0, "N", TO_NUMBER(struct join, micro_batch, 1, 4096),
         "Sequences at a time (4)"),
    { 0 },
};

static int check(const void *line, struct why *why)
{
    const struct join *self = line;
    const char *const texts[] = { self->bulk_bind, self->announce, self->device };
    const int rc = command_check_texts(texts, sizeof texts / sizeof *texts, why);
    return rc < 0 ? rc : command_check_label(self->label, why);
}

static const struct command_line line = {
    .flags = flags,
    .usage = "TICKET",
    .about =
        "Takes part in a run until Ctrl-C: makes a key, finds the address that leads to the "
        "broker, and becomes shoal-trainer. Started again, it goes on with the same key, "
        "port and name. Ends with 0 when the run is finished; the model is then with its owner.\n\n"
        "  shoal join shoal:A...\n"
        "  shoal join friend.ticket --name anna --threads 4\n",
    .arguments = TO_TEXT(struct join, text),
    .none = "a ticket is needed, or a file with one; the owner of the run has it",
    .check = check,
};

int shoal_join(int argc, char **argv)
{
    static struct join self;
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}
