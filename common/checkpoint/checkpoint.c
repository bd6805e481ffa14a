// The writing half of checkpoint.h. In this order: the arguments are checked (the digest of the state too), the
// root is locked and cleaned of dead writers' folders, every file is written into a .tmp folder and
// noted in the manifest, the manifest is written last, the folder is renamed, the root is synced.
// Only then are older checkpoints removed.
#include "common/checkpoint/checkpoint.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_root.h"
#include "common/checkpoint/hf_folder.h"
#include "common/checkpoint/safetensors.h"
#include "common/crypto/merkle.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_MODE = 0755 };

struct writer {
    int root, dir;
    char tmp[CHECKPOINT_NAME], name[CHECKPOINT_NAME];
    struct checkpoint_manifest manifest;
};

// ---- Files ----

// Adds the manifest's entry of a file before the file is written.
static int new_record(struct writer *self, const char *name, struct why *why,
                      struct checkpoint_record **ret_record)
{
    struct checkpoint_manifest *manifest = &self->manifest;
    if (!dirfile_name_valid(name) || strcmp(name, CHECKPOINT_MANIFEST) == 0 ||
        checkpoint_manifest_find(manifest, name))
        return why_set(why, FAULT_RANGE,
                       "file %zu of the checkpoint: its name must be 1 to %d of "
                       "A-Z a-z 0-9 . _ - and not taken; not written",
                       manifest->file_count, DIRFILE_NAME_MAX);
    if (manifest->file_count == CHECKPOINT_FILES_MAX)
        return why_set(why, FAULT_LIMIT, "%s: a checkpoint has at most %d files; not written", name,
                       CHECKPOINT_FILES_MAX);
    struct checkpoint_record *record = &manifest->files[manifest->file_count];
    snprintf(record->name, sizeof record->name, "%s", name);
    *ret_record = record;
    return 0;
}

static int add_bytes(struct writer *self, const char *name, const void *bytes, size_t count,
                     struct why *why)
{
    struct checkpoint_record *record;
    struct dirfile file;
    int rc = new_record(self, name, why, &record);
    if (rc == 0) rc = dirfile_begin(&file, self->dir, record->name, why);
    if (rc < 0) return rc;
    rc = dirfile_add(&file, bytes, count, why);
    if (rc < 0) dirfile_abandon(&file);
    else rc = dirfile_end(&file, why, &record->hash, &record->bytes);
    if (rc == 0) self->manifest.file_count++;
    return rc;
}

static int add_params(struct writer *self, const struct layout *layout, const float *params,
                      struct why *why)
{
    const struct checkpoint_info *info = &self->manifest.info;
    char step[24], digest[HASH_HEX];
    struct checkpoint_record *record;
    snprintf(step, sizeof step, "%" PRIu64, info->step);
    const struct safetensors_note notes[] = {
        { "run", info->run },
        { "step", step },
        { "digest", hash_to_hex(&info->params, digest) },
    };
    const struct safetensors_source source = safetensors_from_memory(params);
    int rc = new_record(self, CHECKPOINT_PARAMS, why, &record);
    if (rc == 0)
        rc = safetensors_write_at(self->dir, record->name, layout, &source, notes,
                                  sizeof notes / sizeof *notes, why, &record->hash, &record->bytes);
    if (rc == 0) self->manifest.file_count++;
    return rc;
}

static int add_copy(struct writer *self, int from, const char *name, struct why *why)
{
    char *bytes;
    size_t count;
    int rc = dirfile_slurp(from, name, true, CHECKPOINT_SMALL_BYTES_MAX, why, &bytes, &count);
    if (rc == FAULT_NOT_FOUND) return 0;
    if (rc < 0) return rc;
    rc = add_bytes(self, name, bytes, count, why);
    free(bytes);
    return rc;
}

static int add_tokenizer(struct writer *self, const char *folder, struct why *why)
{
    const int from = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) {
        const int error = errno;
        return why_set(why, fault_from_errno(error), "the tokenizer's folder %s: %s; not written",
                       folder, strerror(error));
    }
    int rc = 0;
    for (size_t i = 0; hf_folder_beside[i] && rc == 0; i++)
        rc = add_copy(self, from, hf_folder_beside[i], why);
    close(from);
    return rc < 0 ? why_wrap(why, rc, "the tokenizer's folder %s", folder) : 0;
}

static int add_state(struct writer *self, const struct checkpoint_parts *parts, struct why *why)
{
    struct checkpoint_manifest *manifest = &self->manifest;
    const struct tags *state = parts->state;
    for (size_t i = 0; state && i < state->count; i++) {
        const struct tags_item *item = &state->items[i];
        char name[TAGS_NAME_MAX + 16];
        manifest->items[i] = *item;
        manifest->saved[i] = parts->values && parts->values[i];
        manifest->item_count = i + 1;
        if (!manifest->saved[i]) continue;
        snprintf(name, sizeof name, "state-%s.bin", item->name);
        const int rc = add_bytes(self, name, parts->values[i],
                                 (size_t)item->elements * item->element_bytes, why);
        if (rc < 0) return rc;
    }
    return 0;
}

// Written last, so that it names only files that are on disk already.
static int add_manifest(struct writer *self, struct why *why)
{
    char *text;
    size_t count;
    struct dirfile file;
    struct hash hash;
    uint64_t bytes;
    failpoint("checkpoint_manifest");
    int rc = checkpoint_manifest_pack(&self->manifest, why, &text, &count);
    if (rc < 0) return rc;
    rc = dirfile_begin(&file, self->dir, CHECKPOINT_MANIFEST, why);
    if (rc == 0) {
        rc = dirfile_add(&file, text, count, why);
        if (rc < 0) dirfile_abandon(&file);
        else rc = dirfile_end(&file, why, &hash, &bytes);
    }
    free(text);
    return rc;
}

static int add_extras(struct writer *self, const struct checkpoint_parts *parts, struct why *why)
{
    for (size_t i = 0; i < parts->file_count; i++) {
        const struct checkpoint_file *file = &parts->files[i];
        if (file->count > CHECKPOINT_SMALL_BYTES_MAX)
            return why_set(why, FAULT_LIMIT, "%s: %zu bytes, allowed are %d; not written",
                           file->name, file->count, CHECKPOINT_SMALL_BYTES_MAX);
        const int rc = add_bytes(self, file->name, file->bytes, file->count, why);
        if (rc < 0) return rc;
    }
    return 0;
}

static int fill(struct writer *self, const struct checkpoint_parts *parts,
                const struct layout *layout, const float *params, struct why *why)
{
    int rc =
        add_bytes(self, CHECKPOINT_CONFIG, parts->config_json, strlen(parts->config_json), why);
    if (rc == 0) rc = add_params(self, layout, params, why);
    if (rc == 0 && parts->tokenizer_dir) rc = add_tokenizer(self, parts->tokenizer_dir, why);
    if (rc == 0) rc = add_state(self, parts, why);
    if (rc == 0) rc = add_extras(self, parts, why);
    if (rc == 0) rc = add_manifest(self, why);
    if (rc == 0) rc = dirfile_sync_dir(self->dir, self->tmp, why);
    return rc;
}

// ---- Making it visible ----

static int rename_failed(const struct writer *self, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error), "%s: renaming to %s failed: %s", self->tmp,
                   self->name, strerror(error));
}

// If there is a checkpoint of this name already, the two are swapped; the old one is then under the
// .tmp name.
static int publish(struct writer *self, struct why *why)
{
    if (failpoint("checkpoint_rename") < 0) return rename_failed(self, why);
    if (renameat(self->root, self->tmp, self->root, self->name) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return rename_failed(self, why);
    if (renameat2(self->root, self->tmp, self->root, self->name, RENAME_EXCHANGE) == 0) return 0;
    return rename_failed(self, why);
}

static int retire(struct writer *self, uint64_t step, struct why *why)
{
    checkpoint_root_name(step, self->name);
    checkpoint_root_tmp_name(step, self->tmp);
    if (failpoint("checkpoint_retire") < 0) return rename_failed(self, why);
    if (renameat(self->root, self->name, self->root, self->tmp) < 0)
        return errno == ENOENT ? 0 : rename_failed(self, why);
    return dirfile_remove(self->root, self->tmp, why);
}

// The new checkpoint stays, the one named `spare` stays, and of the others the highest, `keep` in
// all.
static int retire_older(struct writer *self, const char *root, unsigned keep, uint64_t spare,
                        struct why *why)
{
    const uint64_t own = self->manifest.info.step;
    struct checkpoint_steps list;
    int rc = dirfile_remove(self->root, self->tmp, why);
    if (rc == 0) rc = checkpoint_root_steps(self->root, root, why, &list);
    unsigned stay = 1;
    for (size_t i = 0; rc == 0 && i < list.count; i++) {
        if (list.steps[i] == own || (spare && list.steps[i] == spare) || stay++ < keep) continue;
        rc = retire(self, list.steps[i], why);
    }
    return rc;
}

// ---- The whole ----

// The digest of the state, and of its parameters alone.
static int digests(const struct checkpoint_parts *parts, const struct layout *layout,
                   const float *params, struct why *why, struct hash *ret_digest,
                   struct hash *ret_params)
{
    struct state_cut cut = state_cut_of_floats(layout->total);
    const void *items[STATE_ITEMS_MAX] = { params };
    for (size_t i = 0; parts->state && parts->values && i < parts->state->count; i++) {
        const struct tags_item *item = &parts->state->items[i];
        if (!parts->values[i] || item->tag == TAG_DROP) continue;
        if (cut.count == STATE_ITEMS_MAX)
            return why_set(why, FAULT_LIMIT,
                           "checkpoint: more than %d items of state that members "
                           "hold alike; nothing written",
                           STATE_ITEMS_MAX);
        items[cut.count] = parts->values[i];
        state_cut_add(&cut, item->elements * item->element_bytes);
    }
    struct hash roots[STATE_ITEMS_MAX];
    *ret_digest = state_cut_digest(&cut, items, roots);
    *ret_params = roots[0];
    return 0;
}

int checkpoint_digest(const struct checkpoint_parts *parts, const struct layout *layout,
                      const float *params, struct why *why, struct hash *ret_digest)
{
    struct hash alone;
    return digests(parts, layout, params, why, ret_digest, &alone);
}

static int check(const struct checkpoint_info *info, const struct checkpoint_parts *parts,
                 const struct layout *layout, const float *params, struct why *why,
                 struct hash *ret_params)
{
    struct hash digest;
    char has[HASH_HEX], wants[HASH_HEX];
    int rc = checkpoint_manifest_check(info, why);
    if (rc < 0) return rc;
    for (size_t i = 0; i < layout->count; i++) {
        if (layout->tensors[i].dtype != LAYOUT_F32)
            return why_set(why, FAULT_RANGE,
                           "checkpoint: tensor '%s' is to be written as %s, but a "
                           "checkpoint has the exact bits, F32; nothing written",
                           layout->tensors[i].name, layout_dtype_name(layout->tensors[i].dtype));
    }
    if (parts->state && parts->state->count > CHECKPOINT_ITEMS_MAX)
        return why_set(why, FAULT_LIMIT,
                       "checkpoint: %zu state items, allowed are %d; nothing "
                       "written",
                       parts->state->count, CHECKPOINT_ITEMS_MAX);
    rc = digests(parts, layout, params, why, &digest, ret_params);
    if (rc < 0) return rc;
    if (!hash_equal(&digest, &info->digest))
        return why_set(why, FAULT_DIGEST,
                       "checkpoint of step %" PRIu64 ": the given state "
                       "has digest %s, the run's has %s; nothing written",
                       info->step, hash_to_hex(&digest, has), hash_to_hex(&info->digest, wants));
    return 0;
}

static int begin(struct writer *self, const char *root, struct why *why)
{
    int rc = checkpoint_root_lock(self->root, root, why);
    if (rc < 0) return rc;
    checkpoint_root_clean(self->root, root, NULL); // A failure does not stop the writing
    if (mkdirat(self->root, self->tmp, DIR_MODE) == 0)
        self->dir = openat(self->root, self->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self->dir >= 0) return 0;
    const int error = errno;
    return why_set(why, fault_from_errno(error),
                   "%s/%s: making the directory failed: %s; nothing "
                   "written",
                   root, self->tmp, strerror(error));
}

static int write_all(struct writer *self, const char *root, const struct checkpoint_parts *parts,
                     const struct layout *layout, const float *params, struct why *why)
{
    int rc = begin(self, root, why);
    if (rc < 0) return rc;
    rc = fill(self, parts, layout, params, why);
    close(self->dir);
    if (rc == 0) rc = publish(self, why);
    if (rc < 0) {
        dirfile_remove(self->root, self->tmp, NULL);
        return why_wrap(why, rc, "%s: checkpoint of step %" PRIu64 " not written, older ones stand",
                        root, self->manifest.info.step);
    }
    rc = dirfile_sync_dir(self->root, root, why);
    if (rc < 0)
        return why_wrap(why, rc,
                        "%s is complete but not certain to survive a power cut; "
                        "nothing was removed",
                        self->name);
    failpoint("checkpoint_durable");
    if (why) why->text[0] = 0;
    rc = retire_older(self, root, parts->keep, parts->spare, why);
    if (rc < 0)
        why_wrap(why, rc,
                 "%s: the checkpoint is durable, but an older one could not be "
                 "removed",
                 root);
    return 0;
}

int checkpoint_write(const char *root, const struct checkpoint_info *info,
                     const struct checkpoint_parts *parts, const struct layout *layout,
                     const float *params, struct why *why)
{
    ensure(parts->keep >= 1 && parts->config_json);
    struct hash alone;
    int rc = check(info, parts, layout, params, why, &alone);
    if (rc < 0) return rc;
    struct writer *self = calloc(1, sizeof *self);
    if (!self)
        return why_set(why, FAULT_MEMORY, "checkpoint of step %" PRIu64 ": not written",
                       info->step);
    self->dir = -1;
    self->manifest.info = *info;
    self->manifest.info.params = alone;
    self->manifest.info.layout = layout_hash(layout);
    checkpoint_root_name(info->step, self->name);
    checkpoint_root_tmp_name(info->step, self->tmp);
    rc = checkpoint_root_open(root, why, &self->root);
    if (rc == 0) {
        rc = write_all(self, root, parts, layout, params, why);
        close(self->root);
    }
    free(self);
    return rc;
}

int checkpoint_clean(const char *root, struct why *why)
{
    int fd;
    int rc = checkpoint_root_open(root, why, &fd);
    if (rc < 0) return rc;
    rc = checkpoint_root_lock(fd, root, why);
    if (rc == 0) rc = checkpoint_root_clean(fd, root, why);
    close(fd);
    return rc;
}
