#pragma once
// distro_plan -- the form of a payload as plain data for a device (cuda/plan.h).
//
// Owned by the caller; immutable; any thread. Everything it points to is its own.

#include "common/compute/cuda/plan.h"
#include "common/optimizer/payload.h"

// FAULT_MEMORY. `form` may go before the plan does.
int plan_new(const payload_form_t *form, struct why *why, struct plan **ret_plan);
void plan_destroy(struct plan **self); // NULL is allowed
