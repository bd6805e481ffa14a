#pragma once
// peers -- the fetcher's connections: one DEALER for each endpoint it asks, and all requests on
// their way.
//
//     fetch ──peers_ask──▶ [want, want, ...] ──▶ holder        as much as there is credit for
//     fetch ◀──answer───── the want it belongs to ◀── holder   or, when patience is over, SILENT
//
// Credit: WANTS_MAX requests and PEERS_BYTES_MAX bytes over all; for one peer PEER_WANTS_MAX
// requests and a window of chunks that begins small and grows by one with each answer, so that a
// peer that is not there costs little. A peer that lets a request wait is silent: all its requests
// fail and its socket is made anew when it is next asked (a connecting socket can be deaf for
// good). So is one that sends what is no message without end, at once: BULK_PENDING_ONE_MAX bytes of it,
// or the most of PEERS_PENDING_MAX over all. Of open sockets there are PEERS_OPEN_MAX; the one longest unused and idle gives way.
//
// One thread.

#include "common/bulk/bulk_dealer.h"

enum { PEERS_OPEN_MAX = 32, WANTS_MAX = 256, PEER_WANTS_MAX = 32, PEER_WINDOW_MIN = 2,
       PEER_WINDOW_MAX = 8, PEERS_BYTES_MAX = 64 * BULK_CHUNK_BYTES,
       PEERS_PENDING_MAX = 2 * BULK_PENDING_ONE_MAX };

struct fetch;                           // Whoever asks; see fetch.h
struct peers;

struct peer {
    struct wire_holder holder;          // Where it is, and its key
    uint64_t name_hash;                 // Of both, to find it fast
    uint32_t users;                     // Lists that name it
    struct bulk_dealer dealer;          // Its socket is NULL: not connected
    uint64_t used_ms, heard_ms;
    uint32_t wants, bytes, window;      // On their way, and chunks that may be
    bool was_silent, has_lied;          // Others are asked first
};

enum answer_kind {
    ANSWER_CHUNK,                       // bytes, count: of the piece that was asked for
    ANSWER_LEAVES,
    ANSWER_LACKING,                     // The peer says that it does not have it
    ANSWER_SILENT,                      // It says nothing
    ANSWER_WRONG,                       // It says what is no answer to the question
};

struct answer {
    enum answer_kind kind;
    struct fetch *fetch;                // NULL: whoever asked is gone
    struct peer *peer;
    uint32_t piece;                     // As given to peers_ask
    const uint8_t *bytes;               // Valid until the next call of peers_next
    size_t count;
    uint64_t total;                     // ANSWER_CHUNK: bytes of the whole blob, by the peer's word
};

// The identity is borrowed.
struct peers *peers_new(const struct identity *identity, const char *run, uint32_t patience_ms);
void peers_destroy(struct peers **self_p);

// Names a peer for as long as a list holds it. Does not connect. NULL: no memory.
struct peer *peers_find(struct peers *self, const struct wire_holder *holder);
void peers_leave(struct peers *self, struct peer *peer);

// Whether a request for so many bytes may be sent now.
bool peers_has_credit(const struct peers *self, const struct peer *peer, uint32_t bytes);
bool peers_is_spent(const struct peers *self);          // No credit left for anybody

// Asks for a piece: [offset, offset + count) of a blob, or the leaves of a digest. False: not now.
bool peers_ask_piece(struct peers *self, struct peer *peer, struct fetch *fetch, uint32_t piece,
                     const struct hash *hash, uint64_t offset, uint32_t count, uint64_t now_ms);
bool peers_ask_leaves(struct peers *self, struct peer *peer, struct fetch *fetch,
                      const struct hash *digest, uint64_t now_ms);

// Answers to requests of this fetch will come with fetch NULL.
void peers_forget_fetch(struct peers *self, const struct fetch *fetch);

// Fills in what to poll; at most PEERS_OPEN_MAX items.
int peers_fill_items(const struct peers *self, zmq_pollitem_t *items);
int peers_timeout_ms(const struct peers *self, uint64_t now_ms);    // Until somebody is silent; -1

// The next answer, or false: none now. Call until false; peers take turns.
bool peers_next(struct peers *self, uint64_t now_ms, struct answer *ret_answer);
