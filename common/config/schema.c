// schema -- keys.def is included several times, with other macros each time: as the list of words,
// of keys, of tables and of conditions (ONLY). Below the tables are the questions about paths: a path
// is active if every variant above it has chosen the word that the path goes through, and its
// conditions hold.

#include "common/config/schema.h"
#include "common/config/text.h"

#include <string.h>

#include "common/base/ensure.h"
#include "common/config/data_config.h"
#include "common/config/run_config.h"

#define REQUIRED(example)                                                                          \
    {                                                                                              \
        CONFIG_REQUIRED, example                                                                   \
    }
#define DEFAULT(value)                                                                             \
    {                                                                                              \
        CONFIG_DEFAULT, value                                                                      \
    }
#define ABSENT(example)                                                                            \
    {                                                                                              \
        CONFIG_ABSENT, example                                                                     \
    }
#define SHOWN(example)                                                                             \
    {                                                                                              \
        CONFIG_SHOWN, example                                                                      \
    }

#define KEY(scope, path, field, type, of, fallback, min, max, sentence)                            \
    { path, CONFIG_##type, CONFIG_##scope, offsetof(struct run_config, field), of, fallback,       \
      min,  max,           sentence },
static const struct config_key run_keys[] = {
#include "common/config/keys.def"
};

#define DATA_KEY(scope, path, field, type, of, fallback, min, max, sentence)                       \
    { path, CONFIG_##type, CONFIG_##scope, offsetof(struct data_config, field), of, fallback,      \
      min,  max,           sentence },
static const struct config_key data_keys[] = {
#include "common/config/keys.def"
};

#define TABLE(path, sentence) { path, sentence },
static const struct config_table tables[] = {
#include "common/config/keys.def"
};

#define ONLY(path, of, word, refused, note) { path, of, word, refused, note },
static const struct config_only onlys[] = {
#include "common/config/keys.def"
};

#define VALUE(set, constant, name, refusal) { set, name, refusal },
static const struct config_word words[CONFIG_VALUE_END] = {
    { "", "", NULL },
#include "common/config/keys.def"
};

enum {
    RUN_KEYS = sizeof run_keys / sizeof *run_keys,
    DATA_KEYS = sizeof data_keys / sizeof *data_keys
};
_Static_assert(sizeof run_keys / sizeof *run_keys <= CONFIG_KEYS_MAX,
               "a loader keeps a place for every key");

const struct config_schema config_run_schema = {
    .name = "state.toml",
    .keys = run_keys,
    .count = RUN_KEYS,
    .tables = tables,
    .table_count = sizeof tables / sizeof *tables,
    .other_prefix = "model_extra_data",
    .prefix = "model.LLM", // Newer Psyche files split the table
};
const struct config_schema config_data_schema = {
    .name = "data.toml",
    .keys = data_keys,
    .count = DATA_KEYS,
};

const struct config_key *config_key_find(const struct config_schema *schema, const char *path)
{
    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->keys[i].path, path) == 0) return &schema->keys[i];
    return NULL;
}

size_t config_key_index(const struct config_schema *schema, const struct config_key *key)
{
    ensure(key >= schema->keys && key < schema->keys + schema->count);
    return (size_t)(key - schema->keys);
}

bool config_path_within(const char *path, const char *prefix)
{
    const size_t count = strlen(prefix);
    return strncmp(path, prefix, count) == 0 &&
           (path[count] == 0 || path[count] == '.' || count == 0);
}

size_t config_path_parent(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

// Empty if `path` does not lie below `above`.
static const char *path_below(const char *path, const char *above)
{
    const size_t count = strlen(above);
    return strncmp(path, above, count) == 0 && path[count] == '.' ? path + count + 1 : "";
}

bool config_path_is_table(const struct config_schema *schema, const char *path)
{
    for (size_t i = 0; i < schema->count; i++)
        if (path_below(schema->keys[i].path, path)[0]) return true;
    return false;
}

const struct config_only *config_only_next(const char *path, const struct config_only *after)
{
    const struct config_only *end = onlys + sizeof onlys / sizeof *onlys;
    for (const struct config_only *at = after ? after + 1 : onlys; at < end; at++)
        if (config_path_within(path, at->path)) return at;
    return NULL;
}

// The next word of a list; *at moves behind it. 0: there is none.
static int next_word(const char **at, const char **ret_word)
{
    static const char between[] = " or ";
    if (!**at) return 0;
    *ret_word = *at;
    const char *end = strstr(*at, between);
    const size_t count = end ? (size_t)(end - *at) : strlen(*at);
    *at = end ? end + strlen(between) : *at + count;
    return (int)count;
}

bool config_only_allows(const struct config_only *self, const char *word)
{
    const char *at = self->word, *allowed;
    for (int count; (count = next_word(&at, &allowed)) > 0;)
        if (strlen(word) == (size_t)count && strncmp(word, allowed, (size_t)count) == 0)
            return true;
    return false;
}

void config_only_print(const struct config_only *self, struct config_text *out)
{
    const char *at = self->word, *word, *before = "";
    for (int count; (count = next_word(&at, &word)) > 0; before = " or ")
        config_text_add(out, "%s\"%.*s\"", before, count, word);
}

static enum config_value value_of(const struct config_key *key, const void *base)
{
    enum config_value value;
    memcpy(&value, (const char *)base + key->offset, sizeof value);
    return value;
}

// The word that a condition looks at. A setting that is not used itself has its default, whatever the file says.
static const char *word_of(const struct config_schema *schema, const struct config_key *of,
                           const void *base)
{
    const bool is_used = !config_only_unmet(schema, of->path, base);
    return is_used ? words[value_of(of, base)].name : of->fallback.text;
}

const struct config_only *config_only_unmet(const struct config_schema *schema, const char *path,
                                            const void *base)
{
    const struct config_only *only = NULL;
    while ((only = config_only_next(path, only))) {
        const struct config_key *of = config_key_find(schema, only->of);
        if (of && !config_only_allows(only, word_of(schema, of, base))) return only;
    }
    return NULL;
}

bool config_path_active(const struct config_schema *schema, const char *path, const void *base)
{
    if (config_only_unmet(schema, path, base)) return false;
    for (size_t i = 0; i < schema->count; i++) {
        const struct config_key *variant = &schema->keys[i];
        const char *below = path_below(path, variant->path);
        if (variant->type != CONFIG_VARIANT || !below[0]) continue;
        const enum config_value chosen = value_of(variant, base);
        if (chosen == CONFIG_NONE || !config_path_within(below, words[chosen].name)) return false;
    }
    return true;
}

const struct config_word *config_word_of(enum config_value value)
{
    ensure((unsigned)value < CONFIG_VALUE_END);
    return &words[value];
}

enum config_value config_word_find(const char *set, const char *name)
{
    for (unsigned i = 1; i < CONFIG_VALUE_END; i++)
        if (strcmp(words[i].set, set) == 0 && strcmp(words[i].name, name) == 0)
            return (enum config_value)i;
    return CONFIG_NONE;
}

bool config_word_has_settings(const struct config_schema *schema, const struct config_key *variant,
                              const char *word)
{
    for (size_t i = 0; i < schema->count; i++) {
        const char *below = path_below(schema->keys[i].path, variant->path);
        if (below[0] && config_path_within(below, word)) return true;
    }
    return false;
}
