// Each text is parsed and its seal checked (sealed_json.h), then each field is read against its range.
// What the three texts have in common comes first, then note, cut and manifest, each written and read.
#include "common/checkpoint/pieces_text.h"
#include "common/base/dirfile.h"
#include "common/base/sealed_json.h"
#include "common/base/strict_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    TENSORS_MAX = 65536,
};

// ---- common to all ------------------------------------------------------------------------------

static json_t *number(uint64_t value) { return json_integer((json_int_t)value); }

// Takes `root`, which is NULL if memory ran out.
static int dump(json_t *root, const char *what, struct why *why, char **ret_text)
{
    char *text = root ? sealed_json_dump(root) : NULL;
    json_decref(root);
    if (!text) return why_set(why, FAULT_MEMORY, "%s: no memory to write it", what);
    *ret_text = text;
    return 0;
}

int pieces_check_item(const char *place, const char *name, enum tag tag, uint64_t element_bytes,
                      uint64_t elements, struct why *why)
{
    if (!tags_name_valid(name))
        return why_set(why, FAULT_RANGE,
                       "%s: the name of a state item is 1 to %d characters of a-z, 0-9 and -, and "
                       "begins with a letter; refused",
                       place, TAGS_NAME_MAX);
    if (tag <= TAG_UNSET || tag >= TAG_COUNT)
        return why_set(why, FAULT_RANGE,
                       "%s: state item '%s' has no tag; each has one of drop, reshard, replicate, "
                       "custom; refused",
                       place, name);
    if (element_bytes < 1 || element_bytes > PIECES_ELEMENT_BYTES_MAX ||
        elements > PIECES_ELEMENTS_MAX || elements > PIECES_BYTES_MAX / element_bytes)
        return why_set(why, FAULT_RANGE,
                       "%s: state item '%s' has %" PRIu64 " elements of %" PRIu64
                       " bytes; allowed are elements of 1 to %d bytes, 2^40 of them and 2^46 "
                       "bytes in all; refused",
                       place, name, elements, element_bytes, PIECES_ELEMENT_BYTES_MAX);
    return 0;
}

// What note and cut say of an item alike. `name` is borrowed from the object.
static int get_kind(const json_t *object, const char *place, struct why *why, const char **ret_name,
                    enum tag *ret_tag, uint32_t *ret_element_bytes)
{
    const char *tag;
    uint64_t bytes;
    int rc = strict_json_text(object, place, "name", TAGS_NAME_MAX, why, ret_name);
    if (rc == 0) rc = strict_json_text(object, place, "tag", 16, why, &tag);
    if (rc == 0)
        rc = strict_json_number(object, place, "element_bytes", PIECES_ELEMENT_BYTES_MAX, why,
                                &bytes);
    if (rc < 0) return rc;
    *ret_tag = tags_tag_from_name(tag);
    *ret_element_bytes = (uint32_t)bytes;
    return pieces_check_item(place, *ret_name, *ret_tag, bytes, 0, why);
}

// ---- note ---------------------------------------------------------------------------------------

int pieces_note_pack(const struct pieces_save *save, const struct pieces_note *note,
                     struct why *why, char **ret_text)
{
    json_t *items = json_array();
    for (size_t i = 0; i < note->count; i++) {
        const struct pieces_noted *item = &note->items[i];
        json_array_append_new(items, json_pack("{s: s, s: s, s: o, s: o, s: o}", "name", item->name,
                                               "tag", tags_tag_name(item->tag), "element_bytes",
                                               number(item->element_bytes), "elements",
                                               number(item->elements), "root",
                                               sealed_json_hash(&item->root)));
    }
    return dump(json_pack("{s: s, s: i, s: s, s: o, s: o, s: o, s: o, s: o, s: o}", "format",
                          "shoal note", "version", VERSION, "run", save->run, "born_unix_ms",
                          number(save->born_unix_ms), "step", number(save->step), "workers",
                          number(save->workers), "worker", number(note->worker), "written_unix_s",
                          number(note->written_unix_s), "items", items),
                "note", why, ret_text);
}

static int get_noted(const json_t *object, const char *place, struct why *why,
                     struct pieces_noted *ret_item)
{
    const char *name;
    int rc = get_kind(object, place, why, &name, &ret_item->tag, &ret_item->element_bytes);
    if (rc == 0)
        rc = strict_json_number(object, place, "elements", PIECES_ELEMENTS_MAX, why,
                                &ret_item->elements);
    if (rc == 0) rc = sealed_json_get_hash(object, place, "root", why, &ret_item->root);
    if (rc < 0) return rc;
    snprintf(ret_item->name, sizeof ret_item->name, "%s", name);
    return pieces_check_item(place, name, ret_item->tag, ret_item->element_bytes,
                             ret_item->elements, why);
}

// A note of another save may be here if a caller gave two saves one attempt.
static int check_save(const struct pieces_save *save, const json_t *root, const char *place,
                      struct why *why)
{
    const char *run;
    uint64_t born, step, workers;
    int rc = strict_json_text(root, place, "run", CHECKPOINT_RUN_MAX, why, &run);
    if (rc == 0)
        rc = strict_json_number(root, place, "born_unix_ms", CHECKPOINT_NUMBER_MAX, why, &born);
    if (rc == 0) rc = strict_json_number(root, place, "step", CHECKPOINT_STEP_MAX, why, &step);
    if (rc == 0) rc = strict_json_number(root, place, "workers", PIECES_WORKERS_MAX, why, &workers);
    if (rc < 0) return rc;
    if (strcmp(run, save->run) == 0 && born == save->born_unix_ms && step == save->step &&
        workers == save->workers)
        return 0;
    return why_set(why, FAULT_FOREIGN,
                   "%s is of run '%s', born %" PRIu64 ", step %" PRIu64 ", %" PRIu64
                   " workers; wanted is run '%s', born %" PRIu64 ", step %" PRIu64 ", %" PRIu32
                   " workers; refused",
                   place, run, born, step, workers, save->run, save->born_unix_ms, save->step,
                   save->workers);
}

static int get_note(const struct pieces_save *save, const json_t *root, const char *place,
                    struct why *why, struct pieces_note *note)
{
    const json_t *items;
    uint64_t worker;
    int rc = check_save(save, root, place, why);
    if (rc == 0) rc = strict_json_number(root, place, "worker", save->workers - 1, why, &worker);
    if (rc == 0)
        rc = strict_json_number(root, place, "written_unix_s", CHECKPOINT_NUMBER_MAX, why,
                                &note->written_unix_s);
    if (rc == 0) rc = strict_json_array(root, place, "items", PIECES_ITEMS_MAX, why, &items);
    if (rc < 0) return rc;
    note->worker = (uint32_t)worker;
    note->count = json_array_size(items);
    for (size_t i = 0; i < note->count && rc == 0; i++)
        rc = get_noted(json_array_get(items, i), place, why, &note->items[i]);
    return rc;
}

int pieces_note_unpack(const struct pieces_save *save, const char *place, const char *text,
                       size_t count, struct why *why, struct pieces_note *ret_note)
{
    json_t *root;
    int rc = sealed_json_parse(place, "shoal note", VERSION, text, count, why, &root);
    if (rc < 0) return rc;
    rc = get_note(save, root, place, why, ret_note);
    json_decref(root);
    return rc;
}

// ---- cut ----------------------------------------------------------------------------------------

static json_t *pack_tensors(const struct layout *layout)
{
    json_t *tensors = json_array();
    for (size_t i = 0; i < layout->count; i++) {
        const struct layout_tensor *tensor = &layout->tensors[i];
        json_t *shape = tensor->dims == 1
                            ? json_pack("[o]", number(tensor->cols))
                            : json_pack("[o, o]", number(tensor->rows), number(tensor->cols));
        const struct interval at = layout_interval(tensor);
        json_array_append_new(tensors,
                              json_pack("{s: s, s: o, s: o, s: o}", "name", tensor->name, "shape",
                                        shape, "begin", number(at.begin), "end", number(at.end)));
    }
    return tensors;
}

int pieces_cut_pack(const struct pieces_meta *meta, struct why *why, char **ret_text)
{
    json_t *items = json_array();
    for (size_t i = 0; i < meta->count; i++) {
        const struct pieces_item *item = &meta->items[i];
        json_t *begins = json_array();
        for (uint32_t w = 0; w <= meta->workers; w++)
            json_array_append_new(begins, number(item->begins[w]));
        json_array_append_new(items, json_pack("{s: s, s: s, s: o, s: o}", "name", item->name,
                                               "tag", tags_tag_name(item->tag), "element_bytes",
                                               number(item->element_bytes), "begins", begins));
    }
    return dump(json_pack("{s: s, s: i, s: o, s: o, s: o}", "format", "shoal cut", "version",
                          VERSION, "workers", number(meta->workers), "items", items, "tensors",
                          pack_tensors(&meta->layout)),
                "cut", why, ret_text);
}

static int get_begins(const json_t *object, const char *place, uint32_t workers, struct why *why,
                      struct pieces_item *item)
{
    const json_t *begins;
    int rc = strict_json_array(object, place, "begins", PIECES_WORKERS_MAX + 1, why, &begins);
    if (rc < 0) return rc;
    item->begins = calloc((size_t)workers + 1, sizeof *item->begins);
    if (!item->begins) return why_set(why, FAULT_MEMORY, "%s: %" PRIu32 " workers", place, workers);
    bool rises = json_array_size(begins) == workers + 1;
    for (uint32_t w = 0; rises && w <= workers; w++) {
        const json_t *begin = json_array_get(begins, w);
        const json_int_t value = json_is_integer(begin) ? json_integer_value(begin) : -1;
        item->begins[w] = value < 0 ? UINT64_MAX : (uint64_t)value;
        rises = w == 0 ? value == 0 : value >= 0 && item->begins[w] >= item->begins[w - 1];
    }
    if (!rises)
        return why_set(why, FAULT_RANGE,
                       "%s: 'begins' of state item '%s' is not %" PRIu32
                       " numbers that begin with 0 and do not fall; refused",
                       place, item->name, workers + 1);
    if (item->tag == TAG_REPLICATE && item->begins[1] != item->begins[workers])
        return why_set(why, FAULT_RANGE,
                       "%s: state item '%s' is replicated, so worker 0 has all of it; refused",
                       place, item->name);
    return pieces_check_item(place, item->name, item->tag, item->element_bytes,
                             item->begins[workers], why);
}

static int get_items(const json_t *root, const char *place, struct why *why,
                     struct pieces_meta *meta)
{
    const json_t *items;
    int rc = strict_json_array(root, place, "items", PIECES_ITEMS_MAX, why, &items);
    for (size_t i = 0; rc == 0 && i < json_array_size(items); i++) {
        const json_t *object = json_array_get(items, i);
        struct pieces_item *item = &meta->items[i];
        const char *name;
        rc = get_kind(object, place, why, &name, &item->tag, &item->element_bytes);
        for (size_t k = 0; rc == 0 && k < i; k++)
            if (strcmp(meta->items[k].name, name) == 0)
                rc = why_set(why, FAULT_RANGE, "%s: state item '%s' is there twice; refused", place,
                             name);
        if (rc < 0) break;
        snprintf(item->name, sizeof item->name, "%s", name);
        meta->count = i + 1;
        rc = get_begins(object, place, meta->workers, why, item);
    }
    return rc;
}

static int add_tensor(const json_t *object, const char *place, struct why *why,
                      struct layout *layout)
{
    const char *name;
    const json_t *shape;
    uint64_t begin, end, sizes[2] = { 1, 0 };
    int rc = strict_json_text(object, place, "name", LAYOUT_NAME_MAX, why, &name);
    if (rc == 0) rc = strict_json_array(object, place, "shape", 2, why, &shape);
    if (rc == 0) rc = strict_json_number(object, place, "begin", LAYOUT_TOTAL_MAX, why, &begin);
    if (rc == 0) rc = strict_json_number(object, place, "end", LAYOUT_TOTAL_MAX, why, &end);
    if (rc < 0) return rc;
    const size_t dims = json_array_size(shape);
    for (size_t i = 0; i < dims; i++) {
        const json_t *size = json_array_get(shape, i);
        sizes[2 - dims + i] = json_is_integer(size) && json_integer_value(size) > 0
                                  ? (uint64_t)json_integer_value(size)
                                  : 0;
    }
    if (dims == 1) rc = layout_add_vector(layout, name, sizes[1], LAYOUT_F32, why);
    else rc = layout_add_matrix(layout, name, sizes[0], sizes[1], LAYOUT_F32, why);
    if (rc < 0) return why_wrap(why, rc, "%s", place);
    const struct interval at = layout_interval(&layout->tensors[layout->count - 1]);
    if (at.begin == begin && at.end == end) return 0;
    return why_set(why, FAULT_RANGE,
                   "%s: tensor '%s' is said to be the elements %" PRIu64 " to %" PRIu64
                   "; by its shape and those before it it is %" PRIu64 " to %" PRIu64 "; refused",
                   place, name, begin, end, at.begin, at.end);
}

static int get_tensors(const json_t *root, const char *place, struct why *why,
                       struct layout *layout)
{
    const json_t *tensors;
    int rc = strict_json_array(root, place, "tensors", TENSORS_MAX, why, &tensors);
    if (rc < 0) return rc;
    const size_t count = json_array_size(tensors);
    struct layout_tensor *room = calloc(count + 1, sizeof *room);
    if (!room) return why_set(why, FAULT_MEMORY, "%s: %zu tensors", place, count);
    layout_init(layout, room, count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = add_tensor(json_array_get(tensors, i), place, why, layout);
    return rc;
}

int pieces_cut_unpack(const char *place, const char *text, size_t count, struct why *why,
                      struct pieces_meta *ret_meta)
{
    json_t *root;
    uint64_t workers;
    struct pieces_meta meta = { 0 };
    int rc = sealed_json_parse(place, "shoal cut", VERSION, text, count, why, &root);
    if (rc < 0) return rc;
    rc = strict_json_number(root, place, "workers", PIECES_WORKERS_MAX, why, &workers);
    if (rc == 0 && workers == 0)
        rc = why_set(why, FAULT_RANGE, "%s: 'workers' is 0, allowed is 1 to %d; refused", place,
                     PIECES_WORKERS_MAX);
    if (rc == 0) {
        meta.workers = (uint32_t)workers;
        rc = get_items(root, place, why, &meta);
    }
    if (rc == 0) rc = get_tensors(root, place, why, &meta.layout);
    json_decref(root);
    if (rc < 0) pieces_meta_clear(&meta);
    else *ret_meta = meta;
    return rc;
}

void pieces_meta_clear(struct pieces_meta *self)
{
    for (size_t i = 0; i < self->count; i++) free(self->items[i].begins);
    free(self->layout.tensors);
    *self = (struct pieces_meta){ 0 };
}

// ---- manifest -----------------------------------------------------------------------------------

int pieces_manifest_pack(const struct pieces_manifest *self, struct why *why, char **ret_text)
{
    json_t *roots = json_array();
    for (size_t i = 0; i < self->root_count; i++)
        json_array_append_new(roots, sealed_json_hash(&self->roots[i]));
    return dump(json_pack("{s: s, s: i, s: s, s: o, s: o, s: o, s: o, s: o, s: o}", "format",
                          "shoal pieces", "version", VERSION, "run", self->about.run,
                          "born_unix_ms", number(self->about.born_unix_ms), "step",
                          number(self->about.step), "attempt", number(self->about.attempt),
                          "written_unix_s", number(self->about.written_unix_s), "cut",
                          sealed_json_hash(&self->cut), "roots", roots),
                CHECKPOINT_MANIFEST, why, ret_text);
}

static int get_roots(const json_t *root, const char *place, struct why *why,
                     struct pieces_manifest *self)
{
    const json_t *roots;
    int rc =
        strict_json_array(root, place, "roots", PIECES_ITEMS_MAX * PIECES_WORKERS_MAX, why, &roots);
    if (rc < 0) return rc;
    const size_t count = json_array_size(roots);
    self->roots = calloc(count + 1, sizeof *self->roots);
    if (!self->roots) return why_set(why, FAULT_MEMORY, "%s: %zu roots", place, count);
    self->root_count = count;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(roots, i));
        if (!text || !hash_from_hex(text, &self->roots[i]))
            return why_set(why, FAULT_RANGE, "%s: root %zu is not 64 hexadecimal digits; refused",
                           place, i);
    }
    return 0;
}

static int get_manifest(const json_t *root, const char *place, struct why *why,
                        struct pieces_manifest *self)
{
    const char *run;
    int rc = strict_json_text(root, place, "run", CHECKPOINT_RUN_MAX, why, &run);
    if (rc == 0 && !dirfile_name_valid(run))
        rc = why_set(why, FAULT_FORMAT, "%s: run: its letters must be of A-Z a-z 0-9 . _ -", place);
    if (rc == 0)
        rc = strict_json_number(root, place, "born_unix_ms", CHECKPOINT_NUMBER_MAX, why,
                                &self->about.born_unix_ms);
    if (rc == 0)
        rc = strict_json_number(root, place, "step", CHECKPOINT_STEP_MAX, why, &self->about.step);
    if (rc == 0)
        rc = strict_json_number(root, place, "attempt", UINT32_MAX, why, &self->about.attempt);
    if (rc == 0)
        rc = strict_json_number(root, place, "written_unix_s", CHECKPOINT_NUMBER_MAX, why,
                                &self->about.written_unix_s);
    if (rc == 0) rc = sealed_json_get_hash(root, place, "cut", why, &self->cut);
    if (rc == 0) rc = get_roots(root, place, why, self);
    if (rc == 0) snprintf(self->about.run, sizeof self->about.run, "%s", run);
    return rc;
}

int pieces_manifest_unpack(const char *place, const char *text, size_t count, struct why *why,
                           struct pieces_manifest *ret_manifest)
{
    json_t *root;
    struct pieces_manifest manifest = { 0 };
    int rc = sealed_json_parse(place, "shoal pieces", VERSION, text, count, why, &root);
    if (rc < 0) return rc;
    rc = get_manifest(root, place, why, &manifest);
    json_decref(root);
    if (rc < 0) pieces_manifest_clear(&manifest);
    else *ret_manifest = manifest;
    return rc;
}

void pieces_manifest_clear(struct pieces_manifest *self)
{
    free(self->roots);
    *self = (struct pieces_manifest){ 0 };
}
