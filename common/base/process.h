#pragma once
// process -- a program as a child process: its arguments, its start, how it ended.
//
//     struct arguments arguments = { 0 };
//     arguments_add(&arguments, "%s/shoal-broker", dir);
//     arguments_add(&arguments, "--server-port=%u", port);
//     struct process_options options = { .arguments = &arguments, .log = "broker.log" };
//     int rc = process_start(&options, &why, &pid);
//
// The child's input is empty (/dev/null); its output is appended to a log. It has a process group
// of its own, so that Ctrl-C reaches us alone. The kernel kills it when the thread that started it
// ends, so that no child is left behind, even after a crash. The caller waits for it (waitpid).

#include "common/base/fault.h"
#include <stdint.h>
#include <sys/types.h>

enum { ARGUMENTS_MAX = 48, ARGUMENTS_BYTES = 4096 };

struct arguments { // Zero: none. Not to be copied: the list points into the bytes
    char bytes[ARGUMENTS_BYTES];
    char *list[ARGUMENTS_MAX + 1]; // Ends with NULL; list[0] is the path of the program
    uint32_t count, used;
};

// Adds one argument. More than fit are our own mistake and end the process.
void arguments_add(struct arguments *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct process_options {
    const struct arguments *arguments;
    const char *log;        // The path of the log; made if missing
    const char *dir;        // The folder it runs in; NULL: ours
    const char *const *env; // "NAME=value", before our own environment; ends with NULL, or is NULL
};

// FAULT_NOT_FOUND or FAULT_DENIED: the program or the log cannot be opened. A later fault in the
// child shows as its exit code: EX_CONFIG (78) if the folder or the program was refused.
int process_start(const struct process_options *options, struct why *why, pid_t *ret_pid);

// Prints a status of waitpid: "ended with code 70" or "was ended by signal 9 (Killed)".
void process_print_end(int status, char *text, size_t max);
