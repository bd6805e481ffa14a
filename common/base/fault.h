#pragma once
// fault -- the world's errors, as values. A shell function returns 0 or a negative enum fault, and
// writes its results (last, as ret_x) only on success. What exactly went wrong (the place, the
// value, the allowed range, what happens next) goes into the caller's struct why, for the person
// that must act on it. Cores do not use this: they refuse in a message.
//
//     struct why why = { 0 };
//     int rc = token_file_open(path, 2, &why, &file);
//     if (rc < 0) return fault_exit(rc, &why);        // only in main: prints, gives the exit code

#include <stddef.h>

#define FAULT(name, code, sentence) FAULT_RANK_##name,
enum {
    FAULT_RANK_NONE,
#include "common/base/fault.def"
    FAULT_RANK_END
};
#undef FAULT
#define FAULT(name, code, sentence) FAULT_##name = -FAULT_RANK_##name,
enum fault {
    FAULT_NONE = 0,
#include "common/base/fault.def"
};
#undef FAULT

enum { WHY_MAX = 2048 };
struct why {
    char text[WHY_MAX];
}; // Always terminated; empty means nothing more to say

// Replaces the text and returns `fault`, so that a failing line reads
// `return why_set(why, FAULT_RANGE, ...)`. Too long a text is cut. `why` may be NULL.
int why_set(struct why *why, int fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "context: " before what is there, and returns `fault`.
int why_wrap(struct why *why, int fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The fault that matches errno after a failed system call (ENOSPC is FAULT_DISK_FULL, and so on).
int fault_from_errno(int error);

const char *fault_name(int fault); // "DISK_FULL"; "?" for what is no fault
const char *fault_sentence(int fault);
int fault_exit_code(int fault); // From sysexits.h; 0 for FAULT_NONE

// For main alone: prints "program: sentence: why" to stderr and returns the exit code.
int fault_exit(int fault, const struct why *why);
