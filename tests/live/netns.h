#pragma once
// netns -- network namespaces for tests that want more than loopback. Needs root; a
// test without it prints so and is skipped.

#include <stdbool.h>
#include <sys/types.h>

// Starts a process that does nothing but live in a new namespace, and dies with the caller. Returns
// a descriptor of the namespace, for setns, or -1; the caller ends and reaps *ret_holder (0: there
// is none).
int netns_hold(pid_t *ret_holder);

// Runs a command line, words parted by blanks, in that namespace; -1: in the caller's. True: exit
// 0.
bool netns_run(int netns, const char *line);
