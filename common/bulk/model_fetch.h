#pragma once
// model_fetch -- the parameters under one digest on their way here, leaf by leaf, from all holders
// at once.
//
//     LIST ── leaf hashes whose root is the digest: out of our own store, or from any holder ──▶
//     COPY ── leaves that we hold already (of an older pin): copied ──▶
//     PULL ── the others: a queue that serves every holder; who is faster gets more ──▶ all here
//
// The number of floats is the asker's word, and the list must have a hash for each of their leaves:
// the digest itself, or any level between, has the same root, and nobody can have a "leaf" of it.
// Every leaf is checked against its hash where it will lie in the vector, so that in the end the
// digest of the whole has been checked too. When no leaf is left to ask for, those that a slow holder
// lets wait are asked for again. Whoever lacks a leaf, is silent or sends anything else
// is dropped. If nobody is left it has failed, and what is here waits to be continued: the same
// digest may be asked for again. A list under which no leaf came is asked for again as well.

#include "common/bulk/blob_store.h"
#include "common/bulk/fetch.h"

enum { MODEL_COPY_LEAVES = 64 }; // Looked at in one turn: 4 MiB, 2 ms

enum model_part { MODEL_LIST, MODEL_COPY, MODEL_PULL };

struct model_fetch {
    struct fetch fetch; // First: a model_fetch is a fetch
    uint64_t step;
    struct hash digest;
    uint64_t floats;
    enum model_part part;
    uint32_t leaf_count; // Of so many floats
    struct hash *leaves; // NULL in MODEL_LIST, as are the next three
    uint32_t here, looked_at;
    uint32_t coming; // Requests on their way: two may be of one leaf
    float *vector;   // leaf_count full leaves
    bool *is_here;
    uint32_t *todo, todo_count; // Leaves to ask for, the next one last
    uint64_t got_bytes;         // From peers, since it was last asked for
};

// Never NULL. With no floats, or more than BULK_LEAVES_MAX leaves of them, it fails at once.
struct model_fetch *model_fetch_new(struct peers *peers, uint64_t step, const struct hash *digest,
                                    uint64_t floats);
void model_fetch_destroy(struct model_fetch **self_p);

// Begins, or goes on after a failure, with these holders too.
void model_fetch_begin(struct model_fetch *self, uint64_t step, const struct wire_holder *holders,
                       uint32_t count);

// Does what can be done here and now: asks for as much as there is credit, copies some leaves.
// True if there is more to copy at once.
bool model_fetch_work(struct model_fetch *self, blob_store_t *store, uint64_t now_ms);

// Done: gives the vector to the stage.
void model_fetch_stage(struct model_fetch *self, blob_store_t *store);
uint32_t model_fetch_served_by(const struct model_fetch *self); // Holders who sent a leaf
