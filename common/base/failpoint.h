#pragma once
// failpoint -- a named place where a test may kill, stop or delay the process, or let a call fail.
//
//     if (failpoint("journal_sync") < 0 || fdatasync(fd) < 0) ...     // Fails as the call would
//     failpoint("turn_committed");                                    // Nothing to fail
//
// Returns 0, or -1 with errno set, as a system call does. What is at the place is decided by
// failpoint_reached, which no program defines: the library that tests load with LD_PRELOAD does
// (tests/live/failpoint.c, which also says how to ask for something). Without it a failpoint is a
// comparison of one address with NULL, and always 0. So the programs that tests break are those
// that are installed. The names: tests/live/failpoints.def.

int failpoint_reached(const char *name) __attribute__((weak));

static inline int failpoint(const char *name)
{
    return failpoint_reached ? failpoint_reached(name) : 0;
}
