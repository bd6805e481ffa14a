#pragma once
// genesis_shell -- makes all rules of a run from what its coordinator starts with: the
// configuration (rules_shell.h), the key, the model's folder and the data's description.

#include "common/config/run_config.h"
#include "common/crypto/identity.h"
#include "common/run/rules.h"

// `identity`: the coordinator's key, which owns the run. The rules point into *ret_model, the text
// of the model's config.json; the caller frees it after their last use. 0, or FAULT_UNSUPPORTED for
// a run that exchanges no results, FAULT_LIMIT for a model whose results are too large, or a fault
// of reading.
int genesis_rules(const struct run_config *config, const struct identity *identity, struct why *why,
                  struct rules *ret_rules, char **ret_model);
