#pragma once
// windows_optimizer -- the optimizer of a run of windows or of leases, as its part of CONFIG names it: for those who
// build it, and for those who plan its memory. Pure.

#include "common/optimizer/optimizer.h"
#include "common/wire/wire.h"

// `config` as a coordinator sends it; settings that are out of range are refused by optimizer_new.
const struct optimizer_kind *windows_optimizer(const struct wire_windows_config *config,
                                               struct optimizer_settings *ret_settings);
const struct optimizer_kind *leases_optimizer(const struct wire_leases_config *config,
                                              struct optimizer_settings *ret_settings);

// How many floats a parameter takes in the state: itself, and what the optimizer keeps for it.
uint32_t windows_optimizer_floats(const struct wire_windows_config *config);
