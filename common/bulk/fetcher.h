#pragma once
// fetcher -- the thread behind PORT_FETCHER: brings blobs and parameters from peers into the blob
// store.
//
//     FETCH        ─▶ FETCHED, one for each blob    bytes in the store, checked against their hash
//     FETCH_MODEL  ─▶ FETCHED_MODEL                 vector on the stage, checked against its digest
//     FORGET       ─▶ FETCHED, not ok, if in line   no longer fetched; files of what has left the store go
//
// The receiver drives: it asks for pieces, within its credit (peers.h), from holders that may know
// nothing of one another (blob_fetch.h, model_fetch.h). A failure names its reason and costs
// nothing but time: ask again. What is in the store already is answered at once.
//
// Memory is taken for what was declared, and only for so many blobs at a time as fit in
// active_bytes_max (always for one); the others wait in line. A fetch that has failed keeps
// nothing, but for a model: asked for again, it goes on with the leaves that are here. One model
// at a time: another digest takes the place of the one on its way, which is answered as failed.
//
// There is no way through the broker: a peer that cannot be reached over TCP is silent.
//
//     struct fetcher_options options = { .store = store, .run = "demo" };
//     struct worker *fetcher = worker_new(PORT_FETCHER, fetcher_run, &options);

#include <stdatomic.h>

#include "common/actor/worker.h"
#include "common/bulk/blob_store.h"

// Counted by the fetcher, read by anybody.
struct fetcher_stats {
    _Atomic uint64_t got_bytes;     // From peers
    _Atomic uint64_t kept_bytes;    // Of those, what ended in the store or on the stage
    _Atomic uint64_t blobs, models; // Fetched
    _Atomic uint64_t failures;
};

struct fetcher_options {
    const struct identity *identity;
    blob_store_t *store; // Borrowed for the thread's life, as all of this
    const char *run;
    uint32_t patience_ms;        // A holder that sends nothing so long is silent; 0: 1000.
                                 // It sends chunks of 256 KiB: a link must carry one in
                                 // that time
    uint64_t active_bytes_max;   // 0: 1 GiB
    struct fetcher_stats *stats; // May be NULL
};

worker_body fetcher_run; // `arg` is a struct fetcher_options
