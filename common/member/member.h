#pragma once
// member -- what every member of a run does, whatever its role: asks to be let in, keeps its lease,
// follows the coordinator's news and asks again for what it missed.
//
//     JOIN ─▶ ADMITTED ─▶ ASK config, run, roster ─▶ follow RUN, ROSTER ─▶ PING, PING, PING ...
//      ▲                                                        │
//      └────────── REFUSED not-a-member (lease ran out) ◀───────┘
//
// News may be lost, so nothing hangs on it: every BEAT is held against what is known, and what is
// missing is asked for by mail. Frames of an older incarnation of the coordinator are dropped. The
// coordinator is whoever signed the first ADMITTED; news by another key are dropped.
//
// Part of a core: pure. It is the first field of a role's state.

#include "common/actor/msg.h"
#include "common/run/roster.h"

enum { MEMBER_TICK_MS = 200, MEMBER_RETRY_MS = 1000, MODEL_JSON_MAX = 65536 };

struct member {
    // Given by the shell before the first message.
    uint8_t role; // enum role
    struct key key;
    char name[ACTOR_NAME_MAX + 1], run[WIRE_RUN_MAX + 1], endpoint[128];
    uint64_t samples; // Of a data source of its own; 0: none
    struct hash data, positions;

    uint64_t instance; // Of this process: its start in unix ms
    bool admitted, has_config, has_run, leaving;
    bool finished; // The run is, and so is all that we had to do in it
    struct key coordinator;
    uint64_t born_unix_ms; // When the run began: tells it from one of the same name before
    uint64_t incarnation;  // Its newest
    uint32_t index;        // Ours in the roster
    uint64_t ping_ms, join_ms, ask_ms, tick_ms; // When next
    struct wire_config config;
    uint8_t model_json[MODEL_JSON_MAX];
    struct wire_run now;  // The newest RUN
    struct roster roster; // Version 0: none yet

    struct wire_journal journal;   // What a restart will find, once it is stored: what was promised
    struct wire_position position; // The newest BEAT, as evidence; log_seq 0: none (position.c)
    uint64_t proved_incarnation;   // The coordinator's life that is followed
    uint64_t doubt_ms;             // No POSITION before
    uint32_t doubts;               // How often one was sent and not yet acknowledged

    // For the pings; kept by the parts.
    bool has_round; // False: whatever round comes is news, as the owner gave up an older copy
                    // of the ledger (position.c), or none has come yet
    uint64_t round; // The newest that is known, by the number that the run's pace counts
    uint64_t step_held;
    float loss, tokens_per_s;
};

// What a message brought, as flags.
enum heard {
    HEARD_CONFIG = 1,  // The configuration has arrived (again)
    HEARD_RUN = 2,     // self->now is new
    HEARD_PACE = 4,    // The coordinator of now said it, and it is not for members in general
    HEARD_ROSTER = 8,  // self->roster is new
    HEARD_REBORN = 16, // The coordinator restarted: what it may have forgotten is to be said again
    HEARD_ADMITTED = 32,   // Let in (again)
    HEARD_TICK = 64,       // MEMBER_TICK_MS or more have passed: time to look after retries
    HEARD_COMMIT = 128,    // in->body is a COMMIT by the coordinator, for the role to take
    HEARD_EPOCH_END = 256, // in->body is an EPOCH_END by the coordinator
    HEARD_ACK = 512,       // in->body is an ACK
    HEARD_REFUSED = 1024,  // in->body is a REFUSED that the role must deal with
};

// Takes the message if it concerns every member: so JOURNAL, QUIT and the answer to LEAVE are dealt
// with here, once for all roles. Returns what it brought; 0: nothing for the parts.
unsigned member_hear(struct member *self, const struct msg *in, struct outbox *out);

// Stores the journal, into which a part has written what it is about to promise, and with it the
// position. Comes before the promise itself: effects are performed in their order.
void member_promise(struct member *self, struct outbox *out);

// ---- position.c: the coordinator's word on its ledger, remembered -------------------------------

// The journal of the life before. Whether the position has moved far since it was stored: then it is
// to be stored for its own sake.
void member_recall(struct member *self, const struct wire_journal *journal);
bool member_should_keep(const struct member *self);

// Whether this message of the coordinator's key comes from a life that is followed. Takes BEATs down.
bool member_follows(struct member *self, const struct msg *in, struct outbox *out);
void member_hear_proof(struct member *self, const struct msg *in);       // An ACK of a POSITION
void member_forget_position(struct member *self, uint64_t born_unix_ms); // If it is another run's

// True if this message was signed by the run's coordinator.
bool member_is_coordinator(const struct member *self, const struct msg *in);

// The roster's line of a member.
const struct wire_member *member_at(const struct member *self, uint32_t index); // NULL if unknown

// ---- holders.c: whom to ask ----------------------------------------------------------------------

// Endpoints that may hold what we lack, at most `max`: first (if not UINT32_MAX) that of one member,
// then trainers and checkpointers at work, then those who wait and witnesses. Each begins after itself, so
// that not all ask the same one, and each try `max` places further on, so that no neighbours, however many
// and whoever they are, come between it and all the others.
uint32_t member_holders(const struct member *self, uint32_t first_member, uint32_t tries,
                        struct wire_holder *ret_list, uint32_t max);

// Endpoints of the data providers at work, starting at another one for each member and in each
// round: where there are more than `max`, each has its turn.
uint32_t member_providers(const struct member *self, struct wire_holder *ret_list, uint32_t max);
