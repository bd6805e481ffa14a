#pragma once
// blob_fetch -- one blob that is being fetched, in chunks.
//
//     chunks  [here][here][coming][coming][missing][missing] ...  into memory of the declared size
//     hashed up to the first chunk that is not here; by another thread if the blob is large
//
// A small blob comes from one holder, a large one from several at once: one more for each
// SHARE_CHUNKS that are missing, and two more for each slow one. A holder that lacks the blob, is
// silent or answers wrongly is dropped; the chunks that are here stay, and the next holder sends
// the rest. When no chunk is left to ask for, the late ones are asked for again, from other
// holders.
//
// Urgent: a commit names it. Then several members hold it, and our next round waits for it. Two more
// holders serve, and what is on its way from one of them is asked of another after PEERS_URGENT_MS, or
// at once if that one failed or was slow before. So a holder that is silent costs PEERS_URGENT_MS or
// two, and so does one that sends each chunk just within the patience, or a few bytes at a time: no
// progress renews this limit. The price is paid by a slow link: it gets up to three copies of what is
// on its way when the commit comes. What is not urgent has the patience of peers.h, which each chunk
// renews: there an author that is slow delays its own result alone.
//
// Only the whole blob can be checked. If its hash is wrong and one holder sent all of it, that holder
// lied. If several sent it, the liar is unknown: from then on one holder at a time is asked for the
// whole blob, and a slow one is dropped while others are left.

#include "common/bulk/blob_store.h"
#include "common/bulk/fetch.h"
#include "common/bulk/hash_beside.h"

enum { SHARE_CHUNKS = 32, SHARE_HOLDERS_MAX = 8, URGENT_HOLDERS = 2, HASH_BESIDE_CHUNKS = 8 };

struct blob_fetch {
    struct fetch fetch; // First: a blob_fetch is a fetch
    struct hash hash;
    size_t count;       // Bytes, as declared
    uint32_t askers;    // How often the core asked for it
    uint64_t urgent_ms; // Since when it is urgent; 0: it is not
    uint8_t *bytes;     // NULL before blob_fetch_start
    uint8_t *chunks;    // enum chunk_state
    uint32_t chunk_count, here, next;
    uint32_t in_row;            // Chunks before the first gap: they were given to be hashed
    uint32_t coming;            // Requests without an answer; two may be for one chunk
    struct hash_beside *beside; // Borrowed; NULL: a small one is hashed as it comes
    struct hash_run run;
    bool is_hashing, is_single; // Single: one holder alone sends all of it
};

// `bytes` is at most BLOB_BYTES_MAX. Never NULL.
struct blob_fetch *blob_fetch_new(struct peers *peers, const struct hash *hash, uint32_t bytes);
void blob_fetch_destroy(struct blob_fetch **self_p);

// Allocates; false: no memory, it has failed. A large blob is hashed by the thread of `beside` (hash_beside.h).
bool blob_fetch_start(struct blob_fetch *self, struct hash_beside *beside);
void blob_fetch_ask(struct blob_fetch *self, uint64_t now_ms); // For as much as there is credit

// _keep: puts a blob that is whole into the store; then the fetch is done, or has failed. _sync: makes the blob of a
// done fetch durable, and with the same fsync all blobs that were kept before it. A blob that is in memory alone stays
// so.
void blob_fetch_keep(struct blob_fetch *self, blob_store_t *store);
void blob_fetch_sync(struct blob_fetch *self, blob_store_t *store);
bool blob_fetch_is_whole(const struct blob_fetch *self);
