#pragma once
// honest -- what an honest sender would say next to a core, from all that this core knows: the body
// that a choice of 0 stands for (events.h). A conversation of nothing else is a whole life.
//
// The coordinator that speaks to a member opens the rounds, deals, commits what was dealt and draws
// the audits; others of the run claim, vote, reveal and find what is theirs to say. A step is
// committed by a COMMIT of the coordinator, even if it contradicts another message: later messages
// follow from the COMMIT.

#include "actors/coordinator/coordinator.h"
#include "common/pace/rounds/round_view.h"
#include "common/pace/rounds/rounds.h"
#include "tests/fuzz/events.h"

enum { HONEST_FLOATS = 4096 };

struct honest {
    // As the coordinator said: the member may have forgotten.
    uint64_t step, round;  // Commits; the newest round
    bool is_open;          // It
    struct wire_run run;   // The newest RUN
    struct wire_ack asked; // The member's newest word that it wants acknowledged
    struct wire_claim own; // The member's newest claim, if it is a trainer
    struct wire_claim committed[EVENT_PEOPLE]; // Of each, the newest that was accepted
};

struct hash honest_digest(uint64_t step); // Of the parameters
struct hash honest_payload(uint64_t round, uint8_t person);
struct hash honest_residual(uint64_t round, uint8_t person); // That this result led to

// What `signer` would say to the member, or to the coordinator; NULL: nothing in particular.
// Borrowed until the next call.
const void *honest_to_member(const struct honest *self, const struct member *member,
                             const struct round_view *view, uint16_t kind, uint8_t signer);
const void *honest_to_coordinator(const struct coordinator *core, uint16_t kind, uint8_t signer);

// What the coordinator is about to say to the member, and what the member has said.
void honest_note_heard(struct honest *self, const struct member *member,
                       const struct round_view *view, uint16_t kind, const void *body);
void honest_note_said(struct honest *self, uint16_t kind, const void *body);
