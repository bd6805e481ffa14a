#pragma once
// run_files -- state.toml and data.toml as a command writes them: a text whose keys are set one by
// one (toml_edit), then the file; and what follows from a file that was written.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <stddef.h>

// Sets a key in *text. Frees the text and puts the edited one in its place. FAULT_CONFIG: the text
// has no such table.
int run_files_set(char **text, const char *table, const char *key, const char *value,
                  struct why *why);

// The digest of the dataset that a data.toml names, read as the data-provider will read it.
int run_files_dataset(const char *data_toml, struct why *why, struct hash *ret_digest);
