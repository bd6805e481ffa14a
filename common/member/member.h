#pragma once
// member -- what every member of a run does, whatever its role: it joins, keeps its lease, follows
// the coordinator's news and asks for what it missed.
//
//     JOIN ─▶ ADMITTED ─▶ ASK config, run, roster ─▶ follow RUN, ROSTER, MEMBERS ─▶ PING, PING ...
//      ▲                                                        │
//      └────────── REFUSED not-a-member (lease ran out) ◀───────┘
//
// Before it joins, each time, it asks whether others can connect to it (address.c).
//
// News may be lost, so nothing depends on them: the member compares every BEAT with what it knows
// and asks by mail for what is missing. It follows one key: the owner's that the ticket names, else
// the one of its journal, else the one that signed the first ADMITTED; the journal has it from then
// on. Frames by another key are dropped, and so are frames of an older incarnation of the
// coordinator.
//
// Part of a core: pure. The state of every role begins with a struct member.

#include "common/actor/msg.h"
#include "common/run/roster.h"

enum {
    MEMBER_TICK_MS = 200,
    MEMBER_SAYS_MS = 10000, // How often it says that it may not join yet
    MEMBER_RETRY_MS = 1000,
    MEMBER_CUT_OFF_MS = 10000, // From a refusal to the next question, while nobody reaches us
    MODEL_JSON_MAX = 65536
};

// What is known of the address that we announce (address.c).
struct member_address {
    bool is_checked;     // We ask before we join. The shell sets it; in the simulator nobody asks
    bool is_unknown;     // It is not known yet whether others reach it: we go on asking
    bool is_answered;    // The coordinator has answered, be it "not now"
    bool is_refused;     // The coordinator could not connect to it, once
    bool is_cut_off;     // Nor the second time, and we were in the run before: no JOIN until it can
    uint64_t number;     // Of the question; an answer to an earlier one is ignored
    uint64_t ask_ms;     // When we ask again
    uint64_t join_ms;    // JOIN waits for the answer until then
    uint64_t end_ms;     // Once admitted, we ask no more from then on; 0: not admitted yet
    uint64_t reached_ms; // When the coordinator said that it can connect to it
};

struct member {
    // Given by the shell before the first message.
    uint8_t role; // enum role
    struct key key;
    char name[ACTOR_NAME_MAX + 1], run[WIRE_RUN_MAX + 1], endpoint[128];
    bool is_guest; // In a run of somebody else: it ends with the run, and does not stay for peers
    uint64_t samples; // Of its own data source; 0: it has none
    struct hash data, positions;
    struct member_address address;

    uint64_t instance; // Of this process: its start in unix ms
    bool admitted, has_config, has_run;
    // The operator ends us: LEAVE is sent until it is acknowledged. Meanwhile peers may fetch what
    // they lack. While leaves_later, LEAVE waits: others need us for the work that we are at. The
    // pace sets it.
    bool leaving, leaves_later;
    bool finished;          // The run is finished, and so is all our work in it
    struct key coordinator; // The owner's, once it is known. The shell sets it if the ticket has it
    uint64_t born_unix_ms;  // When the run began: earlier runs may have its name
    uint64_t incarnation;   // The newest of the coordinator
    uint32_t index;         // Ours in the roster
    uint64_t ping_ms, join_ms, ask_ms, tick_ms, said_ms; // The next time for each
    struct wire_config config;
    uint8_t model_json[MODEL_JSON_MAX]; // Where `config` points to
    _Alignas(8) uint8_t strategy[STRATEGY_BYTES];
    struct wire_run now;         // The newest RUN
    struct roster roster;        // Version 0: none yet
    uint64_t roster_incarnation; // Of the coordinator process that sent the last ROSTER

    struct wire_journal journal;   // The promises of the pace. A restart finds them once stored
    struct wire_position position; // The newest BEAT, as evidence; log_seq 0: none (position.c)
    uint64_t proved_incarnation;   // The coordinator process that is followed
    uint64_t doubt_ms;             // No POSITION before this
    uint32_t doubts;               // POSITIONs sent since the last acknowledgement

    // For the pings and the log; the parts set them.
    bool has_round; // False: any round is taken as newer, since none has come yet, or the operator
                    // put back an older ledger (position.c)
    uint64_t round; // The newest known, as the run's pace counts
    uint64_t step_held;       // The step whose parameters we hold; 0: we hold none
    float loss, tokens_per_s; // Of the newest result
    uint64_t loss_step;       // The step that this result leads to; 0: none yet
    uint64_t steps_taken;     // By this process (replica_move)
    uint16_t hint_kind;       // Its frames are only hints now (post.h); FRAME_NONE: no kind's are
    float step_lr;            // The learning rate of the newest step taken; 0: the pace has none
};

// What a message brought, as flags.
enum heard {
    HEARD_CONFIG = 1,      // The configuration has arrived (again)
    HEARD_RUN = 2,         // self->now is new
    HEARD_PACE = 4,        // A frame of the followed coordinator that only the pace understands
    HEARD_ROSTER = 8,      // self->roster is new
    HEARD_REBORN = 16,     // The coordinator restarted: send again what it may have lost
    HEARD_ADMITTED = 32,   // Admitted (again)
    HEARD_TICK = 64,       // MEMBER_TICK_MS or more have passed: check the retries
    HEARD_EPOCH_END = 128, // in->body is an EPOCH_END by the coordinator
    HEARD_ACK = 256,       // in->body is an ACK
    HEARD_REFUSED = 512,   // in->body is a REFUSED that the role must deal with
};

// Takes the message if it concerns every member. JOURNAL, QUIT and the answer to LEAVE are handled
// here for all roles. Returns what the message brought, as flags; 0: nothing for the parts.
unsigned member_hear(struct member *self, const struct msg *in, struct outbox *out);

// Stores the journal, in which a part has written its promise, together with the position. Call it
// before the promise is sent: effects are performed in order.
void member_promise(struct member *self, struct outbox *out);

// ---- position.c: what the coordinator has told about its ledger ---------------------------------

// member_recall takes the journal of the previous process. member_should_keep is true if the
// position is 16 records newer than the one in the journal, or older, or of another run: then
// member_promise stores it.
void member_recall(struct member *self, const struct wire_journal *journal);
bool member_should_keep(const struct member *self);

// Takes a message that the coordinator's key has signed. True: its process is followed; if it is a
// BEAT, its position is recorded. False: it is of a process that has not shown that its ledger has
// our position. Then the caller ignores the message; here a POSITION asks that process, at most
// once a second, and the third adds a note.
bool member_hear_coordinator(struct member *self, const struct msg *in, struct outbox *out);

void member_hear_proof(struct member *self, const struct msg *in);       // An ACK of a POSITION
void member_forget_position(struct member *self, uint64_t born_unix_ms); // If it is another run's

// ---- address.c: whether others can connect to us ------------------------------------------------

// member_address_begin: at the start, and when the broker has restarted. member_address_again: the
// membership is lost, so all is to be asked again. member_address_tick asks, if a question is due.
// The second refusal ends the process (EX_CONFIG), or, if it was in the run before, its membership.
void member_address_begin(struct member *self, uint64_t now_ms);
void member_address_again(struct member *self, uint64_t now_ms);
bool member_address_holds_back(const struct member *self, uint64_t now_ms); // No JOIN yet
void member_address_tick(struct member *self, uint64_t now_ms, struct outbox *out);
bool member_address_hear_ack(struct member *self, const struct wire_ack *ack, uint64_t now_ms,
                             struct outbox *out); // True: it is reached
void member_address_hear_refusal(struct member *self, const struct wire_refused *refused,
                                 uint64_t now_ms, struct outbox *out);

// ---- member.c -----------------------------------------------------------------------------------

// True if we are admitted and the run's coordinator signed this message.
bool member_is_coordinator(const struct member *self, const struct msg *in);

// True if we are pending: we take part from the next epoch on.
bool member_is_pending(const struct member *self);

// The roster's line of a member.
const struct wire_member *member_at(const struct member *self, uint32_t index); // NULL if unknown

// ---- holders.c: which members to ask ------------------------------------------------------------

// Endpoints of members that may hold what we lack, at most `max`: first that of `first_member`
// (UINT32_MAX: of none), then healthy trainers and checkpointers, then pending ones and witnesses.
// Each member starts behind its own index in the roster, so that not all ask the same peer. Each
// try starts `max` indices further on, so that useless neighbours cannot keep a member from all
// others.
uint32_t member_holders(const struct member *self, uint32_t first_member, uint32_t tries,
                        struct wire_holder *ret_list, uint32_t max);

// Endpoints of healthy data providers, at most `max`. Each member starts at another one, and for
// each number (of the round or step that needs samples) one further on, so that all are used where
// there are more than `max`.
uint32_t member_providers(const struct member *self, uint64_t number, struct wire_holder *ret_list,
                          uint32_t max);
