// toml_edit -- works on lines and parses no TOML: finds the line of the table, then the line of the
// key before the next table begins. The key's line is replaced; if there is none, the line that has
// the key behind a "# " (as the annotated samples have it); else the key becomes the first line of
// the table.

#include "actors/shoal/local/toml_edit.h"
#include "common/base/ensure.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Where the line after this one begins.
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

static bool is_table(const char *line, const char *table)
{
    size_t count = strlen(table);
    return line[0] == '[' && strncmp(line + 1, table, count) == 0 && line[1 + count] == ']';
}

// Whether the line sets the key, behind the mark: "" or "# ".
static bool is_key(const char *line, const char *mark, const char *key)
{
    size_t count = strlen(key);
    if (strncmp(line, mark, strlen(mark)) != 0) return false;
    line += strlen(mark);
    line += strspn(line, " \t");
    if (strncmp(line, key, count) != 0) return false;
    return line[count + strspn(line + count, " \t")] == '=';
}

// The text with [from, to) replaced by a line.
static char *replace(const char *text, const char *from, const char *to, const char *key,
                     const char *value)
{
    size_t before = (size_t)(from - text), max = strlen(text) + strlen(key) + strlen(value) + 8;
    char *edited = malloc(max);
    ensure(edited);
    memcpy(edited, text, before);
    const char *glue = before && text[before - 1] != '\n' ? "\n" : "";
    snprintf(edited + before, max - before, "%s%s = %s\n%s", glue, key, value, to);
    return edited;
}

char *toml_edit(const char *text, const char *table, const char *key, const char *value)
{
    const char *line = text;
    while (table[0] && *line && !is_table(line, table)) line = next_line(line);
    if (table[0] && !*line) return NULL;
    const char *top = table[0] ? next_line(line) : text;
    for (int commented = 0; commented < 2; commented++)
        for (line = top; *line && *line != '['; line = next_line(line))
            if (is_key(line, commented ? "# " : "", key))
                return replace(text, line, next_line(line), key, value);
    return replace(text, top, top, key, value);
}
