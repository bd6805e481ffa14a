// cell -- the children of a cell are set up so that the wanted phase stays open, then the victim is
// hit.

#include "common/base/clock.h"
#include "tests/chaos/alone.h"
#include "tests/chaos/cell.h"
#include "common/base/ensure.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPPED_MS = 10000, CELL_S_MAX = 150, EPOCHS = 2, NEWCOMER_STEP = 4 };

const char *const cell_victims[CELL_VICTIMS] = { "broker",  "coordinator", "data-provider",
                                                 "trainer", "witness",     "checkpointer",
                                                 "server" };
const char *const cell_phases[CELL_PHASES] = { "Waiting",  "Warmup",     "Train",    "Witness",
                                               "Cooldown", "Checkpoint", "Transfer", "Have" };
static const int signals[CELL_SIGNALS] = { SIGKILL, SIGSTOP, SIGTERM };

static const char *hold_transfer_of_rounds(struct testbed *bed);
static const char *hold_transfer_of_windows(struct testbed *bed);
static struct hash digest_of_run(struct testbed *bed, const struct testbed_end *end);
static struct hash digest_of_alone(struct testbed *bed, const struct testbed_end *end);

// What is different in the cells of a strategy.
static const struct kind {
    unsigned phases;      // That it has, as bits
    unsigned witnesses;   // Standalone; 0: nobody votes
    unsigned epoch_steps; // A run has two epochs
    bool has_servers;
    bool dead_trainers_change_it; // The digest
    bool has_no_digest;           // To promise: no two runs have equal bits
    const char *(*hold_transfer)(struct testbed *bed);
    struct hash (*undisturbed)(struct testbed *bed, const struct testbed_end *end);
} kinds[TESTBED_STRATEGIES] = {
    [TESTBED_DISTRO] = { .phases = ~(1u << CELL_HAVE),
                         .witnesses = 3,
                         .epoch_steps = 6,
                         .dead_trainers_change_it = true,
                         .hold_transfer = hold_transfer_of_rounds,
                         .undisturbed = digest_of_run },
    [TESTBED_ALLREDUCE] = { .phases = ~(1u << CELL_WITNESS),
                            .epoch_steps = 60,
                            .hold_transfer = hold_transfer_of_windows,
                            .undisturbed = digest_of_alone },
    [TESTBED_SERVER] = { .phases = ~(1u << CELL_WITNESS),
                         .epoch_steps = 60,
                         .has_servers = true,
                         .hold_transfer = hold_transfer_of_windows,
                         .undisturbed = digest_of_alone },
    [TESTBED_ASYNC] = { .phases = ~(1u << CELL_WITNESS),
                        .epoch_steps = 60,
                        .has_servers = true,
                        .has_no_digest = true,
                        .hold_transfer = hold_transfer_of_windows,
                        .undisturbed = digest_of_run },
    [TESTBED_SHARDED] = { .phases = ~(1u << CELL_WITNESS),
                          .epoch_steps = 60,
                          .hold_transfer = hold_transfer_of_windows,
                          .undisturbed = digest_of_alone },
};

static const struct kind *kind_of(const struct cell *cell) { return &kinds[cell->strategy]; }

bool cell_is_left_out(const struct cell *cell)
{
    const bool is_witness = strcmp(cell_victims[cell->victim], "witness") == 0;
    const bool is_server = strcmp(cell_victims[cell->victim], "server") == 0;
    return !(kind_of(cell)->phases & 1u << cell->phase) ||
           (is_witness && kind_of(cell)->witnesses == 0) ||
           (is_server && !kind_of(cell)->has_servers);
}

struct cell cell_at(enum testbed_strategy strategy, unsigned index)
{
    return (struct cell){ .strategy = strategy,
                          .victim = index / CELL_SIGNALS % CELL_VICTIMS,
                          .signal = signals[index % CELL_SIGNALS],
                          .phase = (enum cell_phase)(index / CELL_SIGNALS / CELL_VICTIMS) };
}

void cell_name(const struct cell *cell, char ret_name[64])
{
    if (cell->signal == 0) snprintf(ret_name, 64, "undisturbed %s", cell_phases[cell->phase]);
    else
        snprintf(ret_name, 64, "%s %s %s", cell_victims[cell->victim], cell_phases[cell->phase],
                 cell->signal == SIGKILL   ? "SIGKILL"
                 : cell->signal == SIGSTOP ? "SIGSTOP"
                                           : "SIGTERM");
}

static bool is_trainer(const struct cell *cell)
{
    return strcmp(cell_victims[cell->victim], "trainer") == 0;
}

bool cell_promises_digest(const struct cell *cell)
{
    if (kind_of(cell)->has_no_digest) return false;
    return !kind_of(cell)->dead_trainers_change_it || !is_trainer(cell) || cell->signal == SIGSTOP;
}

// The victim's name in the testbed: never one that holds the phase.
static const char *victim_of(const struct cell *cell)
{
    static const char *const names[CELL_VICTIMS] = { "broker",           "coordinator",
                                                     "data-provider",    "trainer1",
                                                     "witness1",         "checkpointer",
                                                     "parameter-server1" };
    if (is_trainer(cell) && cell->phase == CELL_TRANSFER)
        return "trainer2"; // It receives the model
    return names[cell->victim];
}

// ---- holding a phase ----------------------------------------------------------------------------

static void start_to_stop_at(struct testbed *bed, const char *name, const char *point)
{
    char preload[320], choice[64];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/../live/failpoint.so", bed->live);
    snprintf(choice, sizeof choice, "SHOAL_FAILPOINT=%s:stop", point);
    testbed_start_with(
        bed, name,
        &(struct testbed_launch){ .env = (const char *const[]){ preload, choice, NULL } });
}

// The process logs its stop just before it stops. A SIGCONT in between would be lost, and it would
// stay stopped: so we wait until the kernel says that it is stopped.
static void await_stopped(struct testbed *bed, const char *name)
{
    siginfo_t info;
    testbed_await_log(bed, name, "failpoint.reached", TESTBED_WAIT_MS);
    ensure(waitid(P_PID, (id_t)testbed_actor(bed, name)->pid, &info,
                  WSTOPPED | WEXITED | WNOWAIT) == 0);
}

// Two of the three witnesses decide a round at once; then its COMMIT tells that the phase came.
static bool in_witness(struct testbed *bed, const void *arg)
{
    return bed->news.entered[PHASE_WITNESS] > *(const uint64_t *)arg;
}

static void start_trainers(struct testbed *bed, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) testbed_start(bed, testbed_trainer(i));
}

static const char *hold_at(struct testbed *bed, const char *point)
{
    start_trainers(bed, 0, 2);
    start_to_stop_at(bed, "trainer2", point);
    await_stopped(bed, "trainer2");
    return "trainer2";
}

static void go_on(struct testbed *bed, const char *name) { testbed_signal(bed, name, SIGCONT); }

static const char *hold_transfer_of_rounds(struct testbed *bed)
{
    start_to_stop_at(bed, "trainer0", "learner_train:5"); // So that the epoch does not end
    start_trainers(bed, 1, 2);
    await_stopped(bed, "trainer0");
    testbed_await_step(bed, NEWCOMER_STEP);
    start_to_stop_at(bed, "trainer2", "fetch_stage:1");
    await_stopped(bed, "trainer2");
    return "trainer2";
}

// Who joins windows fetches at the end of the epoch, which waits until it has joined.
static const char *hold_transfer_of_windows(struct testbed *bed)
{
    start_to_stop_at(bed, "trainer0", "learner_train:5");
    start_trainers(bed, 1, 2);
    await_stopped(bed, "trainer0");
    start_to_stop_at(bed, "trainer2", "fetch_stage:1");
    testbed_await_log(bed, "trainer2", "member.admitted", TESTBED_WAIT_MS);
    go_on(bed, "trainer0");
    await_stopped(bed, "trainer2");
    return "trainer2";
}

// Returns the actor that must go on for the phase to end; NULL: none is stopped, trainer2 must be
// started.
static const char *hold(struct testbed *bed, enum cell_phase phase)
{
    const uint64_t witnessed = bed->news.entered[PHASE_WITNESS];
    switch (phase) {
    case CELL_WAITING:
        start_trainers(bed, 0, 2);
        testbed_await_log(bed, "trainer1", "member.admitted", TESTBED_WAIT_MS);
        testbed_await_phase(bed, PHASE_WAITING);
        return NULL;
    case CELL_WARMUP:
        start_trainers(bed, 0, 2);
        start_to_stop_at(bed, "trainer2", "learner_load:1");
        testbed_await_phase(bed, PHASE_WARMUP);
        await_stopped(bed, "trainer2");
        return "trainer2";
    case CELL_TRAIN: return hold_at(bed, "learner_train:3");
    case CELL_HAVE: return hold_at(bed, "learner_trained:3");
    case CELL_WITNESS:
        start_trainers(bed, 0, 3);
        testbed_await_step(bed, 1);
        testbed_signal(bed, "witness0", SIGSTOP);
        testbed_await(bed, in_witness, &witnessed, TESTBED_WAIT_MS, "RoundWitness");
        return "witness0";
    case CELL_COOLDOWN:
    case CELL_CHECKPOINT:
        start_trainers(bed, 0, 3);
        await_stopped(bed, "checkpointer");
        testbed_await_phase(bed, PHASE_COOLDOWN);
        return "checkpointer";
    default: return kinds[bed->options.strategy].hold_transfer(bed);
    }
}

static void let_go(struct testbed *bed, const struct cell *cell, const char *holder)
{
    if (!holder) start_trainers(bed, 2, 3);
    else if (testbed_actor(bed, holder)->pid) go_on(bed, holder);
    if (cell->phase == CELL_TRANSFER) go_on(bed, "trainer0");
}

// ---- hitting ------------------------------------------------------------------------------------

// A stopped process hears SIGTERM once it goes on.
static void ask_to_end(struct testbed *bed, const char *name)
{
    struct testbed_actor *actor = testbed_actor(bed, name);
    actor->may_end = true;
    kill(actor->pid, SIGTERM);
    kill(actor->pid, SIGCONT);
    int code = testbed_await_end(bed, name, TESTBED_WAIT_MS);
    if (code != 0) testbed_fail(bed, "%s answers SIGTERM with exit %d", name, code);
}

static void hit(struct testbed *bed, const char *name, int signal)
{
    if (signal == SIGTERM) ask_to_end(bed, name);
    else testbed_signal(bed, name, signal);
    if (signal != SIGSTOP) testbed_start(bed, name);
}

// Limits are longer than any cell, so that no work is lost because it took long. Where a trainer
// dies, limits are short: the digest may change there, and the others need not wait.
static struct testbed_options options_of(const struct cell *cell)
{
    const bool brief = cell->signal && !cell_promises_digest(cell) && !kind_of(cell)->has_no_digest;
    const double s = brief ? 2 : 30;
    const unsigned steps = kind_of(cell)->epoch_steps;
    return (struct testbed_options){ .strategy = cell->strategy,
                                     .trainers = 3,
                                     .witnesses = kind_of(cell)->witnesses,
                                     .min_clients = 1,
                                     .init_min_clients = cell->phase == CELL_TRANSFER ? 2 : 3,
                                     .snapshot_rounds = 2,
                                     .epoch_rounds = steps,
                                     .total_steps = EPOCHS * steps,
                                     .train_s = s,
                                     .witness_s = s,
                                     .lease_s = brief ? 3 : s,
                                     .warmup_s = brief ? 5 : s,
                                     .cooldown_s = brief ? 5 : s };
}

// Of an undisturbed run: what the others are measured against.
static struct hash digest_of_run(struct testbed *bed, const struct testbed_end *end)
{
    (void)bed;
    return end->digest;
}

static struct hash digest_of_alone(struct testbed *bed, const struct testbed_end *end)
{
    const struct hash alone = alone_digest(bed, bed->options.total_steps);
    if (!hash_equal(&alone, &end->digest))
        testbed_fail(bed, "one trainer alone ends in another state than the undisturbed run");
    return alone;
}

static void run(const struct cell *cell, struct cell_result *ret_result)
{
    const struct testbed_options options = options_of(cell);
    struct testbed *bed = testbed_new(&options);
    const char *point = cell->phase == CELL_COOLDOWN     ? "learner_save:1"
                        : cell->phase == CELL_CHECKPOINT ? "checkpoint_manifest:1"
                                                         : NULL;
    print_message("in %s\n", bed->dir);
    uint64_t began_ms = clock_ms();
    const struct testbed_options whole = bed->options;
    bed->options.trainers = 0; // hold() starts them
    bed->options.no_checkpointer = true;
    testbed_start_all(bed);
    bed->options = whole;
    if (point) start_to_stop_at(bed, "checkpointer", point);
    else testbed_start(bed, "checkpointer");
    testbed_await_log(bed, "checkpointer", "member.admitted", TESTBED_WAIT_MS);
    const char *holder = hold(bed, cell->phase);
    print_message("held in %s at commit %" PRIu64 "\n", cell_phases[cell->phase],
                  bed->news.commits);
    if (cell->signal) hit(bed, victim_of(cell), cell->signal);
    let_go(bed, cell,
           holder && cell->signal == SIGSTOP && strcmp(holder, victim_of(cell)) == 0
               ? "broker" // It runs
               : holder); // The victim itself stays stopped
    if (cell->signal == SIGSTOP) {
        testbed_pass_ms(bed, STOPPED_MS);
        testbed_signal(bed, victim_of(cell), SIGCONT);
    }
    struct testbed_end end = testbed_finish(bed);
    if (!cell->signal) end.digest = kind_of(cell)->undisturbed(bed, &end);
    *ret_result = (struct cell_result){ .digest = end.digest,
                                        .voids = end.ledger.voids + end.ledger.closed,
                                        .partial = end.ledger.partial,
                                        .seconds = (double)(clock_ms() - began_ms) / 1000,
                                        .finished = true };
    testbed_destroy(&bed);
}

struct cell_result cell_run(const struct cell *cell, const char *log)
{
    struct cell_result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(shared != MAP_FAILED);
    const pid_t pid = fork();
    ensure(pid >= 0);
    if (pid == 0) {
        const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fd, 1), dup2(fd, 2);
        alarm(CELL_S_MAX);
        run(cell, shared);
        _exit(0);
    }
    int status;
    ensure(waitpid(pid, &status, 0) == pid);
    struct cell_result result = *shared;
    munmap(shared, sizeof *shared);
    result.finished = result.finished && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return result;
}
