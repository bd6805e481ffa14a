// chaos -- the demo's run, disturbed on purpose, beside the same run undisturbed.
//
//     make chaos                              30 events in 150 rounds, by seed 1
//     make chaos SEED=7 EVENTS=60 STEPS=300
//     build/chaos/chaos --plan 7              only what would be done
//     make chaos MATRIX=1                     instead: the kill matrix (matrix.c)
//     make chaos FAILPOINTS=1                 instead: every failpoint (live/failpoints_test.c)
//     make soak TIME=3600 SEED=7              the disturbed run alone, TIME seconds (from 300):
//                                             whether anything in it grows (soak.h)
//
// config/demo's model, data and settings, but fewer rounds, three standalone witnesses and shorter
// limits. Eleven real processes: broker, coordinator, data-provider, checkpointer, witnesses in one
// network namespace, four trainers in another, a relay of ours between the two (relay.h). A
// schedule drawn from the seed (schedule.h) kills, stops and ends actors, loses, delays, doubles,
// reorders and damages packets, parts the network, fills disks (a tmpfs each), sets clocks wrong
// (live/clock.c). Each event waits for the news of its phase, and for its victim if that is down.
// An actor that ends is started again, as by systemd.
//
// Fails unless every event was done and the run finishes, all replicas say one digest at every
// step, ledger, checkpoint and replicas agree at the end, and each actor that ends by itself on a
// full disk says that it is full. Prints what was done when, how long the next commit took to come,
// and the goodput: committed samples a second, against the undisturbed run.
//
// Without root, /dev/net/tun or leave to mount, network and disk are left out: a "# SKIP" line
// each. Exit code 0: all held; 64: usage; else not. Only processes that it started are signalled,
// by pid.
//
//     cell matrix      the kill matrix          schedule relay      what chaos does, and how
//     soak growth      the long form: what is watched, and when it has grown

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "tests/chaos/demo_bed.h"
#include "tests/chaos/relay.h"
#include "tests/chaos/schedule.h"
#include "tests/chaos/soak.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    TRAINERS = 4,
    WITNESSES = 3,
    RUN_MS_MAX = 900000,
    RESTART_MS = 200,
    RESTARTS_MAX = 1000,
    REAPED_MS = 500,
    UNDO_MAX = 64,
    DISK_MIB = 1024,
    SOAK_ROUNDS = 40,
    SOAK_EVENT_ROUNDS = 60,
    SOAK_STEPS = 100000000,
    ROOM_EPOCHS = 2,
    DISK_MORE_MS = 15000,
    DISK_LOOK_MS = 200
};

// One event that must be data_position, and when.
struct undo {
    uint64_t due_ms;
    enum chaos_kind kind;
    char victim[24];
    unsigned life;    // Of an actor that runs on a full disk; 0: none, or it has ended by it
    uint64_t last_ms; // Until when it may come to write
};

// Actors that met a full disk as they ran.
struct met {
    unsigned ended, went_on, wrote_nothing;
};

struct chaos {
    struct testbed *bed;
    struct relay *relay; // NULL: not permitted
    struct chaos_permits permits;
    struct chaos_event *events;
    unsigned asked, count, next;   // Events: in all (0: a soak); of this schedule; done of it
    uint64_t entered[PHASE_COUNT]; // When the next event began to wait for its phase
    bool waiting;
    struct undo undo[UNDO_MAX];
    unsigned undo_count;
    uint64_t began_ms, first_ms, event_commits, event_ms, longest_ms;
    unsigned restarts, done[CHAOS_KINDS];
    struct met met;
    uint64_t due_ms[TESTBED_ACTORS_MAX];
    int said[TESTBED_ACTORS_MAX]; // With which code it ended last: said once
    volatile int64_t *clocks;     // One for each actor, in files
    uint64_t steps;
    unsigned epoch_rounds, batch;
    uint64_t seed, soak_until_ms; // 0: no soak
    unsigned soaked;              // Events of schedules that are over
    struct soak soak;
};

static unsigned tests_told; // Lines of TAP so far

static double seconds_of(const struct chaos *self)
{
    return (double)(clock_ms() - self->began_ms) / 1000;
}

// ---- the run's folder ---------------------------------------------------------------------------

static void mount_disk(struct chaos *self, const char *name)
{
    char path[300], options[32];
    snprintf(path, sizeof path, "%s/%s", self->bed->dir, name);
    snprintf(options, sizeof options, "size=%dm", DISK_MIB);
    mkdir(path, 0755);
    if (mount("tmpfs", path, "tmpfs", 0, options) != 0) self->permits.disk = false;
}

// ---- the actors ---------------------------------------------------------------------------------

static void start(struct chaos *self, const char *name)
{
    char preload[320], clock[320];
    const bool is_trainer = strncmp(name, "trainer", 7) == 0;
    const bool serves = strcmp(name, "broker") != 0 && strcmp(name, "coordinator") != 0;
    const char *bind[] = { "--bulk-bind", is_trainer ? RELAY_THERE : RELAY_HERE, NULL };
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/../live/clock.so", self->bed->live);
    snprintf(clock, sizeof clock, "SHOAL_CLOCK=%s/clock-%s", self->bed->dir, name);
    testbed_start_with(
        self->bed, name,
        &(struct testbed_launch){ .args = self->relay && serves ? bind : NULL,
                                  .netns = self->relay && is_trainer ? self->relay->there : 0,
                                  .env = (const char *const[]){ preload, clock, NULL } });
    testbed_actor(self->bed, name)->may_end = true; // We look ourselves why
}

static void make_clock(struct chaos *self, const char *name)
{
    char file[64];
    const int64_t right = 0;
    snprintf(file, sizeof file, "clock-%s", name);
    testbed_write_file(self->bed, file, &right, sizeof right);
}

static void set_clock(struct chaos *self, const char *name, int64_t seconds)
{
    char path[320];
    snprintf(path, sizeof path, "%s/clock-%s", self->bed->dir, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC); // In place: the actor has it mapped
    ensure(fd >= 0 && pwrite(fd, &seconds, sizeof seconds, 0) == sizeof seconds);
    close(fd);
}

static const char *const names[] = { "broker",   "coordinator", "data-provider", "checkpointer",
                                     "witness0", "witness1",    "witness2",      "trainer0",
                                     "trainer1", "trainer2",    "trainer3" };
enum { NAMES = sizeof names / sizeof *names };

static bool is_finished(const struct chaos *self)
{
    return self->bed->news.run.phase == PHASE_FINISHED;
}

// An actor that ends by itself on a full disk ends with EX_IOERR, and its log says that the disk is
// full.
static void judge_end(struct chaos *self, const struct testbed_actor *actor, int code)
{
    for (unsigned i = 0; i < self->undo_count; i++) {
        struct undo *full = &self->undo[i];
        if (full->life != actor->lives || strcmp(full->victim, actor->name) != 0) continue;
        if (code != EX_IOERR ||
            !testbed_log_has(self->bed, actor->name, "no space left on the device", NULL, 0))
            testbed_fail(self->bed,
                         "%s ended with %d on a full disk, not with %d and a line about it",
                         actor->name, code, EX_IOERR);
        full->life = 0;
        self->met.ended++;
    }
}

// As systemd: starts each actor that has ended, unless its exit code says that a restart does not
// help.
static void revive(struct chaos *self, uint64_t now_ms)
{
    for (unsigned i = 0; i < self->bed->actors_count; i++) {
        struct testbed_actor *actor = &self->bed->actors[i];
        if (actor->pid || actor->lives == 0) continue;
        const int code = WIFEXITED(actor->status) ? WEXITSTATUS(actor->status) : 0;
        if (is_finished(self) && testbed_ends_with_run(actor->name)) continue;
        if (code == 64 || code == 77 || code == 78)
            testbed_fail(self->bed, "%s ended with %d, which systemd would not restart",
                         actor->name, code);
        if (!self->due_ms[i]) {
            if (code) judge_end(self, actor, code);
            self->due_ms[i] = now_ms + RESTART_MS;
            if (code && code != self->said[i])
                printf("%7.1f s  %s ended with %d; started again until it stays\n",
                       seconds_of(self), actor->name, code);
            self->said[i] = code;
        } else if (now_ms >= self->due_ms[i]) {
            self->due_ms[i] = 0;
            if (++self->restarts > RESTARTS_MAX + self->soaked)
                testbed_fail(self->bed, "%u deaths: %s does not come back", self->restarts,
                             actor->name);
            start(self, actor->name);
        }
    }
}

// ---- doing and undoing --------------------------------------------------------------------------

// As large as what is on it, or as large as at first.
static void fill_disk(struct chaos *self, const char *name, bool full)
{
    char path[320], options[48];
    struct statvfs disk;
    snprintf(path, sizeof path, "%s/%s", self->bed->dir, name);
    ensure(statvfs(path, &disk) == 0);
    const uint64_t used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize;
    snprintf(options, sizeof options, "size=%" PRIu64,
             full && used ? used
             : full       ? 4096
                          : (uint64_t)DISK_MIB << 20);
    ensure(mount(NULL, path, NULL, MS_REMOUNT, options) == 0);
}

static void set_network(struct chaos *self, enum chaos_kind kind)
{
    static const struct relay_profile profiles[CHAOS_KINDS] = {
        [CHAOS_LOSSY] = { .delay_us = 500, .lost_ppm = 50000 },
        [CHAOS_SLOW] = { .delay_us = 60000, .jitter_us = 20000, .lost_ppm = 5000 },
        [CHAOS_MESSY] = { .delay_us = 2000,
                          .jitter_us = 4000,
                          .twice_ppm = 50000,
                          .flipped_ppm = 10000 },
        [CHAOS_PARTITION] = { .deaf_here = true, .deaf_there = true },
        [CHAOS_ONE_WAY] = { .deaf_there = true },
    };
    if (self->relay) relay_set(self->relay, &profiles[kind]);
}

static void later(struct chaos *self, const struct chaos_event *event, uint64_t now_ms)
{
    ensure(self->undo_count < UNDO_MAX);
    struct undo *undo = &self->undo[self->undo_count++];
    *undo = (struct undo){ .due_ms = now_ms + event->ms, .kind = event->kind };
    if (event->runs_on) {
        undo->life = testbed_actor(self->bed, event->victim)->lives;
        undo->last_ms = undo->due_ms + DISK_MORE_MS;
    }
    snprintf(undo->victim, sizeof undo->victim, "%s", event->victim);
}

// True once the victim has met the full disk: it has logged it or ended by it. A victim that has
// written nothing yet gets more time.
static bool is_met(struct chaos *self, const struct undo *full, uint64_t now_ms)
{
    const struct testbed_actor *actor = testbed_actor(self->bed, full->victim);
    if (full->life != actor->lives || !actor->pid)
        return true; // It has ended by it, or by another event
    if (testbed_log_has(self->bed, full->victim, "No space left", NULL, 0)) self->met.went_on++;
    else if (!is_finished(self) && now_ms < full->last_ms) return false;
    else self->met.wrote_nothing++;
    return true;
}

static void undo(struct chaos *self, const struct undo *undo)
{
    struct testbed_actor *actor = undo->victim[0] ? testbed_actor(self->bed, undo->victim) : NULL;
    if (undo->kind == CHAOS_STOP && actor->pid) kill(actor->pid, SIGCONT);
    else if (undo->kind == CHAOS_DISK_FULL) fill_disk(self, undo->victim, false);
    else if (undo->kind != CHAOS_STOP) set_network(self, CHAOS_KILL); // None
}

static void undo_due(struct chaos *self, uint64_t now_ms)
{
    for (unsigned i = 0; i < self->undo_count;) {
        struct undo *due = &self->undo[i];
        if (due->due_ms <= now_ms && due->life && !is_met(self, due, now_ms))
            due->due_ms = now_ms + DISK_LOOK_MS;
        if (due->due_ms > now_ms) {
            i++;
            continue;
        }
        undo(self, due);
        self->undo[i] = self->undo[--self->undo_count];
    }
}

static void act(struct chaos *self, const struct chaos_event *event, uint64_t now_ms)
{
    struct testbed_actor *actor = event->victim[0] ? testbed_actor(self->bed, event->victim) : NULL;
    char text[120];
    chaos_event_text(event, text);
    printf("%7.1f s  commit %-4" PRIu64 " %s\n", seconds_of(self), self->bed->news.commits, text);
    fflush(stdout);
    self->done[event->kind]++;
    if (event->ms) later(self, event, now_ms);
    switch (event->kind) {
    case CHAOS_CLOCK:
        set_clock(self, event->victim, event->seconds);
        if (actor->pid) kill(actor->pid, SIGKILL);
        break;
    case CHAOS_KILL:
        if (actor->pid) kill(actor->pid, SIGKILL);
        break;
    case CHAOS_STOP:
        if (actor->pid) kill(actor->pid, SIGSTOP);
        break;
    case CHAOS_TERM:
        if (actor->pid) kill(actor->pid, SIGTERM);
        break;
    case CHAOS_DISK_FULL: // Killed, it has to write at once
        fill_disk(self, event->victim, true);
        if (actor->pid && !event->runs_on) kill(actor->pid, SIGKILL);
        break;
    default: set_network(self, event->kind);
    }
}

// The event that is next, once its commit has come and then its phase is entered.
static void act_if_due(struct chaos *self, uint64_t now_ms)
{
    const struct testbed_news *news = &self->bed->news;
    if (is_finished(self) && self->next < self->count) {
        printf("%7.1f s  the run is over before %u events\n", seconds_of(self),
               self->count - self->next);
        self->count = self->next;
    }
    if (self->next == self->count || news->commits < self->events[self->next].step) return;
    if (!self->waiting) memcpy(self->entered, news->entered, sizeof self->entered);
    self->waiting = true;
    const struct chaos_event *event = &self->events[self->next];
    if (news->entered[event->phase] == self->entered[event->phase]) return;
    if (event->victim[0] && !testbed_actor(self->bed, event->victim)->pid) return; // Back soon
    self->waiting = false;
    self->next++;
    self->event_commits = news->commits;
    self->event_ms = now_ms;
    act(self, event, now_ms);
}

// ---- the loop -----------------------------------------------------------------------------------

// Its events go on until its time is up: one schedule after the other.
static void soak_on(struct chaos *self, uint64_t now_ms)
{
    if (now_ms >= self->soak_until_ms) {
        self->count = self->next;
    } else if (self->next == self->count) {
        const uint64_t from = self->bed->news.commits;
        self->soaked += self->count;
        self->count = CHAOS_EVENTS_MAX;
        self->next = 0;
        schedule_draw(self->seed++, self->count, self->count * SOAK_EVENT_ROUNDS, &self->permits,
                      self->events);
        for (unsigned i = 0; i < self->count; i++) self->events[i].step += from;
    }
    soak_watch(&self->soak, self->bed, self->soaked + self->next, self->restarts);
}

static bool is_over(const struct chaos *self)
{
    return (self->soak_until_ms ? clock_ms() >= self->soak_until_ms : is_finished(self)) &&
           self->next == self->count && self->undo_count == 0;
}

static bool turn(struct testbed *bed, const void *arg)
{
    struct chaos *self = (struct chaos *)(uintptr_t)arg;
    const uint64_t now_ms = clock_ms();
    if (!self->first_ms && bed->news.commits > 0) self->first_ms = now_ms;
    if (self->event_ms && bed->news.commits > self->event_commits) {
        if (now_ms - self->event_ms > self->longest_ms) self->longest_ms = now_ms - self->event_ms;
        self->event_ms = 0;
    }
    if (self->soak_until_ms) soak_on(self, now_ms);
    act_if_due(self, now_ms);
    undo_due(self, now_ms);
    revive(self, now_ms);
    return is_over(self);
}

static uint64_t due_in_ms(const struct chaos *self)
{
    uint64_t now_ms = clock_ms(), due_ms = now_ms + 1000;
    for (unsigned i = 0; i < self->undo_count; i++)
        if (self->undo[i].due_ms < due_ms) due_ms = self->undo[i].due_ms;
    for (unsigned i = 0; i < TESTBED_ACTORS_MAX; i++)
        if (self->due_ms[i] && self->due_ms[i] < due_ms) due_ms = self->due_ms[i];
    return due_ms > now_ms ? due_ms - now_ms : 0;
}

// An actor that should run is down, or does not come up within the time of the wait.
static bool is_down(struct testbed *bed, const void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < bed->actors_count; i++)
        if (!bed->actors[i].pid && !testbed_ends_with_run(bed->actors[i].name)) return true;
    return false;
}

static const char *const disks[] = { "coordinator", "checkpointer", "trainer1" };

static void begin(struct chaos *self)
{
    static struct demo_setup setup;
    struct testbed *bed = self->bed =
        testbed_new(&(struct testbed_options){ .run_id = "demo",
                                               .host = self->relay ? RELAY_HERE : "127.0.0.1",
                                               .trainers = TRAINERS,
                                               .witnesses = WITNESSES,
                                               .min_clients = 1,
                                               .init_min_clients = TRAINERS,
                                               .epoch_rounds = self->epoch_rounds,
                                               .total_steps = (unsigned)self->steps,
                                               .train_s = 6,
                                               .witness_s = 3,
                                               .lease_s = 4,
                                               .warmup_s = 10,
                                               .cooldown_s = 10 });
    demo_bed_set_up(bed, &setup);
    // Beyond its schedule a run learns at rate 0: all results are the same then, and nothing grows.
    demo_bed_edit(bed, "model.LLM.lr_schedule.Linear", "total_steps", "%u",
                  bed->options.total_steps);
    self->batch = (unsigned)setup.config.batch_end;
    for (int i = 0; i < 3 && self->permits.disk; i++) mount_disk(self, disks[i]);
    self->began_ms = clock_ms();
    for (unsigned i = 0; i < NAMES; i++) make_clock(self, names[i]), start(self, names[i]);
}

static void end(struct chaos *self)
{
    for (int i = 0; i < 3 && self->permits.disk; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", self->bed->dir, disks[i]);
        umount2(path, MNT_DETACH);
    }
    testbed_destroy(&self->bed);
}

// Committed samples a second, from the first commit to the last. Everything is checked on the way.
static double run(struct chaos *self, const char *title)
{
    begin(self);
    struct testbed *bed = self->bed;
    printf("%s: %" PRIu64 " rounds of %u samples, in %s\n", title, self->steps, self->batch,
           bed->dir);
    while (!testbed_wait(bed, turn, self, due_in_ms(self)))
        if (clock_ms() - self->began_ms > RUN_MS_MAX)
            testbed_fail(bed, "not finished within %d s, %u of %u events done", RUN_MS_MAX / 1000,
                         self->next, self->count);
    const double seconds = (double)(clock_ms() - self->first_ms) / 1000;
    while (testbed_wait(bed, is_down, self, REAPED_MS))
        testbed_wait(bed, turn, self, due_in_ms(self));
    struct testbed_end done = testbed_finish(bed);
    const double goodput = (double)done.ledger.samples / seconds;
    printf("%s: finished after %.1f s, %" PRIu64 " samples, %.1f samples/s; replicas, ledger and "
           "checkpoint agree\n",
           title, seconds, done.ledger.samples, goodput);
    end(self);
    return goodput;
}

// Two ends of epochs, undisturbed, and a commit of the epoch after: so that the digest on record
// was reported by trainers that trained on it.
static bool is_calm(struct testbed *bed, const void *arg)
{
    struct chaos *self = (struct chaos *)(uintptr_t)arg;
    turn(bed, self);
    return !is_down(bed, self) &&
           bed->news.entered[PHASE_COOLDOWN] >= self->entered[PHASE_COOLDOWN] + 2 &&
           bed->news.run.phase == PHASE_TRAIN &&
           bed->news.commits > self->soak.cooldown_commits + 2;
}

static bool soak(struct chaos *self, uint64_t seconds)
{
    begin(self);
    struct testbed *bed = self->bed;
    soak_begin(&self->soak, bed, &(struct soak_limits){ .patience_s = 120, .ledger_bytes = 2048 });
    self->soak_until_ms = self->soak.began_ms + 1000 * seconds;
    printf("soak: %" PRIu64 " s, an event every %d commits, in %s\n", seconds, SOAK_EVENT_ROUNDS,
           bed->dir);
    while (!testbed_wait(bed, turn, self, due_in_ms(self))) continue;
    memcpy(self->entered, bed->news.entered, sizeof self->entered);
    while (!testbed_wait(bed, is_calm, self, due_in_ms(self))) continue;
    struct testbed_end done = testbed_stop(bed);
    soak_judge(&self->soak, bed);
    const unsigned events = self->soaked + self->next;
    printf("%sok %u - %" PRIu64 " s, %u events, %u started again, %" PRIu64
           " commits: one digest at every step, "
           "ledger and checkpoint agree, nothing grows\n",
           events ? "" : "not ", ++tests_told, seconds, events, self->restarts,
           done.ledger.commits);
    end(self);
    return events > 0;
}

// A mount namespace of our own, so that nothing is left behind.
static bool may_mount(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void print_plan(const struct chaos *self)
{
    for (unsigned i = 0; i < self->count; i++) {
        char text[120];
        chaos_event_text(&self->events[i], text);
        printf("commit %-4" PRIu64 " %s\n", self->events[i].step, text);
    }
}

static bool report(const struct chaos *self, double calm, double wild)
{
    printf("\n%u events:", self->next);
    for (unsigned k = 0; k < CHAOS_KINDS; k++)
        if (self->done[k]) printf("  %s %u", chaos_kind_name((enum chaos_kind)k), self->done[k]);
    printf("\n%u processes were started again; the longest wait for a commit after an event was "
           "%.1f s\n",
           self->restarts, (double)self->longest_ms / 1000);
    printf("actors on a full disk: %u ended by it, %u went on and said so, %u had nothing to "
           "write\n",
           self->met.ended, self->met.went_on, self->met.wrote_nothing);
    if (self->relay) {
        const struct relay_counts n = relay_count(self->relay);
        printf("relay: %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64 " twice, %" PRIu64
               " with a bit flipped, %" PRIu64 " overtook\n",
               n.packets, n.lost, n.twice, n.flipped, n.overtook);
    }
    printf("goodput: %.1f of %.1f samples/s, %.0f %%\n", wild, calm, 100 * wild / calm);
    const bool all = self->next == self->asked,
               met = self->met.ended + self->met.went_on > 0 || self->met.wrote_nothing == 0;
    printf(
        "%sok %u - %u of %u events%s, and the run ends with one digest at every step, ledger and "
        "checkpoint included\n",
        all && met ? "" : "not ", ++tests_told, self->next, self->asked,
        met ? "" : ", and no full disk was met");
    return all && met;
}

static void leave_out(const char *what, const char *why)
{
    printf("ok %u - chaos of %s # SKIP %s\n", ++tests_told, what, why);
}

static uint64_t number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
{
    char *end;
    const char *text = getenv(name);
    const uint64_t value = text && *text ? strtoull(text, &end, 10) : otherwise;
    if (text && *text && (*end || value < least || value > most)) {
        fprintf(stderr, "chaos: %s=%s: a number from %" PRIu64 " to %" PRIu64 "\n", name, text,
                least, most);
        exit(64);
    }
    return value;
}

int main(int argc, char **argv)
{
    static struct chaos calm, wild;
    static struct chaos_event events[CHAOS_EVENTS_MAX];
    static struct relay relay;
    const char *why = "";
    const bool plan = argc > 1 && strcmp(argv[1], "--plan") == 0;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : number("SEED", 1, 0, UINT64_MAX);
    wild.steps = calm.steps = number("STEPS", 150, 24, TESTBED_STEPS_MAX - 1);
    wild.epoch_rounds = calm.epoch_rounds = 6;
    const uint64_t soak_s = number("SOAK", 0, 300, 86400);
    wild.count = (unsigned)number("EVENTS", 30, 1, CHAOS_EVENTS_MAX);
    wild.events = events;
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct chaos_permits permits = { .network = true, .disk = true };
    if (!plan) {
        permits.network = relay_open(&relay, seed, &why);
        if (!permits.network) leave_out("the network", why);
        permits.disk = may_mount();
        if (!permits.disk) leave_out("full disks", "mounting is not permitted here (needs root)");
    }
    if (permits.network) calm.relay = wild.relay = &relay;
    calm.permits = wild.permits = permits;
    if (soak_s) {
        wild.seed = seed;
        wild.steps = SOAK_STEPS, wild.epoch_rounds = SOAK_ROUNDS, wild.count = 0;
        const bool held = soak(&wild, soak_s);
        relay_close(&relay);
        return held ? 0 : 1;
    }
    // Room at the end: each phase is entered once more after the last event has come up.
    wild.asked = wild.count;
    schedule_draw(seed, wild.count, wild.steps - ROOM_EPOCHS * wild.epoch_rounds, &permits, events);
    printf("SEED=%" PRIu64 " EVENTS=%u STEPS=%" PRIu64 "\n", seed, wild.count, wild.steps);
    if (plan) {
        print_plan(&wild);
        return 0;
    }
    const double goodput = run(&calm, "undisturbed");
    const bool held = report(&wild, goodput, run(&wild, "disturbed"));
    relay_close(&relay);
    return held ? 0 : 1;
}
