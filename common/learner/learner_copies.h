#pragma once
// learner_copies -- copies of our share of the state in memory, for a memory save (common/run/memory_save.h). When they
// are made, and who is told of them, is the strategy's: learner_windows_copies.c, learner_leases_copies.c.
//
//     _prepare: room ─▶ _take: a memcpy, all that the training waits for ─▶ (a thread hashes the leaves, and gives the
//     copy to the blob store, which serves them) ─▶ _look: our list is a blob
//         ─▶ _recorded: it is on record, and the copies before it go; _forget: nobody will put it on record
//
// So there are two generations at most, and the older is complete until the newer is.
//
// A copy is of whole leaves of the digest, as the shares are: of the items that are cut, our leaves; of the others all
// leaves, or, if `rest` says so, none but at the first place (common/vector/share_list.h).
//
// For the learner's files alone; on its thread.

#include "common/learner/learner_inside.h"
#include "common/vector/share_list.h"
#include <pthread.h>
#include <stdatomic.h>

#define OWNER_NONE UINT32_MAX // No enumerator has this value everywhere

// Which share is ours, and of how many.
struct learner_owner {
    uint32_t owner, owners; // OWNER_NONE: none
};

// All zeros: no copy. `step`, `in`: of the newest, if it is not on record; 0: none. `in` is the number of the window or
// group in which it was made.
struct learner_copies {
    blob_share_t *next;   // Room for the next one; NULL: none
    blob_share_t *filled; // The newest, until the blob store has it
    uint64_t step, in;
    uint64_t kept_step, kept_in; // The one that is on record, if it is here; kept_in 0: none is
    struct share_list list;      // Its leaves
    struct hash *hashes;         // Of them
    struct hash name;            // Of our list, once it is a blob
    struct learner *learner;     // The thread's
    pthread_t thread;            // Of the hashes
    bool is_hashing;             // There is such a thread
    atomic_bool has_ended;
    bool is_ready;  // The thread's: all went well
    bool is_hashed; // Ours is served, and its list is a blob
};

// The most that they take: two generations of our share and those of `buddies` predecessors, in a group of so many owners.
uint64_t learner_copies_bytes(const struct learner *self, uint32_t buddies, uint32_t owners);

// Drops what is not needed any more, then takes room for the next copy and touches its pages. Nothing is copied where
// nobody else would keep it, or where we own no share. That there is no room is a line in the log.
void learner_copies_prepare(struct learner *self, struct learner_copies *copies,
                            struct learner_owner of, enum share_rest rest);

// Whether there is room for a copy, and the one before is on record or forgotten.
bool learner_copies_may_take(const struct learner_copies *copies);

// Copies our share as it is, as that of `step`. A fault is a line in the log: then nothing is copied.
bool learner_copies_take(struct learner *self, struct learner_copies *copies,
                         struct learner_owner of, enum share_rest rest, uint64_t step, uint64_t in);

// True, once for each copy: its thread has ended. If is_hashed, the leaves are served, and the list is a blob.
bool learner_copies_look(struct learner_copies *copies);
bool learner_copies_have_ended(
    const struct learner_copies *copies); // There is something to look at

// Our list as a blob, put into the store once more: what asked for it may have had it removed.
struct wire_blob learner_copies_list(struct learner *self, struct learner_copies *copies);

// This save is on record: if it is our newest copy, that one is kept, and the one before it goes with the next
// _prepare. If it is a later one, we have no copy of what is on record. Whether it is later than the one we know of:
// _is_later.
void learner_copies_recorded(struct learner_copies *copies, uint64_t in, uint64_t step);
bool learner_copies_is_later(const struct learner_copies *copies, uint64_t in, uint64_t step);

void learner_copies_forget(struct learner_copies *copies); // The newest
void learner_copies_close(struct learner_copies *copies);  // Waits for the thread
