#pragma once
// share_fetch -- makes our share of the state of a step whole: from the lists of all members the hashes of all
// leaves and the digest, from the members the leaves of our predecessors, whose buddy we are.
//
//     our share of the step  ── in the store, with our own leaves (blob_store.h)
//     lists of all places    ── blobs in the store ──▶ hashes of all leaves ──▶ digest
//     leaves of the places before ours, as many as there are buddies ──▶ into the share ──▶ complete
//
// We keep the leaves of as many places before ours as `buddies` says, round the group; as many places behind us keep
// ours. The leaves are fetched as those of a state are (model_fetch.h), from holders that need not have
// all of them, and refused unless their hash is that of the list. A list that has not as many hashes as its place has
// leaves, or that differs in what each place has, ends it.
//
// A failed one keeps in the share what has come, and may be begun again. What it cannot find out: a wrong hash in the
// list of a place whose leaves we do not fetch. The members that fetch them find it: no leaf has that hash, and their
// fetch fails.

#include "common/bulk/blob_store.h"
#include "common/bulk/model_fetch.h"

struct share_fetch {
    uint64_t turn, step; // As asked for
    enum fetch_state state;
    blob_share_t *share;
    struct hash digest;       // Of the state, by the lists
    struct model_fetch *pull; // NULL: there is nothing to fetch
    struct why why;           // Why it has failed
};

// Never NULL; see `state`. FAILED: the share or a list is not in the store, a list does not fit, or `place` is not below
// the number of lists. DONE: the share is whole already, with this digest. Borrows peers, store and namer until
// share_fetch_destroy; job and cut for the call. One thread.
struct share_fetch *share_fetch_new(struct peers *peers, blob_store_t *store,
                                    const struct fetch_namer *namer, const struct state_cut *cut,
                                    const struct wire_fetch_share *job);
void share_fetch_destroy(struct share_fetch **self_p); // NULL allowed

// One turn of work; true if there is more to do at once. When all is here it completes the share, and is done.
bool share_fetch_work(struct share_fetch *self, blob_store_t *store, uint64_t now_ms);

uint64_t share_fetch_bytes(const struct share_fetch *self); // From peers
