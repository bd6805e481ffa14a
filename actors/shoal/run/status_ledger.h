#pragma once
// status_ledger -- a run as its ledger tells it: `shoal status --ledger`. All of it is drawn again and verified.

#include "common/base/fault.h"
#include <stdbool.h>

// Prints what the ledger in the coordinator's folder says, as shoal.ledger.1 if `json`, then returns 0; or a fault: it
// cannot be read (then nothing is printed), it cannot be verified, or it does not prove what it says.
int status_ledger(const char *folder, bool json, struct why *why);
