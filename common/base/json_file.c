// The text is made whole before the file is opened: no fault leaves half a document behind.
#include "common/base/json_file.h"
#include "common/base/durable_file.h"
#include <stdlib.h>
#include <string.h>

int json_file_write(const char *dir, const char *name, json_t *json, size_t bytes_max,
                    struct why *why)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    if (!text) return why_set(why, FAULT_MEMORY, "the text of %s/%s", dir, name);
    const size_t count = strlen(text);
    int rc = count <= bytes_max ? durable_file_write(dir, name, text, count, why)
                                : why_set(why, FAULT_LIMIT,
                                          "%s/%s would have %zu bytes; at most %zu are read back",
                                          dir, name, count, bytes_max);
    free(text);
    return rc;
}
