#pragma once
// pin -- writes digests into a state.toml, so that every member must have this model and this data.
// All other bytes of the file stay; the new file is there whole or not at all.

#include "common/base/hash.h"
#include "common/config/run_config.h"

struct pin {
    const char *table, *key; // "data", "dataset_digest"
    struct hash digest;      // To be written
    struct hash there;       // What the file has; all zero: none
};

// A pin that the file has already is left alone; another one is FAULT_DIGEST, and nothing is written.
int pin_config(const char *path, const struct pin *pins, size_t count, struct why *why);
