#include "common/model/model_config_parts.h"
#include "common/base/strict_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int config_missing(struct config_place place, const char *name, struct why *why)
{
    return why_set(why, FAULT_FORMAT, "config.json: %s%s is missing; the model is refused",
                   place.prefix, name);
}

int config_read_count(struct config_place place, const char *name, const uint32_t *absent,
                      struct why *why, uint32_t *ret_value)
{
    const json_t *value = json_object_get(place.object, name);
    if (!value || json_is_null(value)) {
        if (!absent) return config_missing(place, name, why);
        *ret_value = *absent;
        return 0;
    }
    if (!json_is_integer(value))
        return why_set(why, FAULT_FORMAT,
                       "config.json: %s%s is not a whole number; the model is refused",
                       place.prefix, name);
    const json_int_t number = json_integer_value(value);
    if (number < 0 || number > UINT32_MAX)
        return why_set(why, FAULT_RANGE,
                       "config.json: %s%s = %" JSON_INTEGER_FORMAT ", allowed 0..%" PRIu32
                       "; the model is refused",
                       place.prefix, name, number, UINT32_MAX);
    *ret_value = (uint32_t)number;
    return 0;
}

int config_read_real(struct config_place place, const char *name, const double *absent,
                     struct why *why, double *ret_value)
{
    const json_t *value = json_object_get(place.object, name);
    if (!value || json_is_null(value)) {
        if (!absent) return config_missing(place, name, why);
        *ret_value = *absent;
        return 0;
    }
    if (!json_is_number(value))
        return why_set(why, FAULT_FORMAT, "config.json: %s%s is not a number; the model is refused",
                       place.prefix, name);
    *ret_value = json_number_value(value);
    return 0;
}

int config_unsupported(struct config_place place, const char *name, const char *allowed,
                       struct why *why)
{
    char shown_name[STRICT_JSON_SHOWN], shown[STRICT_JSON_SHOWN];
    char *text = json_dumps(json_object_get(place.object, name),
                            JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    const int rc =
        why_set(why, FAULT_UNSUPPORTED, "config.json: %s%s = %s, allowed %s; the model is refused",
                place.prefix, strict_json_shown(name, shown_name),
                strict_json_shown(text ? text : "?", shown), allowed);
    free(text);
    return rc;
}
