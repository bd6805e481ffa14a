#pragma once
// bulk_server -- the thread that serves this process's blobs, pins and samples to other members.
//
//     WANT          ─▶ CHUNK + bytes    or LACKING        blobs and leaves, out of the blob store
//     WANT_LEAVES   ─▶ LEAVES + bytes   or LACKING
//     WANT_SAMPLES  ─▶ SAMPLES + bytes  or NO_SAMPLES     through a function of the caller
//     WANT_DATASET  ─▶ DATASET + bytes  or NO_SAMPLES
//
// A guest is a key on the run's roster. A key that is not a guest is refused at the handshake; a
// key that is no longer a guest is cut off with its next message. The server remembers nothing
// about a peer but its connections. Answers are copies, so the store may forget a blob while it is
// sent. An answer that does not fit is dropped, or NO_SAMPLES says "busy": a receiver within its
// credit never has that many outstanding, and any other receiver will retry. A malformed message is
// dropped, never answered. A peer that takes nothing for 20 s is cut off. If it goes on
// sending meanwhile, the kernel counts it as alive; then its unsent answers count as below.
//
// Limits on what peers may take of this process (connections.h measures them):
//
//     a connection    BULK_CONNECTION_PENDING_MAX bytes of unread questions, whole or not, plus the
//                     bytes that arrive between two looks, a tenth of a second apart: then it is cut
//                     off. About 4 KiB if it is silent. 64 answers
//     a key           unsent answers: a sixteenth of the bytes that are free, so 16 MiB at most, over
//                     all its connections; beyond that, one answer if no more than a chunk waits.
//                     BULK_KEY_CONNECTIONS_MAX connections, or an eighth of all if that is less:
//                     beyond that its oldest connection is cut off
//     all             BULK_WAITING_MAX bytes of answers, BULK_PENDING_MAX of questions. Half of the
//                     descriptors, after the soft limit was raised to the hard one: beyond that,
//                     connections that have not asked anything yet are cut off, the oldest first. A
//                     stranger's connection lasts 5 s at most
//
// While the caller's function reads samples, or this thread waits for a processor, no connection is
// cut off, and for that moment the limits may be exceeded. Eight guests together can take all the
// room for connections; then no other peer gets in.
//
// Yardstick, to one receiver that hashes every byte: half the rate of two threads with a plain TCP
// socket between them, without encryption. CURVE at both ends costs most of that rate on one
// machine, and 11 % of a core at a gigabit (tests/bench/bulk_bench.c measures).

#include "common/base/fault.h"
#include "common/bulk/blob_store.h"
#include "common/net/curve_set.h"

enum {
    BULK_CONNECTION_PENDING_MAX = 1 << 20, // A question is shorter than a kilobyte
    BULK_PENDING_MAX = 64 << 20,
    BULK_WAITING_MAX = 256 << 20,
    BULK_WAITING_SHARES = 16,
    BULK_KEY_CONNECTIONS_MAX = 32,
};

// Returns the samples from `position` on with their proofs, in memory from malloc. The text of *why
// is sent to the asker.
typedef int bulk_answer_fn(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                           size_t *ret_count, struct why *why);

struct bulk_server_options {
    const struct identity *identity; // Borrowed for the server's life
    const char *endpoint; // tcp://ADDRESS:PORT; ADDRESS may be *, PORT too (any free one)
    const char *run;      // A question for another run is refused
    blob_store_t *store;  // Borrowed for the server's life; NULL: no blobs are served

    // NULL: no samples are served. Called in the server's thread, which serves nothing else until
    // it returns. The samples are checked against `description`.
    bulk_answer_fn *answer;
    void *arg;
    const uint8_t *description;
    size_t description_bytes;
    uint32_t seq_len; // 1 .. 1048575, if there is `answer`
};

typedef struct bulk_server bulk_server_t;

// Binds and starts. FAULT_RANGE, FAULT_CONFIG (endpoint), FAULT_BUSY (port taken).
int bulk_server_new(const struct bulk_server_options *options, struct why *why,
                    bulk_server_t **ret_self);

// Ends at once, even while peers are connected. NULL allowed.
void bulk_server_destroy(bulk_server_t **self_p);

// Makes a key a guest, or no longer one. Any thread.
void bulk_server_admit(bulk_server_t *self, const struct curve_key *key, bool is_guest);

const char *bulk_server_endpoint(const bulk_server_t *self); // With the port that was bound
