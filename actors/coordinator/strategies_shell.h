#pragma once
// strategies_shell -- what each strategy adds to the rules of a run: its part of CONFIG. A new strategy is
// one line in the table of strategies_shell.c.
//
//     configuration ─▶ set_rules ─▶ rules ─▶ set_model (what the model decides) ─▶ rules
//
// Pure; any thread. Nothing here fails.

#include "common/config/run_config.h"
#include "common/run/rules.h"

struct run_model;

struct strategy {
    enum config_value kind, mode; // mode: of strategy.server; CONFIG_NONE: it has none
    // Puts the strategy's part of CONFIG into the rules, whose other fields are set.
    void (*set_rules)(const struct run_config *config, struct rules *rules);
    // Adds what follows from the model. NULL: nothing does.
    void (*set_model)(const struct run_model *model, struct rules *rules);
};

// `config` is one that config_load_run accepted.
const struct strategy *strategy_of(const struct run_config *config);
