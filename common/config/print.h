#pragma once
// print -- keys.def as text: the annotated sample and the page of one key.

#include <stdio.h>

#include "common/config/load.h"

// A word for a setting of type VALUE or VARIANT, in place of the one in keys.def.
struct config_choice {
    const char *path, *word;
};

// A complete file, every setting with its sentence, its range and its default. It loads as it is.
// `choices`: a list that ends with an empty one, or NULL. Settings that the chosen words make useless
// stand in it as remarks.
void config_print_sample(const struct config_schema *schema, const struct config_choice *choices,
                         FILE *out);

// The page of one key, or of a table: its keys. If there is neither: FAULT_NOT_FOUND, after printing the
// likely intended key.
int config_explain(const struct config_schema *schema, const char *path, FILE *out);
