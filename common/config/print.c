#include "common/config/print.h"

#include <string.h>

#include "common/base/nearest.h"
#include "common/config/data_config.h"
#include "common/config/run_config.h"
#include "common/config/value.h"

// Any of the structs that a schema fills.
union config {
    struct run_config run;
    struct data_config data;
};

// `chosen` NULL: of the key whatever else is chosen. Else it is required only where it is used.
static void print_facts(const struct config_schema *schema, const struct config_key *key,
                        const union config *chosen, FILE *out)
{
    char bytes[CONFIG_VALUE_MAX];
    struct config_text text = config_text_in(bytes, sizeof bytes);
    config_value_print_range(key, &text);
    const bool is_word = key->type == CONFIG_VALUE || key->type == CONFIG_VARIANT;
    const bool active = !chosen || config_path_active(schema, key->path, chosen);
    const struct config_only *only = chosen ? config_only_unmet(schema, key->path, chosen) : NULL;
    if (key->of[0] && !is_word && key->type != CONFIG_SECONDS && key->type != CONFIG_SEED)
        config_text_add(&text, " %s", key->of);
    switch (key->fallback.need) {
    case CONFIG_REQUIRED:
        if (!only) config_text_add(&text, "; required%s", active ? "" : " in this table");
        break;
    case CONFIG_DEFAULT:
        config_text_add(&text, "; default %s",
                        key->fallback.text[0] ? key->fallback.text : "empty");
        break;
    case CONFIG_ABSENT:
    case CONFIG_SHOWN: config_text_add(&text, "; not set unless given"); break;
    }
    if (only) config_text_add(&text, "; only with %s = ", only->of);
    if (only) config_only_print(only, &text);
    fputs(bytes, out);
}

static enum config_value word_in(const struct config_key *key, const union config *config)
{
    enum config_value value;
    memcpy(&value, (const char *)config + key->offset, sizeof value);
    return value;
}

static void print_setting(const struct config_schema *schema, const struct config_key *key,
                          const union config *chosen, FILE *out)
{
    union config scratch = *chosen;
    char bytes[CONFIG_VALUE_MAX];
    struct config_text value = config_text_in(bytes, sizeof bytes);
    const bool is_word = key->type == CONFIG_VALUE || key->type == CONFIG_VARIANT;
    const bool live =
        config_path_active(schema, key->path, chosen) && key->fallback.need != CONFIG_ABSENT;
    const size_t parent = config_path_parent(key->path);
    fprintf(out, "\n# %s\n# ", key->sentence);
    print_facts(schema, key, chosen, out);
    fputc('\n', out);
    if (key->type == CONFIG_VARIANT &&
        config_word_has_settings(schema, key, config_word_of(word_in(key, chosen))->name))
        return;
    if (!is_word || word_in(key, chosen) == CONFIG_NONE)
        config_value_set(key, key->fallback.text, &scratch);
    config_value_print(key, &scratch, &value);
    fprintf(out, "%s%s = %s\n", live ? "" : "# ", key->path + parent + (parent ? 1 : 0), bytes);
}

static void print_header(const struct config_schema *schema, const char *path, size_t count,
                         const union config *chosen, FILE *out)
{
    char table[TOML_PATH_MAX];
    memcpy(table, path, count);
    table[count] = 0;
    const char *sentence = "";
    for (size_t i = 0; i < schema->table_count; i++)
        if (strcmp(schema->tables[i].path, table) == 0) sentence = schema->tables[i].sentence;
    if (count) fputc('\n', out);
    if (sentence[0]) fprintf(out, "# %s\n", sentence);
    if (count)
        fprintf(out, "%s[%s]\n", config_path_active(schema, table, chosen) ? "" : "# ", table);
}

// The words of all settings that decide which others are used.
static void choose(const struct config_schema *schema, const struct config_choice *choices,
                   union config *chosen)
{
    memset(chosen, 0, sizeof *chosen);
    for (size_t i = 0; i < schema->count; i++) {
        const struct config_key *key = &schema->keys[i];
        const bool is_value = key->type == CONFIG_VALUE && key->fallback.need == CONFIG_DEFAULT;
        const char *word = key->fallback.text;
        for (const struct config_choice *at = choices; at && at->path; at++)
            if (strcmp(at->path, key->path) == 0) word = at->word;
        if (key->type == CONFIG_VARIANT || is_value) config_value_set(key, word, chosen);
    }
}

void config_print_sample(const struct config_schema *schema, const struct config_choice *choices,
                         FILE *out)
{
    union config chosen;
    const char *table = NULL; // A path of the table that is being printed
    choose(schema, choices, &chosen);
    for (size_t i = 0; i < schema->count; i++) {
        const struct config_key *key = &schema->keys[i];
        const size_t parent = config_path_parent(key->path);
        if (key->type == CONFIG_IGNORED || key->type == CONFIG_REFUSED) continue;
        if (!table || config_path_parent(table) != parent || strncmp(table, key->path, parent) != 0)
            print_header(schema, key->path, parent, &chosen, out);
        table = key->path;
        print_setting(schema, key, &chosen, out);
    }
}

static int explain_nothing(const struct config_schema *schema, const char *path, FILE *out)
{
    struct nearest near = { .wanted = path };
    const char *meant = NULL;
    for (size_t i = 0; i < schema->count; i++) {
        const char *key = schema->keys[i].path, *dot = strrchr(key, '.'),
                   *name = dot ? dot + 1 : key;
        if (nearest_offer(&near, key, strlen(key))) meant = key;
        if (nearest_offer(&near, name, strlen(name))) meant = key;
    }
    fprintf(out, "%s: no key of %s", path, schema->name);
    if (meant) fprintf(out, "; did you mean `%s`?", meant);
    fputc('\n', out);
    return FAULT_NOT_FOUND;
}

static const char *const scopes[] = {
    [CONFIG_RUN] = "Part of the run: every member must have the same.",
    [CONFIG_TOLD] = "The coordinator's value holds for all trainers.",
    [CONFIG_LOCAL] = "Of this machine only: other machines may differ.",
};

// What a table is for, and the sentence of each key that stands in it.
static int explain_table(const struct config_schema *schema, const struct config_table *table,
                         FILE *out)
{
    const size_t length = strlen(table->path);
    fprintf(out, "[%s]\n  %s\n", table->path, table->sentence);
    for (size_t i = 0; i < schema->count; i++) {
        const struct config_key *key = &schema->keys[i];
        if (strncmp(key->path, table->path, length) != 0 || key->path[length] != '.' ||
            strchr(key->path + length + 1, '.') || key->type == CONFIG_IGNORED ||
            key->type == CONFIG_REFUSED)
            continue;
        fprintf(out, "\n%s (%s)\n  %s\n", key->path + length + 1, config_value_expected(key),
                key->sentence);
    }
    return 0;
}

static const struct config_table *find_table(const struct config_schema *schema, const char *path)
{
    for (size_t i = 0; i < schema->table_count; i++)
        if (strcmp(schema->tables[i].path, path) == 0) return &schema->tables[i];
    return NULL;
}

int config_explain(const struct config_schema *schema, const char *path, FILE *out)
{
    const struct config_key *key = config_key_find(schema, path);
    const struct config_table *table = key ? NULL : find_table(schema, path);
    if (table) return explain_table(schema, table, out);
    if (!key) return explain_nothing(schema, path, out);
    fprintf(out, "%s (%s)\n  %s\n", key->path, config_value_expected(key), key->sentence);
    if (key->type == CONFIG_IGNORED || key->type == CONFIG_REFUSED) return 0;
    fputs("  ", out);
    print_facts(schema, key, NULL, out);
    fprintf(out, "\n  %s\n", scopes[key->scope]);
    const struct config_only *only = NULL;
    while ((only = config_only_next(key->path, only))) {
        char bytes[CONFIG_VALUE_MAX];
        struct config_text text = config_text_in(bytes, sizeof bytes);
        config_only_print(only, &text);
        fprintf(out, "  Used only with %s = %s.\n", only->of, bytes);
    }
    for (unsigned i = 1; i < CONFIG_VALUE_END; i++) {
        const struct config_word *word = config_word_of((enum config_value)i);
        if (strcmp(word->set, key->of) == 0 && word->refusal)
            fprintf(out, "  %s is not supported: %s.\n", word->name, word->refusal);
    }
    return 0;
}
