#pragma once
// rounds_config -- what CONFIG says of rounds, and of the DisTrO optimizer, whose results rounds exchange.

#include "common/run/rules.h"

// As members have it. All zero: the run has another strategy, or its CONFIG is not here yet.
static inline const struct wire_rounds_config *rounds_config_of(const struct wire_config *config)
{
    static const struct wire_rounds_config none;
    return config->strategy.kind == FRAME_ROUNDS_CONFIG ? config->strategy.body : &none;
}

// As the coordinator and the verifier of its ledger have it: the rules of a run of rounds, no others.
static inline const struct wire_rounds_config *rounds_config(const struct rules *rules)
{
    return rules_strategy(rules);
}
