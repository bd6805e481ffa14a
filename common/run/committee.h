#pragma once
// committee -- who does what in a round, drawn from its seed alone: everyone computes it, nobody
// is asked. Agrees to the bit with Psyche (swap-or-not of 90 rounds, Hoang, Morris, Rogaway 2012).
//
//     S = SHA256(seed)     key = SHA256(S ‖ salt)     position = shuffle of the client's index
//
//     by salt "committee":   0 ─ tie-breakers ─┬─ verifiers ─┬─ trainers ─ n
//     by salt "witness":     0 ─ witnesses ────┬─ everybody else ───────── n
//
// The two draws are independent: a verifier may be a witness as well. `index` is a client's place
// in the round's list of clients, `position` its place after the shuffle; both lie in [0, n). Pure;
// any thread. Cost of a whole list: linear in n, at most 90 · (1 + n/256 + 1) hashes and in the
// mean half of that; of a single index: 182 hashes.

#include "common/base/hash.h"
#include "common/run/limits.h"

enum committee_salt { SALT_COMMITTEE, SALT_WITNESS };
enum committee_role { ROLE_TIE_BREAKER, ROLE_VERIFIER, ROLE_TRAINER }; // Psyche's numbers

struct committee {
    uint64_t seed;    // Of the round
    uint32_t clients; // n, the length of the round's list; 0 to MEMBERS_MAX
    uint32_t tie_breakers;
    uint32_t verifiers; // ⌊(n − tie_breakers) · verification_percent / 100⌋
    uint32_t witnesses; // witness_nodes; if that is 0, n but at most WITNESSES_OPEN
};

// False, and nothing written, unless clients ≤ MEMBERS_MAX, tie_breakers ≤ clients, witness_nodes ≤
// clients and ≤ WITNESSES_MAX, and verification_percent ≤ 100.
bool committee_init(struct committee *ret_self, uint64_t seed, uint32_t clients,
                    uint32_t tie_breakers, uint32_t witness_nodes, uint32_t verification_percent);

// The positions of all n clients, by index. `ret_positions` has room for n ≤ MEMBERS_MAX.
void committee_positions(uint64_t seed, enum committee_salt salt, uint32_t n,
                         uint32_t *ret_positions);

// The position of one; index < n.
uint32_t committee_position(uint64_t seed, enum committee_salt salt, uint32_t n, uint32_t index);

// What a position in the draw of that name means.
enum committee_role committee_role(const struct committee *self, uint32_t position);
bool committee_is_witness(const struct committee *self, uint32_t position);

// Whether a claim from outside is true: that the client `index` was drawn to `position`, and that
// this makes it what it says it is. Any value may be asked; out of range is false. That the sender
// is the client at `index` is for the caller to check.
bool committee_check_role(const struct committee *self, uint64_t index, uint64_t position,
                          enum committee_role role);
bool committee_check_witness(const struct committee *self, uint64_t index, uint64_t position);

// The shuffle under a given key, for all and for one.
void committee_shuffle(const struct hash *key, uint32_t n, uint32_t *ret_positions);
uint32_t committee_shuffle_one(const struct hash *key, uint32_t n, uint32_t index);
