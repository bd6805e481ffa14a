// The reading half of checkpoint.h. Opening checks the manifest, that it names every file its
// reader needs, in the right sizes, and then the SHA-256 of each file. Loading reads from files
// that were checked so; the whole parameters are compared with their digest once more.
#include "common/checkpoint/checkpoint.h"
#include "common/base/ensure.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_root.h"
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

enum { TURNS_MAX = 16 };

struct checkpoint {
    int dir;
    char name[CHECKPOINT_NAME];
    struct checkpoint_manifest manifest;
    struct tags state; // Over manifest.items
};

// ---- Verifying ----

// A missing file is damage here, because the manifest names it.
static int absent(int rc, struct why *why)
{
    return rc == FAULT_NOT_FOUND ? why_wrap(why, FAULT_CORRUPT, "incomplete") : rc;
}

static int verify_file(const struct checkpoint *self, const struct checkpoint_record *record,
                       struct why *why)
{
    int fd;
    uint64_t bytes;
    struct hash hash;
    char has[HASH_HEX], wants[HASH_HEX];
    int rc = dirfile_open(self->dir, record->name, false, why, &fd, &bytes);
    if (rc < 0) return absent(rc, why);
    if (bytes != record->bytes)
        rc = why_set(why, FAULT_CORRUPT,
                     "%s has %" PRIu64 " bytes, the manifest says %" PRIu64 "; "
                     "refused",
                     record->name, bytes, record->bytes);
    if (rc == 0) rc = dirfile_hash(fd, record->name, bytes, why, &hash);
    close(fd);
    if (rc == 0 && !hash_equal(&hash, &record->hash))
        rc = why_set(why, FAULT_DIGEST, "%s has SHA-256 %s, the manifest says %s; refused",
                     record->name, hash_to_hex(&hash, has), hash_to_hex(&record->hash, wants));
    return rc;
}

static const char *state_file(const struct tags_item *item, char name[TAGS_NAME_MAX + 16])
{
    snprintf(name, TAGS_NAME_MAX + 16, "state-%s.bin", item->name);
    return name;
}

// The manifest must name every file that its reader will ask for, in the right sizes.
static int check_whole(const struct checkpoint_manifest *manifest, struct why *why)
{
    static const char *const needed[] = { CHECKPOINT_CONFIG, CHECKPOINT_PARAMS };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!checkpoint_manifest_find(manifest, needed[i]))
            return why_set(why, FAULT_CORRUPT, "%s does not list %s; refused", CHECKPOINT_MANIFEST,
                           needed[i]);
    }
    for (size_t i = 0; i < manifest->item_count; i++) {
        const struct tags_item *item = &manifest->items[i];
        char name[TAGS_NAME_MAX + 16];
        const struct checkpoint_record *file =
            checkpoint_manifest_find(manifest, state_file(item, name));
        if (manifest->saved[i] && (!file || file->bytes != item->elements * item->element_bytes))
            return why_set(why, FAULT_CORRUPT,
                           "%s does not list %s with the %" PRIu64 " bytes of "
                           "its item; refused",
                           CHECKPOINT_MANIFEST, name, item->elements * item->element_bytes);
    }
    return 0;
}

static int read_manifest(struct checkpoint *self, uint64_t step, const char *run, struct why *why)
{
    char *text;
    size_t count;
    int rc = dirfile_slurp(self->dir, CHECKPOINT_MANIFEST, false, CHECKPOINT_MANIFEST_BYTES_MAX,
                           why, &text, &count);
    if (rc < 0) return absent(rc, why);
    rc = checkpoint_manifest_unpack(CHECKPOINT_MANIFEST, text, count, why, &self->manifest);
    free(text);
    if (rc < 0) return rc;
    const struct checkpoint_info *info = &self->manifest.info;
    if (run && strcmp(info->run, run) != 0)
        return why_set(why, FAULT_FOREIGN, "of run '%s', wanted is '%s'; refused", info->run, run);
    if (info->step != step)
        return why_set(why, FAULT_CORRUPT, "%s says step %" PRIu64 ": it was renamed; refused",
                       CHECKPOINT_MANIFEST, info->step);
    self->state = (struct tags){ .items = self->manifest.items,
                                 .count = self->manifest.item_count,
                                 .capacity = CHECKPOINT_ITEMS_MAX };
    return check_whole(&self->manifest, why);
}

static int open_and_verify(struct checkpoint *self, int root, uint64_t step, const char *run,
                           struct why *why)
{
    self->dir = openat(root, checkpoint_root_name(step, self->name),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self->dir < 0) {
        const int error = errno;
        return why_set(why, fault_from_errno(error), "%s; not opened", strerror(error));
    }
    int rc = read_manifest(self, step, run, why);
    for (size_t i = 0; i < self->manifest.file_count && rc == 0; i++)
        rc = verify_file(self, &self->manifest.files[i], why);
    return rc;
}

static int open_step(int root, const char *place, uint64_t step, const char *run, struct why *why,
                     checkpoint_t **ret_checkpoint)
{
    struct checkpoint *self = calloc(1, sizeof *self);
    if (!self)
        return why_set(why, FAULT_MEMORY, "checkpoint of step %" PRIu64 ": not opened", step);
    const int rc = open_and_verify(self, root, step, run, why);
    if (rc < 0) {
        why_wrap(why, rc, "%s/%s", place, self->name);
        checkpoint_close(&self);
        return rc;
    }
    *ret_checkpoint = self;
    return 0;
}

// ---- Opening ----

int checkpoint_split(const char *folder, struct why *why, char ret_root[PATH_MAX],
                     uint64_t *ret_step)
{
    size_t count = strlen(folder);
    while (count > 1 && folder[count - 1] == '/') count--;
    size_t name = count;
    while (name > 0 && folder[name - 1] != '/') name--;
    if (count >= PATH_MAX || name + 13 != count || strncmp(folder + name, "step-", 5) != 0 ||
        strspn(folder + name + 5, "0123456789") < 8)
        return why_set(why, FAULT_USAGE, "%s: not a folder step-NNNNNNNN", folder);
    snprintf(ret_root, PATH_MAX, "%.*s", name > 1 ? (int)name - 1 : 1, name ? folder : ".");
    *ret_step = strtoull(folder + name + 5, NULL, 10);
    return 0;
}

int checkpoint_open(const char *root, uint64_t step, const char *run, struct why *why,
                    checkpoint_t **ret_checkpoint)
{
    int fd;
    if (step > CHECKPOINT_STEP_MAX)
        return why_set(why, FAULT_RANGE,
                       "checkpoint of step %" PRIu64 ": steps go to %d; not "
                       "opened",
                       step, CHECKPOINT_STEP_MAX);
    int rc = checkpoint_root_open(root, why, &fd);
    if (rc < 0) return rc;
    rc = open_step(fd, root, step, run, why, ret_checkpoint);
    close(fd);
    return rc;
}

static ino_t identity(int root, uint64_t step)
{
    char name[CHECKPOINT_NAME];
    struct stat stat;
    return fstatat(root, checkpoint_root_name(step, name), &stat, AT_SYMLINK_NOFOLLOW) == 0
               ? stat.st_ino
               : 0;
}

// A writer may replace or remove a checkpoint while we read it. That is not damage, so we retry;
// but only TURNS_MAX times: if the writer is that much faster than we are, it keeps too few
// checkpoints.
static int open_newest(int fd, const char *root, const char *run, struct why *why,
                       checkpoint_t **ret_checkpoint)
{
    for (int turn = 1;; turn++) {
        struct checkpoint_steps list;
        int rc = checkpoint_root_steps(fd, root, why, &list);
        if (rc < 0) return rc;
        if (!list.count)
            return why_set(why, FAULT_NOT_FOUND, "checkpoints in %s: there is none; nothing opened",
                           root);
        const ino_t before = identity(fd, list.steps[0]);
        rc = open_step(fd, root, list.steps[0], run, why, ret_checkpoint);
        if (rc == 0 || turn == TURNS_MAX) return rc;
        if (before && identity(fd, list.steps[0]) == before) return rc;
    }
}

int checkpoint_open_newest(const char *root, const char *run, struct why *why,
                           checkpoint_t **ret_checkpoint)
{
    int fd;
    int rc = checkpoint_root_open(root, why, &fd);
    if (rc < 0) return rc;
    rc = open_newest(fd, root, run, why, ret_checkpoint);
    close(fd);
    return rc;
}

int checkpoint_list(const char *root, const char *run, struct why *why,
                    struct checkpoint_seen *ret_list, size_t *ret_count)
{
    int fd;
    struct checkpoint_steps list;
    int rc = checkpoint_root_open(root, why, &fd);
    if (rc < 0) return rc;
    rc = checkpoint_root_steps(fd, root, why, &list);
    for (size_t i = 0; rc == 0 && i < list.count; i++) {
        checkpoint_t *checkpoint = NULL;
        const int fault = open_step(fd, root, list.steps[i], run, NULL, &checkpoint);
        ret_list[i] = (struct checkpoint_seen){ .step = list.steps[i], .fault = fault };
        if (fault == 0) {
            ret_list[i].born_unix_ms = checkpoint->manifest.info.born_unix_ms;
            ret_list[i].epoch = checkpoint->manifest.info.epoch;
        }
        checkpoint_close(&checkpoint);
    }
    close(fd);
    if (rc == 0) *ret_count = list.count;
    return rc;
}

void checkpoint_close(checkpoint_t **self)
{
    if (!*self) return;
    if ((*self)->dir >= 0) close((*self)->dir);
    checkpoint_manifest_clear(&(*self)->manifest);
    free(*self);
    *self = NULL;
}

const struct checkpoint_info *checkpoint_info(const checkpoint_t *self)
{
    return &self->manifest.info;
}

// ---- Loading ----

int checkpoint_load_interval(const checkpoint_t *self, const struct layout *layout,
                             struct interval want, float *values, struct why *why)
{
    const struct hash hash = layout_hash(layout);
    char has[HASH_HEX], wants[HASH_HEX];
    safetensors_t *set;
    if (!hash_equal(&hash, &self->manifest.info.layout))
        return why_set(why, FAULT_FOREIGN, "%s has layout %s, the model's is %s; nothing loaded",
                       self->name, hash_to_hex(&self->manifest.info.layout, has),
                       hash_to_hex(&hash, wants));
    int rc = safetensors_open_at(self->dir, CHECKPOINT_PARAMS, false, why, &set);
    if (rc == 0) {
        rc = safetensors_load(set, layout, want, values, why);
        safetensors_close(&set);
    }
    return rc < 0 ? why_wrap(why, rc, "%s", self->name) : 0;
}

int checkpoint_load_params(const checkpoint_t *self, const struct layout *layout, float *params,
                           struct why *why)
{
    char has[HASH_HEX], wants[HASH_HEX];
    const int rc =
        checkpoint_load_interval(self, layout, (struct interval){ 0, layout->total }, params, why);
    if (rc < 0) return rc;
    const struct hash digest = digest_of(params, layout->total);
    if (!hash_equal(&digest, &self->manifest.info.params))
        return why_set(why, FAULT_DIGEST,
                       "%s: the parameters have digest %s, the manifest says "
                       "%s; not to be used",
                       self->name, hash_to_hex(&digest, has),
                       hash_to_hex(&self->manifest.info.params, wants));
    return layout_check_finite(layout, params, why) < 0 ? why_wrap(why, FAULT_NAN, "%s", self->name)
                                                        : 0;
}

int checkpoint_load_state(const checkpoint_t *self, const struct tags_item *item,
                          struct interval want, void *value, struct why *why)
{
    const struct tags_item *saved = tags_find(&self->state, item->name);
    char name[TAGS_NAME_MAX + 16];
    int fd;
    uint64_t bytes;
    ensure(interval_contains((struct interval){ 0, item->elements }, want));
    if (!saved || !self->manifest.saved[saved - self->state.items])
        return why_set(why, FAULT_NOT_FOUND, "%s: state item '%s' was not saved; nothing loaded",
                       self->name, item->name);
    if (saved->tag != item->tag || saved->elements != item->elements ||
        saved->element_bytes != item->element_bytes)
        return why_set(why, FAULT_FOREIGN,
                       "%s: state item '%s' was saved as %s, %" PRIu64 " elements of %" PRIu32
                       " bytes, and is now %s, %" PRIu64 " of %" PRIu32 "; nothing loaded",
                       self->name, item->name, tags_tag_name(saved->tag), saved->elements,
                       saved->element_bytes, tags_tag_name(item->tag), item->elements,
                       item->element_bytes);
    int rc = dirfile_open(self->dir, state_file(item, name), false, why, &fd, &bytes);
    if (rc < 0) return why_wrap(why, rc, "%s", self->name);
    rc = dirfile_read(fd, name, want.begin * item->element_bytes, value,
                      (size_t)interval_length(want) * item->element_bytes, why);
    close(fd);
    return rc < 0 ? why_wrap(why, rc, "%s", self->name) : 0;
}

int checkpoint_load_file(const checkpoint_t *self, const char *name, struct why *why,
                         char **ret_bytes, size_t *ret_count)
{
    if (!checkpoint_manifest_find(&self->manifest, name))
        return why_set(why, FAULT_NOT_FOUND, "%s: its manifest lists no such file; nothing loaded",
                       self->name);
    const int rc = dirfile_slurp(self->dir, name, false, CHECKPOINT_SMALL_BYTES_MAX, why, ret_bytes,
                                 ret_count);
    return rc < 0 ? why_wrap(why, rc, "%s", self->name) : 0;
}
