#pragma once
// reputation -- what is remembered of a peer that is asked for bytes, and which of two is asked first.
//
//     proven, in time ─▶ proven, slow ─▶ in time ─▶ slow ─▶ failed: in the same order, longest ago first
//
// Proven is a peer whose data passed a proof: it is asked before the unknown ones, since anybody may fill a
// list with keys that never answer. Failed is a peer that gave nothing, or nothing right: it costs its patience
// once, as long as there is another to ask. The holders of blobs (peers.h) and the providers of samples
// (providers.h) are remembered so, each with what only they need beside it.
//
// A value: no clock, no sockets.

#include <stdbool.h>
#include <stdint.h>

struct reputation {     // Zero: nothing is known
    uint64_t failed_ms; // When it last gave nothing; 0: never, or it has answered since
    uint64_t proven_ms; // When its data last passed a proof; 0: never
    bool is_slow;       // Its newest answer came late, or is late
    bool has_lied;      // It sent what its hash refutes; no answer and no time makes up for that
};

// Whether it counts as failed: it has lied, or failed after that instant. 0: failures are not forgiven in time.
bool reputation_has_failed(const struct reputation *self, uint64_t since_ms);

// Whether `a` is asked before `b`. Equals are asked in the order in which they were named: false.
bool reputation_is_before(const struct reputation *a, const struct reputation *b,
                          uint64_t since_ms);

// Whether it is asked last or later than others, and so worth remembering.
bool reputation_is_doubtful(const struct reputation *self);
