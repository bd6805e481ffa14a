#pragma once
// override -- a flag "KEY=VALUE" changes one setting of a loaded state.toml. The value goes through
// the same checks as a value of the file: type, range, words.
//
// KEY is the whole path, or the end of it if only one active setting ends so: base_lr, AdamW.eps,
// config.total_steps. A word that has settings of its own (lr_schedule=Cosine) makes those active.
// The rules between settings are checked when all flags are set, because two of them may be right
// only together: config_override_check. Pure.

#include "common/config/run_config.h"

// The value in config_origin.line for a setting that a flag has set.
#define CONFIG_BY_FLAG UINT32_MAX

// FAULT_USAGE, with the allowed values in `why`, and nothing is changed: there is no such setting,
// or there are several; or the value is wrong. Digests and seeds can be set in the file only.
int config_override(struct run_config *config, const char *assignment, struct why *why);

// Checks the configuration with all flags as if it were a file. FAULT_CONFIG with the first active,
// required setting that has no value, or the first rule (rules.h) that is broken.
int config_override_check(const struct run_config *config, struct why *why);
