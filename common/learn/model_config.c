#include "common/learn/model_config.h"
#include "common/ensure.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_count(const json_t *root, const char *name, const uint32_t *absent, struct why *why,
                      uint32_t *ret_value)
{
    const json_t *value = json_object_get(root, name);
    if (!value || json_is_null(value)) {
        if (!absent)
            return why_set(why, FAULT_FORMAT, "config.json: %s is missing; the model is refused",
                           name);
        *ret_value = *absent;
        return 0;
    }
    if (!json_is_integer(value))
        return why_set(why, FAULT_FORMAT,
                       "config.json: %s is not a whole number; the model is refused", name);
    const json_int_t number = json_integer_value(value);
    if (number < 0 || number > UINT32_MAX)
        return why_set(why, FAULT_RANGE,
                       "config.json: %s = %" JSON_INTEGER_FORMAT ", allowed 0..%" PRIu32
                       "; the model is refused", name, number, UINT32_MAX);
    *ret_value = (uint32_t)number;
    return 0;
}

static int read_real(const json_t *root, const char *name, double absent, struct why *why,
                     double *ret_value)
{
    const json_t *value = json_object_get(root, name);
    if (value && !json_is_null(value) && !json_is_number(value))
        return why_set(why, FAULT_FORMAT, "config.json: %s is not a number; the model is refused",
                       name);
    *ret_value = json_is_number(value) ? json_number_value(value) : absent;
    return 0;
}

static int unsupported(const json_t *value, const char *name, const char *allowed, struct why *why)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const int rc = why_set(why, FAULT_UNSUPPORTED,
                           "config.json: %s = %.100s, allowed %s; the model is refused", name,
                           text ? text : "?", allowed);
    free(text);
    return rc;
}

// Fields that must be absent, null, or the one value this model computes.
static int refuse_other_arithmetic(const json_t *root, struct why *why)
{
    static const struct { const char *name, *allowed; } fields[] = {
        { "model_type", "\"llama\"" },          { "hidden_act", "\"silu\"" },
        { "attention_bias", "false" },          { "mlp_bias", "false" },
        { "rope_scaling", "null" },             { "quantization_config", "null" },
        { "sliding_window", "null" },           { "partial_rotary_factor", "1.0" },
        { "attention_dropout", "0.0" },         { "num_local_experts", "null" },
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const json_t *value = json_object_get(root, fields[i].name);
        if (!value || json_is_null(value)) continue;
        json_t *allowed = json_loads(fields[i].allowed, JSON_DECODE_ANY, NULL);
        ensure(allowed);
        const bool same = json_equal(value, allowed)
            || (json_is_number(value) && json_is_number(allowed)
                && json_number_value(value) == json_number_value(allowed));
        json_decref(allowed);
        if (!same) return unsupported(value, fields[i].name, fields[i].allowed, why);
    }
    return 0;
}

static int check_architecture(const json_t *root, struct why *why)
{
    const json_t *list = json_object_get(root, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    if (list && !json_is_null(list)
        && (json_array_size(list) != 1 || !name || strcmp(name, "LlamaForCausalLM") != 0))
        return unsupported(list, "architectures", "[\"LlamaForCausalLM\"]", why);
    if (!name && !json_is_string(json_object_get(root, "model_type")))
        return why_set(why, FAULT_FORMAT,
                       "config.json: neither model_type nor architectures is there; the model "
                       "is refused");
    return refuse_other_arithmetic(root, why);
}

// Newer files say {"rope_theta": ..., "rope_type": "default"} in rope_parameters, older ones
// rope_theta beside the rest.
static int read_rope(const json_t *root, struct why *why, double *ret_theta)
{
    const json_t *parameters = json_object_get(root, "rope_parameters");
    if (!parameters || json_is_null(parameters))
        return read_real(root, "rope_theta", 10000.0, why, ret_theta);
    const json_t *type = json_object_get(parameters, "rope_type");
    if (!json_is_object(parameters)
        || (type && (!json_is_string(type) || strcmp(json_string_value(type), "default") != 0)))
        return unsupported(parameters, "rope_parameters", "rope_type \"default\"", why);
    return read_real(parameters, "rope_theta", 10000.0, why, ret_theta);
}

static int read_sizes(const json_t *root, struct why *why, struct model_shape *shape)
{
    const struct { const char *name; uint32_t *to; } counts[] = {
        { "vocab_size", &shape->vocab },            { "hidden_size", &shape->dim },
        { "num_hidden_layers", &shape->layers },    { "num_attention_heads", &shape->heads },
        { "intermediate_size", &shape->ffn },
        { "max_position_embeddings", &shape->seq_len_max },
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof counts / sizeof counts[0]; i++)
        rc = read_count(root, counts[i].name, NULL, why, counts[i].to);
    const uint32_t heads = shape->heads, head_dim = heads ? shape->dim / heads : 0;
    if (rc == 0) rc = read_count(root, "num_key_value_heads", &heads, why, &shape->kv_heads);
    if (rc == 0) rc = read_count(root, "head_dim", &head_dim, why, &shape->head_dim);
    return rc;
}

static int read_shape(const json_t *root, struct why *why, struct model_shape *shape)
{
    int rc = check_architecture(root, why);
    if (rc == 0) rc = read_sizes(root, why, shape);
    if (rc == 0) rc = read_rope(root, why, &shape->rope_theta);
    if (rc == 0) rc = read_real(root, "rms_norm_eps", 1e-6, why, &shape->rms_eps);
    if (rc < 0) return rc;
    const json_t *tied = json_object_get(root, "tie_word_embeddings");
    if (tied && !json_is_null(tied) && !json_is_boolean(tied))
        return why_set(why, FAULT_FORMAT,
                       "config.json: tie_word_embeddings is neither true nor false; the model "
                       "is refused");
    shape->tied = json_is_true(tied);
    rc = model_shape_check(shape, why);
    return rc < 0 ? why_wrap(why, rc, "config.json") : 0;
}

int model_shape_from_config_json(const char *text, size_t bytes, struct why *why,
                                 struct model_shape *ret_shape)
{
    if (bytes > MODEL_CONFIG_BYTES_MAX)
        return why_set(why, FAULT_LIMIT, "config.json: %zu bytes, allowed %d; the model is refused",
                       bytes, MODEL_CONFIG_BYTES_MAX);
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        const int rc = why_set(why, FAULT_FORMAT,
                               "config.json: line %d, column %d: %s; the model is refused",
                               root ? 1 : error.line, root ? 1 : error.column,
                               root ? "not an object" : error.text);
        json_decref(root);
        return rc;
    }
    struct model_shape shape = { 0 };
    const int rc = read_shape(root, why, &shape);
    if (rc == 0) *ret_shape = shape;
    json_decref(root);
    return rc;
}

// The fewest digits that read back as the same double: 1e-5 rather than 1.0000000000000001e-5.
static size_t digits_needed(double value)
{
    char text[40];
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return (size_t)digits;
    }
    return 17;
}

char *model_shape_to_config_json(const struct model_shape *shape)
{
    ensure(model_shape_check(shape, NULL) == 0);
    json_t *root = json_pack(
        "{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:s, s:b, s:b, "
        "s:n, s:s}",
        "architectures", "LlamaForCausalLM", "model_type", "llama",
        "vocab_size", (json_int_t)shape->vocab, "hidden_size", (json_int_t)shape->dim,
        "num_hidden_layers", (json_int_t)shape->layers,
        "num_attention_heads", (json_int_t)shape->heads,
        "num_key_value_heads", (json_int_t)shape->kv_heads,
        "head_dim", (json_int_t)shape->head_dim, "intermediate_size", (json_int_t)shape->ffn,
        "max_position_embeddings", (json_int_t)shape->seq_len_max,
        "rope_theta", shape->rope_theta, "rms_norm_eps", shape->rms_eps,
        "tie_word_embeddings", (int)shape->tied, "hidden_act", "silu",
        "attention_bias", 0, "mlp_bias", 0, "rope_scaling", "torch_dtype", "float32");
    if (!root) return NULL;
    const size_t theta = digits_needed(shape->rope_theta), eps = digits_needed(shape->rms_eps);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(theta > eps ? theta : eps));
    json_decref(root);
    return text;
}
