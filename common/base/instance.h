#pragma once
// instance -- the number of a process among those that use one identity, greater than all before
// it.
//
// Broker and coordinator take the greater number for the newer process and turn the other away for
// good. It is the start in unix milliseconds, so that it rises even if the state directory was lost, or
// one more than the last that is on record in DIR/instance, so that a clock that was set back does
// not either.

#include "common/base/fault.h"
#include <stdint.h>

// Durable before it returns: two lives never share a number. `dir` exists and belongs to this
// process. FAULT_CORRUPT if the file is not one that we wrote; or the disk's fault.
int instance_take(const char *dir, uint64_t unix_ms, struct why *why, uint64_t *ret_instance);

// The number in a file of this kind, DIR/NAME; 0 where there is none. One more than it fits as well.
// FAULT_CORRUPT as above. And puts one there, durably.
int instance_read(const char *dir, const char *name, struct why *why, uint64_t *ret_number);
int instance_write(const char *dir, const char *name, uint64_t number, struct why *why);
