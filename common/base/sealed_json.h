#pragma once
// sealed_json -- JSON of ours that carries its format, a version and the SHA-256 of its own text:
//
//     {"format": "shoal cut", "version": 1, ..., "sha256": "<64 hex>"}
//
// "sha256" is the last value, and the hash of the text without it. So each changed byte is found, even a
// space. For a file of ours that others may have changed (checkpoints, saves). Any thread.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

// ---- Writing ----

// Adds the value "sha256" to `root`, and returns the text, which the caller frees: one value a line,
// keys in the order in which they were added. NULL: no memory.
char *sealed_json_dump(json_t *root);

json_t *sealed_json_hash(const struct hash *hash); // 64 hexadecimal digits; NULL: no memory

// ---- Reading ----

// Parses a text of at most 4 levels and 2^19 values. The caller frees *ret_root. FAULT_FORMAT: it is no
// JSON object, or of another format; FAULT_UNSUPPORTED: of another version; FAULT_DIGEST: it is not,
// byte for byte, what sealed_json_dump makes of its values; FAULT_LIMIT; FAULT_MEMORY.
int sealed_json_parse(const char *place, const char *format, uint64_t version, const char *text,
                      size_t count, struct why *why, json_t **ret_root);

// A member of an object. FAULT_FORMAT if it is missing or no text, FAULT_RANGE if it is no hash.
int sealed_json_get_hash(const json_t *object, const char *place, const char *key, struct why *why,
                         struct hash *ret_hash);
