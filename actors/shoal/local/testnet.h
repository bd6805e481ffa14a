#pragma once
// testnet -- one whole run on this machine: broker, coordinator, data-provider, checkpointer, parameter servers and
// some trainers as child processes, watched by one loop. For `shoal testnet`, `shoal demo` and `shoal up`.
//
//     ┌ wait: news, SIGCHLD, SIGINT, SIGTERM, SIGHUP, a child is due to start        ┐
//     │ reap and restart children; hand every broadcast to the caller                │ testnet_turn
//     └──────────────────────────────────────────────────────────────────────────────┘
//
// The keys are made here. Without own_keys they are NOT FOR REAL RUNS: trainer i's secret is the
// number i, as in Psyche's local testnet. So the members, and the assignment of data to them, are
// the same in every run.
//
//     <state_dir>/keys/*.key   <state_dir>/<name>/  each child's own   <state_dir>/checkpoints/
//
// A second start with the same state_dir goes on where the first one stopped.

#include "actors/shoal/local/fleet.h"
#include "actors/shoal/local/way_in.h"
#include "actors/shoal/run/run_view.h"
#include "common/actor/tap.h"
#include "common/config/run_config.h"

enum {
    TESTNET_TRAINERS_MAX = 256,
    TESTNET_STANDBY_MAX = 8,
    TESTNET_SERVERS_MAX = 63 + TESTNET_STANDBY_MAX
};

// Called for every broadcast after the view has heard it; `heard` is a mask of enum view_heard.
typedef void testnet_hear(void *arg, const struct msg *msg, unsigned heard);

struct testnet_options {
    const char *config_dir; // Holds state.toml, and data.toml if the data comes from a Server
    const char *state_dir,
        *log_dir;         // Made if missing, folders above too; log_dir NULL: <state_dir>/logs
    uint32_t trainers;    // 1..TESTNET_TRAINERS_MAX
    uint32_t standby;     // 0..TESTNET_STANDBY_MAX: parameter servers that the run has no place for
    uint32_t late;        // Of the trainers, the last so many wait for testnet_start_late
    struct way_in way_in; // Its `members` is filled in by testnet_start
    bool own_keys;        // Secrets of random bytes: a run for others, too
    const char *threads, *micro_batch; // Of each trainer; NULL: its default
    const char *label; // The trainers are named label-1, label-2 ..; NULL: by key alone
    bool debug;        // Children log every message
    testnet_hear *hear;
    fleet_say *say;
    void *arg;
};

struct testnet {
    struct testnet_options options;
    struct run_config config;
    char state_dir[PATH_MAX], log_dir[PATH_MAX], state_toml[PATH_MAX], data_toml[PATH_MAX],
        ticket_path[PATH_MAX];
    struct ticket ticket; // Of the broker; also in <state_dir>/ticket, for tools
    struct fleet fleet;
    struct child *coordinator, *trainers; // trainers[0 .. options.trainers - 1]
    struct child *servers;                // servers[0 .. servers_count - 1]
    uint32_t servers_count;
    uint32_t members_from; // Index in the fleet: before it are broker and coordinator
    struct key keys[TESTNET_TRAINERS_MAX]; // Of the trainers
    struct key server_keys[TESTNET_SERVERS_MAX];
    struct tap *tap;
    struct run_view *view;
    int lock; // Of the state's folder: no other process runs these actors
    int signals;
    bool asked_to_stop;     // SIGINT, SIGTERM or SIGHUP came
    bool insists;           // SIGINT or SIGTERM came after that
    uint64_t order_number;  // The next order must have this number or a higher one
    struct identity *owner; // The coordinator's key, once testnet_become_owner has read it
};

// Checks the configuration, makes keys and folders, starts all processes. The caller calls
// testnet_stop after a fault, too.
int testnet_start(struct testnet *self, const struct testnet_options *options, struct why *why);

// Of broker and coordinator: the one that has ended and is not started again. NULL: neither.
static inline const struct child *testnet_gone(const struct testnet *self)
{
    const struct child *broker = &self->fleet.children[0];
    return child_is_gone(broker)              ? broker
           : child_is_gone(self->coordinator) ? self->coordinator
                                              : NULL;
}

// Starts the trainers that were left out at the start.
int testnet_start_late(struct testnet *self, struct why *why);

// One turn of the loop: waits until something happens or `until_ms`. A fault: a child cannot be kept, or the broker or
// the coordinator was told to end by somebody else. Once asked_to_stop is set, the second is no fault: the signal may
// have gone to all processes.
int testnet_turn(struct testnet *self, uint64_t until_ms, struct why *why);

// From now on the news come by a new observer (tap.h) that has the coordinator's key, so that orders can be mailed. It
// takes the owner's name at the broker from an earlier observer, and `shoal pause` and the like take it from this one.
int testnet_become_owner(struct testnet *self, struct why *why);

// From now on the news come by an observer with a name of its own, which nobody takes, as they do after the start.
int testnet_become_observer(struct testnet *self, struct why *why);

// Stops all processes: members first, the coordinator and the broker last. May be called twice, and
// after a failed start.
void testnet_stop(struct testnet *self);

// Frees what is left; the view is readable until then.
void testnet_free(struct testnet *self);

// The last path component of a checkpoint as a path: <state_dir>/checkpoints/<name>.
void testnet_checkpoint_path(const struct testnet *self, const char *name, char *ret_path,
                             size_t max);
