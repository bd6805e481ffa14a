#pragma once
// rules_shell -- the rules that follow from a configuration. The coordinator and the verifier of
// its ledger (evidence.h) both call this one function, so they cannot differ in a rule.

#include "common/config/run_config.h"
#include "common/run/rules.h"

// `config` is one that config_load_run accepted. Zero here, because it does not follow from
// `config`: the owner and the audit secret, which follow from the coordinator's key; in the frame,
// what model and data decide (genesis, model, payload_bytes, data). Cannot fail.
void rules_of_config(const struct run_config *config, struct rules *ret_rules);
