#pragma once
// blobs -- which payloads lie in this process's store, which are on their way, whom to ask.
//
//     unknown ──blobs_want──▶ wanted ──FETCH──▶ coming ──FETCHED ok──▶ here ──blobs_forget──▶ unknown
//                               ▲                  │
//                               └──── not ok, retry after BLOBS_RETRY_MS ────┘
//
// What a life before left in the store is here from the start. Nobody knows any more of which step it
// is, only that it can be of none after the run's present one: so it stays as if it were of that one,
// and then goes with the rest.
//
// A name is a hash and a size: a liar may say a size that the bytes of a hash have not. Such a blob never
// comes, and what is said of it touches nothing else of that hash.
//
// The bytes themselves are the shell's, in the blob store; here are their names. They go by FORGET: to
// PORT_DISK, where they are forgotten at once, so what learner or fetcher put there later stays; and to
// PORT_FETCHER, which fetches them no further and removes their files when it has the time. To look one
// up costs O(1), to fetch O(wanted), to forget O(count). Part of a core: pure.

#include "common/member/parts.h"

enum {
    BLOBS_MAX = 32768,
    BLOBS_RETRY_MS = 400,
    BLOBS_INHERITED_MAX = 16384, // So that there is room for what comes; the rest: the next life
    BLOBS_SPARED_MAX = 16,       // More are taken for any
    BLOBS_FETCH_MAX = 256
}; // FETCHes of one step: an outbox has room for no more
enum blob_state { BLOB_UNKNOWN, BLOB_WANTED, BLOB_COMING, BLOB_HERE };

struct blob_entry {
    struct hash hash;
    uint64_t step;       // It belongs to the commit after this step: decides when it may go
    uint64_t first_step; // ... and did so first after this one: a result may be said again
    uint64_t retry_ms;
    uint64_t turn;          // Of the FETCH it comes by: an answer to an earlier one says nothing
    uint32_t bytes, author; // Author: the member to ask first
    uint8_t state;          // enum blob_state
    bool is_result;         // Of use to others than audits: it stays when these are over
    uint32_t reveals;       // Audits that it is of use to
    uint32_t tries;         // FETCHes of it that came to nothing, or have not yet
};

struct blobs {
    uint32_t count, wanted; // All; those that are not here yet
    bool undated;           // Inherited, and the run's step is not known yet
    uint64_t due_ms;        // No FETCH before: nothing wanted is due
    uint64_t turns;         // FETCHes so far
    uint32_t spared_count;  // Since blobs_mark, perhaps more than are kept
    struct hash spared[BLOBS_SPARED_MAX];
    uint32_t places[2 * BLOBS_MAX];       // Open addressing by the hash: an entry + 1, or 0
    struct blob_entry entries[BLOBS_MAX]; // [0, wanted) not here, [wanted, count) here
};

uint8_t blobs_state(const struct blobs *self, const struct wire_blob *name);

// Once, first of all: what a life before left in the store.
void blobs_inherit(struct blobs *self, const struct wire_inherited *inherited);

// The step of the run as the coordinator tells it; the first time decides what is inherited.
void blobs_date(struct blobs *self, uint64_t run_step);

// The learner has put it there itself.
void blobs_have(struct blobs *self, const struct wire_blob *name, uint64_t step);

// Asks for it unless it is here or on its way. A full table refuses in silence: the next retry comes.
void blobs_want(struct blobs *self, const struct wire_blob *name, uint64_t step, uint32_t author);

// As these two, for what an audit reveals: it goes with the last of the audits that it was said for,
// unless a result is the same. Each is ended once.
void blobs_have_revealed(struct blobs *self, const struct wire_blob *name, uint64_t step);
void blobs_want_revealed(struct blobs *self, const struct wire_blob *name, uint64_t step,
                         uint32_t author);
void blobs_end_revealed(struct blobs *self, const struct wire_blob *name, struct outbox *out);

// Sends FETCH for what is wanted and due, BLOBS_FETCH_MAX at most.
void blobs_fetch(struct blobs *self, const struct member *member, uint64_t now_ms,
                 struct outbox *out);

// It has come into the store though nobody waits for it any more: it goes, unless it is known here.
void blobs_spare(struct blobs *self, const struct hash *hash, struct outbox *out);

// The learner is asked for something; and whether the very bytes that it made have been taken away
// since, because a FETCH brought the same ones too late for anybody to want them.
void blobs_mark(struct blobs *self);
bool blobs_spared_since(const struct blobs *self, const struct hash *hash);

// Of so many steps everything can be kept in a run with so many results a step: `wanted`, or what fits.
uint64_t blobs_steps_kept(uint64_t wanted, uint32_t results);

// Forgets all that belong to commits before this step, here and in the store, but what an audit needs.
void blobs_forget(struct blobs *self, uint64_t before_step, struct outbox *out);

// A round of this step begins: what rounds before it had for the same step came to nothing.
void blobs_forget_void(struct blobs *self, uint64_t step, struct outbox *out);

// As a part of a role: takes INHERITED, FETCHED and the run's step; then blobs_fetch.
void blobs_hear(void *self, const struct turn *turn);
void blobs_look(void *self, const struct turn *turn);
