#pragma once
// load -- a file against a schema: every setting found, checked, stored, every fault collected. The
// caller names the schema and the rules between settings; run_config and data_config do. In one
// pass: unknown keys (with what was probably meant), wrong types, values out of range, words that
// are not supported, missing keys and tables; then the rules, each only if all that it looks at is
// right. A misspelt key is never replaced by a default in silence.

#include "common/base/fault.h"
#include "common/config/faults.h"
#include "common/config/schema.h"

// Which line of which file set each key; line 0: its default, or not set.
struct config_origin {
    char file[CONFIG_PATH_MAX];
    uint32_t line[CONFIG_KEYS_MAX];
};

struct config_load {
    const struct config_schema *schema;
    void *base; // The struct being filled
    struct config_faults *faults;
    const char *bytes; // The file as read
    size_t bytes_count;
    struct toml_document document;
    const struct toml_node *nodes[CONFIG_KEYS_MAX]; // Where each key stands; NULL: not in the file
    bool valid[CONFIG_KEYS_MAX];                    // Its field holds what file or default say
};
typedef void config_rules(struct config_load *load);

// Fills `base`, a zeroed struct of the schema, and `origin`. 0, possibly with warnings in `faults`;
// FAULT_CONFIG if anything is wrong; another fault if the file cannot be read (FAULT_NOT_FOUND,
// ...). In each case `faults` says everything, and config_faults_print needs nothing else.
int config_load_file(const struct config_schema *schema, const char *path, config_rules *rules,
                     void *base, struct config_origin *origin, struct config_faults *faults);

// For rules: a fault or a warning at a node's value. NULL: at the table that `path` lies in.
void config_load_fault(struct config_load *load, bool warning, const struct toml_node *node,
                       const char *path, const char *text, const char *note);
