#pragma once
// bulk_server_inside -- what the sources of a bulk server share. bulk_server.h is the manual.
//
//     bulk_server.c    life, the loop, whose turn it is
//     bulk_seats.c     connections: accepted, proved, crowded out
//     bulk_answers.c   a question and its answer

#include "common/base/turns.h"
#include "common/bulk/bulk_line.h"
#include "common/bulk/bulk_server.h"
#include "common/bulk/purse.h"
#include "common/net/callers.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct asker;

// What an answer is paid from.
enum bulk_purse { BULK_PURSE_BLOBS, BULK_PURSE_STATE, BULK_PURSES, BULK_PURSE_NONE = BULK_PURSES };

struct seat { // A connection
    struct bulk_line line;
    struct bulk_mail mail; // The question in hand, if has_question
    bool has_question, is_greeted;
    enum bulk_purse purse; // Of the question in hand
    struct asker *asker;   // NULL: its key is not proved yet
    size_t counted;        // Bytes of its answers that `waiting` of its asker and of all contain
    uint64_t accepted_ms, moved_ms; // moved: when bytes last left, or the first came to wait
    TAILQ_ENTRY(seat) near; // Among the strangers, the greeted, those of its asker, or the dead
};
TAILQ_HEAD(seats, seat);

// A key that is a guest or was one. Lives as long as the server.
struct asker {
    struct waiter turn; // First: a waiter is its asker's
    struct key key;
    atomic_bool is_guest; // Written by any thread
    struct seats seats;   // The next to be answered first
    uint32_t count;
    uint64_t waiting; // Bytes of answers that are not sent
    struct purse purses[BULK_PURSES];
    uint64_t words_ms; // The instant at which its answers without raw bytes are paid for
    LIST_ENTRY(asker) bucket;
};
LIST_HEAD(bulk_bucket, asker);

enum {
    BULK_BUCKETS = 1024,
    BULK_LOOK_MS = 250,
    BULK_TURN_BYTES = 256 << 10,
    BULK_BYTES_A_US = 1000 // Bytes of an answer that a microsecond of the thread counts as
};

struct bulk_server {
    struct bulk_server_options options;
    struct handshake_self self;
    char *run;
    char endpoint[256];
    int listener, events, stop; // epoll; an eventfd
    pthread_t thread;
    pthread_mutex_t lock; // Of the buckets
    struct bulk_bucket buckets[BULK_BUCKETS];

    // The thread's own:
    struct seats strangers, greeted, dead; // The oldest first; freed after the events in hand
    uint32_t count, room, key_connections_max;
    struct turns turns;
    struct callers callers;
    uint64_t waiting;               // Of all askers
    uint64_t look_ms, accept_at_ms; // accept_at: not before, as there was no descriptor; 0: now
    const struct seat *judged;      // Whose HELLO is being judged
};

// NULL: this key was never a guest.
struct asker *bulk_find_asker(struct bulk_server *self, const struct key *key);

// ---- bulk_seats.c -------------------------------------------------------------------------------

handshake_judge bulk_judge, bulk_judge_probe;
void bulk_accept(struct bulk_server *self, uint64_t now_ms);
// Something moved on its socket. Afterwards it may be dead.
void bulk_seat_move(struct bulk_server *self, struct seat *seat, uint64_t now_ms);
// Ends the connection; a reset drops what the kernel holds of it.
void bulk_seat_end(struct bulk_server *self, struct seat *seat, bool is_cut);
// Strangers whose time is up, peers that take nothing, keys that are guests no more.
void bulk_look(struct bulk_server *self, uint64_t now_ms);
void bulk_end_all(struct bulk_server *self);
void bulk_bury(struct bulk_server *self);

// ---- bulk_server.c ------------------------------------------------------------------------------

// Counts what waits of a seat's answers, and sees to whether its asker has a turn.
void bulk_settle(struct bulk_server *self, struct seat *seat, uint64_t now_ms);
void bulk_settle_asker(struct bulk_server *self, struct asker *asker);

// ---- bulk_answers.c -----------------------------------------------------------------------------

bool bulk_is_question(const struct bulk_server *self, const struct bulk_mail *mail);
// What the answer to this question is paid from.
enum bulk_purse bulk_purse_of(const struct bulk_server *self, const struct bulk_mail *mail);
// Whether the asker of the question in hand has something left to pay with.
bool bulk_may_have(const struct bulk_server *self, struct seat *seat, uint64_t now_ms);
// Queues the answer to the question in hand, and charges it to its purse. Returns its bytes.
size_t bulk_answer(struct bulk_server *self, struct seat *seat);
