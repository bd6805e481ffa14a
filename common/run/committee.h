#pragma once
// committee -- who does what in a round, drawn from its seed alone: everyone computes it, nobody
// is asked. Agrees to the bit with Psyche (swap-or-not of 90 rounds, Hoang, Morris, Rogaway 2012).
//
//     S = SHA256(seed)     key = SHA256(S ‖ salt)     position = shuffle of the client's index
//
//     by salt "committee":   0 ─ auditors ──┬─ everybody else ─ n
//     by salt "witness":     0 ─ witnesses ─┬─ everybody else ─ n
//
// The two draws are independent: an auditor may be a witness as well. `index` is a client's place
// in the round's list of clients, `position` its place after the shuffle; both lie in [0, n). Pure;
// any thread. Cost: linear in n, at most 90 · (1 + n/256 + 1) hashes and in the mean half of that.

#include "common/base/hash.h"
#include "common/run/limits.h"

enum committee_salt { SALT_COMMITTEE, SALT_WITNESS };

// The positions of all n clients, by index. `ret_positions` has room for n ≤ MEMBERS_MAX.
void committee_positions(uint64_t seed, enum committee_salt salt, uint32_t n,
                         uint32_t *ret_positions);
