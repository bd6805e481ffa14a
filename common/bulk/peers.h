#pragma once
// peers -- the fetcher's connections: one line for each endpoint it asks, and all open requests.
//
//     fetch ──peers_ask──▶ [want, want, ...] ──▶ holder        as much as there is credit for
//     fetch ◀──answer───── the want it belongs to ◀── holder   or SILENT, when the patience is over
//
// Credit: WANTS_MAX requests and PEERS_BYTES_MAX bytes in all; for one peer PEER_WANTS_MAX requests
// and a window of bytes that begins small and grows with each answer, so that an unreachable peer
// costs little. No peer may have more open than is left for the others (Choudhury & Hahne, Dynamic
// queue length thresholds, 1998): however many peers use all they may, one more gets half as much
// at once.
//
// A request is late after half the patience. A peer that is late is slow until it answers in time
// again: its window is halved, down to one request, other peers are asked first, and its late
// requests are repeated to a peer that is not slow. So the patience bounds what slow peers cost,
// even if their answers are right.
//
// A peer that does not answer within the patience is silent, and so at once is one whose connection
// is refused or ends: all its requests fail, and the next request connects again. A peer may send
// answers to open requests, each as long as its request says at most, and nothing else: otherwise it
// has lied, and is silent at once. So what peers send fills no more memory than is asked for:
// PEERS_BYTES_MAX, and one list of leaves of BULK_ANSWER_BYTES_MAX for each that is asked for.
// PEERS_OPEN_MAX connections may be open. If one more is needed, the idle one that was unused for
// longest is closed; if none is idle, a slow peer loses its own as if it were silent.
//
// One thread.

#include "common/bulk/bulk_line.h"
#include "common/bulk/reputation.h"
#include <poll.h>

enum {
    PEERS_OPEN_MAX = 64,
    PEERS_URGENT_MS = 50,
    WANTS_MAX = 256,
    PEER_WANTS_MAX = 32,
    PEER_WINDOW_BEGIN = 2 * BULK_CHUNK_BYTES,
    PEER_WINDOW_MAX = 8 * BULK_CHUNK_BYTES,
    PEERS_BYTES_MAX = 64 * BULK_CHUNK_BYTES
};

#define PIECE_LEAVES UINT32_MAX // No chunk and no leaf has this number

struct fetch; // The asker; see fetch.h
struct peers;

struct peer {
    struct wire_holder holder; // Its endpoint and key
    uint64_t name_hash;        // Of both, for a fast search
    uint32_t users;            // Lists that name it
    bool is_open;              // It has a line
    bool has_news;             // Something has happened on it that peers_next has not looked at
    struct bulk_line line;
    uint64_t used_ms, heard_ms;
    uint32_t wants, bytes, window; // Open requests, their bytes, the limit of bytes
    // The longest of the open requests: answers come one after another, a long one before a short one.
    uint64_t patience_ms;
    uint64_t halved_ms; // When the window was last halved
    struct reputation reputation;
};

enum answer_kind {
    ANSWER_CHUNK, // bytes, count: of the piece that was asked for
    ANSWER_LEAVES,
    ANSWER_LACKING, // The peer says that it does not have it
    ANSWER_SILENT,  // It did not answer in time
    ANSWER_WRONG,   // Its answer does not fit the question
};

struct answer {
    enum answer_kind kind;
    struct fetch *fetch; // NULL: the asker is gone, or has the piece already
    struct peer *peer;
    uint32_t piece;       // As given to peers_ask
    const uint8_t *bytes; // Valid until the next call of peers_next
    size_t count;
    uint64_t total; // ANSWER_CHUNK: bytes of the whole blob, as the peer claims
};

// The identity is borrowed.
struct peers *peers_new(const struct identity *identity, const char *run, uint32_t patience_ms);
void peers_destroy(struct peers **self_p);

// Finds or adds a peer, which lives until peers_leave. Does not connect. NULL: no memory.
struct peer *peers_find(struct peers *self, const struct wire_holder *holder);
void peers_leave(struct peers *self, struct peer *peer);

bool peers_is_spent(const struct peers *self); // No peer has credit left

// Asks for a piece: [offset, offset + count) of a blob, or the leaves of a digest (their piece is
// PIECE_LEAVES). False: not now.
bool peers_ask_piece(struct peers *self, struct peer *peer, struct fetch *fetch, uint32_t piece,
                     const struct hash *hash, uint64_t offset, uint32_t count, uint64_t now_ms);
bool peers_ask_leaves(struct peers *self, struct peer *peer, struct fetch *fetch,
                      const struct hash *digest, uint32_t leaves, uint64_t now_ms);

// Repeats to this peer the oldest late request of this fetch that another peer has. At most three
// peers are asked for one piece at once; one that lacks it makes room for another. The fetch may say that the peer
// lacks it (fetch.h). With `urgent_ms`
// the fetch is urgent since then, and a request is late PEERS_URGENT_MS after that and after it was
// sent; one to a doubtful peer is late at once. False: nothing is late, this peer is slow itself, or
// it has no credit now.
bool peers_ask_again(struct peers *self, struct peer *peer, struct fetch *fetch, uint64_t urgent_ms,
                     uint64_t now_ms);

// Whether a request for this piece is open.
bool peers_await(const struct peers *self, const struct fetch *fetch, uint32_t piece);

// From now on answers to requests of this fetch, or for this piece of it, have fetch NULL. Returns
// the number of open requests for the piece.
uint32_t peers_forget_piece(struct peers *self, const struct fetch *fetch, uint32_t piece);
void peers_forget_fetch(struct peers *self, const struct fetch *fetch);

// Sends the requests that wait to be sent. Call it before polling.
void peers_send(struct peers *self);

// _fill_items fills in what to poll, at most PEERS_OPEN_MAX items. _hear_items takes the same items after poll:
// peers_next looks only at peers on which poll found something, and at those that it has not read to the end.
int peers_fill_items(const struct peers *self, struct pollfd *items);
void peers_hear_items(struct peers *self, const struct pollfd *items);
int peers_timeout_ms(const struct peers *self, uint64_t now_ms); // Until the next time-out; -1

// The next answer; false: there is none now. Call it until it is false; peers take turns.
bool peers_next(struct peers *self, uint64_t now_ms, struct answer *ret_answer);
