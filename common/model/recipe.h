#pragma once
// recipe -- the settings of a state.toml that say how a run learns, as the types of the learner.
// Pure.

#include "common/config/run_config.h"
#include "common/run/schedule.h"

// One of Psyche's four kinds.
struct schedule recipe_schedule(const struct run_config *config);
