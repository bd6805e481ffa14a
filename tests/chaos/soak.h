#pragma once
// soak -- runs the demo for hours under chaos and checks whether anything in it grows. chaos.c
// disturbs; this file watches.
//
//     every entry of Cooldown   each actor's memory, descriptors, threads and disk use (growth.h)
//     every minute              a line with the sums
//     at the end                a table: what grows by how much an hour, beside what it may
//
// In Cooldown an epoch's work is done and the next has not begun: so all figures are taken in the
// same state. A process is compared with itself alone, from one start to the next; a folder with
// itself from the beginning to the end, as it outlives the processes. An hour's bounds:
//
//     memory        16 MiB    about a kilobyte for each commit of four trainers on two cores
//     descriptors   30        every second restarted process leaves one with its peers
//     threads       10
//     disk          16 MiB    but the coordinator's ledger keeps every commit for good:
//                             ledger_bytes for each beside it
//
// Fails as well when no commit comes for patience_s; digests are compared as everywhere
// (testbed.h).

#include "tests/chaos/growth.h"
#include "tests/live/testbed.h"

struct soak_limits {
    unsigned patience_s;   // The longest time without a commit
    unsigned ledger_bytes; // Of each commit, for good
};

struct soak {
    struct soak_limits limits;
    uint64_t began_ms, line_ms, commit_ms; // When: the beginning, the next line, a commit
    uint64_t commits, cooldowns;
    uint64_t cooldown_commits; // When the newest Cooldown was entered
    unsigned samples;
    struct soaked {
        unsigned lives;
        uint64_t born_ms;
        struct growth of[GROWTH_KINDS];
    } actors[TESTBED_ACTORS_MAX]; // As in the bed
};

void soak_begin(struct soak *self, const struct testbed *bed, const struct soak_limits *limits);
void soak_watch(struct soak *self, struct testbed *bed, unsigned events, unsigned restarts);
void soak_judge(const struct soak *self,
                struct testbed *bed); // Prints the table; may fail the test
