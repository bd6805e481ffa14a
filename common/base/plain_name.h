#pragma once
// plain_name -- a name that can stand as it is in a path, in a line of a shell and in a log.

#include <stdbool.h>
#include <stddef.h>

#define PLAIN_NAME_RULE "A-Z a-z 0-9 . _ -"

// Whether `text` has 1 to `max` bytes of PLAIN_NAME_RULE. It may still begin with a dot or a hyphen.
// Never reads beyond max + 1 bytes. Pure.
bool plain_name(const char *text, size_t max);
