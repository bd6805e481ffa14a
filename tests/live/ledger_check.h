#pragma once
// ledger_check -- reads a coordinator's ledger from outside and checks what a run
// promises:
//
//   every step committed exactly once, in order, each commit naming the one before it
//   a commit closes the round that is open, with a quorum of its witnesses; of windows: steps are
//   committed within the oldest that is open, and at most two are
//   no sample committed twice; at each epoch's end the samples below the cursor are committed but
//   for those returned; the base of a commit is the digest that was pinned for its step
//   not in step: a sample is in one task at a time, and trained once a pass; a group is closed with no task out; what
//   a group did that committed no step is dealt again
//   phases move only as drawn; incarnations rise; after a restore what was committed since is done again
//
// The reader is the test's own: it shares the records and the chain with the product, not the
// rules. But for one: that all draws follow from the records, and that what the auditors said is
// signed, is what shoal status --ledger shows as well (common/pace/evidence.h).

#include "common/base/hash.h"
#include <stdbool.h>
#include <stdint.h>

enum { LEDGER_PINNED_MAX = 4096 };

struct pinned_step {
    uint64_t step;
    struct hash digest;
};

struct ledger_report {
    uint64_t records, starts, voids, samples, epochs;
    uint64_t rounds;       // Or windows
    uint64_t restores;     // To a save
    uint64_t closed;       // Windows that broke, or that the end of an epoch cut short
    uint64_t commits;      // Steps done, with those that an earlier run did
    uint64_t first_sample; // Where its data begins
    uint64_t partial;      // Commits that accepted less than the round dealt
    uint32_t members;
    bool finished;
    struct hash digest; // The newest that is pinned
    uint64_t digest_step;
    uint64_t checkpoint_step; // The newest registered, of a checkpointer
    uint64_t findings, ejections;
    struct pinned_step pinned[LEDGER_PINNED_MAX]; // At ends of epochs, the first ones
    uint32_t pinned_count;
    struct hash base[4096]; // By step: digest of the parameters that a commit started from
};

// False, with the reason in `ret_text`, if a promise does not hold.
bool ledger_check(const char *dir, const char *run_id, struct ledger_report *ret_report,
                  char *ret_text, unsigned text_max);
