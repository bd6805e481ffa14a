#pragma once
// strict_json -- JSON from outside, bounded before memory is taken for it. jansson builds a tree
// many times the size of its text ("[0,0,0,...": twenty times); so the text is measured first, in
// one pass without memory: depth, number of values. Then jansson parses it, refusing duplicate
// names.
//
// The getters name what is wrong: "shoal.json: 'step' is missing", "... is not a number of 0 to 7".
// Any thread. Writing: json_file.h.

#include "common/base/fault.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Parses `text` (count bytes, no zero at the end needed). `place` begins every error text.
// FAULT_FORMAT for what is no JSON object, FAULT_LIMIT for more than depth_max levels or values_max
// values.
int strict_json_parse(const char *place, const char *text, size_t count, unsigned depth_max,
                      size_t values_max, struct why *why, json_t **ret_root);

// The same for a record among many, of data and not of our own: a text in it may hold a zero,
// written as \u0000, and the error text does not end in "refused", for the caller may pass it over.
int strict_json_parse_record(const char *place, const char *text, size_t count, unsigned depth_max,
                             size_t values_max, struct why *why, json_t **ret_root);

// What a value is, for an error text: "null", "a number" ...
const char *strict_json_kind(const json_t *value);

// Members of an object. FAULT_FORMAT if missing or of another kind, FAULT_RANGE if out of range.
int strict_json_number(const json_t *object, const char *place, const char *key, uint64_t max,
                       struct why *why, uint64_t *ret_number);
int strict_json_text(const json_t *object, const char *place, const char *key, size_t bytes_max,
                     struct why *why, const char **ret_text); // Borrowed from the object
int strict_json_array(const json_t *object, const char *place, const char *key, size_t count_max,
                      struct why *why, const json_t **ret_array); // Borrowed from the object

// A copy fit to be shown: at most 60 characters, what is not printable ASCII becomes '?', "..." at
// the end if it was cut. Returns `shown`.
enum { STRICT_JSON_SHOWN = 64 };
const char *strict_json_shown(const char *text, char shown[STRICT_JSON_SHOWN]);
