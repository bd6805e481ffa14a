#pragma once
// turn -- what one turn of a coordinator may see and do: the run, its rules, the members that are
// present, and the few functions that change the run or send something.
//
//     message ─▶ coordinator_step makes a turn ─▶ members, epoch, the pace, news ─▶ outbox
//
// A turn lives on the stack for one message, and each function passes it down. It borrows all that
// it points to. The files that decide something see the turn, but never struct coordinator.
//
// Pure; one thread. Nothing here fails: a message that does not fit is answered with REFUSED.
//
// Here and elsewhere, a comment "mutant: X" says what would happen if the statement below it were wrong: a test breaks
// the statement, and must notice (tests/README.md).

#include "common/actor/msg.h"
#include "common/pace/presence.h"
#include "common/run/rules.h"
#include "common/run/run.h"

struct pace;

struct turn {
    struct run *run;         // Durable: only turn_put changes it
    const struct pace *pace; // The pace of the run
    void *live;              // Its live half, as its functions get it in `self`
    const struct rules *rules;
    struct presence *presence;
    struct run_lists *lists; // Scratch: the next call may overwrite it
    struct outbox *out;
    uint64_t now_ms;
};

// ---- the record ---------------------------------------------------------------------------------

// Stores a record and applies it to the run. Messages that follow from it must be put into the
// outbox after this call.
void turn_put(const struct turn *turn, uint16_t kind, const void *record);

// The save in pieces of the newest step that is saved (run->save_point) is whole, with this digest of all of the state.
// `keep`: how many saves stay on disk, as the run's configuration says.
void turn_put_saved(const struct turn *turn, const struct hash *digest, uint32_t keep);

// Enters a phase: puts the record with its cause, sets the deadline, and adds a note for the log.
void turn_enter(const struct turn *turn, const struct wire_record_phase *record, const char *cause);

// Sets the deadline of the present phase, counted from now.
void turn_arm(const struct turn *turn);

// ---- members ------------------------------------------------------------------------------------

// The index of the member that signed `in`, and renews its lease. If the signer is not a member,
// was ejected, or is an older process of that member: refuses, and returns NO_MEMBER.
uint32_t turn_member(const struct turn *turn, const struct msg *in);

// Whether the member is healthy.
bool turn_is_live(const struct turn *turn, uint32_t member);

// The trainers that must still join before an epoch can begin. 0 unless the run waits for members.
uint32_t turn_count_missing(const struct turn *turn);

// Records a new state of the member, and has the roster told.
void turn_set_state(const struct turn *turn, uint32_t member, uint8_t state);

// Has the roster told: at the next turn, or after `delay_ms`, so that many joins lead to one
// ROSTER.
void turn_tell_roster(const struct turn *turn);
void turn_tell_roster_later(const struct turn *turn, uint32_t delay_ms);

// ---- answers ------------------------------------------------------------------------------------

// Acknowledges `in`. `round` and `hash` say what was acknowledged; `hash` may be NULL.
void turn_ack(const struct turn *turn, const struct msg *in, uint64_t round,
              const struct hash *hash);

// Refuses `in`: `reason` is a REFUSAL_, the text says what the sender should do.
void turn_refuse(const struct turn *turn, const struct msg *in, uint8_t reason, uint64_t round,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

// Refuses `in` because a newer process uses the same identity. `instance`: that of the sender.
void turn_refuse_older(const struct turn *turn, const struct msg *in, uint64_t instance);

// Sends a refusal that does not answer the message of this turn.
void turn_mail_refusal(const struct turn *turn, const char *to, uint16_t kind, uint8_t reason,
                       uint64_t round, const char *text);
