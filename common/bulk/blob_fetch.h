#pragma once
// blob_fetch -- one blob on its way here, in chunks.
//
//     chunks  [here][here][coming][coming][missing][missing] ...  into memory of the declared size
//                        hashed as far as they are here in a row
//
// A small blob comes from one holder, a large one from several at once (one more for each
// SHARE_CHUNKS that are missing, and beside the slow ones others). Who lacks it, is silent or answers
// wrongly is dropped, and the rest comes from the next one; what is here stays. When no chunk is left
// to ask for, those that a slow holder lets wait are asked for again. Only the whole can be checked: if
// its hash is wrong and one holder sent all of it, that one has lied; if several did, nobody knows who,
// and from then on one is asked for all of it after the other, those who turn out slow not to the end
// while there are others.

#include "common/bulk/blob_store.h"
#include "common/bulk/fetch.h"

enum { SHARE_CHUNKS = 32, SHARE_HOLDERS_MAX = 8 };

struct blob_fetch {
    struct fetch fetch; // First: a blob_fetch is a fetch
    struct hash hash;
    size_t count;    // Bytes, as declared
    uint32_t askers; // How often it was asked for
    uint8_t *bytes;  // NULL before blob_fetch_start
    uint8_t *chunks; // enum chunk_state
    uint32_t chunk_count, here, hashed, next;
    uint32_t coming; // Requests on their way: two may be of one chunk
    struct hasher hasher;
    bool is_hashing, is_single; // Single: one holder alone sends all of it
    uint64_t got_bytes;         // From peers, whatever became of them
};

// `bytes` is at most BLOB_BYTES_MAX. Never NULL.
struct blob_fetch *blob_fetch_new(struct peers *peers, const struct hash *hash, uint32_t bytes);
void blob_fetch_destroy(struct blob_fetch **self_p);

bool blob_fetch_start(struct blob_fetch *self); // Takes the memory; false: failed, there is none
void blob_fetch_ask(struct blob_fetch *self, uint64_t now_ms); // For as much as there is credit

// Once all is here and right: into the store. Then it is done, or has failed.
void blob_fetch_keep(struct blob_fetch *self, blob_store_t *store);
bool blob_fetch_is_whole(const struct blob_fetch *self);
