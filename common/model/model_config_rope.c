// The rotation's part of model_config.h: rope_parameters of newer files, rope_scaling of older.
#include "common/model/model_config_parts.h"

#include <stddef.h>
#include <string.h>

enum {
    LINEAR = 1 << ROPE_LINEAR,
    LLAMA3 = 1 << ROPE_LLAMA3,
    YARN = 1 << ROPE_YARN,
    ANY = 1 << ROPE_DEFAULT | LINEAR | LLAMA3 | YARN
};

static const char original_key[] = "original_max_position_embeddings";

// Numbers of the object: which types have them, and their place in struct rope_scaling. A number
// that may be absent has the default of transformers (attention_factor: rope_attention_factor).
static const struct real {
    const char *key;
    unsigned types;
    bool needed;
    size_t place;
} reals[] = {
    { "factor", LINEAR | LLAMA3 | YARN, true, offsetof(struct rope_scaling, factor) },
    { "low_freq_factor", LLAMA3, true, offsetof(struct rope_scaling, low_freq_factor) },
    { "high_freq_factor", LLAMA3, true, offsetof(struct rope_scaling, high_freq_factor) },
    { "beta_fast", YARN, false, offsetof(struct rope_scaling, beta_fast) },
    { "beta_slow", YARN, false, offsetof(struct rope_scaling, beta_slow) },
    { "attention_factor", YARN, false, offsetof(struct rope_scaling, attention_factor) },
};
enum { REALS = sizeof reals / sizeof *reals };

// The other keys. The first YaRN models have "finetuned".
static const struct {
    const char *key;
    unsigned types;
} others[] = {
    { "rope_type", ANY },
    { "type", ANY },
    { "rope_theta", ANY },
    { "partial_rotary_factor", ANY },
    { original_key, LLAMA3 | YARN },
    { "truncate", YARN },
    { "finetuned", YARN },
};

// NULL for a field that is absent or null.
static const json_t *field(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);
    return json_is_null(value) ? NULL : value;
}

static double *real_of(struct rope_scaling *scaling, size_t index)
{
    return (double *)((char *)scaling + reals[index].place);
}

static bool key_belongs(const char *key, enum rope_type type)
{
    const unsigned bit = 1u << type;
    for (size_t i = 0; i < REALS; i++)
        if (strcmp(key, reals[i].key) == 0) return reals[i].types & bit;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i].key) == 0) return others[i].types & bit;
    return false;
}

static int check_keys(struct config_place rope, enum rope_type type, struct why *why)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)rope.object, key, value)
    {
        char allowed[64];
        if (json_is_null(value) || key_belongs(key, type)) continue;
        snprintf(allowed, sizeof allowed, "nothing of that name with \"%s\"", rope_type_name(type));
        return config_unsupported(rope, key, allowed, why);
    }
    const json_t *part = field(rope.object, "partial_rotary_factor");
    if (part && !(json_is_number(part) && json_number_value(part) == 1.0))
        return config_unsupported(rope, "partial_rotary_factor", "1.0", why);
    return 0;
}

static int read_type(struct config_place rope, struct why *why, enum rope_type *ret_type)
{
    static const char allowed[] = "\"default\", \"linear\", \"llama3\" or \"yarn\"";
    const json_t *new = field(rope.object, "rope_type"), *old = field(rope.object, "type");
    const char *key = new ? "rope_type" : "type";
    const char *text = json_string_value(new ? new : old);
    if (new &&old && !json_equal(new, old))
        return config_unsupported(rope, "type", "the same as rope_type", why);
    if (!new && !old) {
        *ret_type = ROPE_DEFAULT;
        return 0;
    }
    for (enum rope_type type = 0; text && type < ROPE_TYPES; type++) {
        if (strcmp(text, rope_type_name(type)) != 0) continue;
        *ret_type = type;
        return 0;
    }
    return config_unsupported(rope, key, allowed, why);
}

static int read_reals(struct config_place rope, struct why *why, struct rope_scaling *scaling)
{
    int rc = 0;
    for (size_t i = 0; i < REALS && rc == 0; i++) {
        const double absent = *real_of(scaling, i);
        if (!(reals[i].types >> scaling->type & 1)) continue;
        rc = config_read_real(rope, reals[i].key, reals[i].needed ? NULL : &absent, why,
                              real_of(scaling, i));
    }
    if (rc == 0 && scaling->type != ROPE_LINEAR)
        rc = config_read_count(rope, original_key, NULL, why, &scaling->original);
    return rc;
}

// Older versions of transformers take the factor from the two lengths, newer ones from the file.
static int read_yarn(struct config_place rope, uint32_t positions, struct why *why,
                     struct rope_scaling *scaling)
{
    const json_t *truncate = field(rope.object, "truncate");
    if (truncate && !json_is_boolean(truncate))
        return config_unsupported(rope, "truncate", "true or false", why);
    scaling->truncate = !json_is_false(truncate);
    if (scaling->original && scaling->factor != (double)positions / scaling->original) {
        char allowed[96];
        snprintf(allowed, sizeof allowed, "max_position_embeddings / %s = %.9g", original_key,
                 (double)positions / scaling->original);
        return config_unsupported(rope, "factor", allowed, why);
    }
    return 0;
}

static int read_scaling(struct config_place rope, uint32_t positions, struct why *why,
                        struct rope_scaling *ret_scaling)
{
    struct rope_scaling scaling = { 0 };
    int rc = read_type(rope, why, &scaling.type);
    if (rc == 0) rc = check_keys(rope, scaling.type, why);
    if (rc < 0 || scaling.type == ROPE_DEFAULT) return rc;
    if (scaling.type == ROPE_YARN) {
        scaling.beta_fast = 32;
        scaling.beta_slow = 1;
    }
    rc = read_reals(rope, why, &scaling);
    if (rc == 0 && scaling.type == ROPE_YARN) rc = read_yarn(rope, positions, why, &scaling);
    if (rc == 0 && scaling.type == ROPE_YARN && !field(rope.object, "attention_factor"))
        scaling.attention_factor = rope_attention_factor(scaling.factor);
    if (rc == 0) *ret_scaling = scaling;
    return rc;
}

int config_read_rope(const json_t *root, struct why *why, struct model_shape *shape)
{
    const struct config_place file = { root, "" };
    const json_t *new = field(root, "rope_parameters"), *old = field(root, "rope_scaling");
    const struct config_place rope = { new ? new : old,
                                       new ? "rope_parameters." : "rope_scaling." };
    const double usual = 10000.0;
    int rc = config_read_real(file, "rope_theta", &usual, why, &shape->rope_theta);
    if (rc < 0 || !rope.object) return rc;
    if (!json_is_object(rope.object))
        return config_unsupported(file, new ? "rope_parameters" : "rope_scaling",
                                  "null or an object", why);
    if (new &&old && !json_equal(new, old))
        return config_unsupported(file, "rope_scaling", "null or the same as rope_parameters", why);
    const double outside = shape->rope_theta;
    rc = config_read_real(rope, "rope_theta", &outside, why, &shape->rope_theta);
    if (rc == 0 && field(root, "rope_theta") && shape->rope_theta != outside)
        return config_unsupported(rope, "rope_theta", "the same as rope_theta outside", why);
    return rc < 0 ? rc : read_scaling(rope, shape->seq_len_max, why, &shape->rope_scaling);
}

json_t *config_pack_rope(const struct rope_scaling *scaling)
{
    struct rope_scaling copy = *scaling;
    if (scaling->type == ROPE_DEFAULT) return json_null();
    json_t *rope = json_pack("{s:s}", "rope_type", rope_type_name(scaling->type));
    int bad = !rope;
    for (size_t i = 0; i < REALS; i++)
        if (reals[i].types >> scaling->type & 1)
            bad |= json_object_set_new(rope, reals[i].key, json_real(*real_of(&copy, i)));
    if (scaling->type != ROPE_LINEAR)
        bad |= json_object_set_new(rope, original_key, json_integer(scaling->original));
    if (scaling->type == ROPE_YARN)
        bad |= json_object_set_new(rope, "truncate", json_boolean(scaling->truncate));
    if (!bad) return rope;
    json_decref(rope);
    return NULL;
}
