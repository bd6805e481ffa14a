#pragma once
// tally -- counts the votes of one round.
//
// Each elected witness votes once, naming for each batch the result it holds. A result is accepted
// if and only if at least two thirds (rounded up) of the elected name it, on parameters that two
// thirds of the accepted share. Blooms in the votes say who took part; nothing here depends on
// them.
//
// Volatile: a coordinator that restarts forgets its tally and the witnesses send their votes again.
// Pure, no pointers: a struct tally is a value of about 9 MiB. Cost of a vote: linear in what it names.

#include "common/run/limits.h"
#include "common/wire/wire.h"

// Different results named for one batch that are remembered: fewer than a third of the witnesses
// lie, so with one place more than they are the honest result always finds one.
enum { TALLY_RIVALS_MAX = WITNESSES_MAX / 3 + 1 };
_Static_assert(WITNESSES_MAX <= 64, "a witness has a bit");

// The short name of a result among its rivals: a hash that begins with a secret. Who does not know the
// secret cannot search for two results with one name, so 16 bytes are enough.
struct rival {
    uint8_t name[16];
};
enum { RIVAL_NONE = UINT8_MAX }; // The number of no rival

// All results named for one client are its rivals, numbered in the order in which they came up. Of the one
// that leads, the first to have that many votes, everything is kept; of the others the name.
struct tally {
    uint32_t clients;         // Length of the round's list
    uint32_t elected;         // K
    uint32_t voted, complete; // Votes counted; those that lacked nothing they waited for
    struct hash secret;       // Of the rivals' names
    // By place in the round's list of witnesses.
    uint8_t has_voted[WITNESSES_MAX];
    uint32_t
        half_ms[WITNESSES_MAX]; // What half of the results took, as it says; 0: it does not say
    uint32_t last[WITNESSES_MAX], last_ms[WITNESSES_MAX]; // The last result, as it says

    // By client.
    uint8_t rivals_count[MEMBERS_MAX];
    uint8_t leader[MEMBERS_MAX], leader_votes[MEMBERS_MAX];
    struct wire_seen leading[MEMBERS_MAX];
    uint8_t choices[MEMBERS_MAX][WITNESSES_MAX]; // The rival that each witness named, or RIVAL_NONE
    struct rival rivals[MEMBERS_MAX][TALLY_RIVALS_MAX]; // Names, from when there are two
    uint64_t asked[MEMBERS_MAX]; // Who was asked to show the claim it named, a bit each
    uint8_t health[MEMBERS_MAX]; // Witnesses whose participants hold it
};

// Empties it for a round of `clients` with `elected` witnesses. `secret`: nobody else knows it.
void tally_init(struct tally *self, uint32_t clients, uint32_t elected, const struct hash *secret);

enum tally_verdict { TALLY_COUNTED, TALLY_TWICE, TALLY_MALFORMED };

// Counts the vote of the witness at place `witness` of the round's list. A vote that names a client
// twice or one outside the list is MALFORMED and changes nothing; a second vote is TWICE.
enum tally_verdict tally_count(struct tally *self, uint32_t witness, const struct wire_vote *vote);

// A voter who named a result of `client` that others contradict, and who is to be asked for the claim; it
// counts as asked then. Of each such result so many are asked that one of them is honest. False: no more.
bool tally_ask(struct tally *self, uint32_t client, uint32_t *ret_witness);

// The most votes that one result of `client` has.
uint32_t tally_most(const struct tally *self, uint32_t client);

// The result of `client` that has a quorum of votes, or NULL. Not yet held against the base.
const struct wire_seen *tally_accepted(const struct tally *self, uint32_t client);

// What half of the results took: the lower median of what the votes say, 0 if none says it. With a
// quorum of votes it is not above what some honest witness says, and not below what another says.
uint32_t tally_half_ms(const struct tally *self);

// The result that the others waited for: more votes than may be lies say that it came last, after more
// than LATENESS_TIMES the half of them. By how much after the half, one of them an honest vote. Of
// several the longest. False: there is none.
bool tally_waited_for(const struct tally *self, uint32_t *ret_client, uint32_t *ret_waited_ms);

// The base that at least two thirds (rounded up) of the accepted share, `least` of them or more, and
// true; or false. With `only` not none, no other base will do, and one is enough.
bool tally_base(const struct tally *self, const struct hash *only, uint32_t least,
                struct hash *ret_base);
