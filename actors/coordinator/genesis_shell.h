#pragma once
// genesis_shell -- makes all rules of a run from what its coordinator starts with: the
// configuration (rules_shell.h), the key, and the folders of the model and of progress.state.

#include "common/config/run_config.h"
#include "common/crypto/identity.h"
#include "common/run/rules.h"

// `identity`: the coordinator's key, which owns the run. The rules point into *ret_model, the text
// of the model's config.json; the caller frees it after their last use. 0, a fault of
// run_check (common/learner/run_check.h), or FAULT_UNSUPPORTED: this program has not the pace of the run.
int genesis_rules(const struct run_config *config, const struct identity *identity, struct why *why,
                  struct rules *ret_rules, char **ret_model);
