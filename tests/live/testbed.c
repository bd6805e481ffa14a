// testbed -- starts, signals and reaps the actors, and waits: one epoll set holds the news, the
// logs and the ends of the processes. Files are testbed_files.c's, the end of a run
// testbed_end.c's.

#include "common/base/clock.h"
#include "tests/live/testbed.h"
#include "common/base/ensure.h"
#include "common/base/process.h"
#include "common/net/curve.h"
#include "tests/test.h"
#include <inttypes.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_MAX = 1 << 20, TAIL_BYTES = 1000, PORT_FIRST = 20000, PORT_LAST = 31000 };

// ---- small things -------------------------------------------------------------------------------

bool testbed_is_long(void) { return getenv("LIVE_LONG") && strcmp(getenv("LIVE_LONG"), "1") == 0; }

uint64_t testbed_draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t testbed_seed(void)
{
    uint64_t seed = getenv("LIVE_SEED") ? strtoull(getenv("LIVE_SEED"), NULL, 10) : 1;
    print_message("LIVE_SEED=%" PRIu64 "\n", seed);
    return seed;
}

const char *testbed_trainer(unsigned index)
{
    static char names[TESTBED_ACTORS_MAX][24];
    snprintf(names[index], sizeof names[index], "trainer%u", index);
    return names[index];
}

const char *testbed_server(unsigned index)
{
    static char names[TESTBED_ACTORS_MAX][24];
    snprintf(names[index], sizeof names[index], "parameter-server%u", index);
    return names[index];
}

static bool is_free(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool free_now = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return free_now;
}

// Reserves the port by an abstract socket name that this process has until it ends: so a killed
// broker finds its port again, although other tests look for ports meanwhile.
static bool is_ours_now(unsigned port)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "shoal-testbed-%u", port);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const size_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length;
    if (bind(fd, (struct sockaddr *)&name, (socklen_t)bytes) == 0) return true;
    close(fd);
    return false;
}

// Three in a row, below those that the system gives to callers. Each process begins at another
// port, so that tests side by side seldom meet.
static unsigned find_ports(void)
{
    static unsigned next;
    if (!next) next = PORT_FIRST + (unsigned)getpid() * 37 % (PORT_LAST - PORT_FIRST) / 3 * 3;
    for (unsigned tried = 0; tried < PORT_LAST - PORT_FIRST; tried += 3) {
        unsigned port = next;
        next = next + 6 > PORT_LAST ? PORT_FIRST : next + 3;
        if (is_free(port) && is_free(port + 1) && is_ours_now(port)) return port;
    }
    return 0;
}

// ---- life ---------------------------------------------------------------------------------------

static struct testbed_options with_defaults(const struct testbed_options *given)
{
    struct testbed_options o = *given;
#define DEFAULT(field, value)                                                                      \
    if (!(o.field > 0)) o.field = value
    if (!o.run_id) o.run_id = "live";
    if (!o.host) o.host = "127.0.0.1";
    DEFAULT(trainers, 3);
    DEFAULT(min_clients, 1);
    DEFAULT(init_min_clients, o.trainers);
    DEFAULT(epoch_rounds, 8);
    DEFAULT(total_steps, 16);
    DEFAULT(batch, 8);
    DEFAULT(snapshot_rounds, 4);
    DEFAULT(train_s, 3);
    DEFAULT(witness_s, 1);
    DEFAULT(lease_s, 2);
    DEFAULT(cooldown_s, 5);
    DEFAULT(warmup_s, 5);
    DEFAULT(map_mib_max, 64);
    DEFAULT(threads, 1);
    DEFAULT(lanes, 8);
    DEFAULT(servers, 2);
#undef DEFAULT
    return o;
}

// The programs lie beside the tests: <build>/live/x_test, <build>/bin/shoal-x.
static void find_programs(struct testbed *self)
{
    static char own[200]; // Asked once: a test may have gone to another mount namespace since
    char path[200];
    ssize_t count = own[0] ? (ssize_t)strlen(own) : readlink("/proc/self/exe", own, sizeof own - 1);
    ensure(count > 0);
    snprintf(path, sizeof path, "%s", own);
    *strrchr(path, '/') = 0;
    snprintf(self->live, sizeof self->live, "%s", path);
    *strrchr(path, '/') = 0;
    snprintf(self->bin, sizeof self->bin, "%s/bin", path);
}

// A broker that other machines reach has an owner.
static bool is_owned(const struct testbed *self)
{
    return self->options.owned || strncmp(self->options.host, "127.", 4) != 0;
}

static void make_ticket(struct testbed *self)
{
    struct identity *broker = testbed_identity("broker");
    char text[TICKET_TEXT_MAX];
    self->ticket.server = curve_server_key(broker);
    if (is_owned(self)) {
        struct identity *owner = testbed_identity("coordinator");
        self->ticket.owner = *identity_key(owner);
        identity_destroy(&owner);
    }
    snprintf(self->ticket.address, sizeof self->ticket.address, "%s:%u", self->options.host,
             self->port);
    ticket_print(&self->ticket, text);
    testbed_write_file(self, "ticket", text, strlen(text));
    identity_destroy(&broker);
}

struct testbed *testbed_new(const struct testbed_options *options)
{
    struct testbed *self = calloc(1, sizeof *self);
    const char *root = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    struct why why = { 0 };
    ensure(self);
    if (geteuid() != 0)
        setenv("SHOAL_DUMPABLE", "1", 0); // Tests read the actors' /proc; root may anyway
    self->options = with_defaults(options);
    find_programs(self);
    snprintf(self->dir, sizeof self->dir, "%.200s/shoal-live-XXXXXX", root);
    ensure(mkdtemp(self->dir));
    self->port = find_ports();
    ensure(self->port);
    self->events = epoll_create1(EPOLL_CLOEXEC);
    self->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ensure(self->events >= 0 && self->inotify >= 0);
    struct epoll_event event = { .events = EPOLLIN };
    ensure(epoll_ctl(self->events, EPOLL_CTL_ADD, self->inotify, &event) == 0);
    testbed_write_all(self);
    make_ticket(self);
    struct identity *observer = testbed_identity("observer");
    struct tap_options tap = { .broker = &self->ticket,
                               .identity = observer,
                               .run = self->options.run_id,
                               .role = ACTOR_MONITOR };
    int rc = tap_open(&tap, &why, &self->tap);
    self->observer = observer;
    if (rc < 0) testbed_fail(self, "no observer: %s", why.text);
    return self;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void testbed_destroy(struct testbed **self_p)
{
    struct testbed *self = *self_p;
    if (!self) return;
    testbed_kill_all(self);
    tap_close(&self->tap);
    identity_destroy(&self->observer);
    close(self->inotify);
    close(self->events);
    if (getenv("LIVE_KEEP")) print_message("kept %s\n", self->dir);
    else nftw(self->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    free(self);
    *self_p = NULL;
}

int testbed_teardown(void **state)
{
    testbed_destroy((struct testbed **)state);
    return 0;
}

void testbed_fail(struct testbed *self, const char *format, ...)
{
    char text[1024], tail[TAIL_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (unsigned i = 0; i < self->actors_count; i++) {
        testbed_read_file(self->actors[i].log, tail, sizeof tail);
        print_message("---- %s (%s)\n%s", self->actors[i].name,
                      self->actors[i].pid ? "runs" : "ended", tail);
    }
    print_message("---- phase %s epoch %" PRIu64 " round %" PRIu64 " step %" PRIu64 "\n",
                  wire_enum_name(&wire_enum_phase, self->news.run.phase), self->news.run.epoch,
                  self->news.rounds, self->news.run.step);
    fail_msg("%s", text);
    abort(); // fail_msg does not return; compilers cannot know
}

// ---- actors -------------------------------------------------------------------------------------

struct testbed_actor *testbed_actor(struct testbed *self, const char *name)
{
    for (unsigned i = 0; i < self->actors_count; i++)
        if (strcmp(self->actors[i].name, name) == 0) return &self->actors[i];
    ensure(self->actors_count < TESTBED_ACTORS_MAX);
    struct testbed_actor *actor = &self->actors[self->actors_count++];
    snprintf(actor->name, sizeof actor->name, "%s", name);
    snprintf(actor->log, sizeof actor->log, "%s/%s.log", self->dir, name);
    testbed_write_key(self, name);
    return actor;
}

static bool is_member(const struct testbed_actor *actor)
{
    return strcmp(actor->name, "broker") != 0 && strcmp(actor->name, "coordinator") != 0 &&
           strncmp(actor->name, "monitor", 7) != 0;
}

static void add_owner(struct arguments *args)
{
    struct identity *owner = testbed_identity("coordinator");
    char hex[KEY_HEX];
    arguments_add(args, "--owner=%s", key_to_hex(identity_key(owner), hex));
    identity_destroy(&owner);
}

static void add_usual(struct testbed *self, const char *name, struct arguments *args)
{
    const struct testbed_options *o = &self->options;
    if (strcmp(name, "broker") == 0) {
        arguments_add(args, "--identity-secret-key-path=broker.key");
        arguments_add(args, "--server-port=%u", self->port);
        arguments_add(args, "--bind=%s", o->host);
        if (o->admit) arguments_add(args, "--admit=%s", o->admit);
        if (is_owned(self)) add_owner(args);
        return;
    }
    arguments_add(args, "--ticket=ticket");
    if (strncmp(name, "monitor", 7) == 0) {
        arguments_add(args, "--run-id=%s", o->run_id);
        return;
    }
    arguments_add(args, "--identity-secret-key-path=%s.key", name);
    arguments_add(args, "--state-dir=%s", name);
    if (strcmp(name, "coordinator") == 0) {
        arguments_add(args, "--state=state.toml");
        return;
    }
    arguments_add(args, "--run-id=%s", o->run_id);
    if (strncmp(name, "data-provider", 13) == 0) arguments_add(args, "--data-config=data.toml");
    else if (strcmp(name, "checkpointer") == 0) arguments_add(args, "--checkpoint-dir=checkpoints");
    else if (strncmp(name, "trainer", 7) == 0) arguments_add(args, "--threads=%u", o->threads);
}

// "trainer3" is a shoal-trainer, "monitor0" a zmq-monitor.
static void add_program(struct testbed *self, const char *name, const char *other,
                        struct arguments *args)
{
    if (other) arguments_add(args, "%s/%s", self->live, other);
    else
        arguments_add(args, "%s/%s-%.*s", self->bin,
                      strncmp(name, "monitor", 7) == 0 ? "zmq" : "shoal",
                      (int)strcspn(name, "0123456789"), name);
}

// The log is there before the start: its end is marked, and it is watched.
static void mark_log(struct testbed *self, struct testbed_actor *actor)
{
    int fd = open(actor->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ensure(fd >= 0);
    actor->log_mark = lseek(fd, 0, SEEK_END);
    close(fd);
    inotify_add_watch(self->inotify, actor->log, IN_MODIFY);
}

// A child begins in the network namespace of the thread that starts it.
static int start_in(int netns, const struct process_options *options, struct why *why,
                    pid_t *ret_pid)
{
    if (!netns) return process_start(options, why, ret_pid);
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    ensure(own >= 0 && setns(netns, CLONE_NEWNET) == 0);
    int rc = process_start(options, why, ret_pid);
    ensure(setns(own, CLONE_NEWNET) == 0);
    close(own);
    return rc;
}

void testbed_start_with(struct testbed *self, const char *name, const struct testbed_launch *launch)
{
    struct testbed_actor *actor = testbed_actor(self, name);
    struct arguments args = { 0 };
    struct why why = { 0 };
    ensure(!actor->pid);
    add_program(self, name, launch->program, &args);
    if (!launch->bare) add_usual(self, name, &args);
    for (int i = 0; launch->args && launch->args[i]; i++)
        arguments_add(&args, "%s", launch->args[i]);
    mark_log(self, actor);
    const struct process_options options = {
        .arguments = &args, .log = actor->log, .dir = self->dir, .env = launch->env
    };
    if (start_in(launch->netns, &options, &why, &actor->pid) < 0)
        testbed_fail(self, "%s cannot be started: %s", name, why.text);
    actor->lives++;
    actor->may_end = false;
    actor->pidfd = (int)syscall(SYS_pidfd_open, actor->pid, 0);
    ensure(actor->pidfd >= 0);
    struct epoll_event event = { .events = EPOLLIN };
    ensure(epoll_ctl(self->events, EPOLL_CTL_ADD, actor->pidfd, &event) == 0);
}

void testbed_start(struct testbed *self, const char *name)
{
    testbed_start_with(self, name, &(struct testbed_launch){ 0 });
}

// Trainers last, once the others are members: a batch that finds no provider would be late, and a
// run is so short that a checkpointer which asks a second time could miss an epoch.
void testbed_start_all(struct testbed *self)
{
    static const char joined[] = "member.admitted";
    char name[24];
    testbed_start(self, "broker");
    testbed_start(self, "coordinator");
    testbed_start(self, "data-provider");
    if (!self->options.no_checkpointer) testbed_start(self, "checkpointer");
    for (unsigned i = 0; i < self->options.witnesses; i++) {
        snprintf(name, sizeof name, "witness%u", i);
        testbed_start(self, name);
    }
    for (unsigned i = 0; testbed_has_servers(self->options.strategy) && i < self->options.servers;
         i++)
        testbed_start(self, testbed_server(i));
    for (unsigned i = 0; i < self->actors_count; i++)
        if (is_member(&self->actors[i]) && self->actors[i].pid &&
            strncmp(self->actors[i].name, "trainer", 7) != 0)
            testbed_await_log(self, self->actors[i].name, joined, TESTBED_WAIT_MS);
    for (unsigned i = 0; i < self->options.trainers; i++) testbed_start(self, testbed_trainer(i));
}

// Takes note of an end, if it has come.
static void reap(struct testbed *self, struct testbed_actor *actor, int flags)
{
    (void)self;
    if (!actor->pid || waitpid(actor->pid, &actor->status, flags) != actor->pid) return;
    actor->pid = 0;
    close(actor->pidfd); // And so it leaves the epoll set
}

bool testbed_ends_with_run(const char *name)
{
    return strncmp(name, "witness", 7) == 0 || strncmp(name, "data-provider", 13) == 0;
}

static void reap_all(struct testbed *self)
{
    for (unsigned i = 0; i < self->actors_count; i++) {
        struct testbed_actor *actor = &self->actors[i];
        bool ran = actor->pid != 0;
        reap(self, actor, WNOHANG);
        if (!ran || actor->pid || actor->may_end) continue;
        // It may hear before us that the run is finished.
        if (testbed_ends_with_run(actor->name) && WIFEXITED(actor->status) &&
            WEXITSTATUS(actor->status) == 0)
            continue;
        char how[100];
        process_print_end(actor->status, how, sizeof how);
        testbed_fail(self, "%s %s without being asked to", actor->name, how);
    }
}

void testbed_signal(struct testbed *self, const char *name, int signal)
{
    struct testbed_actor *actor = testbed_actor(self, name);
    if (signal == SIGKILL || signal == SIGTERM) actor->may_end = true;
    if (actor->pid) kill(actor->pid, signal);
    if (signal == SIGKILL) reap(self, actor, 0);
    if (signal == SIGTERM) testbed_await_end(self, name, TESTBED_WAIT_MS);
}

void testbed_kill_all(struct testbed *self)
{
    for (unsigned i = 0; i < self->actors_count; i++)
        if (self->actors[i].pid) {
            self->actors[i].may_end = true;
            kill(self->actors[i].pid, SIGKILL);
        }
    for (unsigned i = 0; i < self->actors_count; i++) reap(self, &self->actors[i], 0);
}

// ---- hearing ------------------------------------------------------------------------------------

static void hear_run(struct testbed_news *news, const struct wire_run *run, uint64_t incarnation)
{
    if (news->has_run && incarnation == news->incarnation && run->log_seq < news->run.log_seq)
        return;
    if (!news->has_run || news->run.phase != run->phase) news->entered[run->phase]++;
    news->has_run = true;
    news->run = *run;
    news->incarnation = incarnation;
    if (run->step > news->commits) news->commits = run->step;
}

// All replicas must report the same digest of a step.
static void hear_progress(struct testbed *self, const struct wire_progress *progress)
{
    if (hash_is_none(&progress->digest)) return;
    struct hash *known = &self->news.digests[progress->step % TESTBED_STEPS_MAX];
    uint64_t *told = &self->news.told[progress->step % TESTBED_STEPS_MAX];
    if (progress->step + 1 > *told) {
        *told = progress->step + 1;
        *known = progress->digest;
    } else if (progress->step + 1 == *told && !hash_equal(known, &progress->digest)) {
        char a[HASH_HEX], b[HASH_HEX];
        testbed_fail(self, "two digests of step %" PRIu64 ": %.16s and %.16s", progress->step,
                     hash_to_hex(known, a), hash_to_hex(&progress->digest, b));
    }
}

static void hear_members(struct testbed_news *news, const struct wire_member *members,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (members[i].index < TESTBED_ACTORS_MAX) news->members[members[i].index] = members[i].key;
}

static void hear_window(struct testbed_news *news, const struct wire_window *window)
{
    if (window->number <= news->window) return;
    news->window = window->number;
    news->group_count = 0;
    for (uint32_t i = 0; i < window->group_count && i < TESTBED_ACTORS_MAX; i++)
        if (window->group[i].member < TESTBED_ACTORS_MAX)
            news->group[news->group_count++] = news->members[window->group[i].member];
}

static void hear_group(struct testbed_news *news, const struct wire_group *group)
{
    hear_window(news, &(struct wire_window){ .number = group->number,
                                             .group = group->group,
                                             .group_count = group->group_count });
}

bool testbed_in_group(const struct testbed *self, const char *name)
{
    struct identity *identity = testbed_identity(name);
    bool found = false;
    for (unsigned i = 0; i < self->news.group_count && !found; i++)
        found = key_equal(&self->news.group[i], identity_key(identity));
    identity_destroy(&identity);
    return found;
}

static void hear(struct testbed *self, const struct letter *letter)
{
    struct testbed_news *news = &self->news;
    news->frames++;
    switch (letter->msg.kind) {
    case FRAME_RUN: hear_run(news, letter->msg.body, letter->msg.incarnation); break;
    case FRAME_PROGRESS: hear_progress(self, letter->msg.body); break;
    case FRAME_ROUND: {
        const struct wire_round *round = letter->msg.body;
        if (round->round <= news->rounds) break;
        news->rounds = round->round;
        if (news->run.phase == PHASE_TRAIN) news->entered[PHASE_TRAIN]++;
        break;
    }
    case FRAME_COMMIT: {
        const struct wire_commit *commit = letter->msg.body;
        // A RoundWitness that was over at once is not told by a RUN
        if (news->run.phase != PHASE_WITNESS) news->entered[PHASE_WITNESS]++;
        if (commit->outcome == OUTCOME_COMMITTED && commit->step + 1 > news->commits)
            news->commits = commit->step + 1;
        break;
    }
    case FRAME_WINDOW: hear_window(news, letter->msg.body); break;
    case FRAME_GROUP: hear_group(news, letter->msg.body); break;
    case FRAME_STEPS: {
        const struct wire_steps *steps = letter->msg.body;
        if (steps->end > news->commits) news->commits = steps->end;
        break;
    }
    case FRAME_ROSTER: {
        const struct wire_roster *roster = letter->msg.body;
        hear_members(news, roster->members, roster->members_count);
        break;
    }
    case FRAME_MEMBERS: {
        const struct wire_members *change = letter->msg.body;
        hear_members(news, change->members, change->members_count);
        break;
    }
    default: break;
    }
}

bool testbed_wait(struct testbed *self, testbed_until *until, const void *arg, uint64_t timeout_ms)
{
    uint64_t until_ms = clock_ms() + timeout_ms;
    struct letter letter;
    char changes[4096];
    for (;;) {
        if (until(self, arg)) return true;
        enum tap_result got = tap_take(self->tap, &letter);
        if (got == TAP_FRAME) hear(self, &letter);
        if (got != TAP_NOTHING) continue;
        reap_all(self);
        if (until(self, arg)) return true;
        if (clock_ms() >= until_ms) return false;
        if (tap_wait(self->tap, self->events, until_ms))
            while (read(self->inotify, changes, sizeof changes) > 0) continue;
    }
}

void testbed_await(struct testbed *self, testbed_until *until, const void *arg, uint64_t timeout_ms,
                   const char *what)
{
    if (!testbed_wait(self, until, arg, timeout_ms))
        testbed_fail(self, "not within %" PRIu64 " ms: %s", timeout_ms, what);
}

static bool has_step(struct testbed *self, const void *arg)
{
    return self->news.commits >= *(const uint64_t *)arg;
}

void testbed_await_step(struct testbed *self, uint64_t step)
{
    char what[64];
    snprintf(what, sizeof what, "commit %" PRIu64, step);
    testbed_await(self, has_step, &step, TESTBED_WAIT_MS, what);
}

static bool has_epoch(struct testbed *self, const void *arg)
{
    return self->news.has_run && self->news.run.epoch >= *(const uint64_t *)arg;
}

void testbed_await_epoch(struct testbed *self, uint64_t epoch)
{
    char what[64];
    snprintf(what, sizeof what, "epoch %" PRIu64, epoch);
    testbed_await(self, has_epoch, &epoch, TESTBED_WAIT_MS, what);
}

static bool is_phase(struct testbed *self, const void *arg)
{
    return self->news.has_run && self->news.run.phase == *(const uint8_t *)arg;
}

void testbed_await_phase(struct testbed *self, uint8_t phase)
{
    char what[64];
    snprintf(what, sizeof what, "phase %s", wire_enum_name(&wire_enum_phase, phase));
    testbed_await(self, is_phase, &phase, TESTBED_WAIT_MS, what);
}

static bool never(struct testbed *self, const void *arg)
{
    (void)self, (void)arg;
    return false;
}

void testbed_pass_ms(struct testbed *self, uint64_t ms) { testbed_wait(self, never, NULL, ms); }

bool testbed_log_has(struct testbed *self, const char *name, const char *text, char *ret_rest,
                     size_t max)
{
    static char log[LOG_MAX];
    const struct testbed_actor *actor = testbed_actor(self, name);
    int fd = open(actor->log, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? 0 : pread(fd, log, sizeof log - 1, actor->log_mark);
    if (fd >= 0) close(fd);
    log[count > 0 ? count : 0] = 0;
    const char *found = strstr(log, text);
    if (found && ret_rest)
        snprintf(ret_rest, max, "%.*s", (int)strcspn(found, "\n") - (int)strlen(text),
                 found + strlen(text));
    return found != NULL && strchr(found, '\n');
}

struct awaited_log {
    const char *name, *text;
};

static bool has_log(struct testbed *self, const void *arg)
{
    const struct awaited_log *awaited = arg;
    return testbed_log_has(self, awaited->name, awaited->text, NULL, 0);
}

void testbed_await_log(struct testbed *self, const char *name, const char *text,
                       uint64_t timeout_ms)
{
    char what[256];
    snprintf(what, sizeof what, "\"%s\" in the log of %s", text, name);
    testbed_await(self, has_log, &(struct awaited_log){ name, text }, timeout_ms, what);
}

static bool has_ended(struct testbed *self, const void *arg)
{
    return testbed_actor(self, arg)->pid == 0;
}

int testbed_await_end(struct testbed *self, const char *name, uint64_t timeout_ms)
{
    char what[64];
    snprintf(what, sizeof what, "the end of %s", name);
    testbed_actor(self, name)->may_end = true;
    testbed_await(self, has_ended, name, timeout_ms, what);
    int status = testbed_actor(self, name)->status;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
