#pragma once
// load -- checks a file against a schema, stores every setting and collects every fault. The caller
// (run_config, data_config) names the schema and the rules between settings. One pass finds unknown
// keys (and names the likely intended one), wrong types, values out of range, words that are not
// supported, missing keys and tables. Then a rule is checked if all settings it compares are right.
// A misspelt key is always a fault: it is never silently replaced by a default. Nor is anything said
// that only follows from it: that it is missing, or what goes with the default of a misspelt word.

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
    bool valid[CONFIG_KEYS_MAX];                    // Its field has the file's value or the default
    bool misspelt
        [CONFIG_KEYS_MAX]; // It or its table: reported with a likely name, so not as missing
};
typedef void config_rules(struct config_load *load);

// Fills `base`, a zeroed struct of the schema, and `origin`. 0, possibly with warnings in `faults`;
// FAULT_CONFIG if the file has an error; another fault if it cannot be read (FAULT_NOT_FOUND, ...).
// In each case `faults` has all that config_faults_print needs.
int config_load_file(const struct config_schema *schema, const char *path, config_rules *rules,
                     void *base, struct config_origin *origin, struct config_faults *faults);

// For rules: adds a fault or a warning at a node's value; with NULL, at the table of `path`.
void config_load_fault(struct config_load *load, bool warning, const struct toml_node *node,
                       const char *path, const char *text, const char *note);
