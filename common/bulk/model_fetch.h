#pragma once
// model_fetch -- fetches the state with one digest, leaf by leaf, from all holders at once: the
// parameters, and the items that an optimizer keeps beside them (common/vector/state_cut.h).
//
//     LIST ── leaf hashes whose root is the digest: out of our own store, or from any holder ──▶
//     COPY ── leaves that we hold already (of an older pin): copied ──▶
//     PULL ── the others, of all holders that have them; a faster holder gets more of them ──▶ all here
//
// The core says how many bytes each item has, and the list must have one hash for each of their
// leaves. A shorter list (the digest itself, or a level between) has the same root, but no holder
// can have a "leaf" of it. Every leaf is checked against its hash, so at the end the digest of the
// whole is checked too. When no leaf is left to ask for, the late ones are asked for again, from
// other holders.
//
// A holder need not have all leaves: leaf_plan.h finds out which it has. One that lacks the list, is
// silent or sends anything else is dropped, and so is one that has sent no leaf and lacks all that
// is missing. If no holder is left, or each of those that are left lacks some leaf, the fetch has
// failed, and its reason names the leaf. The leaves that are here are kept, and the same digest may
// be asked for again. A list under which no leaf came is fetched again too.
//
// The same for a share (blob_store.h): its list is known, only some leaves are wanted, and they go to the
// share, where peers can have each as soon as it is here.

#include "common/bulk/blob_store.h"
#include "common/bulk/fetch.h"
#include "common/bulk/leaf_plan.h"

enum { MODEL_COPY_LEAVES = 64 }; // Looked at in one turn: 4 MiB, 2 ms

enum model_part { MODEL_LIST, MODEL_COPY, MODEL_PULL };

struct model_fetch {
    struct fetch fetch; // First: a model_fetch is a fetch
    uint64_t step;
    struct hash digest;
    struct state_cut cut;
    enum model_part part;
    uint32_t leaf_count;    // Of the cut; 0: there cannot be such a state
    struct hash *leaves;    // NULL in MODEL_LIST, as is the plan
    struct leaf_plan *plan; // Which leaves are missing, and who is asked for which
    uint32_t wanted, looked_at;
    uint32_t coming;     // Requests without an answer; two may be for one leaf
    blob_share_t *share; // NULL: the leaves go to the copy. Borrowed
    bool has_copy;
    struct state_copy copy; // Of the state: leaf_count full leaves
    uint64_t got_bytes;     // From peers, since the core last asked
};

// Never NULL. With an empty item, or more than BULK_LEAVES_MAX leaves, it fails at once.
struct model_fetch *model_fetch_new(struct peers *peers, uint64_t step, const struct hash *digest,
                                    const struct state_cut *cut);
uint32_t model_fetch_leaves(const struct state_cut *cut); // Of such a state; 0: it fails at once

// Of a state whose list is known, the leaves in these runs that a share lacks. Takes the list; borrows the share.
// It is no state that fails at once (ensured).
struct model_fetch *model_fetch_new_for_share(struct peers *peers, uint64_t step,
                                              struct hash **leaves_p, blob_share_t *share,
                                              const struct interval *runs, uint32_t count);
void model_fetch_destroy(struct model_fetch **self_p);

// Begins, or goes on after a failure, with these holders too.
void model_fetch_begin(struct model_fetch *self, uint64_t step, const struct wire_holder *holders,
                       uint32_t count);

// One turn of work: asks for as much as there is credit for, copies some leaves. True if there is
// more to copy at once.
bool model_fetch_work(struct model_fetch *self, blob_store_t *store, uint64_t now_ms);

uint32_t model_fetch_here(const struct model_fetch *self); // Of the wanted leaves

// Done, and not for a share: gives the state to the stage.
void model_fetch_stage(struct model_fetch *self, blob_store_t *store);
uint32_t model_fetch_served_by(const struct model_fetch *self); // Holders that sent a leaf
