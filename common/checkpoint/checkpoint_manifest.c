// checkpoint_manifest -- packing writes the tree, hashes the text and adds the hash as the last
// value. Unpacking parses strictly, checks the version, then packs the tree again and compares it
// byte for byte with the text; only then are the fields read, each against its range.

#include "common/base/sealed_json.h"
#include "common/base/strict_json.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "shoal checkpoint";

static bool run_valid(const char *run)
{
    return dirfile_name_valid(run) && strlen(run) <= CHECKPOINT_RUN_MAX;
}

static int out_of_range(const char *field, uint64_t value, uint64_t max, struct why *why)
{
    return why_set(why, FAULT_RANGE,
                   "checkpoint: %s is %" PRIu64 ", allowed is 0 to %" PRIu64 "; "
                   "refused",
                   field, value, max);
}

static int check_list(const char *key, const struct interval *list, size_t count, uint64_t end_max,
                      struct why *why)
{
    char field[64];
    if (!interval_list_tidy(list, count))
        return why_set(why, FAULT_RANGE,
                       "checkpoint: the intervals in '%s' are empty, overlap or are "
                       "out of order; refused",
                       key);
    if (count == 0 || list[count - 1].end <= end_max) return 0;
    snprintf(field, sizeof field, "the end of the last interval in '%s'", key);
    return out_of_range(field, list[count - 1].end, end_max, why);
}

// The first sample that is in both tidy lists. False: none is.
static bool find_common(const struct checkpoint_info *info, uint64_t *ret_sample)
{
    for (size_t d = 0, f = 0; d < info->done_count && f < info->failed_count;) {
        const struct interval done = info->done[d], failed = info->failed[f];
        const struct interval common = interval_meet(done, failed);
        *ret_sample = common.begin;
        if (!interval_empty(common)) return true;
        if (done.end <= failed.begin) d++;
        else f++;
    }
    return false;
}

int checkpoint_manifest_check(const struct checkpoint_info *info, struct why *why)
{
    const struct {
        const char *name;
        uint64_t value, max;
    } fields[] = {
        { "step", info->step, CHECKPOINT_STEP_MAX },
        { "epoch", info->epoch, CHECKPOINT_NUMBER_MAX },
        { "born_unix_ms", info->born_unix_ms, CHECKPOINT_NUMBER_MAX },
        { "created_unix_s", info->created_unix_s, CHECKPOINT_NUMBER_MAX },
        { "protocol", info->protocol, CHECKPOINT_NUMBER_MAX },
        { "pass", info->pass, CHECKPOINT_NUMBER_MAX },
        { "pass_length", info->pass_length, CHECKPOINT_NUMBER_MAX },
        { "cursor", info->cursor, info->pass_length },
        { "the number of intervals in 'done'", info->done_count, CHECKPOINT_DONE_MAX },
        { "the number of intervals in 'failed'", info->failed_count, CHECKPOINT_DONE_MAX },
    };
    uint64_t common;
    if (!memchr(info->run, 0, sizeof info->run) || !run_valid(info->run))
        return why_set(why, FAULT_RANGE,
                       "checkpoint: a run's id is 1 to %d of A-Z a-z 0-9 . _ - "
                       "and does not begin with a dot or dash; refused",
                       CHECKPOINT_RUN_MAX);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].value > fields[i].max)
            return out_of_range(fields[i].name, fields[i].value, fields[i].max, why);
    }
    int rc = check_list("done", info->done, info->done_count, info->pass_length, why);
    if (rc == 0) rc = check_list("failed", info->failed, info->failed_count, info->cursor, why);
    if (rc == 0 && find_common(info, &common))
        rc = why_set(why, FAULT_RANGE,
                     "checkpoint: sample %" PRIu64 " is in 'done' and in 'failed'; "
                     "refused",
                     common);
    return rc;
}

const struct checkpoint_record *checkpoint_manifest_find(const struct checkpoint_manifest *self,
                                                         const char *name)
{
    for (size_t i = 0; i < self->file_count; i++) {
        if (strcmp(self->files[i].name, name) == 0) return &self->files[i];
    }
    return NULL;
}

// ---- To text ----

static json_t *number(uint64_t value) { return json_integer((json_int_t)value); }

// NULL: no memory. A list that lacks one would be taken for whole.
static json_t *append(json_t *array, json_t *value)
{
    if (array && json_array_append_new(array, value) == 0) return array;
    json_decref(array);
    return NULL;
}

static json_t *pack_list(const struct interval *list, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        array = append(array, json_pack("[o, o]", number(list[i].begin), number(list[i].end)));
    return array;
}

static json_t *pack_data(const struct checkpoint_info *info)
{
    json_t *data = json_pack("{s: o, s: o, s: o, s: o}", "pass", number(info->pass), "pass_length",
                             number(info->pass_length), "cursor", number(info->cursor), "done",
                             pack_list(info->done, info->done_count));
    if (info->failed_count == 0) return data;
    json_t *failed = pack_list(info->failed, info->failed_count);
    if (json_object_set_new(data, "failed", failed) == 0) return data;
    json_decref(data);
    return NULL;
}

static json_t *pack_state(const struct checkpoint_manifest *self)
{
    json_t *state = json_array();
    for (size_t i = 0; i < self->item_count; i++) {
        const struct tags_item *item = &self->items[i];
        state = append(state, json_pack("{s: s, s: s, s: o, s: o, s: b}", "name", item->name, "tag",
                                        tags_tag_name(item->tag), "elements",
                                        number(item->elements), "element_bytes",
                                        number(item->element_bytes), "saved", (int)self->saved[i]));
    }
    return state;
}

static json_t *pack_files(const struct checkpoint_manifest *self)
{
    json_t *files = json_array();
    for (size_t i = 0; i < self->file_count; i++) {
        const struct checkpoint_record *file = &self->files[i];
        files =
            append(files, json_pack("{s: s, s: o, s: o}", "name", file->name, "bytes",
                                    number(file->bytes), "sha256", sealed_json_hash(&file->hash)));
    }
    return files;
}

int checkpoint_manifest_pack(const struct checkpoint_manifest *self, struct why *why,
                             char **ret_text, size_t *ret_count)
{
    const struct checkpoint_info *info = &self->info;
    const bool has_more = !hash_is_none(&info->params) && !hash_equal(&info->params, &info->digest);
    json_t *root = json_pack(
        "{s: s, s: i, s: o, s: s, s: o*, s: o, s: o, s: o, s: o*, s: o, s: o, s: o, s: o, s: o}",
        "format", format, "version", CHECKPOINT_VERSION, "protocol", number(info->protocol), "run",
        info->run, "born_unix_ms", info->born_unix_ms ? number(info->born_unix_ms) : NULL, "epoch",
        number(info->epoch), "step", number(info->step), "digest", sealed_json_hash(&info->digest),
        "parameters", has_more ? sealed_json_hash(&info->params) : NULL, "layout",
        sealed_json_hash(&info->layout), "created_unix_s", number(info->created_unix_s), "data",
        pack_data(info), "state", pack_state(self), "files", pack_files(self));
    char *text = root ? sealed_json_dump(root) : NULL;
    json_decref(root);
    if (!text) return why_set(why, FAULT_MEMORY, "%s: no memory to write it", CHECKPOINT_MANIFEST);
    *ret_text = text;
    *ret_count = strlen(text);
    return 0;
}

// ---- From text ----

// After a fault, too, the list that it leaves is to be freed.
static int get_list(const json_t *data, const char *place, const char *key, struct why *why,
                    const struct interval **ret_list, size_t *ret_count)
{
    const json_t *array;
    const int rc = strict_json_array(data, place, key, CHECKPOINT_DONE_MAX, why, &array);
    if (rc < 0) return rc;
    const size_t count = json_array_size(array);
    struct interval *list = calloc(count + 1, sizeof *list);
    if (!list) return why_set(why, FAULT_MEMORY, "%s: %zu intervals; not read", place, count);
    *ret_list = list;
    *ret_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(array, i);
        const json_t *begin = json_array_get(pair, 0), *end = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
            json_integer_value(begin) < 0 || json_integer_value(end) < 0)
            return why_set(why, FAULT_FORMAT,
                           "%s: interval %zu in '%s' is not a pair of numbers; "
                           "refused",
                           place, i, key);
        list[i] = (struct interval){ (uint64_t)json_integer_value(begin),
                                     (uint64_t)json_integer_value(end) };
    }
    return 0;
}

static int get_info(const json_t *root, const char *place, struct why *why,
                    struct checkpoint_info *info)
{
    const json_t *data = json_object_get(root, "data");
    const struct {
        const json_t *object;
        const char *key;
        uint64_t *ret;
    } numbers[] = {
        { root, "protocol", &info->protocol }, { root, "epoch", &info->epoch },
        { root, "step", &info->step },         { root, "created_unix_s", &info->created_unix_s },
        { data, "pass", &info->pass },         { data, "pass_length", &info->pass_length },
        { data, "cursor", &info->cursor },
    };
    const char *run;
    int rc = strict_json_text(root, place, "run", CHECKPOINT_RUN_MAX, why, &run);
    if (rc < 0) return rc;
    snprintf(info->run, sizeof info->run, "%s", run);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == 0; i++)
        rc = strict_json_number(numbers[i].object, place, numbers[i].key, CHECKPOINT_NUMBER_MAX,
                                why, numbers[i].ret);
    if (rc == 0) rc = sealed_json_get_hash(root, place, "digest", why, &info->digest);
    if (rc == 0 && json_object_get(root, "born_unix_ms"))
        rc = strict_json_number(root, place, "born_unix_ms", CHECKPOINT_NUMBER_MAX, why,
                                &info->born_unix_ms);
    info->params = info->digest;
    if (rc == 0 && json_object_get(root, "parameters"))
        rc = sealed_json_get_hash(root, place, "parameters", why, &info->params);
    if (rc == 0) rc = sealed_json_get_hash(root, place, "layout", why, &info->layout);
    if (rc == 0) rc = get_list(data, place, "done", why, &info->done, &info->done_count);
    if (rc == 0 && json_object_get(data, "failed"))
        rc = get_list(data, place, "failed", why, &info->failed, &info->failed_count);
    return rc < 0 ? rc : checkpoint_manifest_check(info, why);
}

static int get_state(const json_t *root, const char *place, struct why *why,
                     struct checkpoint_manifest *self)
{
    const json_t *array;
    struct tags state;
    int rc = strict_json_array(root, place, "state", CHECKPOINT_ITEMS_MAX, why, &array);
    tags_init(&state, self->items, CHECKPOINT_ITEMS_MAX);
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++) {
        const json_t *object = json_array_get(array, i), *saved = json_object_get(object, "saved");
        const char *name, *tag;
        uint64_t elements, element_bytes;
        rc = strict_json_text(object, place, "name", TAGS_NAME_MAX, why, &name);
        if (rc == 0) rc = strict_json_text(object, place, "tag", 16, why, &tag);
        if (rc == 0)
            rc = strict_json_number(object, place, "elements", CHECKPOINT_NUMBER_MAX, why,
                                    &elements);
        if (rc == 0)
            rc =
                strict_json_number(object, place, "element_bytes", UINT32_MAX, why, &element_bytes);
        if (rc == 0 && !json_is_boolean(saved))
            rc = why_set(why, FAULT_FORMAT, "%s: 'saved' is not true or false; refused", place);
        if (rc == 0)
            rc = tags_add(&state, name, tags_tag_from_name(tag), elements, (uint32_t)element_bytes,
                          why);
        self->saved[i] = json_is_true(saved);
    }
    self->item_count = state.count;
    return rc;
}

static int get_files(const json_t *root, const char *place, struct why *why,
                     struct checkpoint_manifest *self)
{
    const json_t *array;
    int rc = strict_json_array(root, place, "files", CHECKPOINT_FILES_MAX, why, &array);
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++) {
        const json_t *object = json_array_get(array, i);
        struct checkpoint_record *file = &self->files[i];
        const char *name;
        rc = strict_json_text(object, place, "name", DIRFILE_NAME_MAX, why, &name);
        if (rc == 0)
            rc = strict_json_number(object, place, "bytes", CHECKPOINT_NUMBER_MAX, why,
                                    &file->bytes);
        if (rc == 0) rc = sealed_json_get_hash(object, place, "sha256", why, &file->hash);
        if (rc < 0) break;
        if (!dirfile_name_valid(name) || checkpoint_manifest_find(self, name))
            return why_set(why, FAULT_RANGE,
                           "%s: the name of file %zu is not 1 to %d of A-Z a-z "
                           "0-9 . _ - and does not begin with a dot or dash, or is there "
                           "twice; refused",
                           place, i, DIRFILE_NAME_MAX);
        snprintf(file->name, sizeof file->name, "%s", name);
        self->file_count = i + 1;
    }
    return rc;
}

int checkpoint_manifest_unpack(const char *place, const char *text, size_t count, struct why *why,
                               struct checkpoint_manifest *ret_manifest)
{
    json_t *root;
    int rc = sealed_json_parse(place, format, CHECKPOINT_VERSION, text, count, why, &root);
    *ret_manifest = (struct checkpoint_manifest){ .file_count = 0 };
    if (rc < 0) return rc;
    rc = get_info(root, place, why, &ret_manifest->info);
    if (rc == 0) rc = get_state(root, place, why, ret_manifest);
    if (rc == 0) rc = get_files(root, place, why, ret_manifest);
    json_decref(root);
    if (rc < 0) checkpoint_manifest_clear(ret_manifest);
    return rc;
}

void checkpoint_manifest_clear(struct checkpoint_manifest *self)
{
    free((void *)(uintptr_t)self->info.done);
    free((void *)(uintptr_t)self->info.failed);
    self->info.done = self->info.failed = NULL;
    self->info.done_count = self->info.failed_count = 0;
}
