// The check makes the text again from the parsed values, the hash included, and compares the two. So it
// needs no second definition of what is hashed. Format and version come before it: a text of another
// version may be sealed in another way.
#include "common/base/sealed_json.h"
#include "common/base/strict_json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4, VALUES_MAX = 1 << 19, DUMP_FLAGS = JSON_INDENT(1) };
static const char seal_key[] = "sha256";

json_t *sealed_json_hash(const struct hash *hash)
{
    char hex[HASH_HEX];
    return json_string(hash_to_hex(hash, hex));
}

char *sealed_json_dump(json_t *root)
{
    json_object_del(root, seal_key);
    char *text = json_dumps(root, DUMP_FLAGS);
    if (!text) return NULL;
    const struct hash seal = hash_of(text, strlen(text));
    free(text);
    if (json_object_set_new(root, seal_key, sealed_json_hash(&seal)) < 0) return NULL;
    return json_dumps(root, DUMP_FLAGS);
}

static int check_seal(const char *place, json_t *root, const char *text, size_t count,
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

int sealed_json_parse(const char *place, const char *format, uint64_t version, const char *text,
                      size_t count, struct why *why, json_t **ret_root)
{
    const char *is;
    uint64_t has;
    json_t *root;
    int rc = strict_json_parse(place, text, count, DEPTH_MAX, VALUES_MAX, why, &root);
    if (rc < 0) return rc;
    rc = strict_json_text(root, place, "format", 64, why, &is);
    if (rc == 0) rc = strict_json_number(root, place, "version", (uint64_t)1 << 53, why, &has);
    if (rc == 0 && strcmp(is, format) != 0)
        rc = why_set(why, FAULT_FORMAT, "%s: 'format' is not '%s'; refused", place, format);
    if (rc == 0 && has != version)
        rc = why_set(why, FAULT_UNSUPPORTED,
                     "%s: version %" PRIu64 ", this program reads %" PRIu64 "; refused", place, has,
                     version);
    if (rc == 0) rc = check_seal(place, root, text, count, why);
    if (rc < 0) json_decref(root);
    else *ret_root = root;
    return rc;
}

int sealed_json_get_hash(const json_t *object, const char *place, const char *key, struct why *why,
                         struct hash *ret_hash)
{
    const char *text;
    const int rc = strict_json_text(object, place, key, HASH_HEX, why, &text);
    if (rc < 0) return rc;
    if (hash_from_hex(text, ret_hash)) return 0;
    return why_set(why, FAULT_RANGE, "%s: '%s' is not 64 hexadecimal digits; refused", place, key);
}
