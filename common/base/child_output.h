#pragma once
// child_output -- runs another program and hands over what it prints, piece by piece. No shell
// stands between: argv is what the program gets. Its input is empty (/dev/null), its environment is
// our PATH and LC_ALL=C, its stderr is ours. Blocks until the program ends or its time is over, and
// leaves no child behind.

#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

// Gets the output in order. If it returns a fault, the program is killed and child_output returns
// it.
typedef int child_output_sink(void *context, const void *bytes, size_t count, struct why *why);

struct child_limits {
    uint64_t bytes_max;
    uint32_t timeout_ms;
};

// `argv` ends with NULL and argv[0] is looked for in PATH. FAULT_NOT_FOUND: no such program;
// FAULT_LIMIT: it prints more than bytes_max; FAULT_TIMEOUT: it runs longer than
// timeout_ms; FAULT_IO: it failed, with its exit code in *why.
int child_output(const char *const argv[], const struct child_limits *limits,
                 child_output_sink *sink, void *context, struct why *why);
