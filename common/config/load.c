// load -- reads the whole file, parses it to a list of nodes, then takes one node after the other:
// a table is passed, a variant chooses its word, a key is checked and stored, anything else is
// unknown. Then settings that have no meaning beside the others are reported (ONLY in keys.def), then
// missing keys and tables, and the rules between settings are checked. Nothing stops at the first
// fault: all of them are collected, but for what only follows from a misspelt name or word.

#include "common/config/load.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/base/nearest.h"
#include "common/config/value.h"

// One message while it is put together.
struct message {
    char text_bytes[CONFIG_FAULT_TEXT], note_bytes[CONFIG_FAULT_NOTE];
    struct config_complaint is;
};

static void message_begin(struct message *self, const char *path)
{
    self->is.text = config_text_in(self->text_bytes, sizeof self->text_bytes);
    self->is.note = config_text_in(self->note_bytes, sizeof self->note_bytes);
    self->is.at = NULL;
    if (path[0]) config_text_add(&self->is.text, "%s: ", path);
}

static void report(struct config_load *load, bool warning, struct toml_place place,
                   const struct message *message)
{
    config_faults_add(load->faults, warning, place, load->bytes, load->bytes_count,
                      message->text_bytes, message->note_bytes);
}

// The path of the node in the schema.
static const char *path_of(const struct config_load *load, const struct toml_node *node,
                           char buffer[CONFIG_PATH_MAX])
{
    const struct config_schema *schema = load->schema;
    if (!schema->other_prefix || !config_path_within(node->path, schema->other_prefix))
        return node->path;
    struct config_text path = config_text_in(buffer, CONFIG_PATH_MAX);
    config_text_add(&path, "%s%s", schema->prefix, node->path + strlen(schema->other_prefix));
    return buffer;
}

static size_t subtree_count(const struct config_load *load, const struct toml_node *node)
{
    const struct toml_node *at = node + 1, *end = load->document.nodes + load->document.count;
    while (at < end && at->depth > node->depth) at++;
    return (size_t)(at - node);
}

static const struct toml_node *node_find(const struct config_load *load, const char *path,
                                         size_t count)
{
    char buffer[CONFIG_PATH_MAX];
    for (size_t i = 0; i < load->document.count; i++) {
        const char *known = path_of(load, &load->document.nodes[i], buffer);
        if (strlen(known) == count && memcmp(known, path, count) == 0)
            return &load->document.nodes[i];
    }
    return NULL;
}

static struct toml_place name_place(const struct toml_node *node)
{
    return node->key.line ? node->key : node->value;
}

void config_load_fault(struct config_load *load, bool warning, const struct toml_node *node,
                       const char *path, const char *text, const char *note)
{
    struct toml_place place = { 0 };
    if (!node) node = node_find(load, path, config_path_parent(path));
    if (node && node->depth) place = node->value;
    config_faults_add(load->faults, warning, place, load->bytes, load->bytes_count, text, note);
}

// Compares the name with every name that is allowed in the table of `path`.
static void offer_siblings(const struct config_schema *schema, const char *path,
                           struct nearest *near)
{
    const size_t parent = config_path_parent(path);
    for (size_t i = 0; i < schema->count; i++) {
        const char *key = schema->keys[i].path;
        if (parent && (strncmp(key, path, parent) != 0 || key[parent] != '.')) continue;
        const char *name = key + parent + (parent ? 1 : 0);
        nearest_offer(near, name, strcspn(name, "."));
    }
}

// A key of this name in another table, or NULL.
static const struct config_key *find_elsewhere(const struct config_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++) {
        const char *path = schema->keys[i].path;
        const size_t parent = config_path_parent(path);
        if (strcmp(path + parent + (parent ? 1 : 0), name) == 0) return &schema->keys[i];
    }
    return NULL;
}

// `path` was written, and stands for `name` in the same table.
static void note_misspelt(struct config_load *load, const char *path, const char *name)
{
    char bytes[CONFIG_PATH_MAX];
    struct config_text meant = config_text_in(bytes, sizeof bytes);
    const size_t parent = config_path_parent(path);
    config_text_add(&meant, "%.*s%s%s", (int)parent, path, parent ? "." : "", name);
    for (size_t i = 0; i < load->schema->count; i++)
        load->misspelt[i] |= config_path_within(load->schema->keys[i].path, bytes);
}

static void unknown(struct config_load *load, const struct toml_node *node, const char *path)
{
    const size_t parent = config_path_parent(path);
    struct nearest near = { .wanted = path + parent + (parent ? 1 : 0) };
    const struct config_key *elsewhere = find_elsewhere(load->schema, near.wanted);
    struct message message;
    message_begin(&message, path);
    config_text_add(&message.is.text, "unknown %s", node->type == TOML_TABLE ? "table" : "key");
    offer_siblings(load->schema, path, &near);
    if (near.best[0]) {
        config_text_add(&message.is.note, "did you mean `%s`?", near.best);
        note_misspelt(load, path, near.best);
    } else if (elsewhere && config_path_parent(elsewhere->path)) {
        const int table = (int)config_path_parent(elsewhere->path);
        config_text_add(&message.is.note, "it belongs in [%.*s]", table, elsewhere->path);
    } else if (elsewhere) {
        config_text_add(&message.is.note, "it belongs before the first table");
    } else {
        config_text_add(&message.is.note, "no setting of %s has this name", load->schema->name);
    }
    report(load, false, name_place(node), &message);
}

// The only node below a variant's table, which names its word; else NULL, with a complaint.
static const struct toml_node *only_child(const struct toml_node *table,
                                          const struct config_key *key, struct message *message)
{
    const struct toml_node *only = NULL;
    for (const struct toml_node *at = table + 1; at->depth > table->depth; at++) {
        if (at->depth > table->depth + 1) continue;
        if (only) {
            config_text_add(&message->is.text, "both %s and %s", strrchr(only->path, '.') + 1,
                            strrchr(at->path, '.') + 1);
            config_value_print_range(key, &message->is.note);
            return NULL;
        }
        only = at;
    }
    if (only) return only;
    config_text_add(&message->is.text, "empty");
    config_value_print_range(key, &message->is.note);
    return NULL;
}

// Chooses the word of a variant. Returns the number of nodes that are done: only the table, if its
// settings are still to be read.
static size_t read_variant(struct config_load *load, const struct config_key *key,
                           const struct toml_node *node)
{
    const size_t whole = subtree_count(load, node);
    const struct toml_node *named = node;
    struct message message;
    message_begin(&message, key->path);
    if (node->type == TOML_TABLE) named = only_child(node, key, &message);
    if (!named) return report(load, false, node->value, &message), whole;

    const bool is_word = node->type == TOML_STRING && strlen(node->text) == node->text_count;
    if (node->type != TOML_TABLE && !is_word) {
        config_value_refuse(key, node, &message.is);
        return report(load, false, node->value, &message), whole;
    }
    const char *word = is_word ? node->text : strrchr(named->path, '.') + 1;
    const enum config_value value = config_word_read(key, word, &message.is);
    const bool nested = node->type == TOML_TABLE;
    if (value == CONFIG_NONE)
        return report(load, false, nested ? name_place(named) : node->value, &message), whole;
    if (config_word_has_settings(load->schema, key, word) != nested) {
        config_text_add(&message.is.text, nested ? "%s has no settings" : "%s needs its settings",
                        word);
        if (nested) config_text_add(&message.is.note, "write it as a string");
        else config_text_add(&message.is.note, "write [%s] with %s in it", key->path, word);
        return report(load, false, node->value, &message), whole;
    }
    memcpy((char *)load->base + key->offset, &value, sizeof value);
    load->valid[config_key_index(load->schema, key)] = true;
    return 1;
}

// A key whose value is not used: it is ignored with a warning, or refused.
static void read_aside(struct config_load *load, const struct config_key *key,
                       const struct toml_node *node)
{
    const bool refused = key->type == CONFIG_REFUSED;
    struct message message;
    message_begin(&message, key->path);
    config_text_add(&message.is.text, refused ? "not supported" : "ignored");
    config_text_add(&message.is.note, "%s", key->sentence);
    report(load, !refused, name_place(node), &message);
    memset((char *)load->base + key->offset, true, sizeof(bool));
}

static size_t read_key(struct config_load *load, const struct config_key *key,
                       const struct toml_node *node)
{
    const size_t index = config_key_index(load->schema, key);
    const struct toml_node *earlier = load->nodes[index];
    struct message message;
    message_begin(&message, key->path);
    if (earlier) {
        config_text_add(&message.is.text, "set twice");
        config_text_add(&message.is.note, "it stands in line %u too", earlier->value.line);
        report(load, false, name_place(node), &message);
        return subtree_count(load, node);
    }
    load->nodes[index] = node;
    load->valid[index] = false;
    if (key->type == CONFIG_VARIANT) return read_variant(load, key, node);
    if (key->type == CONFIG_IGNORED || key->type == CONFIG_REFUSED) read_aside(load, key, node);
    else if (config_value_read(key, node, load->base, &message.is)) load->valid[index] = true;
    else report(load, false, message.is.at ? message.is.at->value : node->value, &message);
    return subtree_count(load, node);
}

// Handles one node. Returns the number of nodes that are done.
static size_t read_node(struct config_load *load, const struct toml_node *node)
{
    char buffer[CONFIG_PATH_MAX];
    const char *path = path_of(load, node, buffer);
    const struct config_key *key = config_key_find(load->schema, path);
    struct message message;
    if (key) return read_key(load, key, node);
    if (!config_path_is_table(load->schema, path)) {
        unknown(load, node, path);
        return subtree_count(load, node);
    }
    if (node->type == TOML_TABLE) return 1;
    message_begin(&message, path);
    config_text_add(&message.is.text, "expected table");
    config_text_add(&message.is.note, "write [%s] once, above its settings", path);
    report(load, false, name_place(node), &message);
    return subtree_count(load, node);
}

static bool is_off(const struct config_key *key, const void *base)
{
    if (key->type == CONFIG_FLAG) return !*((const bool *)base + key->offset);
    return key->type != CONFIG_VALUE && config_value_number(key, base) == 0;
}

static void report_unused(struct config_load *load, const struct config_key *key,
                          const struct toml_node *node, const struct config_only *only)
{
    const struct config_key *of = config_key_find(load->schema, only->of);
    struct message message;
    if (only->refused && is_off(key, load->base)) return;
    message_begin(&message, key->path);
    if (only->refused) {
        config_value_print(key, load->base, &message.is.text);
        config_text_add(&message.is.text, " does not go with %s = ", of->path);
    } else {
        config_text_add(&message.is.text, "not used with %s = ", of->path);
    }
    config_value_print(of, load->base, &message.is.text);
    config_text_add(&message.is.note, "%s", only->note);
    report(load, !only->refused, only->refused ? node->value : name_place(node), &message);
}

// Whether the setting that decides about this one has a word of its set.
static bool is_decided(const struct config_load *load, const struct config_only *only)
{
    const struct config_key *of = config_key_find(load->schema, only->of);
    return load->valid[config_key_index(load->schema, of)];
}

static bool are_decided(const struct config_load *load, const char *path)
{
    const struct config_only *only = NULL;
    while ((only = config_only_next(path, only)))
        if (!is_decided(load, only)) return false;
    return true;
}

// A setting that is not active has its default, or zero, whatever the file says: it is not part of
// the digest of the run, so nothing may depend on it.
static void drop_unused(struct config_load *load)
{
    for (size_t i = 0; i < load->schema->count; i++) {
        const struct config_key *key = &load->schema->keys[i];
        const struct config_only *only =
            load->nodes[i] ? config_only_unmet(load->schema, key->path, load->base) : NULL;
        if (!only) continue;
        if (load->valid[i] && is_decided(load, only))
            report_unused(load, key, load->nodes[i], only);
        config_value_reset(key, load->base);
        load->nodes[i] = NULL;
        load->valid[i] = false;
    }
}

static bool is_missing(const struct config_load *load, size_t index)
{
    const struct config_key *key = &load->schema->keys[index];
    return key->fallback.need == CONFIG_REQUIRED && !load->nodes[index] && !load->misspelt[index] &&
           are_decided(load, key->path) && config_path_active(load->schema, key->path, load->base);
}

// True if an ancestor of this path is in the file but is not a table; that was reported already.
static bool is_blocked(const struct config_load *load, const char *path)
{
    for (size_t count = config_path_parent(path); count > 0; count--) {
        if (path[count] != '.') continue;
        const struct toml_node *node = node_find(load, path, count);
        if (node) return node->type != TOML_TABLE;
    }
    return false;
}

// The nearest table above `path` that is in the file.
static struct toml_place place_above(const struct config_load *load, const char *path)
{
    for (size_t count = config_path_parent(path); count > 0; count--) {
        const struct toml_node *node = path[count] == '.' ? node_find(load, path, count) : NULL;
        if (node) return node->value;
    }
    return (struct toml_place){ 0 };
}

static void report_missing_key(struct config_load *load, const struct config_key *key)
{
    struct message message;
    message_begin(&message, key->path);
    config_text_add(&message.is.text, "missing");
    if (key->type != CONFIG_SEED && key->type != CONFIG_FLAG) // Their range includes the type
        config_text_add(&message.is.note, "%s, ", config_value_expected(key));
    config_value_print_range(key, &message.is.note);
    report(load, false, place_above(load, key->path), &message);
}

static void report_missing_table(struct config_load *load, const char *path, size_t parent)
{
    struct message message;
    const char *between = "with ";
    message_begin(&message, "");
    config_text_add(&message.is.text, "[%.*s]: missing table", (int)parent, path);
    for (size_t i = 0; i < load->schema->count; i++) {
        const char *other = load->schema->keys[i].path;
        if (!is_missing(load, i) || config_path_parent(other) != parent ||
            strncmp(other, path, parent) != 0)
            continue;
        config_text_add(&message.is.note, "%s%s", between, other + parent + 1);
        between = ", ";
    }
    report(load, false, (struct toml_place){ 0 }, &message);
}

static void report_missing(struct config_load *load)
{
    const char *told = ""; // The table that was reported as missing last
    for (size_t i = 0; i < load->schema->count; i++) {
        const char *path = load->schema->keys[i].path;
        const size_t parent = config_path_parent(path);
        if (!is_missing(load, i) || is_blocked(load, path)) continue;
        if (parent == 0 || node_find(load, path, parent)) {
            report_missing_key(load, &load->schema->keys[i]);
        } else if (config_path_parent(told) != parent || strncmp(told, path, parent) != 0) {
            report_missing_table(load, path, parent);
            told = path;
        }
    }
}

static void set_defaults(struct config_load *load)
{
    for (size_t i = 0; i < load->schema->count; i++) {
        const struct config_key *key = &load->schema->keys[i];
        if (key->fallback.need != CONFIG_DEFAULT) continue;
        config_value_set(key, key->fallback.text, load->base);
        load->valid[i] = true;
    }
}

static void load_document(struct config_load *load)
{
    set_defaults(load);
    for (size_t i = 1; i < load->document.count;) i += read_node(load, &load->document.nodes[i]);
    for (size_t i = 0; i < load->schema->count; i++)
        if (load->misspelt[i] && !load->nodes[i]) load->valid[i] = false;
    drop_unused(load);
    report_missing(load);
}

// A file that cannot be read at all.
static int refuse_file(struct config_faults *faults, int fault, const char *text, const char *note)
{
    config_faults_add(faults, false, (struct toml_place){ 0 }, NULL, 0, text, note);
    return fault;
}

static int read_stream(FILE *file, struct config_faults *faults, char **ret_bytes,
                       size_t *ret_count)
{
    struct stat status;
    if (fstat(fileno(file), &status) < 0)
        return refuse_file(faults, FAULT_IO, "cannot be read", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse_file(faults, FAULT_FORMAT, "is not a regular file", "");
    if (status.st_size > TOML_BYTES_MAX)
        return refuse_file(faults, FAULT_LIMIT, "larger than 1048576 bytes",
                           "no configuration file is that large");
    char *bytes = malloc((size_t)status.st_size + 1);
    if (!bytes) return refuse_file(faults, FAULT_MEMORY, "cannot be read", "out of memory");
    *ret_count = fread(bytes, 1, (size_t)status.st_size, file);
    if (ferror(file)) {
        free(bytes);
        return refuse_file(faults, FAULT_IO, "cannot be read", strerror(errno));
    }
    *ret_bytes = bytes;
    return 0;
}

static int read_file(const char *path, struct config_faults *faults, char **ret_bytes,
                     size_t *ret_count)
{
    if (strlen(path) >= CONFIG_PATH_MAX)
        return refuse_file(faults, FAULT_LIMIT, "its path is longer than 511 bytes", "");
    FILE *file = fopen(path, "re");
    if (!file)
        return refuse_file(faults, fault_from_errno(errno), "cannot be opened", strerror(errno));
    const int rc = read_stream(file, faults, ret_bytes, ret_count);
    fclose(file);
    return rc;
}

// What stands behind the '=' of a line, without the blanks and the remark around it. 0: nothing does.
// `ret_column` is where it begins.
static size_t value_of_line(const char *bytes, size_t count, uint32_t line, const char **ret_value,
                            uint32_t *ret_column)
{
    size_t at = 0;
    for (; line > 1 && at < count; at++) line -= bytes[at] == '\n';
    const size_t begin = at;
    while (at < count && bytes[at] != '=' && bytes[at] != '\n') at++;
    if (at == count || bytes[at] != '=') return 0;
    for (at++; at < count && (bytes[at] == ' ' || bytes[at] == '\t');) at++;
    size_t end = at;
    while (end < count && bytes[end] != '#' && bytes[end] != '\n') end++;
    while (end > at && strchr(" \t\r", bytes[end - 1])) end--;
    *ret_value = bytes + at;
    *ret_column = (uint32_t)(at - begin) + 1;
    return end - at;
}

// A word, or a path: begins like one and has none of TOML's own characters.
static bool is_bare(const char *text, size_t count)
{
    if (count == 0 || count > 100 || !(isalpha((unsigned char)*text) || strchr("/._~", *text)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strchr("\"'[]{}\\=,", text[i]) || (unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return true;
}

// If the text stops being TOML within a string without quotes (run_id = demo), or at "True", says so
// in place of the parser's words.
static void explain_bare_word(const char *bytes, size_t bytes_count, struct toml_error *error,
                              struct toml_place *place)
{
    const char *word = "";
    uint32_t from = 0;
    const size_t count = value_of_line(bytes, bytes_count, error->line, &word, &from);
    if (!is_bare(word, count)) return;
    const uint32_t end = from + (uint32_t)count;
    if (error->column < from || error->column > end) return;
    const bool is_true = count == 4 && strncasecmp(word, "true", 4) == 0;
    if (is_true || (count == 5 && strncasecmp(word, "false", 5) == 0))
        snprintf(error->text, TOML_TEXT_MAX, "write it small: %s", is_true ? "true" : "false");
    else snprintf(error->text, TOML_TEXT_MAX, "strings need quotes: \"%.*s\"", (int)count, word);
    *place = (struct toml_place){ error->line, from, error->line, end };
}

static void record_origin(const struct config_load *load, const char *path,
                          struct config_origin *origin)
{
    memcpy(origin->file, path, strlen(path) + 1);
    for (size_t i = 0; i < load->schema->count; i++)
        origin->line[i] = load->nodes[i] ? load->nodes[i]->value.line : 0;
}

int config_load_file(const struct config_schema *schema, const char *path, config_rules *rules,
                     void *base, struct config_origin *origin, struct config_faults *faults)
{
    struct config_load load = { .schema = schema, .base = base, .faults = faults };
    struct toml_error error = { .line = 0 };
    char *bytes = NULL;
    config_faults_init(faults, path);
    int rc = read_file(path, faults, &bytes, &load.bytes_count);
    if (rc < 0) return rc;
    load.bytes = bytes;
    rc = toml_document_parse(bytes, load.bytes_count, &error, &load.document);
    if (rc < 0) {
        struct toml_place place = { error.line, error.column, 0, 0 };
        explain_bare_word(bytes, load.bytes_count, &error, &place);
        config_faults_add(faults, false, place, bytes, load.bytes_count, error.text, "");
        goto out;
    }
    load_document(&load);
    record_origin(&load, path, origin);
    if (rules) rules(&load);
    config_faults_sort(faults);
out:
    toml_document_destroy(&load.document);
    free(bytes);
    return faults->errors ? FAULT_CONFIG : 0;
}
