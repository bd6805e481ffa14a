#pragma once
// instance -- numbers the processes that use one identity: each has a greater number than all
// before it.
//
// Broker and coordinator take the greater number for the newer process and refuse the other for
// good. The number is the start in Unix milliseconds, so that it rises even if the state directory
// is lost; or one more than the last number in DIR/instance, so that it rises even if the clock is
// set back.

#include "common/base/fault.h"
#include <stdint.h>

// Durable before it returns: two lives never share a number. `dir` exists and belongs to this
// process. FAULT_CORRUPT if the file is not one that we wrote; or the disk's fault.
int instance_take(const char *dir, uint64_t unix_ms, struct why *why, uint64_t *ret_instance);

// Reads the number in a file of this kind, DIR/NAME; 0 if there is no file. The number is below
// 2^64 - 1, so that one more fits. FAULT_CORRUPT as above. instance_write stores one, durably.
int instance_read(const char *dir, const char *name, struct why *why, uint64_t *ret_number);
int instance_write(const char *dir, const char *name, uint64_t number, struct why *why);
