#pragma once
// async_server -- a parameter server of an asynchronous run: which push is applied, and what is told of it.
//
//     trainer                         server                              here
//        │  push: gradient, and who     │
//        │ ───────────────────────────▶ │ async_server_judge ─▶ a verdict
//        │                              │ moves its share, if the verdict is APPLY
//        │                              │ async_server_settle: the push is on record
//        │ ◀─────────────────────────── │ the verdict, and the version
//        │  pull                        │
//        │ ───────────────────────────▶ │ async_server_judge_pull, async_server_pulled
//        │ ◀─────────────────────────── │ parameters and the version
//
// The *version* of a share is how many pushes have moved it. The *lag* of a push is how many have moved it since the
// parameters were pulled that its gradient was computed at, the trainer's own ones included. With a lag of
//
//     limit = floor(live trainers x staleness), at least 1
//
// or more a push is stale: it is discarded, counted, and its trainer is told to pull (elastic.md A6; PaddlePaddle's
// staleness is 1.5). A trainer that has not pulled from this server since it came, or since the server did, is told
// so, too. A trainer alone, with limit 1, has its second push after a pull discarded: let it pull as often as it
// pushes, or raise the staleness.
//
// A push is applied once: its trainer numbers them from 1 in each process, repeats one that was not answered, and is
// told the same again. A push is refused, and its trainer to be named, if it is of another process than the group
// has, was meant for another holder of this place, is under the lease of another trainer or an old one, names a
// version that its trainer cannot have, or has a number that is not finite. A refusal leaves nothing behind but its
// count.
//
// The struct is saved in the server's piece: a value of fixed size, without pointers or padding. What a server that
// loads it has applied since is lost, and so are the sequence numbers of that: a trainer that never had an answer
// repeats, one that had goes on. A place that was lost gets a new number. So this server never takes a version of the
// lost one for its own.
//
// Pure; one thread.

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ASYNC_TRAINERS_MAX = 64,
    ASYNC_LAGS = 16,        // The last one: that lag or more
    ASYNC_STALENESS = 1500, // In thousandths
};

#define ASYNC_NEVER UINT64_MAX // No version

// What is known of a trainer, a line for each that was here.
struct async_line {
    uint64_t instance; // Of its process; 0: this line is free
    uint64_t sequence; // Of its newest push that was applied or discarded; 0: none of this process
    uint64_t lease;    // The newest one that it pushed under; 0: none of this process
    uint64_t pulled;   // The version of its last pull; ASYNC_NEVER: none yet
    uint64_t seen;     // The version when it last pushed, pulled or came
    uint64_t pushes, discards, refusals, pulls; // pulls: without the first one of a process
    uint64_t lags[ASYNC_LAGS]; // How many pushes had that lag, discarded ones included
    uint32_t member;           // By index in the roster
    uint8_t live;              // In the group
    uint8_t discarded;         // Its newest push was
    uint8_t unused[2];
};

struct async_server {
    uint64_t version;
    uint64_t place_number; // Under which this process holds its place among the servers
    uint64_t staleness;    // In thousandths
    struct async_line lines[ASYNC_TRAINERS_MAX];
};

void async_server_init(struct async_server *self, uint32_t staleness_thousandths);

// Whether one that was loaded can be true: bounded, and each line of another member.
bool async_server_is_sound(const struct async_server *self);

struct async_member {
    uint32_t member; // By index in the roster
    uint64_t instance;
};

// A group is formed: its trainers, at most ASYNC_TRAINERS_MAX, all of other members (ensured). Another instance than
// before begins at sequence 1, without a lease or a pull; its counts go on. If the place number is another one than
// before, nobody has pulled. When no line is free, the trainer that was seen longest ago is forgotten.
void async_server_begin(struct async_server *self, uint64_t place_number,
                        const struct async_member *trainers, uint32_t count);

uint64_t async_server_limit(const struct async_server *self); // Lag from which on a push is stale

struct async_push {
    uint32_t member;
    uint64_t instance;
    uint64_t sequence;     // From 1
    uint64_t lease;        // Of the task that its samples are of. Not 0
    uint64_t place_number; // Of the server, as the trainer knows it
    uint64_t
        version; // Of this server's share, at which the gradient was computed; ASYNC_NEVER: of none
    float rate;  // Of the step that it makes: that of the run's step, as its task was dealt
};

// Finite, and not below 0: an optimizer takes no other.
static inline bool async_is_rate(float rate) { return rate >= 0 && rate <= FLT_MAX; }

// ASYNC_TAKEN: for pulls. All behind it are refusals.
enum async_verdict {
    ASYNC_APPLY,
    ASYNC_APPLIED_BEFORE,
    ASYNC_STALE, // Discarded: pull
    ASYNC_TAKEN,
    ASYNC_OTHER_INSTANCE,
    ASYNC_OTHER_PLACE,
    ASYNC_OTHER_LEASE,
    ASYNC_NO_SEQUENCE,
    ASYNC_NO_VERSION,
    ASYNC_NOT_FINITE,
    ASYNC_UNREADABLE, // It is no question (async_header.h), or has another number of floats than the share
    ASYNC_VERDICTS,
};

static inline bool async_is_refusal(enum async_verdict verdict) { return verdict > ASYNC_TAKEN; }
const char *async_verdict_text(enum async_verdict verdict); // "applied before", ...

// Changes nothing. The gradient is that of this share, `floats` numbers.
enum async_verdict async_server_judge(const struct async_server *self,
                                      const struct async_push *push, const float *gradient,
                                      uint64_t floats);

// The push has been dealt with as judged: with APPLY its gradient has moved the share. If the optimizer could not use
// it, so that nothing has moved, say NOT_FINITE instead.
void async_server_settle(struct async_server *self, const struct async_push *push,
                         enum async_verdict verdict);

// A pull: TAKEN, or the process or the place is another.
enum async_verdict async_server_judge_pull(const struct async_server *self, uint32_t member,
                                           uint64_t instance, uint64_t place_number);
// It has been given the parameters of this version: `version` is what its next pushes name.
void async_server_pulled(struct async_server *self, uint32_t member);

// The line of a member; NULL: it was never here.
const struct async_line *async_server_line(const struct async_server *self, uint32_t member);
