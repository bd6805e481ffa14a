// The check makes the text again from the parsed values, the hash included, and compares the two.
// So it needs no second definition of what is hashed.
#include "common/base/sealed_json.h"
#include "common/base/hash.h"
#include <stdlib.h>
#include <string.h>

enum { DUMP_FLAGS = JSON_INDENT(1) };
static const char seal_key[] = "sha256";

char *sealed_json_dump(json_t *root)
{
    char hex[HASH_HEX];
    json_object_del(root, seal_key);
    char *text = json_dumps(root, DUMP_FLAGS);
    if (!text) return NULL;
    const struct hash seal = hash_of(text, strlen(text));
    free(text);
    if (json_object_set_new(root, seal_key, json_string(hash_to_hex(&seal, hex))) < 0) return NULL;
    return json_dumps(root, DUMP_FLAGS);
}

int sealed_json_check(const char *place, json_t *root, const char *text, size_t count,
                      struct why *why)
{
    char *wanted = sealed_json_dump(root);
    int rc = 0;
    if (!wanted) rc = why_set(why, FAULT_MEMORY, "%s: no memory to verify it", place);
    else if (strlen(wanted) != count || memcmp(wanted, text, count) != 0)
        rc = why_set(why, FAULT_DIGEST,
                     "%s: its content does not match its own sha256: it was "
                     "changed after it was written; refused",
                     place);
    free(wanted);
    return rc;
}
