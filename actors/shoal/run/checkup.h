#pragma once
// checkup -- what `shoal doctor` sees, a sentence each, printed at once; or, with --json, kept
// for one object.
//
//     checkup_add (&checkup, CHECKUP_WARNING, "clock", "the kernel does not ...");
//     warning      clock         the kernel does not ...

#include "common/base/fault.h"
#include <jansson.h>
#include <stdbool.h>

enum checkup_result {
    CHECKUP_OK,
    CHECKUP_WARNING,     // It works, but not as well as it could
    CHECKUP_NOT_CHECKED, // And the sentence says why
    CHECKUP_UNREACHABLE, // Bad: another side does not answer
    CHECKUP_WRONG,       // Bad: something of this machine
    CHECKUP_KINDS
};

struct checkup { // Zeroed at first
    bool json;
    json_t *list; // With `json`
    unsigned counts[CHECKUP_KINDS];
};

void checkup_add(struct checkup *self, enum checkup_result kind, const char *check,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

// Prints how many there are of each kind, or the object. *ret_code: 78 (EX_CONFIG) if something is
// wrong here, else 69 (EX_UNAVAILABLE) if something cannot be reached, else 0. FAULT_IO, FAULT_MEMORY.
int checkup_end(struct checkup *self, struct why *why, int *ret_code);
