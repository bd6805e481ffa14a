#pragma once
// bulk_server -- the thread that serves this process's blobs, pins and samples to other members.
//
//     WANT          ─▶ CHUNK + bytes    or LACKING        blobs and leaves, out of the blob store
//     WANT_LEAVES   ─▶ LEAVES + bytes   or LACKING
//     WANT_SAMPLES  ─▶ SAMPLES + bytes  or NO_SAMPLES     through a function of the caller
//     WANT_DATASET  ─▶ DATASET + bytes  or NO_SAMPLES
//
// A guest is a key on the run's roster. A key that is not a guest is refused at the handshake
// (bulk_line.h); a key that is no longer a guest is cut off within a second, and gets no answer. To
// anybody who asks for it (a probe) the server proves that its key is here, and hangs up: so the
// coordinator tells whether others can reach a member (actors/coordinator/reach.h). An address gets
// 20 such proofs a second, and 100 handshakes, 4 of them with the name of one guest (callers.h);
// beyond that it is refused before any work with keys. What is left to a flood is that much from
// each of its addresses, and what the kernel and this thread need to accept and close a connection:
// about 50 us and 600 bytes each way, so 800 a second fill a line of 4 Mbit/s. A firewall can bound
// that, and we cannot.
//
// Askers take turns, key by key, by the bytes of their answers and by the time that these take (turns.h). A
// connection has one question in hand; its further ones wait in the connection, as does one whose answer has no
// room yet. So nothing is dropped, and a peer that does not read delays only itself. Answers are copies: the store
// may forget a blob while it is sent. A message that is no question ends its connection, and so does the peer
// when it hangs up, whatever it had asked. A peer that takes nothing for 20 s is cut off.
//
// Limits on what peers may take of this process:
//
//     a connection    one question; BULK_LINE_WAITING bytes of answers, and one more answer
//     a key           unsent answers: a sixteenth of the bytes that are free, so 16 MiB at most, over
//                     all its connections, and one more answer. BULK_KEY_CONNECTIONS_MAX
//                     connections, or an eighth of all if that is less: beyond that its oldest
//                     connection is cut off. A member's fetcher has one, its learner one more to a
//                     data provider; the rest is for connections whose end is not known here yet
//                     all blobs that are here twice, and each new one once more as it comes; and
//                     the state that is here twice, and each new leaf of a share once more as it
//                     comes (purse.h). For more it waits. BULK_WORDS answers without bytes (LACKING
//                     ..), then one each BULK_WORD_MS. Samples are not counted, as there is no
//                     saying how often they are wanted: they go by turns, and a trainer leaves a
//                     slow provider
//     all             BULK_WAITING_MAX bytes of answers, and one more. Half of the descriptors, after
//                     the soft limit was raised to the hard one: beyond that, connections that have
//                     not proved a guest's key are cut off, the oldest first, those that have named
//                     one last. A stranger's connection lasts 5 s at most
//
// So a joiner gets a whole state at full speed, and a member each blob. One that asks for the same
// without end gets no more of this line than a member that fetches all from here, after a burst:
// the kernel divides the line by connections, so while its purse lasts it may have four shares.
// Nobody can tell a key that takes a whole state to do harm from one that joins. Many guests
// together can take all the room for connections; then no other peer gets in. While the caller's
// function reads samples nobody is served.
//
// Yardstick: two threads with a plain TCP socket between them (tests/bench/bulk_bench.c measures in
// turns). A line alone is no slower, sealed or not. A fetcher computes SHA-256 of every byte. Large blobs are
// hashed by a second thread (hash_beside.h), so a fetcher is as fast as the slower of SHA-256 and the line.

#include "common/base/fault.h"
#include "common/bulk/blob_store.h"
#include "common/crypto/identity.h"

enum {
    BULK_LINE_WAITING = 1 << 20,
    BULK_WAITING_MAX = 256 << 20,
    BULK_WAITING_SHARES = 16,
    BULK_KEY_CONNECTIONS_MAX = 4,
    // What is held counts as at least so much, so that a small run can be restarted often
    BULK_BLOBS_LEAST = 512 << 10,
    BULK_STATE_LEAST = 16 << 20,
    BULK_WORDS = 1000,
    BULK_WORD_MS = 10,
};

// Returns the samples from `position` on with their proofs, in memory from malloc. The text of *why
// is sent to the asker.
typedef int bulk_answer_fn(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                           size_t *ret_count, struct why *why);

struct bulk_server_options {
    const struct identity *identity; // Borrowed for the server's life
    // tcp://ADDRESS:PORT; ADDRESS may be * or an interface's name, PORT * (any free one)
    const char *endpoint;
    const char *run;     // A connection for another run is refused
    blob_store_t *store; // Borrowed for the server's life; NULL: no blobs are served

    // NULL: no samples are served. Called in the server's thread, which serves nothing else until
    // it returns. The samples are checked against `description`.
    bulk_answer_fn *answer;
    void *arg;
    const uint8_t *description;
    size_t description_bytes;
    uint32_t seq_len; // 1 .. 1048575, if there is `answer`
};

typedef struct bulk_server bulk_server_t;

// Binds and starts. FAULT_RANGE, FAULT_CONFIG (endpoint), FAULT_BUSY (port taken), FAULT_UNAVAILABLE (no
// address of this machine). Or the system's fault.
int bulk_server_new(const struct bulk_server_options *options, struct why *why,
                    bulk_server_t **ret_self);

// Ends at once, even while peers are connected. NULL allowed.
void bulk_server_destroy(bulk_server_t **self_p);

// Makes a key a guest, or no longer one. Any thread.
void bulk_server_admit(bulk_server_t *self, const struct key *key, bool is_guest);

const char *bulk_server_endpoint(const bulk_server_t *self); // With the port that was bound
