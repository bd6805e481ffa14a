#pragma once
// fetcher -- the thread behind PORT_FETCHER: brings blobs and states of the run from peers into the
// blob store.
//
//     FETCH        ─▶ FETCHED, one for each blob    bytes in the store, checked against their hash
//     FETCH_MODEL  ─▶ FETCHED_MODEL                 state on the stage, checked against its digest
//     FETCH_SHARE  ─▶ FETCHED_SHARE                 our share of a state, in the store, made whole
//     FORGET       ─▶ FETCHED, not ok, if in line   no longer fetched; its file is swept from the store
//
// The receiver asks for pieces, within its credit (peers.h), from holders that need not know of one
// another (blob_fetch.h, model_fetch.h, share_fetch.h). A failure names its reason; the core may retry at any
// time. A blob that is in the store already is answered at once.
//
// Memory is allocated for the declared size, and only for as many blobs at a time as fit into
// FETCHER_ACTIVE_BYTES_MAX (always for one); the others wait in line. A failed fetch keeps nothing,
// except that of a model: when it is asked for again, it goes on with the leaves that are here. One
// model at a time: a FETCH_MODEL with another digest ends the present one, which is answered as
// failed. One share at a time, too, beside the model: a FETCH_SHARE ends the present one. A model is asked
// for first, since its member stands still until it is here; a share gets the credit that is left.
//
// Nothing goes through the broker: a peer that cannot be reached over TCP is silent. The reason of a
// failure names it, with its address.
//
//     struct fetcher_options options = { .store = store, .run = "demo" };
//     struct worker *fetcher = worker_new(PORT_FETCHER, fetcher_run, &options);

#include "common/actor/worker.h"
#include "common/bulk/blob_store.h"

// Names a holder for people, by its key. Called on the fetcher's thread.
struct fetch_namer {
    void (*name_of)(void *arg, const struct key *key, char ret_name[ACTOR_NAME_MAX + 1]);
    void *arg;
};

#define FETCHER_ACTIVE_BYTES_MAX ((uint64_t)1 << 30)

struct fetcher_options {
    const struct identity *identity;
    blob_store_t *store; // Borrowed for the thread's life, as all of this
    const char *run;
    const struct fetch_namer *namer; // NULL: holders are named by their keys
    uint32_t patience_ms; // A holder that sends nothing for that long is silent; 0: 1000.
                          // A link must carry a chunk of 256 KiB in that time
};

worker_body fetcher_run; // `arg` is a struct fetcher_options
