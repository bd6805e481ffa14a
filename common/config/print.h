#pragma once
// print -- keys.def for people: the annotated sample, the page of one key, the table a process
// prints when it starts.

#include <stdio.h>

#include "common/config/load.h"

// A complete file, every setting with its sentence, its range and its default. It loads as it is.
void config_print_sample(const struct config_schema *schema, FILE *out);

// The page of one key. FAULT_NOT_FOUND for what is no key, after saying which was probably meant.
int config_explain(const struct config_schema *schema, const char *path, FILE *out);

// Every setting that counts, its value, and where that came from: the file's line, or the default.
void config_print_table(const struct config_schema *schema, const void *config,
                        const struct config_origin *origin, FILE *out);
