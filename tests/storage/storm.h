#pragma once
// storm -- what the two storage trials share: a ledger in which every record follows from its
// number, so that a check needs no copy of it, and the verdict on what a fault left.

#include "common/ledger/ledger.h"

enum { STORM_RECORD_MAX = 3000, STORM_TRANSACTION_MAX = 8 };

// What the writer was told is durable.
struct position {
    uint64_t seq;
    struct hash chain;
};

struct tally {
    uint64_t trials;
    uint64_t
        unacknowledged; // Hold one transaction more than was confirmed: allowed, as the writer cannot know
    uint64_t unborn;      // Cut before the first commit was confirmed, and refused
    uint64_t refused;     // Damaged and said so: a torn sector's right
    uint64_t rollbacks;   // Opened whole, and behind what was confirmed ..
    uint64_t detected;    // .. and ledger_covers said so: at once, and after going on
    uint64_t lost;        // Neither: a failure
    struct position head; // Of the ledger that was judged last
};

// SplitMix64: [0, below).
uint64_t storm_roll(uint64_t *prng, uint64_t below);

// The bytes of record `seq` of the ledger that this seed makes.
size_t storm_fill(uint64_t seed, uint64_t seq, uint8_t bytes[STORM_RECORD_MAX]);

// One transaction of 1 to STORM_TRANSACTION_MAX records, now and then with a snapshot, and the
// position after it.
int storm_commit(struct ledger *ledger, uint64_t seed, uint64_t *prng, struct why *why,
                 struct position *ret_after);

// Opens what a fault left in `dir` and judges it: all that was confirmed must be there, each record
// as it was written. `may_tear`: a sector was torn, which no database of this kind survives always;
// then a refusal will do, and a rollback that is detected. False if anything was lost; then it has
// been said on standard error.
bool storm_judge(const char *dir, uint64_t seed, const struct position *confirmed, bool may_tear,
                 struct tally *tally);

// An empty directory of its own in memory; and gone again with all in it.
void storm_make_dir(char dir[256]);
void storm_remove_dir(const char *dir);

void storm_kills(uint64_t kills, uint64_t seed, struct tally *tally);
void storm_flip_ledgers(uint64_t flips, uint64_t seed, struct tally *ret_tally);
void storm_flip_blobs(uint64_t flips, uint64_t seed, struct tally *tally);
void storm_cuts(uint64_t images, uint64_t seed, struct tally *ret_whole, struct tally *ret_torn);

// The same in a process of its own, and a tear is allowed: LMDB may find its own tree impossible
// and end the process, which is a refusal as well. The tally is memory that processes share.
void storm_judge_apart(const char *dir, uint64_t seed, const struct position *known,
                       struct tally *tally);
