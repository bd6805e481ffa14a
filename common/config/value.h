#pragma once
// value -- converts one setting between three forms: a node of TOML, the field of a struct, and
// text. Pure. A complaint about a wrong value names the value and the allowed ones; the caller adds
// key and place.

#include "common/config/text.h"
#include "common/config/schema.h"
#include "common/config/toml_shim.h"

// A complaint about a value: the fault, the allowed values, and the element if it is in an array
// (else NULL).
struct config_complaint {
    struct config_text text, note;
    const struct toml_node *at;
};

// Stores the node's value into the field of `base`. The elements of an array follow its node, as in
// a document. If type or range is wrong: false, the field is untouched and `complaint` is written.
// For every type except VARIANT, IGNORED and REFUSED.
bool config_value_read(const struct config_key *key, const struct toml_node *node, void *base,
                       struct config_complaint *complaint);

// Complains that the node is of another type than the key; always false.
bool config_value_refuse(const struct config_key *key, const struct toml_node *node,
                         struct config_complaint *complaint);

// As config_value_read, of a PAIR written "0.9, 0.95".
bool config_value_read_pair(const struct config_key *key, const char *text, void *base,
                            struct config_complaint *complaint);

// The word of the key's set with this name; CONFIG_NONE with a complaint if it is unknown or
// refused.
enum config_value config_word_read(const struct config_key *key, const char *name,
                                   struct config_complaint *complaint);

// Stores the text of a fallback from keys.def, which must be right (ensured).
void config_value_set(const struct config_key *key, const char *text, void *base);

// Gives the field its default; without one, zero. Of a COUNT, SECONDS, REAL, FLAG or VALUE.
void config_value_reset(const struct config_key *key, void *base);

// The field as TOML writes it; "range 1..16384"; "integer".
void config_value_print(const struct config_key *key, const void *base, struct config_text *out);
void config_value_print_range(const struct config_key *key, struct config_text *out);
const char *config_value_expected(const struct config_key *key);

// The field of a COUNT, SECONDS (in ms) or REAL.
double config_value_number(const struct config_key *key, const void *base);

// False for a key without a default that the file does not set.
bool config_value_is_set(const struct config_key *key, const void *base);
