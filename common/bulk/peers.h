#pragma once
// peers -- the fetcher's connections: one DEALER for each endpoint it asks, and all requests on
// their way.
//
//     fetch ──peers_ask──▶ [want, want, ...] ──▶ holder        as much as there is credit for
//     fetch ◀──answer───── the want it belongs to ◀── holder   or, when patience is over, SILENT
//
// Credit: WANTS_MAX requests and PEERS_BYTES_MAX bytes over all; for one peer PEER_WANTS_MAX
// requests and a window that begins small and grows with each answer, so that a peer that is not
// there costs little. No peer has more on its way than is left for the others (Choudhury & Hahne,
// Dynamic queue length thresholds, 1998): however many keep all that they can, one more gets half as
// much at once.
//
// Half of the patience is late. Who is late is slow until it answers in time again: its window is
// halved, down to one request, others are asked first, and what it lets wait is asked again of one who
// is not slow. So what slow ones cost is bounded by the patience, however true their answers are.
//
// A peer that lets a request wait is silent: all its requests fail and its socket is made anew when
// it is next asked (a connecting socket can be deaf for good). So is one that sends what is no message
// without end, at once: BULK_PENDING_ONE_MAX bytes of it, or the most of PEERS_PENDING_MAX over all. Of
// open sockets there are PEERS_OPEN_MAX; the one longest unused and idle gives way, or, if there is none,
// one who is slow: as if it were silent.
//
// One thread.

#include "common/bulk/bulk_dealer.h"
#include "common/bulk/reputation.h"

enum {
    PEERS_OPEN_MAX = 32,
    WANTS_MAX = 256,
    PEER_WANTS_MAX = 32,
    PEER_WINDOW_BEGIN = 2 * BULK_CHUNK_BYTES,
    PEER_WINDOW_MAX = 8 * BULK_CHUNK_BYTES,
    PEERS_BYTES_MAX = 64 * BULK_CHUNK_BYTES,
    PEERS_PENDING_MAX = 2 * BULK_PENDING_ONE_MAX
};

#define PIECE_LEAVES UINT32_MAX // No chunk and no leaf has this number

struct fetch; // Whoever asks; see fetch.h
struct peers;

struct peer {
    struct wire_holder holder; // Where it is, and its key
    uint64_t name_hash;        // Of both, to find it fast
    uint32_t users;            // Lists that name it
    struct bulk_dealer dealer; // Its socket is NULL: not connected
    uint64_t used_ms, heard_ms;
    uint32_t wants, bytes, window; // On their way, and bytes that may be; one request always may
    uint64_t halved_ms;            // The window, last
    struct reputation reputation;
};

enum answer_kind {
    ANSWER_CHUNK, // bytes, count: of the piece that was asked for
    ANSWER_LEAVES,
    ANSWER_LACKING, // The peer says that it does not have it
    ANSWER_SILENT,  // It says nothing
    ANSWER_WRONG,   // It says what is no answer to the question
};

struct answer {
    enum answer_kind kind;
    struct fetch *fetch; // NULL: whoever asked is gone
    struct peer *peer;
    uint32_t piece;       // As given to peers_ask
    const uint8_t *bytes; // Valid until the next call of peers_next
    size_t count;
    uint64_t total; // ANSWER_CHUNK: bytes of the whole blob, by the peer's word
};

// The identity is borrowed.
struct peers *peers_new(const struct identity *identity, const char *run, uint32_t patience_ms);
void peers_destroy(struct peers **self_p);

// Names a peer for as long as a list holds it. Does not connect. NULL: no memory.
struct peer *peers_find(struct peers *self, const struct wire_holder *holder);
void peers_leave(struct peers *self, struct peer *peer);

bool peers_is_spent(const struct peers *self); // No credit left for anybody

// Asks for a piece: [offset, offset + count) of a blob, or the leaves of a digest (their piece is
// PIECE_LEAVES). False: not now.
bool peers_ask_piece(struct peers *self, struct peer *peer, struct fetch *fetch, uint32_t piece,
                     const struct hash *hash, uint64_t offset, uint32_t count, uint64_t now_ms);
bool peers_ask_leaves(struct peers *self, struct peer *peer, struct fetch *fetch,
                      const struct hash *digest, uint64_t now_ms);

// Asks this one too for what another has let wait longest, and is late with. A request is asked again
// twice at most; so may those be, in turn. False: nothing is late, this one is slow itself, or not now.
bool peers_ask_again(struct peers *self, struct peer *peer, struct fetch *fetch, uint64_t now_ms);

// Whether anybody still is to answer with this piece.
bool peers_await(const struct peers *self, const struct fetch *fetch, uint32_t piece);

// Answers to requests of this fetch, or for this piece of it, will come with fetch NULL. Returns how
// many requests for the piece there are.
uint32_t peers_forget_piece(struct peers *self, const struct fetch *fetch, uint32_t piece);
void peers_forget_fetch(struct peers *self, const struct fetch *fetch);

// Fills in what to poll; at most PEERS_OPEN_MAX items.
int peers_fill_items(const struct peers *self, zmq_pollitem_t *items);
int peers_timeout_ms(const struct peers *self, uint64_t now_ms); // Until somebody is silent; -1

// The next answer, or false: none now. Call until false; peers take turns.
bool peers_next(struct peers *self, uint64_t now_ms, struct answer *ret_answer);
