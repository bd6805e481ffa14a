// override -- finds the one active key whose path ends in KEY, turns the text into a node as the
// file's reader would, and stores it through the same checks. config_override_check then looks for
// required settings without a value and runs the rules of the file.

#include "common/config/override.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/config/rules.h"
#include "common/config/value.h"

static const struct config_schema *const schema = &config_run_schema;

static bool counts(const struct config_key *key, const struct run_config *config)
{
    return key->type != CONFIG_IGNORED && key->type != CONFIG_REFUSED &&
           config_path_active(schema, key->path, config);
}

static bool ends_so(const char *path, const char *name, size_t count)
{
    const size_t length = strlen(path);
    if (length < count || memcmp(path + length - count, name, count) != 0) return false;
    return length == count || path[length - count - 1] == '.';
}

// Any of them may have been meant: config.min_clients, min_clients.
static void offer_endings(struct nearest *near, const char *path)
{
    for (const char *at = path; at; at = strchr(at, '.'), at = at ? at + 1 : NULL)
        nearest_offer(near, at, strlen(at));
}

static int find(const struct run_config *config, const char *name, size_t count, struct why *why,
                const struct config_key **ret_key)
{
    char wanted[TOML_PATH_MAX];
    const struct config_key *found = NULL;
    if (count == 0 || count >= sizeof wanted)
        return why_set(why, FAULT_USAGE, "--set wants KEY=VALUE, KEY of 1 to %zu bytes",
                       sizeof wanted - 1);
    memcpy(wanted, name, count);
    wanted[count] = 0;
    struct nearest near = { .wanted = wanted };
    for (size_t i = 0; i < schema->count; i++) {
        const struct config_key *key = &schema->keys[i];
        if (!counts(key, config)) continue;
        offer_endings(&near, key->path);
        if (!ends_so(key->path, wanted, count)) continue;
        if (found)
            return why_set(why, FAULT_USAGE, "--set %s: %s or %s? Write more of it", wanted,
                           found->path, key->path);
        found = key;
    }
    *ret_key = found;
    if (found) return 0;
    return why_set(why, FAULT_USAGE, "--set %.80s: no setting of this name is in use%s%s%s", wanted,
                   near.best[0] ? "; did you mean " : "", near.best, near.best[0] ? "?" : "");
}

// The value as a node of TOML; false if the text cannot be a value of this type.
static bool make_node(const struct config_key *key, const char *text, struct toml_node *node)
{
    char *end;
    *node = (struct toml_node){ .type = TOML_STRING, .text = text, .text_count = strlen(text) };
    switch (key->type) {
    case CONFIG_COUNT:
        errno = 0;
        node->type = TOML_INTEGER, node->integer = strtoll(text, &end, 10);
        return end != text && *end == 0 && errno == 0;
    case CONFIG_SECONDS:
    case CONFIG_REAL:
        node->type = TOML_FLOAT, node->real = config_text_to_real(text);
        return !isnan(node->real);
    case CONFIG_FLAG:
        node->type = TOML_BOOLEAN, node->integer = strcmp(text, "true") == 0;
        return node->integer || strcmp(text, "false") == 0;
    default: return true;
    }
}

static bool read_value(const struct config_key *key, const char *text, struct run_config *config,
                       struct config_complaint *complaint)
{
    struct toml_node node;
    if (key->type == CONFIG_DIGEST || key->type == CONFIG_SEED) {
        config_text_add(&complaint->text, "digests and seeds can be set in the file only");
        config_text_add(&complaint->note, "write %s into it", key->path);
        return false;
    }
    if (!make_node(key, text, &node)) {
        config_text_add(&complaint->text, "expected %s", config_value_expected(key));
        config_value_print_range(key, &complaint->note);
        return false;
    }
    if (key->type == CONFIG_PAIR) return config_value_read_pair(key, text, config, complaint);
    if (key->type != CONFIG_VARIANT) return config_value_read(key, &node, config, complaint);
    const enum config_value value = config_word_read(key, text, complaint);
    if (value != CONFIG_NONE) memcpy((char *)config + key->offset, &value, sizeof value);
    return value != CONFIG_NONE;
}

int config_override(struct run_config *config, const char *assignment, struct why *why)
{
    const char *equals = strchr(assignment, '=');
    const struct config_key *key = NULL;
    char text[CONFIG_FAULT_TEXT], note[CONFIG_FAULT_NOTE];
    struct config_complaint complaint = { config_text_in(text, sizeof text),
                                          config_text_in(note, sizeof note), NULL };
    int rc = find(config, assignment, equals ? (size_t)(equals - assignment) : 0, why, &key);
    if (rc < 0) return rc;
    if (!read_value(key, equals + 1, config, &complaint))
        return why_set(why, FAULT_USAGE, "--set %.200s: %s%s%s", assignment, text,
                       note[0] ? "; " : "", note);
    config->origin.line[config_key_index(schema, key)] = CONFIG_BY_FLAG;
    return 0;
}

// Linear's base_lr and Cosine's base_lr are one field: if one of them is set, so is the other.
static bool has_value(const struct run_config *config, size_t wanted)
{
    for (size_t i = 0; i < schema->count; i++)
        if (schema->keys[i].offset == schema->keys[wanted].offset && config->origin.line[i])
            return true;
    return false;
}

static const char *missing(const struct run_config *config)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct config_key *key = &schema->keys[i];
        if (key->fallback.need == CONFIG_REQUIRED && counts(key, config) && !has_value(config, i))
            return key->path;
    }
    return NULL;
}

static int check_rules(const struct run_config *config, struct why *why)
{
    struct config_faults faults;
    struct run_config base = *config;
    struct config_load load = { .schema = schema, .base = &base, .faults = &faults };
    config_faults_init(&faults, config->origin.file);
    for (size_t i = 0; i < schema->count; i++)
        load.valid[i] = counts(&schema->keys[i], config) &&
                        (schema->keys[i].fallback.need == CONFIG_DEFAULT || has_value(config, i));
    config_run_rules(&load);
    for (uint32_t i = 0; i < faults.count; i++)
        if (!faults.list[i].warning)
            return why_set(why, FAULT_CONFIG, "%s; %s; give another value with --set",
                           faults.list[i].text, faults.list[i].note);
    return 0;
}

int config_override_check(const struct run_config *config, struct why *why)
{
    const char *path = missing(config);
    if (path)
        return why_set(why, FAULT_CONFIG, "%s has no value; give one with --set %s=...", path,
                       strrchr(path, '.') + 1);
    return check_rules(config, why);
}
