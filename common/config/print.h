#pragma once
// print -- keys.def as text: the annotated sample and the page of one key.

#include <stdio.h>

#include "common/config/load.h"

// A complete file, every setting with its sentence, its range and its default. It loads as it is.
void config_print_sample(const struct config_schema *schema, FILE *out);

// The page of one key. If there is no such key: FAULT_NOT_FOUND, after printing the likely intended
// one.
int config_explain(const struct config_schema *schema, const char *path, FILE *out);
