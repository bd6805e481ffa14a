#pragma once
// memory -- how much this process may still take, asked before much of it is taken.

#include <stdint.h>

// The least of what the kernel says is available, what the limits of the process's control groups
// leave (the container's, as far as they can be seen from inside), and what its limit of address
// space leaves. Does not need /proc/meminfo, which our units hide. 0 if the system tells none of
// them; the caller then says that it could not check.
uint64_t memory_available_bytes(void);

// What is needed, in whole MiB: rounded up. What is free is rounded down.
static inline uint64_t memory_mib_needed(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }
