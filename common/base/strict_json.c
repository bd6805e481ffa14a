// The text is measured, then parsed, then its fields are read one by one. Each getter checks
// presence, type and range, in this order, and its error text names the field.
#include "common/base/strict_json.h"
#include <inttypes.h>
#include <string.h>

const char *strict_json_shown(const char *text, char room[STRICT_JSON_SHOWN])
{
    size_t count = 0;
    for (; text[count] && count < 60; count++)
        room[count] = text[count] >= ' ' && text[count] <= '~' ? text[count] : '?';
    strcpy(room + count, text[count] ? "..." : "");
    return room;
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

int strict_json_parse(const char *place, const char *text, size_t count, unsigned depth_max,
                      size_t values_max, struct why *why, json_t **ret_root)
{
    const struct measure found = measure(text, count);
    if (found.deepest > depth_max)
        return why_set(why, FAULT_LIMIT,
                       "%s: JSON is nested %u deep, allowed are %u levels; "
                       "refused",
                       place, found.deepest, depth_max);
    if (found.values > values_max)
        return why_set(why, FAULT_LIMIT, "%s: JSON has about %zu values, allowed are %zu; refused",
                       place, found.values, values_max);
    if (memchr(text, 0, count)) // jansson skips it between two tokens
        return why_set(why, FAULT_FORMAT, "%s: no valid JSON: there is a zero byte; refused",
                       place);
    json_error_t error;
    json_t *root = json_loadb(text, count, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        char shown[STRICT_JSON_SHOWN];
        const int fault =
            json_error_code(&error) == json_error_out_of_memory ? FAULT_MEMORY : FAULT_FORMAT;
        return why_set(why, fault, "%s: no valid JSON at line %d column %d: %s; refused", place,
                       error.line, error.column, strict_json_shown(error.text, shown));
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return why_set(why, FAULT_FORMAT, "%s: the JSON is not an object; refused", place);
    }
    *ret_root = root;
    return 0;
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
