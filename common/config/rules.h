#pragma once
// rules -- what settings of a run owe each other: Psyche's rules and ours, in one table where they
// are comparisons. A rule looks only at settings that are right by themselves, and points at one.

#include "common/config/load.h"

config_rules config_run_rules;
