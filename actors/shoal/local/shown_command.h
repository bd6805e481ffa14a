#pragma once
// shown_command -- a command that we run for the user, and show before: "$ systemctl start ...", as it
// could be typed into a shell. All of it goes to stderr.

#include "common/base/process.h"
#include <stdio.h>

// A space and the word, in quotes if a shell would take one of its characters for its own.
void shown_command_word(FILE *out, const char *word);
void shown_command_print(const struct arguments *args);

// Prints the command, runs it and waits for its end; its output is our stderr, and list[0] is looked
// for in PATH. FAULT_UNAVAILABLE: it cannot be started or fails; `why` says how.
int shown_command_run(const struct arguments *args, struct why *why);
