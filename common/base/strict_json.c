// The text is measured, then parsed, then its fields are read one by one. Each getter checks
// presence, type and range, in this order, and its error text names the field.
#include "common/base/strict_json.h"
#include <inttypes.h>
#include <string.h>

const char *strict_json_shown(const char *text, char shown[STRICT_JSON_SHOWN])
{
    size_t count = 0;
    for (; text[count] && count < 60; count++)
        shown[count] = text[count] >= ' ' && text[count] <= '~' ? text[count] : '?';
    strcpy(shown + count, text[count] ? "..." : "");
    return shown;
}

struct measure {
    size_t values;
    unsigned deepest;
};

// Counts without parsing; the parser finds what is not JSON. Every value but the first
// follows a '{', '[', ',' or ':', so their number bounds the tree.
static struct measure measure(const char *text, size_t count)
{
    struct measure found = { .values = 1 };
    unsigned depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < count; i++) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') i++;
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            found.values++;
            if (++depth > found.deepest) found.deepest = depth;
        } else if (c == '}' || c == ']') {
            if (depth) depth--;
        } else if (c == ',' || c == ':') {
            found.values++;
        }
    }
    return found;
}

static int check_size(const char *place, const char *text, size_t count, unsigned depth_max,
                      size_t values_max, const char *end, struct why *why)
{
    const struct measure found = measure(text, count);
    if (found.deepest > depth_max)
        return why_set(why, FAULT_LIMIT, "%s: JSON is nested %u deep, allowed are %u levels%s",
                       place, found.deepest, depth_max, end);
    if (found.values > values_max)
        return why_set(why, FAULT_LIMIT, "%s: JSON has about %zu values, allowed are %zu%s", place,
                       found.values, values_max, end);
    if (memchr(text, 0, count)) // jansson skips it between two tokens
        return why_set(why, FAULT_FORMAT, "%s: no valid JSON: there is a zero byte%s", place, end);
    return 0;
}

int strict_json_parse(const char *place, const char *text, size_t count, unsigned depth_max,
                      size_t values_max, struct why *why, json_t **ret_root)
{
    static const char end[] = "; refused";
    json_error_t error;
    int rc = check_size(place, text, count, depth_max, values_max, end, why);
    if (rc < 0) return rc;
    json_t *root = json_loadb(text, count, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        char shown[STRICT_JSON_SHOWN];
        const int fault =
            json_error_code(&error) == json_error_out_of_memory ? FAULT_MEMORY : FAULT_FORMAT;
        return why_set(why, fault, "%s: no valid JSON at line %d column %d: %s%s", place,
                       error.line, error.column, strict_json_shown(error.text, shown), end);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return why_set(why, FAULT_FORMAT, "%s: the JSON is not an object%s", place, end);
    }
    *ret_root = root;
    return 0;
}

int strict_json_parse_record(const char *place, const char *text, size_t count, unsigned depth_max,
                             size_t values_max, struct why *why, json_t **ret_root)
{
    json_error_t error;
    int rc = check_size(place, text, count, depth_max, values_max, "", why);
    if (rc < 0) return rc;
    json_t *root =
        json_loadb(text, count, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (!root) {
        char shown[STRICT_JSON_SHOWN];
        if (json_error_code(&error) == json_error_out_of_memory)
            return why_set(why, FAULT_MEMORY, "%s: a record of %zu bytes", place, count);
        return why_set(why, FAULT_FORMAT, "%s: no valid JSON at byte %d: %s%s", place,
                       error.position, strict_json_shown(error.text, shown),
                       strstr(error.text, "invalid Unicode") ? " (half of a surrogate pair)" : "");
    }
    if (!json_is_object(root)) {
        rc = why_set(why, FAULT_FORMAT, "%s: the record is %s, not an object with fields", place,
                     strict_json_kind(root));
        json_decref(root);
        return rc;
    }
    *ret_root = root;
    return 0;
}

const char *strict_json_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "nothing";
}

static int missing(const char *place, const char *key, const json_t *value, const char *wanted,
                   struct why *why)
{
    return why_set(why, FAULT_FORMAT, "%s: '%s' %s, wanted is %s; refused", place, key,
                   value ? "is of another kind" : "is missing", wanted);
}

int strict_json_number(const json_t *object, const char *place, const char *key, uint64_t max,
                       struct why *why, uint64_t *ret_number)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) return missing(place, key, value, "a whole number", why);
    const json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number > max)
        return why_set(why, FAULT_RANGE,
                       "%s: '%s' is %" JSON_INTEGER_FORMAT ", allowed is 0 to "
                       "%" PRIu64 "; refused",
                       place, key, number, max);
    *ret_number = (uint64_t)number;
    return 0;
}

int strict_json_text(const json_t *object, const char *place, const char *key, size_t bytes_max,
                     struct why *why, const char **ret_text)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) return missing(place, key, value, "a text", why);
    if (json_string_length(value) > bytes_max)
        return why_set(why, FAULT_RANGE, "%s: '%s' is %zu bytes long, allowed are %zu; refused",
                       place, key, json_string_length(value), bytes_max);
    *ret_text = json_string_value(value);
    return 0;
}

int strict_json_array(const json_t *object, const char *place, const char *key, size_t count_max,
                      struct why *why, const json_t **ret_array)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value)) return missing(place, key, value, "a list", why);
    if (json_array_size(value) > count_max)
        return why_set(why, FAULT_RANGE, "%s: '%s' has %zu entries, allowed are %zu; refused",
                       place, key, json_array_size(value), count_max);
    *ret_array = value;
    return 0;
}
