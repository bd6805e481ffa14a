#pragma once
// hostile -- what the two sources of the hostile trainer share. hostile.c lies about its results,
// attacks.c does harm with what it sends, keeps back or asks for; its results are honest.

#include "actors/trainer/trainer.h"
#include "common/learner/learner.h"

// ---- hostile.c ----------------------------------------------------------------------------------

bool hostile_has_begun(uint64_t round);              // HOSTILE_FROM, or 3
const struct learner_options *hostile_options(void); // NULL: the learner has not started
void hostile_remove_effect(struct outbox *out, uint32_t index);

// ---- attacks.c ----------------------------------------------------------------------------------

bool hostile_is_attack(const char *word); // Whether HOSTILE is one of its words
// After each step of the core.
void hostile_attack(struct trainer *self, const struct msg *in, struct outbox *out);
