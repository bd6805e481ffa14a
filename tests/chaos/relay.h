#pragma once
// relay -- the bad network between two namespaces: every packet passes through a process of ours,
// which draws its fate from a seed. For where the kernel has no netem.
//
//     namespace here ── tun ──┐                    ┌── tun ── namespace there
//        10.213.8.1           └─ lose, delay, twice ┘            10.213.8.2
//
// The seed decides the sequence of fates; the machine decides which packet meets which fate. So a
// second run is like the first, and not the same.

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RELAY_HERE  "10.213.8.1"
#define RELAY_THERE "10.213.8.2"

struct relay_profile {
    unsigned delay_us, jitter_us; // Jitter either way: what is delayed less overtakes
    unsigned lost_ppm, twice_ppm; // Of a million packets
    unsigned flipped_ppm;         // One bit of these is flipped
    bool deaf_here, deaf_there;   // Nothing arrives on that side
};

struct relay {
    pid_t pid, holder;
    int there; // Descriptor of the other namespace, for setns
    volatile struct relay_shared *shared;
};

struct relay_counts {
    uint64_t packets, lost, twice, flipped, overtook;
};

// Moves the caller to a network namespace of its own, makes the other and the relay between them.
// The caller has one thread. False: not permitted here; ret_why says what (static text).
bool relay_open(struct relay *self, uint64_t seed, const char **ret_why);
void relay_set(struct relay *self, const struct relay_profile *profile);
struct relay_counts relay_count(const struct relay *self);
void relay_close(struct relay *self);
