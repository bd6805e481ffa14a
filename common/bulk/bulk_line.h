#pragma once
// bulk_line -- a connection of the bulk plane, at either end: TCP, the handshake of
// common/net/handshake.h, then messages.
//
//     asks                                          serves
//       │ connect, HELLO ... PROOF  ──────────────▶  │   judges the key; see handshake.h
//       │ WANT, WANT, ...           ──────────────▶  │
//       │ ◀──────────────  CHUNK + bytes, LACKING    │
//
//     a message:   [head: frame 4, 1 + raw 4]  [frame of frames.def, WIRE_BULK]  [raw bytes, of some kinds]
//     sealed:      each of the three is a record, with its tag behind it (common/net/sealing.h)
//
// The asker demands the key that the roster names beside the endpoint; the server lets in the members
// of the run's roster. What arrives is checked against a hash all the same.
//
// Every connection is sealed, unless both of its ends are loopback addresses. What goes over a loopback
// is read by root alone, and root reads the memory of both processes, keys included: there, AES would
// cost a fifth of the speed and hide nothing. The handshake is made in any case, since everybody on the
// machine may connect to a loopback.
//
// Memory of one connection: a few kilobytes that are read ahead, so that a small message costs one call of the
// kernel; the message that comes in, whose raw bytes the owner bounds (raw_max); and the messages that wait to be
// sent, which the owner counts (out_bytes). The head of a message says how long it is: one that is too long ends
// the connection before anything is allocated for it.
//
// One thread for each. Nothing blocks.

#include "common/base/fault.h"
#include "common/net/handshake.h"
#include "common/wire/wire.h"

#define BULK_PROTOCOL "shoal bulk 1"

enum {
    BULK_CHUNK_BYTES = 256 << 10,     // What a receiver asks for at once: more only blocks others
    BULK_CHUNK_MAX = 1 << 20,         // What it may ask for (WANT.count)
    BULK_LEAVES_MAX = 1 << 19,        // Leaves in one list: 16 MiB for 8.6 billion parameters
    BULK_SAMPLES_BYTES = 4 << 20,     // Tokens of one answer; a single sample may be that large
    BULK_FRAME_MAX = 1024,            // No frame of the bulk plane is longer
    BULK_BODY_MAX = 512,              // Nor unpacked
    BULK_ANSWER_BYTES_MAX = 16 << 20, // Raw bytes of one answer
    BULK_HEAD = 8,
    BULK_UNSENT_MAX = 256 << 10, // The kernel takes no more for a connection before it sends them
    BULK_READ_AHEAD = 4096,      // Bytes behind the part that is being received
};

struct bulk_mail {
    struct wire_head head;
    const void *body;   // By head.kind; in `arena`
    const uint8_t *raw; // NULL: none. Valid until the next bulk_line_recv or the end of the line
    size_t raw_count;
    _Alignas(16) uint8_t arena[BULK_BODY_MAX];
};

enum bulk_heard { BULK_NOTHING, BULK_MAIL, BULK_ENDED };

struct bulk_message;

struct bulk_line {
    int fd;               // -1: none
    bool stands, is_open; // The TCP connection does; and the handshake is done
    bool seals;
    size_t raw_max;              // Set by the owner: the longest raw part that it takes
    struct key key;              // The other end's, once it is open
    struct handshake *handshake; // Until then
    struct sealing seal, unseal;

    struct bulk_message *out, **out_end; // Not sent yet
    size_t out_bytes;

    enum bulk_part { IN_HEAD, IN_FRAME, IN_RAW } in_part; // What is being received
    size_t in_got, in_count;
    size_t ahead_from, ahead_to; // Of `ahead`: what is not taken yet
    uint8_t ahead[BULK_READ_AHEAD];
    uint8_t head[BULK_HEAD + SEALING_TAG], frame[BULK_FRAME_MAX + SEALING_TAG];
    uint8_t *raw; // Kept for the next one, unless it is large
    size_t frame_count, raw_count, raw_room;
    bool has_raw;
};

// Who we are to the other end, whichever end we are. Borrows the identity, keeps the run.
struct handshake_self bulk_line_self(const struct identity *identity, const char *run);

// Begins to connect. `own` is borrowed until the line is open. FAULT_CONFIG: the endpoint is none in
// numbers (endpoint.h). FAULT_UNREACHABLE.
int bulk_line_connect(struct bulk_line *self, const struct handshake_self *own,
                      const struct wire_holder *holder, struct why *why);
// Takes a connection that was accepted.
void bulk_line_accept(struct bulk_line *self, const struct handshake_self *own, int fd);

// Allowed if it is closed.
void bulk_line_close(struct bulk_line *self);
// The same, and the other end sees a reset: nothing of it waits in the kernel any more.
void bulk_line_cut(struct bulk_line *self);

// Does what can be done without waiting: connects, shakes hands, writes. 1: open. 0: not yet.
// FAULT_UNREACHABLE, FAULT_DENIED (one end refused the other), FAULT_SIGNATURE, FAULT_PROTOCOL.
int bulk_line_move(struct bulk_line *self, struct why *why);
short bulk_line_events(const struct bulk_line *self); // What poll should wait for

// Whether the other end has said who it is, and was wanted. Of one that was accepted.
bool bulk_line_is_greeted(const struct bulk_line *self);

// The next whole message of a line that is open. Call it until there is none, since messages that were read ahead
// do not make the descriptor readable. BULK_ENDED: no more will come; `why` says why.
enum bulk_heard bulk_line_recv(struct bulk_line *self, struct bulk_mail *mail, struct why *why);

// Queues a message; `raw` may be NULL. It is copied; what waits is sent as soon as the line is open, by
// bulk_line_move. Returns the bytes that wait more.
size_t bulk_line_put(struct bulk_line *self, const char *run, uint16_t kind, const void *body,
                     const void *raw, size_t raw_count);
