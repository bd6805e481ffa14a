#pragma once
// msg -- the one thing that crosses the wall between deciding and doing.
//
//                 ┌──────────────── core ────────────────┐
//    struct msg ──▶ step (state, message in) ─▶ outbox   │──▶ mail, news, disk, clock, log,
//                 └──── pure: no I/O, clock, chance ─────┘     learner, fetcher ...
//
// A core is a function: (state, message in) -> (state', effects out). An effect is a message too:
// mail to a member, news to all subscribers, or a job for a port of its own process. Its result
// comes back as a message. The core does not know what carries the messages: ZeroMQ and LMDB in
// production, a priority queue in the simulator. All kinds are listed in common/wire/frames.def.
//
// The order of effects is the crash-safety argument: a shell performs them in order, and what
// follows a store happens only once the store is durable.

#include "common/actor/name.h"
#include "common/base/hash.h"
#include "common/wire/wire.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An event. Everything in it is borrowed for the call: a core copies what it keeps.
struct msg {
    uint64_t now_ms;      // Stamped on delivery, monotonic: the only clock a core ever sees
    uint16_t kind;        // Of frames.def; decides the type of `body`
    const char *run;      // The run that the sender takes part in; "" for a local port
    const char *from;     // The sender's name, as the broker gave it; "" for a local port
    struct key sender;    // The key whose signature was verified; none if unsigned or local
    uint64_t incarnation; // Of the sender, 0 if local
    uint64_t seq;         // Of the sender's news or mail, 0 if local
    const uint8_t *frame; // As it was signed, with the signature; NULL if unsigned or local
    uint32_t frame_bytes;
    const void *body; // struct wire_<record of kind>, already within all declared bounds
};

enum port {
    PORT_MAIL,    // To one actor by name; lost mail comes back UNDELIVERABLE, or not at all
    PORT_NEWS,    // To all subscribers; may be lost
    PORT_DISK,    // A record: durable before any later effect is performed
    PORT_CLOCK,   // Ring once at `at_ms` or soon after; the earliest of several wins
    PORT_LOG,     // A line for the log
    PORT_LEARNER, // The compute thread
    PORT_FETCHER, // The bulk thread: blobs and intervals from peers
    PORT_SHELL,   // QUIT: end the process
    PORT_COUNT
};

struct effect {
    enum port port;
    uint16_t kind;
    char to[ACTOR_NAME_MAX + 1]; // PORT_MAIL: the receiver
    const uint8_t *body;         // The packed body, inside the outbox's memory
    uint32_t bytes;
};

// Filled by one step, emptied by the shell. Memory is the shell's; too small is a bug (ensure).
struct outbox {
    struct effect *effects;
    uint32_t count, count_max;
    uint8_t *bytes;
    size_t used, bytes_max;
};

void outbox_clear(struct outbox *out);
void outbox_mail(struct outbox *out, const char *to, uint16_t kind, const void *body);
void outbox_news(struct outbox *out, uint16_t kind, const void *body);
void outbox_store(struct outbox *out, uint16_t kind, const void *record);
void outbox_wake(struct outbox *out, uint64_t at_ms);
void outbox_job(struct outbox *out, enum port port, uint16_t kind, const void *body);
void outbox_quit(struct outbox *out, uint8_t exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// A stable name first, then key=value: "round.committed round=7 trained=4/5 took_ms=812".
void outbox_note(struct outbox *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

// An actor as shell and simulator see it. The state is `size` bytes, zeroed at first, without
// pointers to memory outside it, so it can be compared and thrown away.
struct actor {
    size_t size;
    void (*step)(void *state, const struct msg *in, struct outbox *out);
};
