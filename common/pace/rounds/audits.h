#pragma once
// audits -- which client recomputes which result in a round, as its record says. Pure; any thread.
//
//     clients of a round ─┬─ trainers: the batch is dealt among them
//                         └─ auditors: each recomputes one result that was committed before
//
// The coordinator draws the auditors from the round's seed when it opens the round (verification_
// percent of the clients); so nobody recomputes a result of the run's last round. The seed follows
// from the commit before and from a key that this commit revealed, so that no trainer can know its
// auditor before it has committed to its result.

#include "common/wire/wire.h"

enum {
    AUDITS_MAX = 256,
    AUDIT_INTERVALS_MAX = 64,
    AUDITED_MAX = AUDITS_MAX * AUDIT_INTERVALS_MAX,
    AUDIT_TRIES_MAX = 3,
    AUDIT_OWED_FIRST = 8,
    AUDIT_WITHHELD_MAX = 3
}; // Owed doubles with each that was not shown: to 64

// Whether the audits of a ROUND from outside are consistent: each auditor is a client and has one
// audit, at least one client trains, the lists of samples fit together.
bool audits_are_sound(const struct wire_round *round);

// The clients that train, as ascending indexes into the round's clients. `ret_clients` has room for
// all clients. Returns the number.
uint32_t audits_trainers(const struct wire_round *round, uint32_t *ret_clients);

// The index of this client's audit, or UINT32_MAX.
uint32_t audits_of(const struct wire_round *round, uint32_t client);

// The samples of the audit at this index: `intervals` intervals.
const struct interval *audits_samples(const struct wire_round *round, uint32_t place);
