#pragma once
// name -- what an actor is called: "trainer.anna.3fa2b1c4d5e6f708".
//
//     trainer . anna . 3fa2b1c4d5e6f708       role, label, the first 16 digits of the key
//     trainer . 3fa2b1c4d5e6f708              the same actor without a label
//     coordinator                             a run has one
//
// Role and key make the name unique, and no actor can take the name of another key. The label is for
// people: nobody registers it, two members may have the same, and the broker finds an actor by role
// and key, whatever label a letter's address has. So a name from a roster that is out of date, or
// one without the label, still leads to its actor. Pure.

#include "common/base/key.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    ACTOR_LABEL_MAX = 15, // Bytes, without the zero: less than the 16 digits, never taken for them
    ACTOR_NAME_MAX = 51   // Bytes, without the zero. "parameter-server", a label and a key have 49
};

// What a label may be, for error texts.
// A label that looks like a key would pass for another member's where names are cut.
#define ACTOR_LABEL_RULE                                                                           \
    "1 to 15 of a-z, 0-9 and -, beginning with a letter, and not 8 or more hexadecimal digits"

// Whether `label` keeps to ACTOR_LABEL_RULE.
bool actor_label_is_sound(const char *label);

// The name of an actor without a label; and with one ("": without).
void actor_name(uint8_t role, const struct key *key, char ret_name[ACTOR_NAME_MAX + 1]);
void actor_name_with(uint8_t role, const char *label, const struct key *key,
                     char ret_name[ACTOR_NAME_MAX + 1]);

// The label of a name; "" if it has none. A longer one is cut.
void actor_name_label(const char *name, char ret_label[ACTOR_LABEL_MAX + 1]);

// Whether `name` is one that an actor of this role and key may have, with a sound label or without.
bool actor_name_fits(const char *name, uint8_t role, const struct key *key);

// The name without its label: what a name has before its first dot and from its last dot on. A longer
// one is cut.
void actor_name_plain(const char *name, char ret_name[ACTOR_NAME_MAX + 1]);

// Whether two names are equal but for their labels: mail to either goes to the same actor.
bool actor_name_is_same(const char *a, const char *b);
