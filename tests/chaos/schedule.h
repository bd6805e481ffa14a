#pragma once
// schedule -- what chaos does to a run, drawn from a seed before the run begins: the same seed
// gives the same list. An event waits for a commit and then for a phase to be entered, both heard
// from the news.

#include <stdint.h>
#include <stdbool.h>

enum chaos_kind {
    CHAOS_KILL,
    CHAOS_STOP,
    CHAOS_TERM, // An actor: -9; stopped for `ms`; asked to end
    CHAOS_LOSSY,
    CHAOS_SLOW,
    CHAOS_MESSY, // The network for `ms`: loss; delay; bits, copies
    CHAOS_PARTITION,
    CHAOS_ONE_WAY,   // Nothing passes; nothing passes one way
    CHAOS_DISK_FULL, // An actor's, for `ms`: it meets that as it runs, or
                     // restarts in it; by turns
    CHAOS_CLOCK,     // An actor's, for good, by `seconds`; it restarts
    CHAOS_KINDS
};

struct chaos_event {
    uint64_t step; // Not before this many commits
    uint8_t phase; // enum of the wire: the next entry of this phase after it
    enum chaos_kind kind;
    const char *victim; // "" where the network is meant
    unsigned ms;
    int seconds;
    bool runs_on; // On a full disk: the victim is not killed
};

// What this machine permits besides signals.
struct chaos_permits {
    bool network, disk;
};

enum { CHAOS_EVENTS_MAX = 200 };

// `count` events over `steps` commits. Every kind, victim and phase comes up in turn, shuffled.
void schedule_draw(uint64_t seed, unsigned count, uint64_t steps,
                   const struct chaos_permits *permits, struct chaos_event *ret_events);
const char *chaos_kind_name(enum chaos_kind kind);
void chaos_event_text(const struct chaos_event *event, char ret_text[120]);
