#pragma once
// run_files -- for commands that write a state.toml and a data.toml: sets keys in their text (toml_edit), and computes
// the digest of the dataset that a data.toml names.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <stddef.h>

// Sets a key in *text. Frees the text and puts the edited one in its place. FAULT_CONFIG: the text
// has no such table.
int run_files_set(char **text, const char *table, const char *key, const char *value,
                  struct why *why);

// The digest of the dataset that a data.toml names, opened as the data-provider opens it. Prints faults of the file to
// stderr. One thread.
int run_files_dataset(const char *data_toml, struct why *why, struct hash *ret_digest);
