#pragma once
// testbed -- a whole run as real processes on this machine, and what a test may do to them.
//
//     struct testbed *bed = testbed_new(&(struct testbed_options){ .trainers = 3, .total_steps = 12 });
//     testbed_start_all(bed);
//     testbed_await_step(bed, 5);
//     testbed_signal(bed, "coordinator", SIGKILL);
//     testbed_start(bed, "coordinator");
//     struct testbed_end end = testbed_finish(bed);       // Finished, stopped, ledger and digests checked
//     testbed_destroy(&bed);           // Also after a failed assertion: testbed_teardown
//
// A directory of its own under $TMPDIR holds keys, a model of a few thousand parameters, a text of
// a few hundred samples, state.toml, data.toml and, for each actor NAME, NAME.key, NAME/ (its
// state) and NAME.log. Actors are "broker", "coordinator", "data-provider", "checkpointer",
// "trainer0" .., "parameter-server0" .., "witness0" .. They die with the test (PR_SET_PDEATHSIG), whatever becomes of it.
//
// Nothing here sleeps: every wait is for the run's own news, for a line in a log, for the end of a
// process, or for a stated instant, and each has a time limit that fails the test and shows the
// logs. An actor that ends without being asked to fails the test as well, and so does a replica
// whose digest of a step differs from another replica's.
//
// LIVE_KEEP=1 leaves the directory. LIVE_LONG=1 asks for the long forms. LIVE_SEED=n for other
// instants.

#include "common/actor/tap.h"
#include "common/base/hash.h"
#include "tests/live/ledger_check.h"
#include <sys/types.h>

enum { TESTBED_ACTORS_MAX = 24, TESTBED_STEPS_MAX = 4096, TESTBED_WAIT_MS = 30000 };

// How the run trains: what state.toml says of it.
enum testbed_strategy {
    TESTBED_DISTRO,
    TESTBED_ALLREDUCE,
    TESTBED_SHARDED,
    TESTBED_SERVER,
    TESTBED_ASYNC, // Its servers are not in step
    TESTBED_STRATEGIES
};
extern const char
    *const testbed_strategies[TESTBED_STRATEGIES]; // As strategy.kind names them; or "async"

static inline bool testbed_has_servers(enum testbed_strategy strategy)
{
    return strategy == TESTBED_SERVER || strategy == TESTBED_ASYNC;
}

// Zero means the default in brackets.
struct testbed_options {
    enum testbed_strategy strategy;     // distro
    unsigned lanes;                     // 8; of allreduce
    unsigned servers;                   // 2; of server and async
    const char *run_id;                 // "live"
    unsigned trainers;                  // 3; init_min_clients is as many
    unsigned witnesses;                 // 0; else standalone witness actors
    unsigned min_clients;               // 1
    unsigned init_min_clients;          // As many as trainers
    unsigned epoch_rounds, total_steps; // 8, 16
    unsigned first_step;                // 1: progress.step, with the parameters in the folder ...
    const char *genesis;                // "model"
    uint64_t first_sample;              // 0: progress.epoch_start_data_index
    unsigned batch;                     // 8 samples a round
    unsigned snapshot_rounds;           // 4
    unsigned witness_nodes;             // 0: all
    bool no_checkpointer;
    double train_s, witness_s;     // 3, 1; of allreduce: train_s bounds a step
    double least_s;                // train_s: min_round_train_time, so that no result is late
    double lease_s;                // 2
    double cooldown_s, warmup_s;   // 5, 5
    unsigned map_mib_max;          // 64
    unsigned threads;              // 1, of every trainer
    const char *host;              // "127.0.0.1": where the broker listens
    const char *admit;             // "open": the broker's --admit
    bool owned;                    // The broker knows the coordinator's key as its owner's
    bool poisoned;                 // The genesis model is finite, and no loss of it is
    unsigned verification_percent; // 0
    bool full_values;              // Results send values, not only signs
};

struct testbed_actor {
    char name[24];
    char log[320];
    pid_t pid;         // 0: not running
    int pidfd, status; // Status: as waitpid has it, of the last life
    bool may_end;      // Its end is no surprise
    unsigned lives;
    int64_t log_mark; // Where its newest life begins in the log
};

// What the run has said so far.
struct testbed_news {
    bool has_run;
    struct wire_run run; // The newest RUN
    uint64_t rounds;     // Number of the newest ROUND
    uint64_t commits;    // Steps that COMMIT news have named, as a count: newest step + 1
    // How often a RUN said that phase when the one before did not. Rounds: also a COMMIT and the next ROUND, between
    // which no RUN need come.
    uint64_t entered[PHASE_COUNT];
    uint64_t incarnation; // Of the coordinator
    uint64_t frames;
    uint64_t window;                      // Number of the newest WINDOW, or GROUP
    struct key group[TESTBED_ACTORS_MAX]; // Of that
    unsigned group_count;
    struct key members[TESTBED_ACTORS_MAX]; // By index in the roster
    struct hash digests[TESTBED_STEPS_MAX]; // By step, modulo: as replicas told it
    uint64_t told[TESTBED_STEPS_MAX];       // 1 + the step that stands there
};

struct testbed {
    struct testbed_options options;
    char dir[256], bin[256], live[256];
    unsigned port;
    struct ticket ticket; // Of the broker, without an invitation
    struct tap *tap;
    struct identity *observer; // The tap's
    int events, inotify;
    struct testbed_actor actors[TESTBED_ACTORS_MAX];
    unsigned actors_count;
    struct testbed_news news;
};

// How to start an actor otherwise than usual. Lists end with NULL, or are NULL.
struct testbed_launch {
    const char *const *args; // Behind the usual ones
    const char *const *env;  // "NAME=value", beside the environment of the test
    int netns;               // A network namespace to start it in; 0: the test's own
    bool bare;               // Only `args`, none of the usual ones
    const char *program;     // Beside the tests, instead of the usual one
};

struct testbed *testbed_new(const struct testbed_options *options);
void testbed_destroy(struct testbed **self_p); // Kills, removes; NULL is allowed

// For cmocka: *state is a struct testbed * or NULL.
int testbed_teardown(void **state);
#define TESTBED_TEST(name) TEST_WITH(name, NULL, testbed_teardown)

// ---- actors -------------------------------------------------------------------------------------

struct testbed_actor *testbed_actor(struct testbed *self,
                                    const char *name); // Made if there is none
void testbed_start(struct testbed *self, const char *name);
void testbed_start_with(struct testbed *self, const char *name,
                        const struct testbed_launch *launch);
void testbed_start_all(struct testbed *self); // In the order of the drawing: post office first
const char *testbed_trainer(unsigned index);  // "trainer3"
const char *testbed_server(unsigned index);   // "parameter-server1"

// Whether the group of the newest window has a process with this actor's key. Just after its death
// that may be the dead one.
bool testbed_in_group(const struct testbed *self, const char *name);

// Whether an actor of this name serves no peer once the run is finished, and ends with it.
bool testbed_ends_with_run(const char *name);

// Sends the signal; after SIGKILL and SIGTERM waits for the end, which then is no surprise.
void testbed_signal(struct testbed *self, const char *name, int signal);
int testbed_await_end(struct testbed *self, const char *name, uint64_t timeout_ms); // Its exit code

// ---- waiting ------------------------------------------------------------------------------------

// True once what is awaited has come.
typedef bool testbed_until(struct testbed *self, const void *arg);

// False when the time is up; never fails the test because of it.
bool testbed_wait(struct testbed *self, testbed_until *until, const void *arg, uint64_t timeout_ms);
void testbed_await(struct testbed *self, testbed_until *until, const void *arg, uint64_t timeout_ms,
                   const char *what);

void testbed_await_step(struct testbed *self, uint64_t step);   // At least this many commits
void testbed_await_epoch(struct testbed *self, uint64_t epoch); // At least
void testbed_await_phase(struct testbed *self, uint8_t phase);  // It is there now, or comes next
void testbed_await_log(struct testbed *self, const char *name, const char *text,
                       uint64_t timeout_ms);
void testbed_pass_ms(struct testbed *self, uint64_t ms); // Listens on until that instant

// Whether the log of the newest life has it; ret_rest gets what follows on that line (may be NULL).
bool testbed_log_has(struct testbed *self, const char *name, const char *text, char *ret_rest,
                     size_t max);

// ---- the end ------------------------------------------------------------------------------------

struct testbed_end {
    struct hash digest; // Of all replicas
    struct ledger_report ledger;
};

// Waits for Finished and for every running replica's last word, stops all actors with SIGTERM (exit
// 0 each), and checks the ledger, the digests and the last checkpoint against each other.
struct testbed_end testbed_finish(struct testbed *self);

// The same for a run that goes on: what it has come to is checked as far as it has come.
struct testbed_end testbed_stop(struct testbed *self);

// Stops everything at once, with SIGKILL.
void testbed_kill_all(struct testbed *self);

// Fails the test with the logs' last lines.
void testbed_fail(struct testbed *self, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

bool testbed_is_long(void);            // LIVE_LONG
uint64_t testbed_draw(uint64_t *seed); // SplitMix64
uint64_t testbed_seed(void);           // LIVE_SEED, which tests/run.sh sets, or 1; printed

// ---- of testbed_files.c: what lies in the directory ---------------------------------------------

void testbed_write_all(struct testbed *self); // Model, data, state.toml, data.toml
void testbed_write_data(
    struct testbed *self); // The text and its manifest, the same bytes each time
void testbed_write_key(struct testbed *self,
                       const char *name);            // NAME.key, always the same for a name
struct identity *testbed_identity(const char *name); // The same, to sign with it
void testbed_write_state(struct testbed *self, const char *file); // From the options
void testbed_write_file(struct testbed *self, const char *file, const void *bytes, size_t count);
void testbed_read_file(const char *path, char *ret_text, size_t max); // Its end, if it is longer
