#pragma once
// fleet -- child processes under supervision.
//
//     start ──▶ running ──died by a signal, or with a code other than 0, 64, 65, 77, 78──▶ due ──▶ running
//                  └──ended with 0──▶ ended                                    (0.2 s, doubling to 5 s)
//
// A restart cures no code of 64 (usage), 65 (files that are damaged or of another run), 77 (permission)
// or 78 (configuration), nor a sixth quick death in a row: fleet_reap fails and quotes the last line of
// the child's log. The second quick death and the next ones are told with that line.
//
// Each child writes to a log of its own (common/base/process.h says how a child is started). One
// thread; SIGCHLD belongs to the caller's loop.

#include "common/base/process.h"
#include <limits.h>
#include <stdbool.h>

enum { FLEET_MAX = 336, FLEET_NAME_MAX = 47 };

struct child {
    char name[FLEET_NAME_MAX + 1]; // "trainer-2"
    struct arguments arguments;
    char log[PATH_MAX];
    pid_t pid;                   // 0: not running
    uint64_t started_ms, due_ms; // due_ms 0: nothing is planned
    uint32_t quick_deaths;
    int ended_with;      // The code of its newest failure; -1: a signal; 0: none yet
    bool killed;         // By us: does not count as a quick death
    uint64_t peak_bytes; // The most memory that one of its processes has had; 0: none has ended yet
};

// It has ended, and is not started again: somebody else told it to end, or it cannot be kept.
static inline bool child_is_gone(const struct child *child)
{
    return !child->pid && !child->due_ms;
}

// Gets a line for each end of a child; none for one that fleet_reap returns as a fault, nor while the fleet stops.
typedef void fleet_say(void *arg, const char *line);

struct fleet {
    struct child *children; // FLEET_MAX of them
    uint32_t count;
    char dir[PATH_MAX]; // Of the programs
    fleet_say *say;
    void *arg;
    bool stopping;
};

// Finds the folder of our own program, where the others lie too.
int fleet_init(struct fleet *self, fleet_say *say, void *arg, struct why *why);

// A new child, not yet started; its arguments may be added to.
struct child *fleet_add(struct fleet *self, const char *name, const char *program,
                        const char *log_dir);

int fleet_start(struct child *child, struct why *why);

// After SIGCHLD: reaps the children that ended and plans their restart. A fault: a child cannot be
// kept alive.
int fleet_reap(struct fleet *self, struct why *why);
// Starts each child that is due. A fault: one cannot be started, and is not tried again.
int fleet_tick(struct fleet *self, struct why *why);
uint64_t fleet_due_ms(const struct fleet *self); // UINT64_MAX: no child is due

void fleet_kill(struct child *child); // SIGKILL

// SIGTERM to `from` and all after it, then waits. SIGKILL to those that are left after five seconds, or
// at once when `signals`, a signalfd that does not block, has another SIGINT or SIGTERM. -1: none.
void fleet_stop(struct fleet *self, uint32_t from, int signals);
void fleet_free(struct fleet *self); // After fleet_stop (self, 0, ..)

// The last line a child wrote to its log, at most `max` bytes with the zero; "" if there is none.
void fleet_last_words(const struct child *child, char *text, size_t max);
