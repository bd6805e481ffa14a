#pragma once
// quota -- gives a child a fraction of a processor, as a control group with cpu.max does, but needs no permission to
// make one: the child is stopped (SIGSTOP) when its threads have used up what it may have by now, and goes on (SIGCONT)
// once time has caught up.
//
//     quota_tick (&quota, child->pid, now) ─▶ when it is due again ─▶ ...
//     quota_lift (&quota, child->pid)         it goes on, and has no quota any more
//
// It is due again some 10 ms later; for a stopped child, when the child may go on, which may be much later. Time that a
// child does not use is kept for a tenth of a second at most. The caller's loop does it all: nothing here waits. One
// thread.

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct quota {
    double fraction;    // Of one processor; 0: no quota
    pid_t pid;          // The process that the numbers below are of; 0: none yet
    uint64_t looked_us; // When it was looked at last
    uint64_t spent_us;  // Processor time of the process by then
    double left_us;     // What it may use; below 0: it has had more
    bool stopped;
};

// `pid` 0: the child does not run. A new process starts with nothing used. Returns when to call again, in milliseconds
// of the clock (common/base/clock.h); UINT64_MAX: there is no quota, or no process.
uint64_t quota_tick(struct quota *self, pid_t pid, uint64_t now_us);

void quota_lift(struct quota *self, pid_t pid);
