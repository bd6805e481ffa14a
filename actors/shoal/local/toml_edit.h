#pragma once
// toml_edit -- sets one key in the text of a TOML file; every other byte stays, comments included.
// Only for files of ours: each key stands on a line of its own, with its value on the same line.
// Pure.

// `table` is "" for the keys before the first table. The line of the key is replaced, or its
// commented line ("# key = 1"), or a new line is put right below the table's. Returns a new text (the caller frees), or NULL if the file has no such
// table.
char *toml_edit(const char *text, const char *table, const char *key, const char *value);
