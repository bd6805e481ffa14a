#pragma once
// cut_link -- cuts TCP connections of a running process, both ends alive: as when a router in
// between forgets them. Each end reads "connection reset".

#include <stdint.h>
#include <sys/types.h>

// The established connections of these two processes to each other's ports. Returns how many it cut,
// and just before the first (clock_us); -1: not permitted here (Linux 5.6, the same user and ptrace,
// or root).
struct cut_end {
    pid_t pid;
    unsigned port; // At which its links end
};
int cut_link(struct cut_end a, struct cut_end b, uint64_t *ret_us);
