#pragma once
// model_fetch -- fetches the state with one digest, leaf by leaf, from all holders at once: the
// parameters, and the items that an optimizer keeps beside them (common/vector/state_cut.h).
//
//     LIST ── leaf hashes whose root is the digest: out of our own store, or from any holder ──▶
//     COPY ── leaves that we hold already (of an older pin): copied ──▶
//     PULL ── the others: one queue for all holders; a faster holder gets more of it ──▶ all here
//
// The core says how many bytes each item has, and the list must have one hash for each of their
// leaves. A shorter list (the digest itself, or a level between) has the same root, but no holder
// can have a "leaf" of it. Every leaf is checked against its hash, so at the end the digest of the
// whole is checked too. When no leaf is left to ask for, the late ones are asked for again, from
// other holders. A holder that lacks a leaf, is silent or sends anything else is dropped. If no
// holder is left the fetch has failed; the leaves that are here are kept, and the same digest may
// be asked for again. A list under which no leaf came is fetched again too.

#include "common/bulk/blob_store.h"
#include "common/bulk/fetch.h"

enum { MODEL_COPY_LEAVES = 64 }; // Looked at in one turn: 4 MiB, 2 ms

enum model_part { MODEL_LIST, MODEL_COPY, MODEL_PULL };

struct model_fetch {
    struct fetch fetch; // First: a model_fetch is a fetch
    uint64_t step;
    struct hash digest;
    struct state_cut cut;
    enum model_part part;
    uint32_t leaf_count; // Of the cut; 0: there cannot be such a state
    struct hash *leaves; // NULL in MODEL_LIST, as are is_here and todo
    uint32_t here, looked_at;
    uint32_t coming; // Requests without an answer; two may be for one leaf
    bool has_copy;
    struct state_copy copy; // Of the state: leaf_count full leaves
    bool *is_here;
    uint32_t *todo, todo_count; // Leaves to ask for, the next one last
    uint64_t got_bytes;         // From peers, since the core last asked
};

// Never NULL. With an empty item, or more than BULK_LEAVES_MAX leaves, it fails at once.
struct model_fetch *model_fetch_new(struct peers *peers, uint64_t step, const struct hash *digest,
                                    const struct state_cut *cut);
void model_fetch_destroy(struct model_fetch **self_p);

// Begins, or goes on after a failure, with these holders too.
void model_fetch_begin(struct model_fetch *self, uint64_t step, const struct wire_holder *holders,
                       uint32_t count);

// One turn of work: asks for as much as there is credit for, copies some leaves. True if there is
// more to copy at once.
bool model_fetch_work(struct model_fetch *self, blob_store_t *store, uint64_t now_ms);

// Done: gives the state to the stage.
void model_fetch_stage(struct model_fetch *self, blob_store_t *store);
uint32_t model_fetch_served_by(const struct model_fetch *self); // Holders that sent a leaf
