// The writing half of safetensors.h: the header as text, then the tensors in the order of the
// layout, read and converted a block at a time.
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/half.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats go to the file as they are in "
                                                          "memory");

struct block { // What is written at a time
    float floats[SAFETENSORS_BLOCK_FLOATS];
    uint16_t halves[SAFETENSORS_BLOCK_FLOATS];
};

static int read_memory(void *arg, uint64_t first, size_t count, float *room, struct why *why,
                       const float **ret_floats)
{
    (void)count, (void)room, (void)why;
    *ret_floats = (const float *)arg + first;
    return 0;
}

struct safetensors_source safetensors_from_memory(const float *values)
{
    return (struct safetensors_source){ read_memory, (void *)(uintptr_t)values };
}

static json_t *describe(const struct layout_tensor *tensor, uint64_t begin, uint64_t end)
{
    json_t *shape = tensor->dims == 2
                        ? json_pack("[I, I]", (json_int_t)tensor->rows, (json_int_t)tensor->cols)
                        : json_pack("[I]", (json_int_t)tensor->cols);
    return json_pack("{s: s, s: o, s: [I, I]}", "dtype", layout_dtype_name(tensor->dtype), "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

// The header as text, padded with spaces to a multiple of 8 so that the data is aligned. The caller
// frees.
static int make_header(const char *name, const struct layout *layout,
                       const struct safetensors_note *notes, size_t note_count, struct why *why,
                       char **ret_text, size_t *ret_count)
{
    json_t *root = json_object(), *pairs = json_pack("{s: s}", "format", "pt");
    int bad = json_object_set(root, "__metadata__", pairs);
    uint64_t reached = 0;
    for (size_t i = 0; i < note_count; i++)
        bad |= json_object_set_new(pairs, notes[i].key, json_string(notes[i].value));
    json_decref(pairs);
    for (size_t i = 0; i < layout->count; i++) {
        const struct layout_tensor *tensor = &layout->tensors[i];
        const uint64_t count = tensor->rows * tensor->cols;
        const uint64_t end = reached + count * layout_dtype_bytes(tensor->dtype);
        bad |= json_object_set_new(root, tensor->name, describe(tensor, reached, end));
        reached = end;
    }
    const size_t count = bad ? 0 : json_dumpb(root, NULL, 0, JSON_COMPACT),
                 padded = (count + 7) / 8 * 8;
    char *text = count ? malloc(padded) : NULL;
    int rc = 0;
    if (bad)
        rc = why_set(why, FAULT_RANGE,
                     "%s: a note is not UTF-8, or memory is short; not "
                     "written",
                     name);
    else if (padded > SAFETENSORS_HEADER_MAX)
        rc = why_set(why, FAULT_LIMIT, "%s: the header has %zu bytes, allowed are %d; not written",
                     name, padded, SAFETENSORS_HEADER_MAX);
    else if (!text)
        rc = why_set(why, FAULT_MEMORY, "%s: a header of %zu bytes; not written", name, count);
    if (rc == 0) {
        memset(text, ' ', padded);
        json_dumpb(root, text, count, JSON_COMPACT);
        *ret_text = text;
        *ret_count = padded;
    } else {
        free(text);
    }
    json_decref(root);
    return rc;
}

static int write_tensor(struct dirfile *file, const struct layout_tensor *tensor,
                        const struct safetensors_source *source, struct block *block,
                        struct why *why)
{
    const uint64_t count = tensor->rows * tensor->cols;
    for (uint64_t done = 0; done < count;) {
        const uint64_t left = count - done;
        const size_t n = left < SAFETENSORS_BLOCK_FLOATS ? (size_t)left : SAFETENSORS_BLOCK_FLOATS;
        const float *from;
        int rc = source->read(source->arg, tensor->offset + done, n, block->floats, why, &from);
        if (rc < 0) return rc;
        if (tensor->dtype == LAYOUT_F32) rc = dirfile_add(file, from, n * sizeof *from, why);
        else {
            for (size_t i = 0; i < n; i++)
                block->halves[i] =
                    tensor->dtype == LAYOUT_BF16 ? half_to_bf16(from[i]) : half_to_f16(from[i]);
            rc = dirfile_add(file, block->halves, n * sizeof *block->halves, why);
        }
        if (rc < 0) return rc;
        done += n;
    }
    return 0;
}

int safetensors_write_at(int dir, const char *name, const struct layout *layout,
                         const struct safetensors_source *source,
                         const struct safetensors_note *notes, size_t note_count, struct why *why,
                         struct hash *ret_hash, uint64_t *ret_bytes)
{
    char *header = NULL;
    size_t count = 0;
    struct dirfile file;
    int rc = make_header(name, layout, notes, note_count, why, &header, &count);
    if (rc < 0) return rc;
    struct block *block = malloc(sizeof *block); // Only what is written to takes memory
    rc = block ? dirfile_begin(&file, dir, name, why)
               : why_set(why, FAULT_MEMORY, "%s: not written", name);
    if (rc == 0) {
        const uint64_t length = count;
        rc = dirfile_add(&file, &length, sizeof length, why);
        if (rc == 0) rc = dirfile_add(&file, header, count, why);
        for (size_t i = 0; i < layout->count && rc == 0; i++)
            rc = write_tensor(&file, &layout->tensors[i], source, block, why);
        if (rc < 0) dirfile_abandon(&file);
        else rc = dirfile_end(&file, why, ret_hash, ret_bytes);
    }
    free(block);
    free(header);
    return rc;
}
