#pragma once
// turn -- what one turn of a coordinator may see and do: the run, its rules, who is present, and the few
// verbs that change or say something.
//
//     message ─▶ coordinator_step makes a turn ─▶ members, epoch, the pace, news ─▶ outbox
//
// A turn lives on the stack for one message and is passed down. It borrows all that it points to. The files
// that take part in deciding see it, and never struct coordinator.
//
// Pure. Nothing here fails: what does not fit is answered REFUSED.

#include "common/actor/msg.h"
#include "common/pace/presence.h"
#include "common/run/rules.h"
#include "common/run/run.h"

struct pace;

struct turn {
    struct run *run;         // Durable: changed by turn_put alone
    const struct pace *pace; // The run's
    const struct rules *rules;
    struct presence *presence;
    struct run_lists *lists; // Scratch: nothing in it outlives a call
    struct outbox *out;
    uint64_t now_ms;
};

// ---- the record ---------------------------------------------------------------------------------

// Stores a record and makes it true. Whatever is said because of it comes later in the outbox.
void turn_put(const struct turn *turn, uint16_t kind, const void *record);

// Enters a phase: the record, with its cause; the deadline; a note.
void turn_enter(const struct turn *turn, const struct wire_record_phase *record, const char *cause);

// The deadline of the present phase, from now.
void turn_arm(const struct turn *turn);

// ---- members ------------------------------------------------------------------------------------

// The member that signed, if it is one and the process is the one on record: it was heard now. Else refuses,
// and returns NO_MEMBER.
uint32_t turn_member(const struct turn *turn, const struct msg *in);

bool turn_is_live(const struct turn *turn, uint32_t member);
void turn_set_state(const struct turn *turn, uint32_t member, uint8_t state);

// The roster has changed: it is told at the next turn, or when the delay is over, which gathers many joins.
void turn_tell_roster(const struct turn *turn);
void turn_tell_roster_later(const struct turn *turn, uint32_t delay_ms);

// ---- answers ------------------------------------------------------------------------------------

void turn_ack(const struct turn *turn, const struct msg *in, uint64_t round,
              const struct hash *hash);
void turn_refuse(const struct turn *turn, const struct msg *in, uint8_t reason, uint64_t round,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

// A newer process uses this identity than the one that speaks as `instance`.
void turn_refuse_older(const struct turn *turn, const struct msg *in, uint64_t instance);

// A refusal of something that nobody sent in this turn.
void turn_mail_refusal(const struct turn *turn, const char *to, uint16_t kind, uint8_t reason,
                       uint64_t round, const char *text);
