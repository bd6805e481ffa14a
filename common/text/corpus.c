// corpus -- opening lists every file with its size, folders sorted by name; a folder that links to
// one above it is refused. The end of a name says what is in a file:
//
//     .jsonl .ndjson   a record in each line          next_line
//     .json            the same, or, if it begins with '[', an array of records    next_element
//     else             one document                   next_text
//
// Reading goes file by file. A record is one document. A text is read in units of 1 MiB: a longer
// document is cut where the owner's `cut` allows it; if there is no such place, twice as much is
// read, up to CORPUS_UNIT_MAX. The buffer has one byte more than is asked for, unless the file has
// ended: so the end is known when the last byte is taken.

#include "common/text/corpus.h"
#include "common/base/ensure.h"
#include "common/base/strict_json.h"
#include "common/data/token_dir.h"
#include "common/text/text_file.h"
#include "common/text/unicode.h"
#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { JSON_DEPTH_MAX = 64, JSON_VALUES_MAX = 1 << 20, PLACE_MAX = 400, FIRST_READ = 1 << 16 };
enum { FIELDS_MAX = 400 };

enum format { TEXT, LINES, MAYBE_ARRAY, ARRAY_BEGUN, ARRAY, BEHIND_ARRAY };

static const struct {
    const char *end;
    enum format format;
} formats[] = { { ".jsonl", LINES }, { ".ndjson", LINES }, { ".json", MAYBE_ARRAY } };

// Neither text nor records, and a byte tokenizer would take them without a word.
static const char *const foreign[] = { ".tar", ".tgz", ".zip", ".bz2", ".xz", ".7z", ".parquet" };

struct source {
    char *path;
    uint64_t bytes;
};

struct corpus {
    struct corpus_options options;
    struct source *sources;
    size_t sources_count, sources_capacity, next;
    uint64_t bytes, bytes_read;
    text_file_t *file; // sources[next - 1]; NULL: none is open
    enum format format;
    bool begins;               // The next unit is the first of its document
    bool ended;                // All of the file is in the buffer or taken
    bool forgets;              // The rest of a line that is too long
    bool any;                  // There was a unit
    uint64_t offset, line;     // Of buffer[taken], in the text of the file; line: of the record
    uint64_t records, skipped; // So far; skipped: the bad ones
    uint64_t text_bytes;       // Of all units so far
    uint8_t *buffer;           // Read and not taken: [taken, have)
    size_t taken, have, capacity;
    struct corpus_unit units[CORPUS_BATCH_UNITS];
    size_t units_count;
};

// ---- the files

// The end of the name, without that of a compressed file.
static bool is_named(const char *path, const char *end)
{
    const size_t count = text_file_name(path), tail = strlen(end);
    return count > tail && strncasecmp(path + count - tail, end, tail) == 0;
}

static int is_empty(const char *path, struct why *why)
{
    return why_set(why, FAULT_FORMAT, "%s is empty; refused", path);
}

static int add_source(corpus_t *self, const char *path, struct why *why)
{
    int fd;
    uint64_t bytes;
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc < 0) return rc;
    close(fd);
    if (bytes == 0) return is_empty(path, why);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (is_named(path, foreign[i]))
            return why_set(why, FAULT_UNSUPPORTED,
                           "%s: *%s is not read; text, .jsonl, .ndjson and .json are, also as .gz "
                           "and .zst",
                           path, foreign[i]);
    if (self->sources_count == CORPUS_FILES_MAX)
        return why_set(why, FAULT_LIMIT, "more than %d files", CORPUS_FILES_MAX);
    if (self->sources_count == self->sources_capacity) {
        self->sources_capacity = 2 * self->sources_capacity + 64;
        self->sources = realloc(self->sources, self->sources_capacity * sizeof *self->sources);
        ensure(self->sources);
    }
    char *copy = strdup(path);
    if (!copy) return why_set(why, FAULT_MEMORY, "the path %s", path);
    self->sources[self->sources_count++] = (struct source){ copy, bytes };
    self->bytes += bytes;
    return 0;
}

static int by_name(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

static int visit(corpus_t *self, FTS *tree, FTSENT *entry, struct why *why)
{
    if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
        fts_set(tree, entry, FTS_SKIP);
        return 0;
    }
    switch (entry->fts_info) {
    case FTS_D:
    case FTS_DP: return 0;
    case FTS_DC:
        return why_set(why, FAULT_FORMAT, "%s links to a folder it lies in; refused",
                       entry->fts_path);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return why_set(why, fault_from_errno(entry->fts_errno), "%s: %s", entry->fts_path,
                       strerror(entry->fts_errno));
    default: return add_source(self, entry->fts_path, why);
    }
}

static int add_path(corpus_t *self, const char *path, struct why *why)
{
    char *const roots[] = { (char *)path, NULL };
    const size_t before = self->sources_count;
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    int rc = tree ? 0 : why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    for (FTSENT *entry; rc == 0 && (entry = fts_read(tree));) rc = visit(self, tree, entry, why);
    if (tree) fts_close(tree);
    if (rc == 0 && self->sources_count == before)
        rc = why_set(why, FAULT_FORMAT, "%s has no files; refused", path);
    return rc;
}

int corpus_open(const char *const *paths, size_t count, const struct corpus_options *options,
                struct why *why, corpus_t **ret_self)
{
    corpus_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a corpus");
    self->options = *options;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) rc = add_path(self, paths[i], why);
    if (rc < 0) corpus_close(&self);
    else *ret_self = self;
    return rc;
}

static void free_units(corpus_t *self)
{
    for (size_t i = 0; i < self->units_count; i++) free(self->units[i].text);
    self->units_count = 0;
}

void corpus_close(corpus_t **self_p)
{
    corpus_t *self = *self_p;
    if (!self) return;
    free_units(self);
    for (size_t i = 0; i < self->sources_count; i++) free(self->sources[i].path);
    text_file_close(&self->file);
    free(self->sources);
    free(self->buffer);
    free(self);
    *self_p = NULL;
}

uint64_t corpus_bytes(const corpus_t *self) { return self->bytes; }

uint64_t corpus_bytes_read(const corpus_t *self)
{
    return self->bytes_read + (self->file ? text_file_consumed(self->file) : 0);
}

uint64_t corpus_text_bytes(const corpus_t *self) { return self->text_bytes; }

uint64_t corpus_records(const corpus_t *self) { return self->records; }

uint64_t corpus_skipped(const corpus_t *self) { return self->skipped; }

// ---- reading

static const struct source *source_of(const corpus_t *self)
{
    return &self->sources[self->next - 1];
}

static int open_next(corpus_t *self, struct why *why)
{
    const struct source *source = &self->sources[self->next];
    int rc = text_file_open(source->path, source->bytes, why, &self->file);
    if (rc < 0) return rc;
    self->next++;
    self->format = TEXT;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (is_named(source->path, formats[i].end)) self->format = formats[i].format;
    self->begins = true;
    self->ended = self->forgets = false;
    self->taken = self->have = 0;
    self->offset = self->line = 0;
    return 0;
}

static void end_source(corpus_t *self)
{
    self->bytes_read += text_file_consumed(self->file);
    text_file_close(&self->file);
}

// Reads on until the buffer has more than `want` bytes that are not taken yet, or the file ends.
static int fill(corpus_t *self, size_t want, struct why *why)
{
    const size_t waiting = self->have - self->taken;
    if (waiting > want || self->ended) return 0;
    if (waiting) memmove(self->buffer, self->buffer + self->taken, waiting);
    self->taken = 0;
    self->have = waiting;
    if (self->capacity <= want) {
        self->capacity = want + 1;
        self->buffer = realloc(self->buffer, self->capacity);
        ensure(self->buffer);
    }
    while (self->have <= want) {
        size_t got;
        int rc = text_file_read(self->file, self->buffer + self->have, self->capacity - self->have,
                                why, &got);
        if (rc < 0) return rc;
        self->have += got;
        self->ended = got == 0;
        if (self->ended) break;
    }
    return 0;
}

static void take(corpus_t *self, size_t count)
{
    self->taken += count;
    self->offset += count;
}

static int add_unit(corpus_t *self, const uint8_t *text, size_t count, bool ends, struct why *why)
{
    const struct source *source = source_of(self);
    struct corpus_unit *unit = &self->units[self->units_count];
    *unit = (struct corpus_unit){ .text = malloc(count + 1),
                                  .count = count,
                                  .ends = ends,
                                  .begins = self->begins,
                                  .path = source->path,
                                  .offset = self->offset,
                                  .line = self->line };
    if (!unit->text) return why_set(why, FAULT_MEMORY, "%zu bytes of %s", count, source->path);
    memcpy(unit->text, text, count);
    self->begins = ends;
    self->text_bytes += count;
    self->units_count++;
    return 0;
}

// The rest of the document if it fits into a unit; else all of it up to the last allowed cut.
static int next_text(corpus_t *self, struct why *why)
{
    for (size_t want = CORPUS_UNIT_BYTES;; want *= 2) {
        int rc = fill(self, want, why);
        if (rc < 0) return rc;
        const uint8_t *text = self->buffer + self->taken;
        const size_t waiting = self->have - self->taken;
        if (waiting == 0) return is_empty(source_of(self)->path, why); // When decompressed
        const bool ends = self->ended && waiting <= CORPUS_UNIT_MAX;
        const size_t count =
            ends ? waiting : self->options.cut(self->options.context, text, waiting - 1);
        if (count) {
            rc = add_unit(self, text, count, ends, why);
            take(self, count);
            if (ends) end_source(self);
            return rc;
        }
        if (want >= CORPUS_UNIT_MAX)
            return why_set(why, FAULT_LIMIT,
                           "%s: the %d MiB from byte %" PRIu64 " on have no place "
                           "where this tokenizer can cut a document (a letter before a "
                           "line feed); split the file",
                           source_of(self)->path, CORPUS_UNIT_MAX >> 20, self->offset);
    }
}

static bool is_blank(const uint8_t *text, size_t count)
{
    size_t at = 0;
    while (at < count && strchr(" \t\r\n", text[at]) && text[at]) at++;
    return at == count;
}

static void say_too(struct why *why, const char *text)
{
    const size_t count = strlen(why->text);
    snprintf(why->text + count, sizeof why->text - count, "%s", text);
}

// A record that cannot be used: a fault with what to do, or told and passed over.
static int pass_over(corpus_t *self, int fault, struct why *why)
{
    if (fault == FAULT_MEMORY) return fault;
    self->skipped++;
    if (!self->options.skip) say_too(why, "; --skip-bad passes over such records");
    else self->options.skip(self->options.skip_context, why->text);
    return self->options.skip ? 0 : fault;
}

// What is there in place of the field, and, if no record has had it so far, what it may be called:
// the longest text.
static int no_field(const corpus_t *self, const json_t *record, const char *place, struct why *why)
{
    char fields[FIELDS_MAX] = "", shown[STRICT_JSON_SHOWN];
    const char *key, *longest = NULL;
    const json_t *value = json_object_get(record, self->options.field);
    json_t *other;
    size_t length = 0, most = 0;
    if (value)
        return why_set(why, FAULT_FORMAT, "%s: the field '%s' is %s, not a text", place,
                       self->options.field, strict_json_kind(value));
    json_object_foreach((json_t *)record, key, other)
    {
        if (length + STRICT_JSON_SHOWN < sizeof fields)
            length += (size_t)sprintf(fields + length, "%s%s", length ? ", " : "",
                                      strict_json_shown(key, shown));
        if (!json_is_string(other) || json_string_length(other) < most) continue;
        most = json_string_length(other);
        longest = key;
    }
    if (self->records > self->skipped + 1 || !longest)
        return why_set(why, FAULT_FORMAT, "%s: no field '%s'; the record has %s%s", place,
                       self->options.field, length ? "the fields " : "none", fields);
    return why_set(why, FAULT_FORMAT,
                   "%s: no field '%s'; line %" PRIu64 " has the fields %s: use --jsonl-field %s",
                   place, self->options.field, self->line, fields,
                   strict_json_shown(longest, shown));
}

static int take_record(corpus_t *self, const uint8_t *text, size_t count, struct why *why)
{
    char place[PLACE_MAX];
    json_t *record;
    snprintf(place, sizeof place, "%s:%" PRIu64, source_of(self)->path, self->line);
    self->records++;
    int rc = strict_json_parse_record(place, (const char *)text, count, JSON_DEPTH_MAX,
                                      JSON_VALUES_MAX, why, &record);
    if (rc < 0 && self->format == MAYBE_ARRAY)
        say_too(why, "; a .json file has an array of records, or a record in each line");
    if (rc < 0) return pass_over(self, rc, why);
    const json_t *value = json_object_get(record, self->options.field);
    if (json_is_string(value))
        rc = add_unit(self, (const uint8_t *)json_string_value(value), json_string_length(value),
                      true, why);
    else rc = pass_over(self, no_field(self, record, place, why), why);
    json_decref(record);
    return rc;
}

// Instead of a record there is something that ends it for the reader.
static int broken(corpus_t *self, const char *what, int fault, struct why *why)
{
    self->records++;
    return pass_over(
        self, why_set(why, fault, "%s:%" PRIu64 ": %s", source_of(self)->path, self->line, what),
        why);
}

// ---- lines

// The rest of a line that is too long is read and forgotten.
static void forget_line(corpus_t *self, const uint8_t *text, const uint8_t *end)
{
    take(self, end ? (size_t)(end - text) + 1 : self->have - self->taken);
    self->forgets = !end;
}

static int next_line(corpus_t *self, struct why *why)
{
    int rc = 0;
    for (size_t want = FIRST_READ; rc == 0; want *= 2) {
        rc = fill(self, want, why);
        if (rc < 0) return rc;
        const uint8_t *text = self->buffer + self->taken;
        const size_t waiting = self->have - self->taken;
        const uint8_t *end = memchr(text, '\n', waiting);
        const size_t count = end ? (size_t)(end - text) + 1 : waiting;
        if (!self->forgets && !end && !self->ended && want < CORPUS_UNIT_MAX) continue;
        if (self->forgets) {
            forget_line(self, text, end);
        } else if (!end && !self->ended) {
            self->line++;
            forget_line(self, text, NULL);
            rc = broken(self, "a line above 64 MiB", FAULT_LIMIT, why);
        } else {
            self->line++;
            if (!is_blank(text, count)) rc = take_record(self, text, count, why);
            take(self, count);
        }
        break;
    }
    if (self->taken == self->have && self->ended) end_source(self);
    return rc;
}

// ---- an array

static uint64_t lines_in(const uint8_t *text, size_t count)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < count; i++) lines += text[i] == '\n';
    return lines;
}

static size_t blank_before(const uint8_t *text, size_t count)
{
    size_t at = 0;
    while (at < count && is_blank(text + at, 1)) at++;
    return at;
}

// Where an array's element ends: at the comma or bracket behind it. `count`: not there yet.
static size_t element_end(const uint8_t *text, size_t count)
{
    size_t depth = 0, at = 0;
    bool quoted = false;
    for (; at < count; at++) {
        const uint8_t c = text[at];
        if (quoted) {
            if (c == '\\') at++;
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (depth == 0 && (c == ',' || c == ']')) {
            return at;
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
        }
    }
    return count;
}

// Takes white space, and counts its lines. Then there is another byte, or the file has ended.
static int pass_blank(corpus_t *self, struct why *why)
{
    for (;;) {
        int rc = fill(self, FIRST_READ, why);
        if (rc < 0) return rc;
        const uint8_t *text = self->buffer + self->taken;
        const size_t waiting = self->have - self->taken, count = blank_before(text, waiting);
        self->line += lines_in(text, count);
        take(self, count);
        if (count < waiting || self->ended) return 0;
    }
}

// A .json file is an array if it begins with a bracket. The lines of an array count from 1; those
// of records in lines before each of them.
static int look_for_array(corpus_t *self, struct why *why)
{
    int rc = pass_blank(self, why);
    if (rc < 0) return rc;
    if (self->taken == self->have) return is_empty(source_of(self)->path, why);
    if (self->buffer[self->taken] != '[') return next_line(self, why);
    self->format = ARRAY_BEGUN;
    self->line++;
    take(self, 1);
    return 0;
}

static int next_element(corpus_t *self, struct why *why)
{
    int rc = pass_blank(self, why);
    for (size_t want = FIRST_READ; rc == 0; want *= 2) {
        rc = fill(self, want, why);
        if (rc < 0) return rc;
        const uint8_t *text = self->buffer + self->taken;
        const size_t waiting = self->have - self->taken, count = element_end(text, waiting);
        if (count >= waiting && !self->ended && want < CORPUS_UNIT_MAX) continue;
        if (count >= waiting) {
            rc = broken(self,
                        self->ended ? "the array does not end behind this"
                                    : "a record above 64 MiB; the rest of the file is left",
                        self->ended ? FAULT_FORMAT : FAULT_LIMIT, why);
            end_source(self);
            return rc;
        }
        const bool closes = text[count] == ']';
        if (count > 0) rc = take_record(self, text, count, why);
        else if (!closes || self->format != ARRAY_BEGUN)
            rc = broken(self, "no record between two commas", FAULT_FORMAT, why);
        self->format = closes ? BEHIND_ARRAY : ARRAY;
        self->line += lines_in(text, count);
        take(self, count + 1);
        break;
    }
    return rc;
}

static int pass_behind_array(corpus_t *self, struct why *why)
{
    int rc = pass_blank(self, why);
    if (rc == 0 && self->taken < self->have)
        rc = broken(self, "more behind the end of the array", FAULT_FORMAT, why);
    end_source(self);
    return rc;
}

static int next_piece(corpus_t *self, struct why *why)
{
    switch (self->format) {
    case TEXT: return next_text(self, why);
    case LINES: return next_line(self, why);
    case MAYBE_ARRAY: return self->line ? next_line(self, why) : look_for_array(self, why);
    case ARRAY_BEGUN:
    case ARRAY: return next_element(self, why);
    case BEHIND_ARRAY: return pass_behind_array(self, why);
    }
    return 0;
}

int corpus_next(corpus_t *self, struct why *why, const struct corpus_unit **ret_units,
                size_t *ret_count)
{
    size_t bytes = 0;
    int rc = 0;
    free_units(self);
    while (rc == 0 && bytes < CORPUS_BATCH_BYTES && self->units_count < CORPUS_BATCH_UNITS) {
        const size_t before = self->units_count;
        if (!self->file && self->next == self->sources_count) break;
        if (!self->file) rc = open_next(self, why);
        if (rc == 0) rc = next_piece(self, why);
        if (rc == 0 && self->units_count > before) bytes += self->units[before].count;
    }
    if (rc == 0 && self->units_count == 0 && self->skipped && !self->any)
        rc = why_set(why, FAULT_FORMAT, "all %" PRIu64 " records are bad", self->skipped);
    if (rc < 0) return rc;
    self->any |= self->units_count > 0;
    *ret_units = self->units;
    *ret_count = self->units_count;
    return 0;
}

int corpus_check(const struct corpus_unit *unit, struct why *why)
{
    const size_t valid = unicode_valid_until(unit->text, unit->count);
    if (valid == unit->count) return 0;
    if (unit->line)
        return why_set(why, FAULT_FORMAT, "%s:%" PRIu64 ": not valid UTF-8; refused", unit->path,
                       unit->line);
    return why_set(why, FAULT_FORMAT,
                   "%s: the byte 0x%02x at %" PRIu64 " is not valid UTF-8; "
                   "refused",
                   unit->path, unit->text[valid], unit->offset + valid);
}

int corpus_skip(corpus_t *self, const struct corpus_unit *unit, int fault, struct why *why)
{
    return unit->line && fault != FAULT_MEMORY ? pass_over(self, fault, why) : fault;
}
