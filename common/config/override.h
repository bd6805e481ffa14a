#pragma once
// override -- one setting of a loaded state.toml changed by a flag, "KEY=VALUE", with the checks
// that the file's own value went through: type, range, words.
//
// KEY is the whole path, or the end of it if only one setting that counts ends so: base_lr,
// AdamW.eps, config.total_steps. A word that brings settings of its own (lr_schedule=Cosine) makes
// those count. What settings owe each other is checked once all flags are in, since two of them may
// be right only together: config_override_check. Pure.

#include "common/config/run_config.h"

// In config_origin.line, of what a flag set.
#define CONFIG_BY_FLAG UINT32_MAX

// FAULT_USAGE, with what would be right, and nothing changed: no such setting, or several; a wrong
// value. Digests and seeds are for the file alone.
int config_override(struct run_config *config, const char *assignment, struct why *why);

// What the file would have been refused for, had it said what the flags say: the first setting that
// counts, is required and has no value; or the first rule (rules.h) that is broken. FAULT_CONFIG.
int config_override_check(const struct run_config *config, struct why *why);
