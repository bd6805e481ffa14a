#pragma once
// rules -- what settings of a run owe each other: Psyche's rules and ours, in one table where they
// are comparisons. A rule looks only at settings that are right by themselves, and points at one.
//
// `load` is of a struct run_config: of the file just read, or of a configuration that flags changed
// (override.h), which has no document to point into.

#include "common/config/load.h"

config_rules config_run_rules;
