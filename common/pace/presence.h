#pragma once
// presence -- what a coordinator knows of the present moment, and may forget: who was heard when, what
// the newest PINGs say, how long the phase lasts. What is on record is in run.h.
//
// A restart gives everybody a full lease and sets the deadline anew. A struct presence is a value of about
// 600 KiB.

#include "common/run/limits.h"
#include <stdbool.h>
#include <stdint.h>

struct presence {
    uint64_t deadline_ms;    // End of the present phase; UINT64_MAX: none
    uint64_t epoch_began_ms; // Modulo 2^64: before this boot, perhaps

    bool roster_changed; // Since it was told, which is due
    uint64_t roster_ms;  // at this time

    // By member.
    uint64_t heard_ms[MEMBERS_MAX];                     // When it was last heard
    uint64_t step_held[MEMBERS_MAX];                    // As its newest PING says
    float tokens_per_s[MEMBERS_MAX], loss[MEMBERS_MAX]; // The same
    uint64_t changes_ms[MEMBERS_MAX];                   // Start of the rate-limit window,
    uint32_t changes[MEMBERS_MAX];                      // changes of itself in that window
};
