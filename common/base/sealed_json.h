#pragma once
// sealed_json -- JSON of ours that carries the SHA-256 of its own text, as the last value of its
// object: "sha256" over the text without that value. So each changed byte is found, even a space.
//
// For a file of ours that others may have changed (checkpoints). Any thread.

#include "common/base/fault.h"
#include <jansson.h>
#include <stddef.h>

// Gives `root` the value "sha256", and returns the text, which the caller frees: one value a line,
// keys in the order in which they were added. NULL: no memory.
char *sealed_json_dump(json_t *root);

// FAULT_DIGEST unless `text` is, byte for byte, what sealed_json_dump makes of the same values.
// `root` is that text, parsed (strict_json.h); its value "sha256" is made anew.
int sealed_json_check(const char *place, json_t *root, const char *text, size_t count,
                      struct why *why);
