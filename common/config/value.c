// value -- one function for each type reads a node: it checks the node's type, then its range, then
// stores the value. The others print a value, its range and its type in words. All texts about a
// wrong value are made here.

#include "common/config/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ensure.h"
#include "common/base/hash.h"
#include "common/base/nearest.h"

enum { SHOWN_MAX = 48 }; // Bytes of a value that a message repeats

static void *field_of(const struct config_key *key, void *base)
{
    return (char *)base + key->offset;
}

const char *config_value_expected(const struct config_key *key)
{
    static const char *const expected[] = {
        [CONFIG_COUNT] = "integer",
        [CONFIG_SECONDS] = "number of seconds",
        [CONFIG_REAL] = "number",
        [CONFIG_FLAG] = "true or false",
        [CONFIG_NAME] = "string",
        [CONFIG_TEXT] = "string",
        [CONFIG_ENDPOINT] = "string",
        [CONFIG_DIGEST] = "string",
        [CONFIG_SEED] = "array of 32 integers",
        [CONFIG_PAIR] = "array of 2 numbers",
        [CONFIG_VALUE] = "string",
        [CONFIG_VARIANT] = "table or string",
        [CONFIG_IGNORED] = "nothing",
        [CONFIG_REFUSED] = "nothing",
    };
    return expected[key->type];
}

static void print_words(const char *set, struct config_text *out)
{
    const char *between = "", *last = "";
    for (unsigned i = 1; i < CONFIG_VALUE_END; i++) {
        const struct config_word *word = config_word_of((enum config_value)i);
        if (strcmp(word->set, set) != 0 || word->refusal) continue;
        if (last[0]) {
            config_text_add(out, "%s%s", between[0] ? between : "one of ", last);
            between = ", ";
        }
        last = word->name;
    }
    config_text_add(out, "%s%s", between[0] ? " or " : "only ", last);
}

void config_value_print_range(const struct config_key *key, struct config_text *out)
{
    switch (key->type) {
    case CONFIG_COUNT:
    case CONFIG_SECONDS:
    case CONFIG_REAL:
        config_text_add(out, "range ");
        config_text_add_real(out, key->min);
        config_text_add(out, "..");
        config_text_add_real(out, key->max);
        if (key->type == CONFIG_SECONDS) config_text_add(out, " s");
        break;
    case CONFIG_PAIR:
        config_text_add(out, "2 numbers, each ");
        config_text_add_real(out, key->min);
        config_text_add(out, "..");
        config_text_add_real(out, key->max);
        break;
    case CONFIG_FLAG: config_text_add(out, "true or false"); break;
    case CONFIG_NAME:
        config_text_add(out, "%.0f to %.0f of A-Z a-z 0-9 . _ -", key->min, key->max);
        break;
    case CONFIG_TEXT: config_text_add(out, "%.0f to %.0f bytes", key->min, key->max); break;
    case CONFIG_ENDPOINT: config_text_add(out, "\"tcp://HOST:PORT\" or \"ipc://PATH\""); break;
    case CONFIG_DIGEST: config_text_add(out, "64 hexadecimal digits"); break;
    case CONFIG_SEED: config_text_add(out, "32 integers, each 0..255"); break;
    case CONFIG_VALUE:
    case CONFIG_VARIANT: print_words(key->of, out); break;
    case CONFIG_IGNORED:
    case CONFIG_REFUSED: break;
    }
}

// The file's value, as a message quotes it.
static void describe(const struct toml_node *node, struct config_text *out)
{
    switch (node->type) {
    case TOML_TABLE: config_text_add(out, "table"); break;
    case TOML_ARRAY: config_text_add(out, "array"); break;
    case TOML_DATE: config_text_add(out, "date"); break;
    case TOML_INTEGER: config_text_add(out, "integer %" PRId64, (int64_t)node->integer); break;
    case TOML_BOOLEAN: config_text_add(out, "boolean %s", node->integer ? "true" : "false"); break;
    case TOML_FLOAT:
        config_text_add(out, "float ");
        config_text_add_real(out, node->real);
        break;
    case TOML_STRING:
        config_text_add(out, "string \"");
        config_text_add_safe(out, node->text,
                             node->text_count < SHOWN_MAX ? node->text_count : SHOWN_MAX);
        config_text_add(out, node->text_count <= SHOWN_MAX ? "\"" : "...\"");
        break;
    }
}

bool config_value_refuse(const struct config_key *key, const struct toml_node *node,
                         struct config_complaint *complaint)
{
    config_text_add(&complaint->text, "expected %s, got ", config_value_expected(key));
    describe(node, &complaint->text);
    config_value_print_range(key, &complaint->note);
    return false;
}

// `what` follows the value: "is out of range".
static bool wrong_value(const struct config_key *key, const struct toml_node *node,
                        const char *what, struct config_complaint *complaint)
{
    describe(node, &complaint->text);
    config_text_add(&complaint->text, " %s", what);
    config_value_print_range(key, &complaint->note);
    return false;
}

// Where a setting that is absent means none, 0 does not.
static bool out_of_range(const struct config_key *key, const struct toml_node *node, double value,
                         struct config_complaint *complaint)
{
    wrong_value(key, node, "is out of range", complaint);
    if (value == 0 && key->type == CONFIG_COUNT && key->fallback.need == CONFIG_ABSENT)
        config_text_add(&complaint->note, "; leave it out for none");
    return false;
}

static bool read_number(const struct config_key *key, const struct toml_node *node, void *field,
                        struct config_complaint *complaint)
{
    const bool whole = node->type == TOML_INTEGER;
    if (!whole && (node->type != TOML_FLOAT || key->type == CONFIG_COUNT))
        return config_value_refuse(key, node, complaint);
    const double value = whole ? (double)node->integer : node->real;
    if (!(value >= key->min && value <= key->max)) // So written, NaN is out of every range
        return out_of_range(key, node, value, complaint);
    if (key->type == CONFIG_REAL) {
        memcpy(field, &value, sizeof value);
        return true;
    }
    const uint64_t count =
        key->type == CONFIG_SECONDS ? (uint64_t)llround(value * 1000) : (uint64_t)node->integer;
    memcpy(field, &count, sizeof count);
    return true;
}

static bool is_endpoint(const char *text)
{
    if (strncmp(text, "ipc://", 6) == 0) return text[6] != 0;
    const char *host = text + 6, *colon = strrchr(text, ':');
    if (strncmp(text, "tcp://", 6) != 0 || colon <= host || !colon[1]) return false;
    if (strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5) return false;
    const long port = strtol(colon + 1, NULL, 10);
    return port >= 1 && port <= 65535;
}

static bool read_text(const struct config_key *key, const struct toml_node *node, void *field,
                      struct config_complaint *complaint)
{
    static const char name_bytes[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (node->type != TOML_STRING) return config_value_refuse(key, node, complaint);
    if ((double)node->text_count < key->min)
        return wrong_value(key, node, "is too short", complaint);
    if ((double)node->text_count > key->max)
        return wrong_value(key, node, "is too long", complaint);
    for (size_t i = 0; i < node->text_count; i++)
        if ((unsigned char)node->text[i] < 0x20 || node->text[i] == 0x7f)
            return wrong_value(key, node, "holds a control character", complaint);
    if (key->type == CONFIG_NAME && strspn(node->text, name_bytes) != node->text_count)
        return wrong_value(key, node, "holds a character that names do not", complaint);
    if (key->type == CONFIG_ENDPOINT && !is_endpoint(node->text))
        return wrong_value(key, node, "is not an endpoint", complaint);
    memcpy(field, node->text, node->text_count + 1);
    return true;
}

static bool read_digest(const struct config_key *key, const struct toml_node *node, void *field,
                        struct config_complaint *complaint)
{
    struct hash digest;
    if (node->type != TOML_STRING) return config_value_refuse(key, node, complaint);
    if (strlen(node->text) != node->text_count || !hash_from_hex(node->text, &digest))
        return wrong_value(key, node, "is not a digest", complaint);
    if (hash_is_none(&digest))
        return wrong_value(key, node, "means that none is set; leave it out", complaint);
    memcpy(field, &digest, sizeof digest);
    return true;
}

static bool read_seed(const struct config_key *key, const struct toml_node *node, void *field,
                      struct config_complaint *complaint)
{
    uint8_t seed[CONFIG_SEED_BYTES];
    size_t count = 0;
    if (node->type != TOML_ARRAY) return config_value_refuse(key, node, complaint);
    for (const struct toml_node *at = node + 1; at->depth > node->depth; at++) {
        if (at->depth > node->depth + 1) continue;
        if (count < CONFIG_SEED_BYTES) {
            if (at->type != TOML_INTEGER || at->integer < 0 || at->integer > 255) {
                complaint->at = at;
                return wrong_value(key, at, "is not a byte", complaint);
            }
            seed[count] = (uint8_t)at->integer;
        }
        count++;
    }
    if (count != CONFIG_SEED_BYTES) {
        config_text_add(&complaint->text, "%zu elements", count);
        config_value_print_range(key, &complaint->note);
        return false;
    }
    memcpy(field, seed, sizeof seed);
    return true;
}

static bool read_pair(const struct config_key *key, const struct toml_node *node, void *field,
                      struct config_complaint *complaint)
{
    double pair[2];
    size_t count = 0;
    if (node->type != TOML_ARRAY) return config_value_refuse(key, node, complaint);
    for (const struct toml_node *at = node + 1; at->depth > node->depth; at++) {
        if (at->depth > node->depth + 1) continue;
        const bool number = at->type == TOML_INTEGER || at->type == TOML_FLOAT;
        const double value = at->type == TOML_INTEGER ? (double)at->integer : at->real;
        if (count < 2 && !(number && value >= key->min && value <= key->max)) {
            complaint->at = at;
            return wrong_value(key, at, number ? "is out of range" : "is not a number", complaint);
        }
        if (count < 2) pair[count] = value;
        count++;
    }
    if (count != 2) {
        config_text_add(&complaint->text, "%zu elements", count);
        config_value_print_range(key, &complaint->note);
        return false;
    }
    memcpy(field, pair, sizeof pair);
    return true;
}

static bool read_flag(const struct config_key *key, const struct toml_node *node, void *field,
                      struct config_complaint *complaint)
{
    if (node->type != TOML_BOOLEAN) return config_value_refuse(key, node, complaint);
    const bool flag = node->integer != 0;
    memcpy(field, &flag, sizeof flag);
    return true;
}

enum config_value config_word_read(const struct config_key *key, const char *name,
                                   struct config_complaint *complaint)
{
    const enum config_value value = config_word_find(key->of, name);
    const struct config_word *word = config_word_of(value);
    if (value != CONFIG_NONE && !word->refusal) return value;

    struct nearest near = { .wanted = name };
    for (unsigned i = 1; i < CONFIG_VALUE_END; i++) {
        const struct config_word *other = config_word_of((enum config_value)i);
        if (strcmp(other->set, key->of) == 0 && !other->refusal)
            nearest_offer(&near, other->name, strlen(other->name));
    }
    if (value != CONFIG_NONE)
        config_text_add(&complaint->text, "%s is not supported: %s", name, word->refusal);
    else config_text_add(&complaint->text, "unknown %s \"%.*s\"", key->of, SHOWN_MAX, name);
    if (value == CONFIG_NONE && near.best[0])
        config_text_add(&complaint->note, "did you mean `%s`?", near.best);
    else config_value_print_range(key, &complaint->note);
    return CONFIG_NONE;
}

static bool read_word(const struct config_key *key, const struct toml_node *node, void *field,
                      struct config_complaint *complaint)
{
    if (node->type != TOML_STRING) return config_value_refuse(key, node, complaint);
    if (strlen(node->text) != node->text_count)
        return wrong_value(key, node, "is not a word", complaint);
    const enum config_value value = config_word_read(key, node->text, complaint);
    if (value == CONFIG_NONE) return false;
    memcpy(field, &value, sizeof value);
    return true;
}

bool config_value_read(const struct config_key *key, const struct toml_node *node, void *base,
                       struct config_complaint *complaint)
{
    void *field = field_of(key, base);
    ensure(key->type < CONFIG_VARIANT); // Later types have no value
    switch (key->type) {
    case CONFIG_COUNT:
    case CONFIG_SECONDS:
    case CONFIG_REAL: return read_number(key, node, field, complaint);
    case CONFIG_NAME:
    case CONFIG_TEXT:
    case CONFIG_ENDPOINT: return read_text(key, node, field, complaint);
    case CONFIG_FLAG: return read_flag(key, node, field, complaint);
    case CONFIG_DIGEST: return read_digest(key, node, field, complaint);
    case CONFIG_SEED: return read_seed(key, node, field, complaint);
    case CONFIG_PAIR: return read_pair(key, node, field, complaint);
    case CONFIG_VALUE: return read_word(key, node, field, complaint);
    case CONFIG_VARIANT:
    case CONFIG_IGNORED:
    case CONFIG_REFUSED: break;
    }
    return false;
}

// "0.9, 0.95", of a fallback or a flag.
bool config_value_read_pair(const struct config_key *key, const char *text, void *base,
                            struct config_complaint *complaint)
{
    const char *comma = strchr(text, ',');
    char first[CONFIG_NAME_MAX];
    struct toml_node nodes[4] = { { .type = TOML_ARRAY },
                                  { .type = TOML_FLOAT, .depth = 1 },
                                  { .type = TOML_FLOAT, .depth = 1 },
                                  { .type = TOML_TABLE } };
    if (!comma || (size_t)(comma - text) >= sizeof first) {
        config_text_add(&complaint->text, "not two numbers with a comma between them");
        config_value_print_range(key, &complaint->note);
        return false;
    }
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = 0;
    nodes[1].real = config_text_to_real(first);
    nodes[2].real = config_text_to_real(comma + 1);
    return read_pair(key, nodes, field_of(key, base), complaint);
}

// Examples of a digest and of a seed are too long to write out.
static bool set_by_rule(const struct config_key *key, void *base)
{
    uint8_t *field = field_of(key, base);
    if (key->type != CONFIG_SEED && key->type != CONFIG_DIGEST) return false;
    for (unsigned i = 0; i < CONFIG_SEED_BYTES; i++) field[i] = (uint8_t)(i + 1);
    return true;
}

void config_value_set(const struct config_key *key, const char *text, void *base)
{
    struct toml_node node = { .type = TOML_STRING, .text = text, .text_count = strlen(text) };
    char text_bytes[CONFIG_TEXT_MAX], note_bytes[CONFIG_TEXT_MAX];
    struct config_complaint complaint = { config_text_in(text_bytes, sizeof text_bytes),
                                          config_text_in(note_bytes, sizeof note_bytes), NULL };
    if (set_by_rule(key, base)) return;
    if (key->type == CONFIG_VARIANT) {
        const enum config_value value = config_word_find(key->of, text);
        ensure(value != CONFIG_NONE);
        memcpy(field_of(key, base), &value, sizeof value);
        return;
    }
    if (key->type == CONFIG_PAIR) {
        ensure(config_value_read_pair(key, text, base, &complaint));
        return;
    }
    if (key->type == CONFIG_FLAG) node.type = TOML_BOOLEAN, node.integer = text[0] == 't';
    if (key->type == CONFIG_COUNT) node.type = TOML_INTEGER, node.integer = strtoll(text, NULL, 10);
    if (key->type == CONFIG_SECONDS || key->type == CONFIG_REAL)
        node.type = TOML_FLOAT, node.real = config_text_to_real(text);
    ensure(config_value_read(key, &node, base, &complaint));
}

void config_value_reset(const struct config_key *key, void *base)
{
    static const uint8_t zeros[sizeof(double)];
    ensure(key->type <= CONFIG_FLAG || key->type == CONFIG_VALUE);
    if (key->fallback.need == CONFIG_DEFAULT) config_value_set(key, key->fallback.text, base);
    else if (key->type == CONFIG_FLAG) memcpy(field_of(key, base), zeros, sizeof(bool));
    else if (key->type == CONFIG_VALUE)
        memcpy(field_of(key, base), zeros, sizeof(enum config_value));
    else memcpy(field_of(key, base), zeros, sizeof zeros);
}

double config_value_number(const struct config_key *key, const void *base)
{
    uint64_t count;
    double real;
    ensure(key->type == CONFIG_COUNT || key->type == CONFIG_SECONDS || key->type == CONFIG_REAL);
    memcpy(&count, (const char *)base + key->offset, sizeof count);
    memcpy(&real, (const char *)base + key->offset, sizeof real);
    return key->type == CONFIG_REAL ? real : (double)count;
}

bool config_value_is_set(const struct config_key *key, const void *base)
{
    static const uint8_t zeros[CONFIG_SEED_BYTES];
    const size_t bytes =
        key->type == CONFIG_DIGEST || key->type == CONFIG_SEED ? CONFIG_SEED_BYTES : sizeof(double);
    if (key->fallback.need != CONFIG_ABSENT && key->fallback.need != CONFIG_SHOWN) return true;
    return memcmp((const char *)base + key->offset, zeros, bytes) != 0;
}

static void print_bytes(const struct config_key *key, const uint8_t *bytes, struct config_text *out)
{
    config_text_add(out, key->type == CONFIG_SEED ? "[" : "\"");
    for (unsigned i = 0; i < CONFIG_SEED_BYTES; i++) {
        if (key->type == CONFIG_SEED) config_text_add(out, "%s%u", i ? ", " : "", bytes[i]);
        else config_text_add(out, "%02x", bytes[i]);
    }
    config_text_add(out, key->type == CONFIG_SEED ? "]" : "\"");
}

static void print_number(const struct config_key *key, const void *base, struct config_text *out)
{
    uint64_t count;
    memcpy(&count, (const char *)base + key->offset, sizeof count);
    if (key->type == CONFIG_COUNT) config_text_add(out, "%" PRIu64, count);
    else if (key->type == CONFIG_SECONDS) config_text_add_real(out, (double)count / 1000);
    else config_text_add_real(out, config_value_number(key, base));
}

static void print_pair(const char *field, struct config_text *out)
{
    double pair[2];
    memcpy(pair, field, sizeof pair);
    config_text_add(out, "[");
    config_text_add_real(out, pair[0]);
    config_text_add(out, ", ");
    config_text_add_real(out, pair[1]);
    config_text_add(out, "]");
}

void config_value_print(const struct config_key *key, const void *base, struct config_text *out)
{
    const char *field = (const char *)base + key->offset;
    enum config_value value;
    switch (key->type) {
    case CONFIG_COUNT:
    case CONFIG_SECONDS:
    case CONFIG_REAL: print_number(key, base, out); break;
    case CONFIG_FLAG:
    case CONFIG_IGNORED:
    case CONFIG_REFUSED: config_text_add(out, *field ? "true" : "false"); break;
    case CONFIG_NAME:
    case CONFIG_TEXT:
    case CONFIG_ENDPOINT: config_text_add_quoted(out, field); break;
    case CONFIG_PAIR: print_pair(field, out); break;
    case CONFIG_DIGEST:
    case CONFIG_SEED: print_bytes(key, (const uint8_t *)field, out); break;
    case CONFIG_VALUE:
    case CONFIG_VARIANT:
        memcpy(&value, field, sizeof value);
        config_text_add_quoted(out, config_word_of(value)->name);
        break;
    }
}
