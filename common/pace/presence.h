#pragma once
// presence -- what a coordinator knows of the present moment, and may lose in a crash: when each
// member was last heard, what the newest PINGs say, when the phase ends. run.h has what is on
// record.
//
// A restart gives every member a full lease and sets the deadline again. A struct presence is a
// value of about 1.4 MiB. Times are ms of the coordinator's monotonic clock (turn->now_ms).

#include "common/run/limits.h"
#include "common/wire/wire.h"
#include <stdbool.h>
#include <stdint.h>

struct presence {
    uint64_t deadline_ms;    // End of the present phase; UINT64_MAX: none
    uint64_t epoch_began_ms; // May be before this boot: modulo 2^64

    uint64_t ready_ms; // In Warmup: since when all healthy trainers hold the model; 0: they do not

    bool wants_end; // The owner wants a checkpoint, which such a pace has only between epochs

    bool roster_changed; // The roster has changed since it was told
    uint64_t roster_ms;  // Then it is due at this time

    // By index in the roster.
    uint64_t heard_ms[MEMBERS_MAX]; // When its last message came
    uint64_t
        ping_seq[MEMBERS_MAX]; // The number of its newest PING: one that comes late says nothing
    uint64_t step_held[MEMBERS_MAX];  // The step in its newest PING
    bool pinged[MEMBERS_MAX];         // This process, since this boot
    float loss[MEMBERS_MAX];          // In its newest PING; 0: none
    uint64_t changes_ms[MEMBERS_MAX]; // Start of the rate-limit window
    uint32_t changes[MEMBERS_MAX];    // Changes of it in that window (members.h)
    // It gets no answer of this topic before this; [MEMBERS_MAX]: no stranger does
    uint64_t answer_ms[TOPIC_COUNT][MEMBERS_MAX + 1];
    uint64_t out_until_ms[MEMBERS_MAX]; // It may not join before this: others waited for it in vain
};
