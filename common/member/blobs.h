#pragma once
// blobs -- which blobs lie in this process's store, which are coming, which members to ask. What a
// blob contains is the pace's business: the result of a member, for example.
//
//     unknown ──blobs_want──▶ wanted ──FETCH──▶ coming ──FETCHED ok──▶ here ─blobs_forget─▶ unknown
//                               ▲                  │
//                               └──── not ok, retry after BLOBS_RETRY_MS ────┘
//
// Blobs that an earlier process left in the store are here from the start. Their steps are not
// known. They cannot be newer than the run's present step, so they are treated as if they were of
// that step.
//
// A blob is of a step, and goes with it (blobs_forget); or it is kept for a use that may outlast any
// step, and goes when the last such use ends (blobs_release); or both, and stays as long as either
// needs it.
//
// A name is a hash and a size, because a liar may announce a wrong size for a hash. Such a blob
// never arrives, and does not affect other entries of that hash.
//
// The shell's blob store has the bytes; this table has their names. FORGET removes a blob. It goes
// to PORT_DISK, which drops the name at once, so that bytes that learner or fetcher store later
// stay; and to PORT_FETCHER, which stops fetching the blob and removes its file when it has time.
// Lookup costs O(1), fetching O(wanted), forgetting O(count). Part of a core: pure.

#include "common/member/parts.h"

enum {
    BLOBS_MAX = 32768,
    BLOBS_RETRY_MS = 400,
    BLOBS_URGENT_STEPS = 8,
    BLOBS_INHERITED_MAX = 16384, // The rest of the table is for new blobs
    BLOBS_SPARED_MAX = 16,       // Above this any hash counts as spared
    BLOBS_FETCH_MAX = 256
}; // FETCHes in one turn: an outbox has room for no more
enum blob_state { BLOB_UNKNOWN, BLOB_WANTED, BLOB_COMING, BLOB_HERE };

struct blob_entry {
    struct hash hash;
    uint64_t step;       // The latest step that referenced it: decides when it may go
    uint64_t first_step; // The earliest such step: a blob may be named again
    uint64_t retry_ms;
    uint64_t turn;          // Number of its FETCH: an answer with another number is stale
    uint32_t bytes, author; // Author: the member to ask first; UINT32_MAX: a commit names it
    uint8_t state;          // enum blob_state
    bool has_step;          // It is of a step: it stays when its last use ends
    uint32_t users;         // Uses that keep it
    uint32_t tries;         // FETCHes that were sent for it
};

struct blobs {
    uint32_t count, wanted; // All entries; those that are not here yet
    bool undated;           // Some are inherited, and the run's step is not known yet
    uint64_t due_ms;        // No FETCH before this
    uint64_t turns;         // FETCHes so far
    uint32_t spared_count;  // Hashes spared since blobs_mark; may exceed those kept
    struct hash spared[BLOBS_SPARED_MAX];
    uint32_t places[2 * BLOBS_MAX];       // Open addressing by the hash: an entry + 1, or 0
    struct blob_entry entries[BLOBS_MAX]; // [0, wanted) not here, [wanted, count) here
};

uint8_t blobs_state(const struct blobs *self, const struct wire_blob *name);

// Call it once, before all else: enters what an earlier process left in the store.
void blobs_inherit(struct blobs *self, const struct wire_inherited *inherited);

// Dates the inherited blobs by the step of the run, once the coordinator has told it.
void blobs_date(struct blobs *self, uint64_t run_step);

// The learner has put the blob into the store.
void blobs_have(struct blobs *self, const struct wire_blob *name, uint64_t step);

// Wants the blob unless it is here or on its way. A full table ignores the call; the caller calls
// again. `author` UINT32_MAX: a commit names it. Then it is asked for at once, even if it is on its way
// from its author alone, and urgently (blob_fetch.h) unless we are far behind.
void blobs_want(struct blobs *self, const struct wire_blob *name, uint64_t step, uint32_t author);

// The same two for a blob that is kept for a use, whatever happens to the step. Each call of these
// two is matched by one blobs_release.
void blobs_have_kept(struct blobs *self, const struct wire_blob *name, uint64_t step);
void blobs_want_kept(struct blobs *self, const struct wire_blob *name, uint64_t step,
                     uint32_t author);
void blobs_release(struct blobs *self, const struct wire_blob *name, struct outbox *out);

// Sends FETCH for what is wanted and due, BLOBS_FETCH_MAX at most.
void blobs_fetch(struct blobs *self, const struct member *member, uint64_t now_ms,
                 struct outbox *out);

// The blob came into the store although no entry may want it any more: removes it unless its hash
// is known.
void blobs_spare(struct blobs *self, const struct hash *hash, struct outbox *out);

// Call blobs_mark when the learner begins a job. blobs_spared_since then tells whether the bytes
// that the learner made have been removed since: a late FETCH of the same bytes may have spared
// them.
void blobs_mark(struct blobs *self);
bool blobs_spared_since(const struct blobs *self, const struct hash *hash);

// The number of steps whose blobs fit into the table if each step has `each`; at most `wanted`.
uint64_t blobs_steps_kept(uint64_t wanted, uint32_t each);

// Forgets all blobs of steps before this one, here and in the store, except those that are kept.
void blobs_forget(struct blobs *self, uint64_t before_step, struct outbox *out);

// The step is tried once more: forgets the blobs that earlier attempts had for the same step, except
// those that are kept.
void blobs_forget_step(struct blobs *self, uint64_t step, struct outbox *out);

// As a part of a role: takes INHERITED, FETCHED and the run's step; then blobs_fetch.
void blobs_hear(void *self, const struct member_turn *turn);
void blobs_look(void *self, const struct member_turn *turn);
