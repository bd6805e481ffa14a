// Reading goes from what decides the meaning to what depends on it: the family, the fields that
// must not ask for other arithmetic, sizes, window, rotation, eps, head. The shape is checked as a
// whole at the end. Writing packs the same fields and takes no more digits than needed.
#include "common/model/model_config.h"
#include "common/base/ensure.h"
#include "common/base/strict_json.h"
#include "common/model/model_config_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 16,
    VALUES_MAX = 1 << 14,
    MISTRAL_WINDOW = 4096, // The default of transformers' MistralConfig
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

// ---- Reading ----

// Fields that must be absent, null, or the one value this model computes.
static int refuse_other_arithmetic(struct config_place file, struct why *why)
{
    static const struct {
        const char *name, *allowed;
    } fields[] = {
        { "hidden_act", "\"silu\"" },
        { "attention_bias", "false" },
        { "mlp_bias", "false" },
        { "quantization_config", "null" },
        { "partial_rotary_factor", "1.0" },
        { "attention_dropout", "0.0" },
        { "num_local_experts", "null" },
        { "rope_interleaved", "false" },
        { "layer_types", "null" },
        { "original_max_position_embeddings", "null" },
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const json_t *value = json_object_get(file.object, fields[i].name);
        if (!value || json_is_null(value)) continue;
        json_t *allowed = json_loads(fields[i].allowed, JSON_DECODE_ANY, NULL);
        ensure(allowed);
        const bool same =
            json_equal(value, allowed) || (json_is_number(value) && json_is_number(allowed) &&
                                           json_number_value(value) == json_number_value(allowed));
        json_decref(allowed);
        if (!same) return config_unsupported(file, fields[i].name, fields[i].allowed, why);
    }
    return 0;
}

// Two names for the same arithmetic, apart from what absent fields mean.
enum family { LLAMA, MISTRAL, FAMILIES };
static const char *const model_types[] = { "llama", "mistral" };
static const char *const architectures[] = { "LlamaForCausalLM", "MistralForCausalLM" };

static enum family family_of(const char *name, const char *const names[FAMILIES])
{
    enum family family = 0;
    while (family < FAMILIES && !(name && strcmp(name, names[family]) == 0)) family++;
    return family;
}

static int read_family(struct config_place file, struct why *why, enum family *ret_family)
{
    const json_t *list = json_object_get(file.object, "architectures");
    const json_t *type = json_object_get(file.object, "model_type");
    const bool listed = list && !json_is_null(list), typed = type && !json_is_null(type);
    const enum family by_list =
        family_of(json_array_size(list) == 1 ? json_string_value(json_array_get(list, 0)) : NULL,
                  architectures);
    const enum family by_type = family_of(json_string_value(type), model_types);
    if (listed && by_list == FAMILIES)
        return config_unsupported(file, "architectures",
                                  "[\"LlamaForCausalLM\"] or [\"MistralForCausalLM\"]", why);
    if (typed && by_type == FAMILIES)
        return config_unsupported(file, "model_type", "\"llama\" or \"mistral\"", why);
    if (listed && typed && by_list != by_type)
        return config_unsupported(file, "model_type", "that of the architectures", why);
    if (!listed && !typed)
        return why_set(why, FAULT_FORMAT,
                       "config.json: neither model_type nor architectures is there; the model "
                       "is refused");
    *ret_family = typed ? by_type : by_list;
    return 0;
}

// A window that is at least as wide as the positions cuts nothing. Llama has no window; a Llama
// file that names a narrower one was meant for another model and is refused.
static int check_window(struct config_place file, enum family family, uint32_t positions,
                        struct why *why)
{
    const json_t *value = json_object_get(file.object, "sliding_window");
    uint32_t window = UINT32_MAX;
    if (!value && family == MISTRAL && positions > MISTRAL_WINDOW)
        return why_set(why, FAULT_UNSUPPORTED,
                       "config.json: sliding_window is absent, which means %d with mistral, "
                       "allowed null or at least max_position_embeddings = %" PRIu32
                       "; the model is refused",
                       MISTRAL_WINDOW, positions);
    if (!value || json_is_null(value)) return 0;
    const int rc = config_read_count(file, "sliding_window", NULL, why, &window);
    return rc < 0 || window >= positions
               ? rc
               : config_unsupported(file, "sliding_window",
                                    "null or at least max_position_embeddings", why);
}

static int read_sizes(struct config_place file, enum family family, struct why *why,
                      struct model_shape *shape)
{
    const struct {
        const char *name;
        uint32_t *to;
    } counts[] = {
        { "vocab_size", &shape->vocab },         { "hidden_size", &shape->dim },
        { "num_hidden_layers", &shape->layers }, { "num_attention_heads", &shape->heads },
        { "intermediate_size", &shape->ffn },    { "max_position_embeddings", &shape->seq_len_max },
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof counts / sizeof counts[0]; i++)
        rc = config_read_count(file, counts[i].name, NULL, why, counts[i].to);
    const uint32_t heads = shape->heads, head_dim = heads ? shape->dim / heads : 0;
    if (rc == 0 && family == MISTRAL && !json_object_get(file.object, "num_key_value_heads"))
        rc = config_missing(file, "num_key_value_heads", why);
    if (rc == 0) rc = config_read_count(file, "num_key_value_heads", &heads, why, &shape->kv_heads);
    if (rc == 0) rc = config_read_count(file, "head_dim", &head_dim, why, &shape->head_dim);
    return rc;
}

static int read_shape(const json_t *root, struct why *why, struct model_shape *shape)
{
    const struct config_place file = { root, "" };
    const double usual_eps = 1e-6;
    enum family family = LLAMA;
    int rc = read_family(file, why, &family);
    if (rc == 0) rc = refuse_other_arithmetic(file, why);
    if (rc == 0) rc = read_sizes(file, family, why, shape);
    if (rc == 0) rc = check_window(file, family, shape->seq_len_max, why);
    if (rc == 0) rc = config_read_rope(root, why, shape);
    if (rc == 0) rc = config_read_real(file, "rms_norm_eps", &usual_eps, why, &shape->rms_eps);
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
    json_t *root;
    struct model_shape shape = { 0 };
    int rc = strict_json_parse("config.json", text, bytes, DEPTH_MAX, VALUES_MAX, why, &root);
    if (rc < 0) return rc;
    rc = read_shape(root, why, &shape);
    if (rc == 0) *ret_shape = shape;
    json_decref(root);
    return rc;
}

// ---- Writing ----

// The fewest digits that read every number of the tree back as the same double: 1e-5 rather than
// 1.0000000000000001e-5.
static size_t digits_needed(json_t *value)
{
    size_t most = 1;
    const char *key;
    json_t *inner;
    size_t index;
    json_object_foreach(value, key, inner) most = larger(most, digits_needed(inner));
    json_array_foreach(value, index, inner) most = larger(most, digits_needed(inner));
    for (size_t digits = 1; json_is_real(value) && digits <= 17; digits++) {
        char text[40];
        snprintf(text, sizeof text, "%.*g", (int)digits, json_real_value(value));
        if (strtod(text, NULL) == json_real_value(value)) return digits;
    }
    return most;
}

// Takes the tree. NULL only for want of memory.
static char *text_of(json_t *root)
{
    if (!root) return NULL;
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(digits_needed(root)));
    json_decref(root);
    return text;
}

char *model_shape_to_config_json(const struct model_shape *shape)
{
    ensure(model_shape_check(shape, NULL) == 0);
    return text_of(json_pack(
        "{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:s, s:b, s:b, "
        "s:o, s:s}",
        "architectures", architectures[LLAMA], "model_type", model_types[LLAMA], "vocab_size",
        (json_int_t)shape->vocab, "hidden_size", (json_int_t)shape->dim, "num_hidden_layers",
        (json_int_t)shape->layers, "num_attention_heads", (json_int_t)shape->heads,
        "num_key_value_heads", (json_int_t)shape->kv_heads, "head_dim", (json_int_t)shape->head_dim,
        "intermediate_size", (json_int_t)shape->ffn, "max_position_embeddings",
        (json_int_t)shape->seq_len_max, "rope_theta", shape->rope_theta, "rms_norm_eps",
        shape->rms_eps, "tie_word_embeddings", (int)shape->tied, "hidden_act", "silu",
        "attention_bias", 0, "mlp_bias", 0, "rope_scaling", config_pack_rope(&shape->rope_scaling),
        "torch_dtype", "float32"));
}

char *model_config_with_dtype(const char *text, const char *dtype)
{
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!root) return NULL;
    const bool newer = json_object_get(root, "dtype"), older = json_object_get(root, "torch_dtype");
    int bad = newer ? json_object_set_new(root, "dtype", json_string(dtype)) : 0;
    if (older || !newer) bad |= json_object_set_new(root, "torch_dtype", json_string(dtype));
    if (!bad) return text_of(root);
    json_decref(root);
    return NULL;
}
