// hf_folder -- reading opens the file or the index, drops tables that no model needs, sets a tied
// head aside, loads the rest, then compares the head with the embedding and the digest with the
// file's note. Writing first checks that every number fits its type, then cuts the tensors into
// files, then writes the files and the index.

#include "common/checkpoint/hf_folder.h"
#include "common/base/ensure.h"
#include "common/checkpoint/half.h"
#include "common/crypto/merkle.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_FLOATS = 1 << 16, NAME = 64 };

static const char head_name[] = "lm_head.weight", embedding_name[] = "model.embed_tokens.weight",
                  table_suffix[] = ".rotary_emb.inv_freq";

const char *const hf_folder_beside[] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
    NULL,
};

// ---- Reading ----

static int open_weights(int dir, struct why *why, safetensors_t **ret_set)
{
    int rc = safetensors_open_at(dir, HF_FOLDER_WEIGHTS, true, why, ret_set);
    if (rc != FAULT_NOT_FOUND) return rc;
    if (faccessat(dir, HF_FOLDER_INDEX, F_OK, 0) < 0)
        return why_set(why, FAULT_NOT_FOUND, "neither %s nor %s is there%s; nothing loaded",
                       HF_FOLDER_WEIGHTS, HF_FOLDER_INDEX,
                       faccessat(dir, "pytorch_model.bin", F_OK, 0) == 0
                           ? " (pytorch_model.bin is a program and is not read: convert it)"
                           : "");
    return safetensors_open_at(dir, HF_FOLDER_INDEX, true, why, ret_set);
}

static void forget_tables(safetensors_t *set)
{
    for (size_t i = safetensors_count(set); i-- > 0;) {
        const struct safetensors_tensor *tensor = safetensors_tensor(set, i);
        const size_t length = strlen(tensor->name), suffix = sizeof table_suffix - 1;
        if (length > suffix && strcmp(tensor->name + length - suffix, table_suffix) == 0)
            safetensors_forget(set, tensor);
    }
}

// If the layout has no head but the files do, the head is taken out of the set; it is compared with
// the embedding when everything is loaded.
static bool take_tied_head(safetensors_t *set, const struct layout *layout,
                           struct safetensors_tensor *ret_head)
{
    const struct safetensors_tensor *head = safetensors_find(set, head_name);
    if (!head || layout_find(layout, head_name) || !layout_find(layout, embedding_name))
        return false;
    *ret_head = *head;
    safetensors_forget(set, head);
    return true;
}

static int compare_head(const safetensors_t *set, const struct layout *layout,
                        const struct safetensors_tensor *head, const float *params, struct why *why)
{
    const struct layout_tensor *embedding = layout_find(layout, embedding_name);
    const uint64_t count = embedding->rows * embedding->cols;
    float *block = malloc(BLOCK_FLOATS * sizeof *block);
    if (!block) return why_set(why, FAULT_MEMORY, "%s: not compared", head_name);
    bool same =
        head->dims == 2 && head->shape[0] == embedding->rows && head->shape[1] == embedding->cols;
    int rc = 0;
    for (uint64_t done = 0; rc == 0 && same && done < count; done += BLOCK_FLOATS) {
        const size_t n = count - done < BLOCK_FLOATS ? (size_t)(count - done) : BLOCK_FLOATS;
        rc = safetensors_read(set, head, done, n, block, why);
        same = rc == 0 && memcmp(block, params + embedding->offset + done, n * sizeof *block) == 0;
    }
    free(block);
    if (rc < 0 || same) return rc;
    return why_set(why, FAULT_FORMAT,
                   "tensor '%s' is not '%s', which tie_word_embeddings says it "
                   "is: say false there, or take the tensor out; the model is refused",
                   head_name, embedding_name);
}

// A checkpoint of ours notes its digest. A copy with a 16-bit tensor is not compared: its bits
// changed.
static int check_digest(const safetensors_t *set, const struct layout *layout, const float *params,
                        struct why *why)
{
    const char *note = safetensors_note(set, "digest");
    struct hash says;
    char has[HASH_HEX];
    if (!note || !hash_from_hex(note, &says)) return 0;
    for (size_t i = 0; i < safetensors_count(set); i++)
        if (safetensors_tensor(set, i)->dtype != LAYOUT_F32) return 0;
    const struct hash digest = digest_of(params, layout->total);
    if (hash_equal(&digest, &says)) return 0;
    return why_set(why, FAULT_DIGEST,
                   "the numbers have digest %s, the file says %s: it was "
                   "damaged or changed; not to be used",
                   hash_to_hex(&digest, has), note);
}

static int load(int dir, const struct layout *layout, float *params, struct why *why)
{
    safetensors_t *set;
    struct safetensors_tensor head;
    int rc = open_weights(dir, why, &set);
    if (rc < 0) return rc;
    forget_tables(set);
    const bool tied = take_tied_head(set, layout, &head);
    rc = safetensors_load(set, layout, (struct interval){ 0, layout->total }, params, why);
    if (rc == 0 && tied) rc = compare_head(set, layout, &head, params, why);
    if (rc == 0) rc = check_digest(set, layout, params, why);
    if (rc == 0) rc = layout_check_finite(layout, params, why);
    safetensors_close(&set);
    return rc;
}

int hf_folder_load(const char *dir, const struct layout *layout, float *params, struct why *why)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        const int error = errno;
        return why_set(why, fault_from_errno(error), "model folder %s: %s; nothing loaded", dir,
                       strerror(error));
    }
    const int rc = load(fd, layout, params, why);
    close(fd);
    return rc < 0 ? why_wrap(why, rc, "model folder %s", dir) : 0;
}

// ---- Writing ----

static int check_numbers(const struct layout_tensor *tensor, const float *values, uint64_t first,
                         size_t count, struct why *why)
{
    const float most = tensor->dtype == LAYOUT_F16 ? half_from_f16(0x7bff) : half_from_bf16(0x7f7f);
    for (size_t i = 0; i < count; i++) {
        const float narrow = tensor->dtype == LAYOUT_F16 ? half_from_f16(half_to_f16(values[i]))
                                                         : half_from_bf16(half_to_bf16(values[i]));
        if (isinf(narrow) && !isinf(values[i]))
            return why_set(why, FAULT_RANGE,
                           "tensor '%s': %g at %" PRIu64 " does not fit %s, "
                           "allowed -%g..%g; nothing written",
                           tensor->name, (double)values[i], first + i,
                           layout_dtype_name(tensor->dtype), (double)most, (double)most);
    }
    return 0;
}

static int check_fits(const struct layout *layout, const struct safetensors_source *source,
                      struct why *why)
{
    int rc = 0;
    float *room = malloc(SAFETENSORS_BLOCK_FLOATS * sizeof *room);
    if (!room) return why_set(why, FAULT_MEMORY, "a block of numbers; nothing written");
    for (size_t t = 0; t < layout->count && rc == 0; t++) {
        const struct layout_tensor *tensor = &layout->tensors[t];
        const uint64_t count = tensor->dtype == LAYOUT_F32 ? 0 : tensor->rows * tensor->cols;
        for (uint64_t done = 0; done < count && rc == 0;) {
            const uint64_t left = count - done;
            const size_t n =
                left < SAFETENSORS_BLOCK_FLOATS ? (size_t)left : SAFETENSORS_BLOCK_FLOATS;
            const float *values;
            rc = source->read(source->arg, tensor->offset + done, n, room, why, &values);
            if (rc == 0) rc = check_numbers(tensor, values, done, n, why);
            done += n;
        }
    }
    free(room);
    return rc;
}

struct shards {
    size_t count;
    struct layout parts[SAFETENSORS_FILES_MAX];
    uint64_t bytes;
};

static uint64_t bytes_of(const struct layout_tensor *tensor)
{
    return tensor->rows * tensor->cols * layout_dtype_bytes(tensor->dtype);
}

static int cut(const struct layout *layout, uint64_t max_bytes, struct why *why,
               struct shards *ret_shards)
{
    uint64_t used = 0;
    *ret_shards = (struct shards){ .count = 0 };
    for (size_t i = 0; i < layout->count; i++) {
        const uint64_t bytes = bytes_of(&layout->tensors[i]);
        if (i == 0 || used > max_bytes || bytes > max_bytes - used) {
            if (ret_shards->count == SAFETENSORS_FILES_MAX)
                return why_set(why, FAULT_RANGE,
                               "%" PRIu64 " bytes a file make more than %d "
                               "files: allow more; nothing written",
                               max_bytes, SAFETENSORS_FILES_MAX);
            ret_shards->parts[ret_shards->count++] =
                (struct layout){ .tensors = layout->tensors + i };
            used = 0;
        }
        struct layout *part = &ret_shards->parts[ret_shards->count - 1];
        part->capacity = ++part->count;
        part->total += layout->tensors[i].rows * layout->tensors[i].cols;
        used += bytes;
        ret_shards->bytes += bytes;
    }
    return 0;
}

static const char *shard_name(const struct shards *shards, size_t index, char name[NAME])
{
    if (shards->count == 1) strcpy(name, HF_FOLDER_WEIGHTS);
    else snprintf(name, NAME, "model-%05zu-of-%05zu.safetensors", index + 1, shards->count);
    return name;
}

static char *index_text(const struct layout *layout, const struct shards *shards)
{
    json_t *map = json_object();
    int bad = !map;
    for (size_t s = 0; s < shards->count; s++) {
        char name[NAME];
        shard_name(shards, s, name);
        for (size_t i = 0; i < shards->parts[s].count; i++)
            bad |= json_object_set_new(map, shards->parts[s].tensors[i].name, json_string(name));
    }
    json_t *root =
        json_pack("{s:{s:I, s:I}, s:o}", "metadata", "total_parameters", (json_int_t)layout->total,
                  "total_size", (json_int_t)shards->bytes, "weight_map", map);
    char *text = bad ? NULL : json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
    json_decref(root);
    return text;
}

static int write_index(int dir, const struct layout *layout, const struct shards *shards,
                       struct why *why)
{
    struct dirfile file;
    struct hash hash;
    uint64_t bytes;
    char *text = index_text(layout, shards);
    if (!text) return why_set(why, FAULT_MEMORY, "%s: not written", HF_FOLDER_INDEX);
    int rc = dirfile_begin(&file, dir, HF_FOLDER_INDEX, why);
    if (rc == 0) {
        rc = dirfile_add(&file, text, strlen(text), why);
        if (rc < 0) dirfile_abandon(&file);
        else rc = dirfile_end(&file, why, &hash, &bytes);
    }
    free(text);
    return rc;
}

int hf_folder_write_weights(int dir, const struct layout *layout,
                            const struct safetensors_source *source,
                            const struct safetensors_note *notes, size_t note_count,
                            uint64_t max_shard_bytes, struct why *why, size_t *ret_files)
{
    ensure(layout->count > 0 && max_shard_bytes > 0);
    struct shards *shards = malloc(sizeof *shards);
    if (!shards) return why_set(why, FAULT_MEMORY, "%s: not written", HF_FOLDER_WEIGHTS);
    int rc = cut(layout, max_shard_bytes, why, shards);
    if (rc == 0) rc = check_fits(layout, source, why);
    for (size_t s = 0; s < shards->count && rc == 0; s++) {
        char name[NAME];
        struct hash hash;
        uint64_t bytes;
        rc = safetensors_write_at(dir, shard_name(shards, s, name), &shards->parts[s], source,
                                  notes, note_count, why, &hash, &bytes);
    }
    if (rc == 0 && shards->count > 1) rc = write_index(dir, layout, shards, why);
    if (rc == 0) *ret_files = shards->count;
    free(shards);
    return rc;
}
