#pragma once
// rules -- the rules between the settings of a run, Psyche's and ours; those that are comparisons
// are in one table. A rule is checked only if each of its settings is right by itself; its fault
// names one.
//
// `load` holds a struct run_config: that of the file just read, or a configuration that flags
// changed (override.h), which has no document in which a fault could be placed.

#include "common/config/load.h"

config_rules config_run_rules;
