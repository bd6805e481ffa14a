#pragma once
// schema -- keys.def as data: the settings that a file may have, and their fields in a struct.
// Pure.
//
//     path            config.min_clients           a setting: one key, one field
//     variant         model.LLM.optimizer          one word of a set: [model.LLM.optimizer.Distro]
//     active          a setting that is used: model.LLM.optimizer.Distro.compression_topk is
//                     active only if the variant above it is Distro, strategy.lanes only if
//                     strategy.kind is allreduce (ONLY in keys.def)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Every word that a setting may have. Fields hold these numbers; files and digests hold the names.
#define VALUE(set, constant, name, refusal) CONFIG_##constant,
enum config_value {
    CONFIG_NONE,
#include "common/config/keys.def"
    CONFIG_VALUE_END
};

enum config_type {
    CONFIG_COUNT,
    CONFIG_SECONDS,
    CONFIG_REAL,
    CONFIG_FLAG,
    CONFIG_NAME,
    CONFIG_TEXT,
    CONFIG_ENDPOINT,
    CONFIG_DIGEST,
    CONFIG_SEED,
    CONFIG_PAIR,
    CONFIG_VALUE,
    CONFIG_VARIANT,
    CONFIG_IGNORED,
    CONFIG_REFUSED
};
enum config_scope { CONFIG_RUN, CONFIG_TOLD, CONFIG_LOCAL };
enum config_need { CONFIG_REQUIRED, CONFIG_DEFAULT, CONFIG_ABSENT, CONFIG_SHOWN };

// The fields' C types, by config_type.
enum { CONFIG_NAME_MAX = 65, CONFIG_TEXT_MAX = 256, CONFIG_SEED_BYTES = 32, CONFIG_KEYS_MAX = 160 };
#define CONFIG_FIELD_COUNT(field)    uint64_t field;
#define CONFIG_FIELD_SECONDS(field)  uint64_t field; // Milliseconds
#define CONFIG_FIELD_REAL(field)     double field;
#define CONFIG_FIELD_FLAG(field)     bool field;
#define CONFIG_FIELD_NAME(field)     char field[CONFIG_NAME_MAX];
#define CONFIG_FIELD_TEXT(field)     char field[CONFIG_TEXT_MAX];
#define CONFIG_FIELD_ENDPOINT(field) char field[CONFIG_TEXT_MAX];
#define CONFIG_FIELD_DIGEST(field)   struct hash field; // All zero: not set
#define CONFIG_FIELD_SEED(field)     uint8_t field[CONFIG_SEED_BYTES];
#define CONFIG_FIELD_PAIR(field)     double field[2];
#define CONFIG_FIELD_VALUE(field)    enum config_value field;
#define CONFIG_FIELD_VARIANT(field)  enum config_value field;
#define CONFIG_FIELD_IGNORED(field)  bool field; // It was in the file

struct config_fallback {
    enum config_need need;
    const char *text;
};
struct config_key {
    const char *path;
    enum config_type type;
    enum config_scope scope;
    size_t offset;                   // Of the field in its struct
    const char *of;                  // Unit, or set of words
    struct config_fallback fallback; // A value without quotes: an example unless DEFAULT
    double min, max;
    const char *sentence;
};
struct config_table {
    const char *path, *sentence;
};
struct config_word {
    const char *set, *name, *refusal;
};

// The settings within `path` are active only if the setting `of`, a VALUE, has the word `word`.
struct config_text;
struct config_only {
    const char *path, *of;
    const char *word; // One, or several: "this or that"
    bool refused;     // An error if it is set elsewhere, and not 0 or false; else a warning
    const char *note; // Why it has no meaning there, or what to do
};

struct config_schema {
    const char *name; // "state.toml"
    const struct config_key *keys;
    size_t count;
    const struct config_table *tables; // Tables of the sample; may be empty
    size_t table_count;
    const char *other_prefix, *prefix; // A path that begins with other_prefix is read with prefix
};
extern const struct config_schema config_run_schema, config_data_schema;

const struct config_key *config_key_find(const struct config_schema *schema, const char *path);
size_t config_key_index(const struct config_schema *schema, const struct config_key *key);

// Whether the path is active: false if a variant above it has chosen another word, or none yet, and
// unless all its config_only are met.
bool config_path_active(const struct config_schema *schema, const char *path, const void *base);

// The lines of keys.def that say when the path is used, one after the other: the first with NULL. NULL: there is no
// further one. A path is used if all of them are met.
const struct config_only *config_only_next(const char *path, const struct config_only *after);
bool config_only_allows(const struct config_only *self, const char *word);
// Its words in quotes: "this" or "that".
void config_only_print(const struct config_only *self, struct config_text *out);
// The first of them that is not met, or NULL. A setting that is not used itself counts with its default.
const struct config_only *config_only_unmet(const struct config_schema *schema, const char *path,
                                            const void *base);

// True if `path` is `prefix`, or lies below it.
bool config_path_within(const char *path, const char *prefix);
// The length of the part of `path` that names its table; 0 for a key outside of tables.
size_t config_path_parent(const char *path);
// True if some key lies below this path: it is the name of a table.
bool config_path_is_table(const struct config_schema *schema, const char *path);

const struct config_word *config_word_of(enum config_value value);     // Of CONFIG_NONE: no name
enum config_value config_word_find(const char *set, const char *name); // Refused words too

// True if the word has settings of its own below the variant; false if it is a bare string.
bool config_word_has_settings(const struct config_schema *schema, const struct config_key *variant,
                              const char *word);
