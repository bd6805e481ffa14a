#pragma once
// committee -- which clients audit and which are witnesses in a round. Every member computes it
// from the round's seed alone. The shuffle is Psyche's, bit for bit: swap-or-not with 90 rounds
// (Hoang, Morris, Rogaway 2012).
//
//     S = SHA256(seed)     key = SHA256(S ‖ salt)     rank = shuffle of the client's index
//
//     by salt "committee":   0 ─ auditors ──┬─ everybody else ─ n
//     by salt "witness":     0 ─ witnesses ─┬─ everybody else ─ n
//
// The two draws are independent: an auditor may be a witness as well. A client's index is that of
// the round's list of clients, its rank (`positions` below) that after the shuffle; both lie in
// [0, n). Pure; any thread. Cost: linear in n, at most 90 · (1 + n/256 + 1) hashes and on average
// half of that.

#include "common/base/hash.h"
#include "common/run/limits.h"

enum committee_salt { SALT_COMMITTEE, SALT_WITNESS };

// The ranks of all n clients, by index. `ret_positions` has room for n ≤ MEMBERS_MAX.
void committee_positions(uint64_t seed, enum committee_salt salt, uint32_t n,
                         uint32_t *ret_positions);
