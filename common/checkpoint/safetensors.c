// safetensors -- opening reads each header and checks it completely before anything is loaded: the
// length, the JSON, each tensor's name, type, shape and place, then that the tensors tile the data,
// then that files and index agree. Loading compares names and shapes with the layout, then reads
// only the bytes it needs, a block at a time. Writing: safetensors_write.c.

#include "common/checkpoint/safetensors.h"
#include "common/base/ensure.h"
#include "common/base/strict_json.h"
#include "common/checkpoint/half.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats go to the file as they are in "
                                                          "memory");

enum {
    LENGTH_BYTES = 8,
    HEADER_DEPTH_MAX = 3,
    HEADER_VALUES_MAX = 1 << 20,
    INDEX_DEPTH_MAX = 4,
    INDEX_VALUES_MAX = 1 << 18,
    BLOCK_FLOATS = 1 << 18, // Converted at a time
};
static const char notes_key[] = "__metadata__", index_suffix[] = ".index.json";

struct file {
    int fd;
    char name[DIRFILE_NAME_MAX + 1];
    uint64_t data_begin, data_bytes;
};

struct safetensors {
    struct safetensors_tensor *tensors; // Sorted by name once all files are read
    size_t count;
    json_t *notes; // __metadata__ of the first file that has one, or NULL
    size_t file_count;
    struct file files[SAFETENSORS_FILES_MAX];
};

// ---- Header ----

static int parse_dtype(const json_t *object, const char *place, struct why *why, uint8_t *ret_dtype)
{
    const char *text;
    char shown[STRICT_JSON_SHOWN];
    const int rc = strict_json_text(object, place, "dtype", 16, why, &text);
    if (rc < 0) return rc;
    for (enum layout_dtype dtype = 0; dtype < LAYOUT_DTYPES; dtype++) {
        if (strcmp(text, layout_dtype_name(dtype)) == 0) {
            *ret_dtype = (uint8_t)dtype;
            return 0;
        }
    }
    return why_set(why, FAULT_UNSUPPORTED,
                   "%s: dtype is '%s', supported are F32, BF16 and F16; "
                   "refused",
                   place, strict_json_shown(text, shown));
}

// A list of whole numbers, each at most 2^53, so that every JSON reader reads the same number.
static int parse_numbers(const json_t *object, const char *place, const char *key, size_t count_max,
                         struct why *why, uint64_t *ret_numbers, size_t *ret_count)
{
    const json_t *array;
    const int rc = strict_json_array(object, place, key, count_max, why, &array);
    if (rc < 0) return rc;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        const json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < 0 || number > (json_int_t)1 << 53)
            return why_set(why, FAULT_RANGE,
                           "%s: entry %zu of '%s' is not a whole number of 0 to "
                           "2^53; refused",
                           place, i, key);
        ret_numbers[i] = (uint64_t)number;
    }
    *ret_count = json_array_size(array);
    return 0;
}

// Elements of a shape; false beyond LAYOUT_TOTAL_MAX.
static bool shape_elements(const uint64_t *shape, size_t dims, uint64_t *ret_elements)
{
    uint64_t elements = 1;
    for (size_t i = 0; i < dims; i++) {
        if (shape[i] && elements > LAYOUT_TOTAL_MAX / shape[i]) return false;
        elements *= shape[i];
    }
    *ret_elements = elements;
    return true;
}

static int parse_tensor(const char *name, const json_t *object, const struct file *file,
                        struct why *why, struct safetensors_tensor *ret_tensor)
{
    struct safetensors_tensor tensor = { .dtype = 0 };
    char place[DIRFILE_NAME_MAX + STRICT_JSON_SHOWN + 16], shown[STRICT_JSON_SHOWN];
    uint64_t offsets[2], elements;
    size_t dims, two;
    snprintf(place, sizeof place, "%s: tensor '%s'", file->name, strict_json_shown(name, shown));
    if (!layout_name_valid(name))
        return why_set(why, FAULT_RANGE,
                       "%s: a name is 1 to %d printable ASCII characters without "
                       "space, quote or backslash; refused",
                       place, LAYOUT_NAME_MAX);
    if (!json_is_object(object) || json_object_size(object) != 3)
        return why_set(why, FAULT_FORMAT,
                       "%s is not described by exactly dtype, shape and "
                       "data_offsets; refused",
                       place);
    int rc = parse_dtype(object, place, why, &tensor.dtype);
    if (rc == 0)
        rc = parse_numbers(object, place, "shape", SAFETENSORS_DIMS_MAX, why, tensor.shape, &dims);
    if (rc == 0) rc = parse_numbers(object, place, "data_offsets", 2, why, offsets, &two);
    if (rc < 0) return rc;
    if (two != 2 || offsets[0] > offsets[1] || offsets[1] > file->data_bytes)
        return why_set(why, FAULT_RANGE,
                       "%s: data_offsets must be two, ascending and within the "
                       "%" PRIu64 " bytes of data; the file is cut short or not what it claims; "
                       "refused",
                       place, file->data_bytes);
    if (!shape_elements(tensor.shape, dims, &elements))
        return why_set(why, FAULT_RANGE, "%s: the shape has more than 2^48 elements; refused",
                       place);
    if (offsets[1] - offsets[0] != elements * layout_dtype_bytes(tensor.dtype))
        return why_set(why, FAULT_FORMAT,
                       "%s: data_offsets span %" PRIu64 " bytes, shape and "
                       "dtype need %" PRIu64 "; refused",
                       place, offsets[1] - offsets[0], elements * layout_dtype_bytes(tensor.dtype));
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    tensor.dims = (uint8_t)dims;
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    *ret_tensor = tensor;
    return 0;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct safetensors_tensor *s = a, *t = b;
    if (s->begin != t->begin) return s->begin < t->begin ? -1 : 1;
    return s->end < t->end ? -1 : s->end > t->end;
}

// The tensors of a file must tile its data: every byte belongs to exactly one tensor.
static int check_tiling(const struct file *file, struct safetensors_tensor *tensors, size_t count,
                        struct why *why)
{
    uint64_t reached = 0;
    if (count) qsort(tensors, count, sizeof *tensors, compare_offsets);
    for (size_t i = 0; i < count; i++) {
        if (tensors[i].begin != reached)
            return why_set(why, FAULT_FORMAT,
                           "%s: tensor '%s' begins at byte %" PRIu64 " of the "
                           "data, the one before it ends at %" PRIu64 ": %s; refused",
                           file->name, tensors[i].name, tensors[i].begin, reached,
                           tensors[i].begin < reached ? "they overlap" : "a hole");
        reached = tensors[i].end;
    }
    if (reached != file->data_bytes)
        return why_set(why, FAULT_FORMAT,
                       "%s: the tensors end at byte %" PRIu64 " of %" PRIu64 " "
                       "bytes of data; refused",
                       file->name, reached, file->data_bytes);
    return 0;
}

static int keep_notes(struct safetensors *self, const char *place, json_t *notes, struct why *why)
{
    const char *key;
    json_t *value;
    if (!json_is_object(notes))
        return why_set(why, FAULT_FORMAT, "%s: __metadata__ is not an object; refused", place);
    json_object_foreach(notes, key, value)
    {
        char shown[STRICT_JSON_SHOWN];
        if (!json_is_string(value))
            return why_set(why, FAULT_FORMAT, "%s: '%s' of __metadata__ is not a text; refused",
                           place, strict_json_shown(key, shown));
    }
    if (!self->notes) self->notes = json_incref(notes);
    return 0;
}

// Appends the tensors of file number `index`, whose header is `root`.
static int take_header(struct safetensors *self, size_t index, json_t *root, struct why *why)
{
    const struct file *file = &self->files[index];
    const char *key;
    json_t *value;
    json_t *notes = json_object_get(root, notes_key);
    const size_t count = json_object_size(root) - (notes ? 1 : 0), first = self->count;
    int rc = notes ? keep_notes(self, file->name, notes, why) : 0;
    if (rc < 0) return rc;
    if (count > SAFETENSORS_TENSORS_MAX - self->count)
        return why_set(why, FAULT_LIMIT, "%s: %zu tensors after %zu, allowed are %d; refused",
                       file->name, count, self->count, SAFETENSORS_TENSORS_MAX);
    struct safetensors_tensor *grown = realloc(self->tensors, (first + count + 1) * sizeof *grown);
    if (!grown) return why_set(why, FAULT_MEMORY, "%s: %zu tensors; not read", file->name, count);
    self->tensors = grown;
    json_object_foreach(root, key, value)
    {
        if (value == notes) continue;
        rc = parse_tensor(key, value, file, why, &grown[self->count]);
        if (rc < 0) return rc;
        grown[self->count++].file = (uint16_t)index;
    }
    return check_tiling(file, grown + first, count, why);
}

static int read_header(struct safetensors *self, size_t index, uint64_t size, struct why *why)
{
    struct file *file = &self->files[index];
    uint64_t length;
    if (size < LENGTH_BYTES)
        return why_set(why, FAULT_FORMAT,
                       "%s: %" PRIu64 " bytes are too few for a safetensors "
                       "file; refused",
                       file->name, size);
    int rc = dirfile_read(file->fd, file->name, 0, &length, sizeof length, why);
    if (rc < 0) return rc;
    if (length > SAFETENSORS_HEADER_MAX)
        return why_set(why, FAULT_LIMIT,
                       "%s: the header claims %" PRIu64 " bytes, allowed are %d; "
                       "refused",
                       file->name, length, SAFETENSORS_HEADER_MAX);
    if (length > size - LENGTH_BYTES)
        return why_set(why, FAULT_FORMAT,
                       "%s: the header claims %" PRIu64 " bytes, the file has "
                       "%" PRIu64 " after the length: cut short or not what it claims; refused",
                       file->name, length, size - LENGTH_BYTES);
    file->data_begin = LENGTH_BYTES + length;
    file->data_bytes = size - file->data_begin;
    char *text = malloc((size_t)length + 1);
    if (!text)
        return why_set(why, FAULT_MEMORY, "%s: a header of %" PRIu64 " bytes; not read", file->name,
                       length);
    json_t *root = NULL;
    rc = dirfile_read(file->fd, file->name, LENGTH_BYTES, text, (size_t)length, why);
    if (rc == 0)
        rc = strict_json_parse(file->name, text, (size_t)length, HEADER_DEPTH_MAX,
                               HEADER_VALUES_MAX, why, &root);
    free(text);
    if (rc == 0) rc = take_header(self, index, root, why);
    json_decref(root);
    return rc;
}

// ---- Opening ----

static int open_file(struct safetensors *self, int dir, const char *name, bool follow,
                     struct why *why)
{
    struct file *file = &self->files[self->file_count];
    uint64_t size;
    int fd;
    snprintf(file->name, sizeof file->name, "%s", name);
    const int rc = dirfile_open(dir, name, follow, why, &fd, &size);
    if (rc < 0) return rc;
    file->fd = fd;
    return read_header(self, self->file_count++, size, why);
}

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_tensor *s = a, *t = b;
    return strcmp(s->name, t->name);
}

static size_t find_file(const struct safetensors *self, const char *name)
{
    size_t i = 0;
    while (i < self->file_count && strcmp(self->files[i].name, name) != 0) i++;
    return i;
}

// Opens every file that the map names once, in the order of their first mention.
static int open_mapped(struct safetensors *self, int dir, const char *place, bool follow,
                       const json_t *map, struct why *why)
{
    const char *key;
    const json_t *value;
    char shown[STRICT_JSON_SHOWN];
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        const char *name = json_string_value(value);
        if (!name || !dirfile_name_valid(name))
            return why_set(why, FAULT_RANGE,
                           "%s: tensor '%s' is said to be in a file whose name "
                           "is not 1 to %d of A-Z a-z 0-9 . _ -; refused",
                           place, strict_json_shown(key, shown), DIRFILE_NAME_MAX);
        if (find_file(self, name) < self->file_count) continue;
        if (self->file_count == SAFETENSORS_FILES_MAX)
            return why_set(why, FAULT_LIMIT, "%s: names more than %d files; refused", place,
                           SAFETENSORS_FILES_MAX);
        const int rc = open_file(self, dir, name, follow, why);
        if (rc < 0) return why_wrap(why, rc, "%s", place);
    }
    return 0;
}

// The map and the files must agree, tensor by tensor. self->tensors is sorted.
static int check_map(const struct safetensors *self, const char *place, const json_t *map,
                     struct why *why)
{
    const char *key;
    const json_t *value;
    char shown[STRICT_JSON_SHOWN];
    for (size_t i = 0; i < self->count; i++) {
        const struct safetensors_tensor *tensor = &self->tensors[i];
        const char *file = self->files[tensor->file].name;
        const char *named = json_string_value(json_object_get(map, tensor->name));
        if (!named || strcmp(named, file) != 0)
            return why_set(why, FAULT_FORMAT,
                           "%s: tensor '%s' is in %s, the index says %s; "
                           "refused",
                           place, tensor->name, file, named ? named : "nothing of it");
    }
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        if (!safetensors_find(self, key))
            return why_set(why, FAULT_FORMAT,
                           "%s: tensor '%s' is not in %s, where the index says "
                           "it is; refused",
                           place, strict_json_shown(key, shown), json_string_value(value));
    }
    return 0;
}

static void sort_names(struct safetensors *self)
{
    if (self->count) qsort(self->tensors, self->count, sizeof *self->tensors, compare_names);
}

static int open_index(struct safetensors *self, int dir, const char *name, bool follow,
                      struct why *why)
{
    char *text;
    size_t count;
    json_t *root = NULL;
    int rc = dirfile_slurp(dir, name, follow, SAFETENSORS_INDEX_MAX, why, &text, &count);
    if (rc < 0) return rc;
    rc = strict_json_parse(name, text, count, INDEX_DEPTH_MAX, INDEX_VALUES_MAX, why, &root);
    free(text);
    if (rc < 0) return rc;
    const json_t *map = json_object_get(root, "weight_map");
    if (!json_is_object(map))
        rc = why_set(why, FAULT_FORMAT, "%s: there is no object 'weight_map'; refused", name);
    if (rc == 0) rc = open_mapped(self, dir, name, follow, map, why);
    if (rc == 0) {
        sort_names(self);
        rc = check_map(self, name, map, why);
    }
    json_decref(root);
    return rc;
}

int safetensors_open_at(int dir, const char *name, bool follow, struct why *why,
                        safetensors_t **ret_set)
{
    const size_t length = strlen(name), suffix = sizeof index_suffix - 1;
    const bool index = length > suffix && strcmp(name + length - suffix, index_suffix) == 0;
    struct safetensors *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "%s: not opened", name);
    const int rc =
        index ? open_index(self, dir, name, follow, why) : open_file(self, dir, name, follow, why);
    if (rc < 0) {
        safetensors_close(&self);
        return rc;
    }
    sort_names(self);
    *ret_set = self;
    return 0;
}

void safetensors_close(safetensors_t **self)
{
    if (!*self) return;
    for (size_t i = 0; i < (*self)->file_count; i++) close((*self)->files[i].fd);
    json_decref((*self)->notes);
    free((*self)->tensors);
    free(*self);
    *self = NULL;
}

size_t safetensors_count(const safetensors_t *self) { return self->count; }

const struct safetensors_tensor *safetensors_tensor(const safetensors_t *self, size_t i)
{
    ensure(i < self->count);
    return &self->tensors[i];
}

const struct safetensors_tensor *safetensors_find(const safetensors_t *self, const char *name)
{
    size_t low = 0, high = self->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, self->tensors[middle].name);
        if (order == 0) return &self->tensors[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

const char *safetensors_note(const safetensors_t *self, const char *key)
{
    return json_string_value(json_object_get(self->notes, key));
}

void safetensors_forget(safetensors_t *self, const struct safetensors_tensor *tensor)
{
    const size_t i = (size_t)(tensor - self->tensors);
    ensure(i < self->count);
    memmove(self->tensors + i, self->tensors + i + 1, (self->count - i - 1) * sizeof *tensor);
    self->count--;
}

// ---- Loading ----

enum { SHAPE_TEXT = 24 * SAFETENSORS_DIMS_MAX };

static const char *shape_text(const uint64_t *shape, size_t dims, char text[SHAPE_TEXT])
{
    int used = snprintf(text, SHAPE_TEXT, "[");
    for (size_t i = 0; i < dims; i++)
        used +=
            snprintf(text + used, SHAPE_TEXT - (size_t)used, "%s%" PRIu64, i ? ", " : "", shape[i]);
    snprintf(text + used, SHAPE_TEXT - (size_t)used, "]");
    return text;
}

static int match_tensor(const safetensors_t *self, const struct layout_tensor *wanted,
                        struct why *why)
{
    const struct safetensors_tensor *found = safetensors_find(self, wanted->name);
    const uint64_t matrix[2] = { wanted->rows, wanted->cols };
    const uint64_t *shape = wanted->dims == 2 ? matrix : matrix + 1;
    char has[SHAPE_TEXT], wants[SHAPE_TEXT];
    if (!found)
        return why_set(why, FAULT_FORMAT, "%s: tensor '%s' is missing; nothing loaded",
                       self->files[0].name, wanted->name);
    if (found->dims != wanted->dims ||
        memcmp(found->shape, shape, wanted->dims * sizeof *shape) != 0)
        return why_set(why, FAULT_FORMAT,
                       "%s: tensor '%s' has shape %s, the model wants %s; "
                       "nothing loaded",
                       self->files[found->file].name, found->name,
                       shape_text(found->shape, found->dims, has),
                       shape_text(shape, wanted->dims, wants));
    return 0;
}

int safetensors_match(const safetensors_t *self, const struct layout *layout, struct why *why)
{
    if (!self->file_count)
        return why_set(why, FAULT_FORMAT,
                       "the index names no file; nothing "
                       "loaded");
    for (size_t i = 0; i < layout->count; i++) {
        const int rc = match_tensor(self, &layout->tensors[i], why);
        if (rc < 0) return rc;
    }
    for (size_t i = 0; i < self->count && self->count != layout->count; i++) {
        if (!layout_find(layout, self->tensors[i].name))
            return why_set(why, FAULT_FORMAT,
                           "%s: tensor '%s' is unexpected, the model has none "
                           "of that name; nothing loaded",
                           self->files[self->tensors[i].file].name, self->tensors[i].name);
    }
    return 0;
}

static void widen(enum layout_dtype dtype, const uint16_t *from, size_t count, float *to)
{
    if (dtype == LAYOUT_BF16)
        for (size_t i = 0; i < count; i++) to[i] = half_from_bf16(from[i]);
    else
        for (size_t i = 0; i < count; i++) to[i] = half_from_f16(from[i]);
}

int safetensors_read(const safetensors_t *self, const struct safetensors_tensor *tensor,
                     uint64_t first, uint64_t count, float *values, struct why *why)
{
    const struct file *file = &self->files[tensor->file];
    const unsigned bytes = layout_dtype_bytes(tensor->dtype);
    const uint64_t offset = file->data_begin + tensor->begin + first * bytes;
    ensure(first + count <= (tensor->end - tensor->begin) / bytes);
    if (tensor->dtype == LAYOUT_F32)
        return dirfile_read(file->fd, file->name, offset, values, (size_t)count * sizeof *values,
                            why);
    uint16_t *block = malloc(BLOCK_FLOATS * sizeof *block);
    int rc = block ? 0 : why_set(why, FAULT_MEMORY, "%s: not loaded", file->name);
    for (uint64_t done = 0; rc == 0 && done < count;) {
        const size_t n = count - done < BLOCK_FLOATS ? (size_t)(count - done) : BLOCK_FLOATS;
        rc = dirfile_read(file->fd, file->name, offset + done * bytes, block, n * bytes, why);
        if (rc == 0) widen(tensor->dtype, block, n, values + done);
        done += n;
    }
    free(block);
    return rc;
}

int safetensors_load(const safetensors_t *self, const struct layout *layout, struct interval want,
                     float *values, struct why *why)
{
    ensure(interval_contains((struct interval){ 0, layout->total }, want));
    int rc = safetensors_match(self, layout, why);
    for (size_t i = 0; i < layout->count && rc == 0; i++) {
        const struct layout_tensor *wanted = &layout->tensors[i];
        const struct interval part = interval_meet(layout_interval(wanted), want);
        if (interval_empty(part)) continue;
        rc = safetensors_read(self, safetensors_find(self, wanted->name),
                              part.begin - wanted->offset, interval_length(part),
                              values + (part.begin - want.begin), why);
    }
    return rc;
}
