// tokenizer_parts -- reads the parts of a tokenizer.json that surround the model. Every part
// follows one rule: a key or value that is not known to leave ids as they are is refused, with its
// place.

#include "common/text/tokenizer_parts.h"
#include <stdio.h>
#include <string.h>

enum { PARTS_MAX = 16 };

// ---- what all parts need

int tokenizer_refuse(const char *place, struct why *why, const char *what)
{
    return why_set(why, FAULT_UNSUPPORTED, "%s: %s; refused, because it may change ids", place,
                   what);
}

int tokenizer_check_keys(const json_t *object, const char *place, const char *const known[],
                         struct why *why)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        char shown[STRICT_JSON_SHOWN];
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i])
            return why_set(why, FAULT_UNSUPPORTED,
                           "%s: the key '%s' is not known; refused, because "
                           "it may change ids",
                           place, strict_json_shown(key, shown));
    }
    return 0;
}

bool tokenizer_is_none(const json_t *value) { return !value || json_is_null(value); }

int tokenizer_read_flag(const json_t *object, const char *place, const char *key, bool missing,
                        struct why *why, bool *ret_flag)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_boolean(value))
        return why_set(why, FAULT_FORMAT, "%s: '%s' is neither true nor false; refused", place,
                       key);
    *ret_flag = value ? json_is_true(value) : missing;
    return 0;
}

int tokenizer_read_type(const json_t *object, const char *place, struct why *why,
                        const char **ret_type)
{
    if (!json_is_object(object))
        return why_set(why, FAULT_FORMAT, "%s: not an object with a 'type'; refused", place);
    return strict_json_text(object, place, "type", 64, why, ret_type);
}

int tokenizer_refuse_type(const char *place, const char *type, const char *known, struct why *why)
{
    char shown[STRICT_JSON_SHOWN];
    return why_set(why, FAULT_UNSUPPORTED, "%s: type '%s', known are %s; refused", place,
                   strict_json_shown(type, shown), known);
}

// A section of the root, such as its pre_tokenizer: the parts of a Sequence, or the one object
// itself, each with its type.
struct section {
    char place[TOKENIZER_PLACE_MAX];
    const json_t *parts[PARTS_MAX];
    const char *types[PARTS_MAX];
    size_t count;
};

// `list` is the key of the parts of its Sequence.
static int read_section(const json_t *root, const char *whole, const char *name, const char *list,
                        struct why *why, struct section *ret_self)
{
    static const char *const keys[] = { "type", "normalizers", "pretokenizers", "processors",
                                        NULL };
    struct section *self = ret_self;
    const char *type, *place = self->place;
    const json_t *value = json_object_get(root, name), *parts;
    snprintf(self->place, sizeof self->place, "%s: %s", whole, name);
    int rc = tokenizer_read_type(value, place, why, &type);
    if (rc < 0) return rc;
    self->parts[0] = value;
    self->types[0] = type;
    self->count = 1;
    if (strcmp(type, "Sequence") != 0) return 0;
    rc = tokenizer_check_keys(value, place, keys, why);
    if (rc == 0) rc = strict_json_array(value, place, list, PARTS_MAX, why, &parts);
    self->count = rc == 0 ? json_array_size(parts) : 0;
    for (size_t i = 0; rc == 0 && i < self->count; i++) {
        self->parts[i] = json_array_get(parts, i);
        rc = tokenizer_read_type(self->parts[i], place, why, &self->types[i]);
    }
    return rc;
}

// ---- the normalizer

// NFC twice is NFC once, and an empty Sequence does nothing.
int tokenizer_read_normalizer(const json_t *root, const char *whole, bool *ret_nfc, struct why *why)
{
    static const char *const keys[] = { "type", NULL };
    struct section section;
    if (tokenizer_is_none(json_object_get(root, "normalizer"))) return 0;
    int rc = read_section(root, whole, "normalizer", "normalizers", why, &section);
    for (size_t i = 0; rc == 0 && i < section.count; i++) {
        if (strcmp(section.types[i], "NFC") != 0)
            rc = tokenizer_refuse_type(section.place, section.types[i], "NFC and Sequence", why);
        if (rc == 0) rc = tokenizer_check_keys(section.parts[i], section.place, keys, why);
        if (rc == 0) *ret_nfc = true;
    }
    return rc;
}

// ---- the pre-tokenizer

static int add_rule(struct pretokenizer *self, enum pretokenize_rule rule, const char *place,
                    struct why *why)
{
    if (self->count == PRETOKENIZE_CHAIN_MAX)
        return why_set(why, FAULT_LIMIT, "%s: more than %d splitters; refused", place,
                       PRETOKENIZE_CHAIN_MAX);
    self->chain[self->count++] = rule;
    return 0;
}

static int read_split(const json_t *split, const char *place, struct pretokenizer *self,
                      struct why *why)
{
    static const char *const keys[] = { "type", "pattern", "behavior", "invert", NULL };
    const json_t *pattern = json_object_get(split, "pattern");
    const char *text, *behavior;
    bool invert = false;
    int rc = tokenizer_check_keys(split, place, keys, why);
    if (rc == 0) rc = strict_json_text(split, place, "behavior", 64, why, &behavior);
    if (rc == 0) rc = tokenizer_read_flag(split, place, "invert", false, why, &invert);
    if (rc < 0) return rc;
    text = json_string_value(json_object_get(pattern, "Regex"));
    if (!text || json_object_size(pattern) != 1)
        return tokenizer_refuse(place, why, "'pattern' is not {\"Regex\": text}");
    // The patterns leave no gap, so Removed with invert removes nothing.
    if (!(strcmp(behavior, "Isolated") == 0 && !invert) &&
        !(strcmp(behavior, "Removed") == 0 && invert))
        return tokenizer_refuse(place, why, "'behavior' is not Isolated");
    for (int rule = 0; rule < PRETOKENIZE_RULES; rule++) {
        const char *known = pretokenize_pattern((enum pretokenize_rule)rule);
        if (known && strcmp(known, text) == 0)
            return add_rule(self, (enum pretokenize_rule)rule, place, why);
    }
    return tokenizer_refuse(place, why,
                            "the regular expression is none of GPT-2's, Llama 3's and Llama 3's "
                            "with single digits");
}

static int read_digits(const json_t *digits, const char *place, struct pretokenizer *self,
                       struct why *why)
{
    static const char *const keys[] = { "type", "individual_digits", NULL };
    bool individual = false;
    int rc = tokenizer_check_keys(digits, place, keys, why);
    if (rc == 0)
        rc = tokenizer_read_flag(digits, place, "individual_digits", false, why, &individual);
    if (rc < 0) return rc;
    return add_rule(self, individual ? PRETOKENIZE_DIGIT : PRETOKENIZE_DIGITS, place, why);
}

static const char *const byte_level_keys[] = { "type", "add_prefix_space", "trim_offsets",
                                               "use_regex", NULL };

static int read_byte_level(const json_t *level, const char *place, struct pretokenizer *self,
                           struct why *why)
{
    bool use_regex = true;
    int rc = tokenizer_check_keys(level, place, byte_level_keys, why);
    if (rc == 0)
        rc = tokenizer_read_flag(level, place, "add_prefix_space", true, why,
                                 &self->add_prefix_space);
    if (rc == 0) rc = tokenizer_read_flag(level, place, "use_regex", true, why, &use_regex);
    if (rc < 0) return rc;
    if (self->add_prefix_space && self->count)
        return tokenizer_refuse(place, why, "'add_prefix_space' behind another splitter");
    self->gpt2_is_byte_level = use_regex;
    return use_regex ? add_rule(self, PRETOKENIZE_GPT2, place, why) : 0;
}

int tokenizer_read_pretokenizer(const json_t *root, const char *whole, struct pretokenizer *self,
                                struct why *why)
{
    struct section section;
    const char *place = section.place;
    bool ended = false;
    int rc = read_section(root, whole, "pre_tokenizer", "pretokenizers", why, &section);
    for (size_t i = 0; rc == 0 && i < section.count; i++) {
        const json_t *part = section.parts[i];
        const char *type = section.types[i];
        if (ended) return tokenizer_refuse(place, why, "something comes after ByteLevel");
        ended = strcmp(type, "ByteLevel") == 0;
        if (ended) rc = read_byte_level(part, place, self, why);
        else if (strcmp(type, "Split") == 0) rc = read_split(part, place, self, why);
        else if (strcmp(type, "Digits") == 0) rc = read_digits(part, place, self, why);
        else rc = tokenizer_refuse_type(place, type, "ByteLevel, Split, Digits and Sequence", why);
    }
    if (rc == 0 && !ended) rc = tokenizer_refuse(place, why, "it does not end with ByteLevel");
    return rc;
}

// ---- the post-processor and the decoder

static int add_template_ids(const json_t *template, const char *place, const char *name,
                            const tokenizer_t *self, struct why *why, uint32_t *ids,
                            uint32_t *count)
{
    const json_t *special = json_object_get(json_object_get(template, "special_tokens"), name);
    const json_t *list;
    int rc = 0;
    if (!json_is_object(special))
        return why_set(why, FAULT_FORMAT, "%s: 'special_tokens' lacks '%.60s'; refused", place,
                       name);
    rc = strict_json_array(special, place, "ids", TOKENIZER_TEMPLATE_MAX, why, &list);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= tokenizer_id_end(self))
            return why_set(why, FAULT_RANGE,
                           "%s: an id of '%.60s' is not in the vocabulary; "
                           "refused",
                           place, name);
        if (*count == TOKENIZER_TEMPLATE_MAX)
            return why_set(why, FAULT_LIMIT, "%s: more than %d ids on one side; refused", place,
                           TOKENIZER_TEMPLATE_MAX);
        ids[(*count)++] = (uint32_t)json_integer_value(id);
    }
    return rc;
}

// `single`: special tokens, the text once, special tokens. `pair` is for two texts: never used.
static int read_template(const json_t *template, const char *place, tokenizer_t *self,
                         struct why *why)
{
    static const char *const keys[] = { "type", "single", "pair", "special_tokens", NULL };
    const json_t *single;
    bool seen = false;
    if (self->before_count || self->after_count)
        return tokenizer_refuse(place, why, "a second template");
    int rc = tokenizer_check_keys(template, place, keys, why);
    if (rc == 0) rc = strict_json_array(template, place, "single", PARTS_MAX, why, &single);
    for (size_t i = 0; rc == 0 && i < json_array_size(single); i++) {
        const json_t *part = json_array_get(single, i);
        const char *sequence =
            json_string_value(json_object_get(json_object_get(part, "Sequence"), "id"));
        const char *name =
            json_string_value(json_object_get(json_object_get(part, "SpecialToken"), "id"));
        if (sequence && strcmp(sequence, "A") == 0 && !seen) seen = true;
        else if (name && !sequence)
            rc = seen ? add_template_ids(template, place, name, self, why, self->after,
                                         &self->after_count)
                      : add_template_ids(template, place, name, self, why, self->before,
                                         &self->before_count);
        else
            rc = tokenizer_refuse(place, why,
                                  "'single' is not special tokens around one Sequence A");
    }
    if (rc == 0 && !seen) rc = tokenizer_refuse(place, why, "'single' has no Sequence A");
    return rc;
}

int tokenizer_read_post_processor(const json_t *root, const char *whole, tokenizer_t *self,
                                  struct why *why)
{
    struct section section;
    const char *place = section.place;
    if (tokenizer_is_none(json_object_get(root, "post_processor"))) return 0;
    int rc = read_section(root, whole, "post_processor", "processors", why, &section);
    for (size_t i = 0; rc == 0 && i < section.count; i++) {
        const json_t *part = section.parts[i];
        const char *type = section.types[i];
        if (strcmp(type, "TemplateProcessing") == 0) rc = read_template(part, place, self, why);
        else if (strcmp(type, "ByteLevel") == 0) // Offsets alone
            rc = tokenizer_check_keys(part, place, byte_level_keys, why);
        else
            rc = tokenizer_refuse_type(place, type, "ByteLevel, TemplateProcessing and Sequence",
                                       why);
    }
    return rc;
}

int tokenizer_check_decoder(const json_t *root, const char *whole, struct why *why)
{
    const char *type;
    char place[TOKENIZER_PLACE_MAX];
    snprintf(place, sizeof place, "%s: decoder", whole);
    int rc = tokenizer_read_type(json_object_get(root, "decoder"), place, why, &type);
    if (rc == 0 && strcmp(type, "ByteLevel") != 0)
        rc = tokenizer_refuse_type(place, type, "ByteLevel", why);
    return rc;
}
