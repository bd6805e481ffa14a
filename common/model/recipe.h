#pragma once
// recipe -- the settings of a state.toml that say how a run learns, as the types of the learner.
// Pure.

#include "common/config/run_config.h"
#include "common/run/schedule.h"

// Gradients longer than this are shortened; 0: never. A float's value, since CONFIG carries it to the
// trainers of a run as a float.
double recipe_clip_norm(const struct run_config *config);

// Sequences of a step, when `samples` were trained before it.
uint32_t recipe_batch_size(const struct run_config *config, uint64_t samples);

// One of Psyche's four kinds.
struct schedule recipe_schedule(const struct run_config *config);
