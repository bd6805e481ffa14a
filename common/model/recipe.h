#pragma once
// recipe -- what of a state.toml says how a run learns, as the types that the learner takes. Pure.

#include "common/config/run_config.h"
#include "common/run/schedule.h"

// Of any of Psyche's four kinds.
struct schedule recipe_schedule(const struct run_config *config);
