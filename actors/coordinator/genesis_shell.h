#pragma once
// genesis_shell -- makes all rules of a run from what its coordinator starts with: the
// configuration (rules_shell.h), the key, the model's folder and the data's description.

#include "common/config/run_config.h"
#include "common/crypto/identity.h"
#include "common/run/rules.h"

// `identity`: the coordinator's key, which owns the run. The rules point into *ret_model, the text
// of the model's config.json; the caller frees it after their last use. 0, or a fault of
// run_check (common/learner/run_check.h).
int genesis_rules(const struct run_config *config, const struct identity *identity, struct why *why,
                  struct rules *ret_rules, char **ret_model);
