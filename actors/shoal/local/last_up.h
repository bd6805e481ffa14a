#pragma once
// last_up -- what an `up` was told of its trainers, for the next one with the same folder: a flag that is
// not given again has the value of last time. The broker's address is remembered by the ticket.

#include "common/base/fault.h"

enum { LAST_UP_FLAGS = 4, LAST_UP_VALUE = 48 };

struct last_up {
    // Of --trainers, --threads, --name, --standby; "": never given
    char values[LAST_UP_FLAGS][LAST_UP_VALUE];
    char words[600]; // What was taken from last time, and what is not as it was; "": neither
};

// `given`: the values of this command line, NULL where a flag is not on it. `dir` need not exist.
void last_up_take(struct last_up *self, const char *dir, const char *const given[LAST_UP_FLAGS]);

// NULL: neither this command line nor an earlier one has the flag.
const char *last_up_value(const struct last_up *self, int flag);

int last_up_keep(const struct last_up *self, const char *dir, struct why *why);
