#pragma once
// handshake -- how the two ends of a TCP connection prove their keys to each other, before anything
// else goes over it.
//
//     connects                                        accepts
//        │ HELLO   who I am, whom I want, what for ──▶  │   does not want it: ANSWER with a refusal, end
//        │ ◀── ANSWER   who I am, signature             │
//        │ PROOF   signature ────────────────────────▶  │
//        both know the other's key and instance, and have two fresh AES keys, one a direction
//
// Each end draws an X25519 key for this connection alone. Both signatures (Ed25519, by the identities)
// are over all that was said before, both of these keys included: no word of another connection fits.
// The AES keys are BLAKE2b of the common secret and of all that was said.
//
// All three messages have a fixed size, so a stranger costs at most HANDSHAKE_IN_MAX bytes of memory;
// a stranger whose key is not expected costs no work with keys at all. The accepting end says nothing
// before a HELLO that names it and the run. A deadline, and how many strangers at a time, is the
// caller's to see to.
//
// A probe asks only whether the key is there: the ANSWER proves it, and both hang up. An end that
// answers probes does so for any key, at the cost of two operations with keys. So its judge_probe
// says how often (callers.h); a probe beyond that is refused, at no such cost.
//
// The links of a group (common/group) and the connections of the bulk plane (common/bulk) use it, each
// under a protocol name of its own, so no message of one is valid for the other.
//
// Pure, but for handshake_move, which reads and writes a socket. One thread at a time for each.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include "common/base/key.h"
#include "common/crypto/identity.h"
#include "common/net/sealing.h"

enum {
    HANDSHAKE_HELLO = 192,
    HANDSHAKE_ANSWER = 160,
    HANDSHAKE_PROOF = 64,
    HANDSHAKE_IN_MAX = 192
};

struct handshake_party {
    struct key key;
    uint64_t instance; // Of the process
};

// What a connection is for. The accepting end sees it before it answers.
struct handshake_purpose {
    uint32_t channel, channels; // The connection's number among those of the two, and how many
    uint64_t number;            // The caller's
    bool sealed, probe;
};

// Why the accepting end does not want a connection. Not signed: a hint for the words of an error.
#define HANDSHAKE_REFUSALS(R)                                                                      \
    R(NONE, "")                                                                                    \
    R(NOT_ME, "another key or another process of that key answers there")                          \
    R(RUN, "it belongs to another run")                                                            \
    R(STRANGER, "it does not expect a connection from this key and process")                       \
    R(PURPOSE,                                                                                     \
      "its connections are of another kind or number (link, connections, plain or sealed)")        \
    R(NOT_YET, "it has not come to this window yet")                                               \
    R(BUSY, "it answers no more calls from this address now")
#define HANDSHAKE_REFUSAL(name, text) HANDSHAKE_REFUSED_##name,
enum handshake_refusal { HANDSHAKE_REFUSALS(HANDSHAKE_REFUSAL) HANDSHAKE_REFUSAL_END };
#undef HANDSHAKE_REFUSAL
const char *handshake_refusal_text(enum handshake_refusal refusal);

// The accepting end is asked about each HELLO for its run and its process. It has cost no work with
// keys yet.
typedef enum handshake_refusal handshake_judge(void *arg, const struct handshake_party *from,
                                               const struct handshake_purpose *purpose);

enum { HANDSHAKE_PROTOCOL = 16 };

struct handshake_self {
    const char *protocol; // Shorter than HANDSHAKE_PROTOCOL. Borrowed, as is all below
    const struct identity *identity;
    struct hash run; // SHA-256 of the run's name
    uint64_t instance;
    handshake_judge *judge, *judge_probe; // judge_probe: NULL: no probe is answered
    void *judge_arg;
};

struct handshake {
    const struct handshake_self *self;
    bool accepts, done, ends; // ends: once `out` is written, the connection is to be closed
    enum handshake_refusal refusal;
    struct handshake_party peer;
    struct handshake_purpose purpose;
    uint8_t secret[32]; // Of X25519
    uint8_t hello[HANDSHAKE_HELLO], answer[HANDSHAKE_ANSWER], proof[HANDSHAKE_PROOF];
    uint8_t send_key[SEALING_KEY], take_key[SEALING_KEY];
    const uint8_t *out; // What is to be written, and what is to be read
    uint8_t *in;
    size_t out_count, out_done, in_count, in_done;
};

void handshake_connect(struct handshake *self, const struct handshake_self *own,
                       const struct handshake_party *peer, const struct handshake_purpose *purpose);
void handshake_accept(struct handshake *self, const struct handshake_self *own);
void handshake_wipe(struct handshake *self); // The keys; after they are used

// The keys of a handshake that is done, for records in both directions; nothing if it is not sealed.
// False: no memory.
bool handshake_seal(const struct handshake *self, struct sealing *ret_seal,
                    struct sealing *ret_unseal);

// Takes the message whose in_count bytes have come to `in`. FAULT_DENIED, FAULT_SIGNATURE,
// FAULT_PROTOCOL; refusal then says more. A refusal that this end makes is no fault: `ends`.
int handshake_take(struct handshake *self, struct why *why);

// Reads and writes what can be without waiting. 1: done, both ways. 0: not yet. Else as above, or
// FAULT_UNREACHABLE: the connection ended; `ends`: it was refused by this end, and is to be closed.
int handshake_move(struct handshake *self, int fd, struct why *why);
short handshake_events(const struct handshake *self); // What poll should wait for
