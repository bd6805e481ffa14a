#pragma once
// bulk_server -- the thread that hands out what this process holds, to whoever asks.
//
//     WANT          ─▶ CHUNK + bytes    or LACKING        blobs and leaves, out of the blob store
//     WANT_LEAVES   ─▶ LEAVES + bytes   or LACKING
//     WANT_SAMPLES  ─▶ SAMPLES + bytes  or NO_SAMPLES     through a function of the caller
//     WANT_DATASET  ─▶ DATASET + bytes  or NO_SAMPLES
//
// Whoever is not a guest, a member of the run's roster, is refused at the handshake; who is no more a
// guest is cut off with the next word it says. Beyond its connections it remembers nothing about
// anybody. Answers are copies: what is forgotten meanwhile is gone. An answer that does not fit is
// dropped, or NO_SAMPLES says "busy", since a receiver that keeps to its credit never has so many
// outstanding, and one that does not will ask again. What is malformed is dropped and counted, never
// answered. A peer that takes nothing for 20 s is cut off, unless it goes on talking meanwhile (which the
// kernel takes for life): then what waits for it counts as below.
//
// What it may take of this process, whoever asks (connections.h has how it is known):
//
//     a connection    BULK_CONNECTION_PENDING_MAX bytes of questions, whole or not, and what comes
//                     between two looks, a tenth of a second apart: then it is cut off. Some 4 KiB
//                     if it says nothing; 64 answers
//     a key           what waits to be sent: a sixteenth of what all leave free, so 16 MiB at most,
//                     over all its connections; beyond that one answer where no more than a chunk
//                     waits. BULK_KEY_CONNECTIONS_MAX connections, or an eighth of all if that is
//                     less: then its oldest is cut off
//     all             BULK_WAITING_MAX bytes of answers, BULK_PENDING_MAX of questions. Half of the
//                     descriptors, after the soft limit was raised to the hard one: beyond that those
//                     are cut off that have not asked anything yet, the oldest first. Strangers'
//                     connections last 5 s each at most
//
// While a function of the caller reads samples, or this thread waits for a processor, nobody is cut
// off: for that moment there may be more. Where guests themselves take all the
// room, newcomers find none: it takes eight who conspire.
//
// Yardstick: to one receiver, which hashes all of it, half of what two threads with nothing but a
// TCP socket between them move, were it in the clear; CURVE at both ends takes most of that on one
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

// Gives the samples from `position` on with their proofs, in memory from malloc. What it says in *why
// goes to the asker.
typedef int bulk_answer_fn(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                           size_t *ret_count, struct why *why);

struct bulk_server_options {
    const struct identity *identity; // Borrowed for the server's life
    const char *endpoint; // tcp://ADDRESS:PORT; ADDRESS may be *, PORT too (any free one)
    const char *run;      // Who asks on behalf of another run is refused
    blob_store_t *store;  // Borrowed for the server's life; NULL: no blobs are served

    // NULL: no samples are served. Called in the server's thread, which serves nothing else until it
    // returns. `description` is what the samples are held against.
    bulk_answer_fn *answer;
    void *arg;
    const uint8_t *description;
    size_t description_bytes;
    uint32_t seq_len; // 1 .. 1048575, if there is `answer`

    uint32_t peer_answers_max; // Answers that may wait for one peer; 0: 64
    uint32_t io_threads;       // 0: 1
};

struct bulk_server_stats {
    uint64_t chunks, chunk_bytes, leaf_lists, samples; // Answers given
    uint64_t lacking;                                  // Refusals given
    uint64_t dropped;   // Answers that did not fit, or whose asker had gone
    uint64_t malformed; // Messages that were not understood
    uint64_t refused;   // Handshakes and messages of who is no guest
    uint64_t cut;       // Connections cut off
};

typedef struct bulk_server bulk_server_t;

// Binds and starts. FAULT_RANGE, FAULT_CONFIG (endpoint), FAULT_BUSY (port taken).
int bulk_server_new(const struct bulk_server_options *options, struct why *why,
                    bulk_server_t **ret_self);

// Ends at once, whoever is connected. NULL allowed.
void bulk_server_destroy(bulk_server_t **self_p);

// Lets a key in, or no more. Any thread.
void bulk_server_admit(bulk_server_t *self, const struct curve_key *key, bool is_guest);

const char *bulk_server_endpoint(const bulk_server_t *self);     // With the port that was bound
struct bulk_server_stats bulk_server_stats(bulk_server_t *self); // Any thread
