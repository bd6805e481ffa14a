#pragma once
// rules_shell -- the rules that a configuration makes. The coordinator and the verifier of its ledger
// (evidence.h) both call this one function, so no rule is known to one of them alone.

#include "common/config/run_config.h"
#include "common/run/rules.h"

// All rules that follow from a configuration that config_load_run took. Not from it, and zero here: the
// owner and the audit secret, which only the coordinator's key makes; of the frame what model and data
// decide (genesis, model, payload_bytes, data).
void rules_of_config(const struct run_config *config, struct rules *ret_rules);
