#pragma once
// toml_edit -- sets a key in the text of a TOML file and leaves all else, comments included, as it
// is. For files of ours: a key stands on a line of its own, its value on the same line. Pure.

// `table` is "" for the keys before the first table. The line of the key is replaced, or put right
// below the table's line. Returns a new text (the caller frees), or NULL if the file has no such
// table.
char *toml_edit(const char *text, const char *table, const char *key, const char *value);
