#pragma once
// toml_edit -- sets one key in the text of a TOML file. Only the key's line changes: a comment behind its value is lost.
// It knows files in which each key stands on a line of its own, with its value on the same line; a caller that edits a
// user's file loads the result before it counts (pin.c). `value` is TOML text, quotes included. Pure.

// `table` is "" for the keys before the first table. The line of the key is replaced, or its
// commented line ("# key = 1"), or a new line is put right below the table's. Returns a new text (the caller frees), or NULL if the file has no such
// table.
char *toml_edit(const char *text, const char *table, const char *key, const char *value);
