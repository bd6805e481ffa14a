#pragma once
// coordinator -- one run's source of truth: who takes part, which phase it is, what was trained.
//
//   coordinator.c   hears everything: messages in, decisions out, the clock
//   members.c       who comes, stays and goes
//   rounds.c        a round: opened as it was drawn, proved by its witnesses, committed
//   audit.c         results recomputed by chance, and liars ejected
//   epoch.c         phases around the rounds: waiting, warm-up, cooldown, pause
//   news.c          what everybody is told
//   tally.[hc]      the votes of one round
//   evidence.[hc]   what the records of a run prove to others
//
// What it keeps are values of common/run: run.h (the durable state and its records), roster.h, round.h;
// draw.h draws a round, verdict.h says what judges come to.
//
// The transitions (every row has a conversation in tests/golden/coordinator):
//
//   WaitingForMembers → Warmup      init_min_clients pending and the extra time has passed
//   Warmup → RoundTrain             all hold the model, or the time is up and min_clients do
//   Warmup → WaitingForMembers      fewer than min_clients remain (or hold it, when the time is up)
//   RoundTrain → RoundWitness       a quorum of votes lacks nothing, or the time is up
//   RoundWitness → commit           a quorum of votes and nothing left to wait for, or the time is up
//   commit → RoundTrain | Cooldown  Cooldown: epoch over, too few members or votes, all steps done, pause
//   Cooldown → next                 the digest is pinned and checkpointed, or the time is up; Finished only
//                                   while somebody keeps the last parameters
//
// Pure. Everything it says follows, in the outbox, the store of the record that justifies it.

#include "actors/coordinator/tally.h"
#include "common/actor/msg.h"
#include "common/run/assignment.h"
#include "common/run/bloom.h"
#include "common/run/draw.h"
#include "common/run/rules.h"
#include "common/run/run.h"
#include "common/wire/claims.h"

enum { CLAIM_AGE_MAX = 2 }; // Rounds: two claims of an older one prove nothing any more

// What a member does amiss adds up, and each round in which it takes part takes one away: unhealthy_rounds
// missed in a row are too much, and so is one in five for long.
enum { AMISS_ROUND = 4 };
struct testimony {
    uint64_t round;
    struct hash name;
    bool asked; // For the claim that was accepted in its place
    uint32_t bytes;
    uint8_t frame[CLAIM_FRAME_MAX];
};

struct holding {
    uint64_t step;
    struct hash digest;
    bool known;
};

struct coordinator {
    struct rules rules; // Filled by the shell before the first message
    struct run run;     // Durable: filled by replay before the first message

    // All below may be forgotten: it is rebuilt from what members say again.
    uint64_t phase_began_ms, deadline_ms, beat_ms, roster_ms, round_began_ms, trained_ms,
        epoch_began_ms;
    uint64_t roster_told; // Version that everybody was last told
    bool roster_changed, started;
    uint64_t beat_seq;       // The record that the newest BEAT told of
    uint64_t control_number; // Of the newest order of this life, and
    bool control_done;       // whether it was carried out
    bool proved;             // The newest round had a quorum of votes
    struct tally tally;
    uint64_t heard_ms[MEMBERS_MAX];       // When each was last heard
    uint64_t changes_ms[MEMBERS_MAX];     // Since when it has put
    uint32_t changes[MEMBERS_MAX];        // so many changes of itself on record
    struct holding holdings[MEMBERS_MAX]; // What each says it holds
    uint32_t holding;                     // How many have said so since the phase began
    uint32_t amiss[MEMBERS_MAX];          // Of late, in quarters of a round
    float tokens_per_s[MEMBERS_MAX], loss[MEMBERS_MAX];
    uint64_t step_held[MEMBERS_MAX];            // As its newest PING says
    struct wire_accepted accepted[MEMBERS_MAX]; // Of the commit being made
    struct interval scratch[TABLE_INTERVALS_MAX], returned[TABLE_INTERVALS_MAX];
    struct draw draw;               // The newest
    struct hash items[MEMBERS_MAX]; // SHA-256 of each client's key: what participants' blooms hold
    uint64_t bloom_words[BLOOM_WORDS(MEMBERS_MAX)];
    uint32_t trainers[MEMBERS_MAX];
    struct share shares[MEMBERS_MAX];
    uint32_t by_trainer[MEMBERS_MAX];
    struct deal deal;                              // Who trains what in the open round
    uint32_t accepted_of[MEMBERS_MAX];             // Members, as the newest commit's results
    struct wire_client accepted_by[WITNESSES_MAX]; // Who could vote for them
    uint32_t accepted_by_count;
    // The first claim that was shown of each member and round, by round modulo: whoever shows its own
    // of another round meanwhile puts none out of the way.
    struct testimony testimonies[MEMBERS_MAX][CLAIM_AGE_MAX + 1];
};

// Prepares zeroed memory. To be followed by `rules`, by the replay of the ledger into `run`, and by
// a START message with the incarnation of this life.
void coordinator_init(struct coordinator *self, const struct rules *rules);

// Hears one message. Never fails: what does not fit is answered REFUSED and changes nothing.
void coordinator_step(void *self, const struct msg *in, struct outbox *out);

// ---- between the files of this folder -----------------------------------------------------------

void coordinator_put(struct coordinator *self, uint16_t kind, const void *record,
                     struct outbox *out);
void coordinator_refuse(const struct msg *in, uint8_t reason, uint64_t round, struct outbox *out,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));
void coordinator_mail_refusal(struct outbox *out, const char *to, uint16_t kind, uint8_t reason,
                              uint64_t round, const char *text);
void coordinator_ack(const struct msg *in, uint64_t round, const struct hash *hash,
                     struct outbox *out);

void members_hear_join(struct coordinator *self, const struct msg *in, struct outbox *out);
void members_hear_ping(struct coordinator *self, const struct msg *in, struct outbox *out);
void members_hear_leave(struct coordinator *self, const struct msg *in, struct outbox *out);
void members_check_leases(struct coordinator *self, uint64_t now_ms, struct outbox *out);
void members_tell(struct coordinator *self); // The roster has changed: to be told at the next turn
void members_set_state(struct coordinator *self, uint32_t index, uint8_t state, struct outbox *out);

// The member that signed, if it is one and the process is the one on record; else refuses.
uint32_t members_of(struct coordinator *self, const struct msg *in, struct outbox *out);
bool members_is_live(const struct coordinator *self, uint32_t index);
bool members_keeps_parameters(
    const struct wire_member *member); // It is here, and of a role that does

void rounds_open(struct coordinator *self, uint64_t now_ms, struct outbox *out);
void rounds_resume(struct coordinator *self, uint64_t now_ms); // After a restart, from the record
void rounds_hear_vote(struct coordinator *self, const struct msg *in, struct outbox *out);
void rounds_look(struct coordinator *self, uint64_t now_ms,
                 struct outbox *out); // Has anything ripened?
void rounds_settle(struct coordinator *self, uint64_t now_ms, struct outbox *out); // After a commit

// What a draw made of disputes is told, and what was left undecided counts against both parties.
void audit_hear_draw(struct coordinator *self, const struct wire_round *drawn, struct outbox *out);
struct hash audit_lock(const struct coordinator *self,
                       uint64_t round);                   // Of the round's key, or none
struct hash audit_reveal(const struct coordinator *self); // The key of the open round
// After a restart: a verdict that is on record, its ejection not yet, is carried out.
void audit_resume(struct coordinator *self, struct outbox *out);
void audit_hear_finding(struct coordinator *self, const struct msg *in, struct outbox *out);
void audit_hear_testimony(struct coordinator *self, const struct msg *in, struct outbox *out);
bool audit_is_over(const struct coordinator *self); // No live auditor is waited for
void audit_tell_missing(const struct coordinator *self, struct outbox *out);
// Two results of one client are named: some who voted are asked for the claims. `place`: the voter's.
void audit_ask_rivals(struct coordinator *self, uint32_t place, const struct wire_vote *vote,
                      struct outbox *out);

void epoch_enter(struct coordinator *self, uint8_t phase, uint64_t now_ms, struct outbox *out,
                 const char *cause);
void epoch_arm(struct coordinator *self, uint64_t now_ms); // Deadline of the present phase
void epoch_look(struct coordinator *self, uint64_t now_ms, struct outbox *out);
void epoch_hear_holds(struct coordinator *self, const struct msg *in, struct outbox *out);
void epoch_tell_end(struct coordinator *self, const char *to,
                    struct outbox *out); // If it has one, to who asks
void epoch_hear_checkpoint(struct coordinator *self, const struct msg *in, struct outbox *out);
void epoch_hear_control(struct coordinator *self, const struct msg *in, struct outbox *out);

struct wire_run news_run_state(const struct coordinator *self, uint64_t now_ms);
void news_run(struct coordinator *self, uint64_t now_ms, struct outbox *out);
void news_round(struct coordinator *self, struct outbox *out);
void news_roster(struct coordinator *self, struct outbox *out);
void news_beat(struct coordinator *self, struct outbox *out);
void news_hear_ask(struct coordinator *self, const struct msg *in, struct outbox *out);
