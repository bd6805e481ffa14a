// Opening reads manifest and cut and looks whether each piece is there in its size; it reads no
// piece. Reading goes through the workers of the old cut in order and takes from each piece what
// overlaps with the wanted interval.
#include "common/base/dirfile.h"
#include "common/base/ensure.h"
#include "common/checkpoint/checkpoint_root.h"
#include "common/checkpoint/piece_file.h"
#include "common/checkpoint/pieces.h"
#include "common/checkpoint/pieces_names.h"
#include "common/checkpoint/pieces_text.h"
#include "common/crypto/merkle.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pieces {
    int dir;
    char place[PATH_MAX + PIECES_NAME]; // <root>/step-00000120: what faults name
    struct pieces_manifest manifest;
    struct pieces_meta meta;
};

// A folder by the name of a save is one if it has a manifest. One that is damaged is named when it is opened.
static bool has_manifest(int root, uint64_t step)
{
    char path[PIECES_NAME + sizeof CHECKPOINT_MANIFEST], name[PIECES_NAME];
    snprintf(path, sizeof path, "%s/%s", pieces_folder_name(step, name), CHECKPOINT_MANIFEST);
    return faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool pieces_is_save(const char *folder)
{
    char root[PATH_MAX], config[PATH_MAX + PIECES_NAME];
    uint64_t step;
    int fd;
    if (checkpoint_split(folder, NULL, root, &step) < 0 ||
        checkpoint_root_open(root, NULL, &fd) < 0)
        return false;
    const bool is_save = has_manifest(fd, step);
    close(fd);
    snprintf(config, sizeof config, "%s/config.json", folder);
    return is_save && access(config, F_OK) != 0;
}

int pieces_list(const char *root, struct why *why, uint64_t *ret_steps, size_t *ret_count)
{
    int fd, rc = checkpoint_root_open(root, why, &fd);
    if (rc < 0) return rc;
    struct checkpoint_steps list;
    rc = checkpoint_root_steps(fd, root, why, &list);
    size_t count = 0;
    for (size_t i = 0; rc == 0 && i < list.count; i++)
        if (has_manifest(fd, list.steps[i])) ret_steps[count++] = list.steps[i];
    close(fd);
    if (rc == 0) *ret_count = count;
    return rc;
}

// ---- opening ------------------------------------------------------------------------------------

static int missing(int rc, struct why *why)
{
    return rc == FAULT_NOT_FOUND ? why_wrap(why, FAULT_CORRUPT, "incomplete") : rc;
}

static int read_manifest(struct pieces *self, uint64_t step, const char *run, struct why *why)
{
    char *text;
    size_t count;
    int rc =
        dirfile_slurp(self->dir, CHECKPOINT_MANIFEST, false, PIECES_TEXT_MAX, why, &text, &count);
    if (rc < 0) return missing(rc, why);
    rc = pieces_manifest_unpack(CHECKPOINT_MANIFEST, text, count, why, &self->manifest);
    free(text);
    if (rc < 0) return rc;
    if (run && strcmp(self->manifest.about.run, run) != 0)
        return why_set(why, FAULT_FOREIGN, "of run '%s', wanted is '%s'; refused",
                       self->manifest.about.run, run);
    if (self->manifest.about.step != step)
        return why_set(why, FAULT_CORRUPT, "%s says step %" PRIu64 ": it was renamed; refused",
                       CHECKPOINT_MANIFEST, self->manifest.about.step);
    return 0;
}

static int read_cut(struct pieces *self, int root, struct why *why)
{
    char name[PIECES_NAME], has[HASH_HEX], wants[HASH_HEX], *text;
    size_t count;
    pieces_cut_name(&self->manifest.cut, name);
    int rc = dirfile_slurp(root, name, false, PIECES_TEXT_MAX, why, &text, &count);
    if (rc < 0) return missing(rc, why);
    const struct hash is = hash_of(text, count);
    // mutant: pieces: a cut of another save is taken
    if (!hash_equal(&is, &self->manifest.cut))
        rc = why_set(why, FAULT_DIGEST, "%s has SHA-256 %s, the manifest says %s; refused", name,
                     hash_to_hex(&is, has), hash_to_hex(&self->manifest.cut, wants));
    if (rc == 0) rc = pieces_cut_unpack(name, text, count, why, &self->meta);
    free(text);
    if (rc < 0) return rc;
    if (self->manifest.root_count != self->meta.count * self->meta.workers)
        return why_set(why, FAULT_CORRUPT,
                       "%s has %zu roots, the cut %s has %zu items of %" PRIu32 " workers; refused",
                       CHECKPOINT_MANIFEST, self->manifest.root_count, name, self->meta.count,
                       self->meta.workers);
    return 0;
}

// Whether the pieces are there; what is in them is checked when it is read.
static int look_at_pieces(const struct pieces *self, struct why *why)
{
    for (size_t i = 0; i < self->meta.count; i++)
        for (uint32_t w = 0; w < self->meta.workers; w++) {
            const struct pieces_item *item = &self->meta.items[i];
            const uint64_t bytes = pieces_bytes_of(item, w);
            char name[PIECES_NAME];
            struct stat stat;
            if (bytes == 0) continue;
            pieces_piece_name(item, w, name);
            if (fstatat(self->dir, name, &stat, AT_SYMLINK_NOFOLLOW) < 0) {
                const int error = errno;
                return error == ENOENT
                           ? why_set(why, FAULT_CORRUPT, "incomplete: %s: %s; refused", name,
                                     strerror(error))
                           : why_set(why, fault_from_errno(error), "%s: %s", name, strerror(error));
            }
            if ((uint64_t)stat.st_size != piece_file_bytes(bytes))
                return why_set(why, FAULT_CORRUPT,
                               "%s has %" PRIu64 " bytes, by the cut it has %" PRIu64 "; refused",
                               name, (uint64_t)stat.st_size, piece_file_bytes(bytes));
        }
    return 0;
}

static int open_save(struct pieces *self, int root, uint64_t step, const char *run, struct why *why)
{
    char name[PIECES_NAME];
    self->dir = openat(root, pieces_folder_name(step, name),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self->dir < 0)
        return why_set(why, fault_from_errno(errno), "%s; not opened", strerror(errno));
    int rc = read_manifest(self, step, run, why);
    if (rc == 0) rc = read_cut(self, root, why);
    return rc == 0 ? look_at_pieces(self, why) : rc;
}

int pieces_open(const char *root, uint64_t step, const char *run, struct why *why,
                pieces_t **ret_pieces)
{
    int fd;
    if (step > CHECKPOINT_STEP_MAX)
        return why_set(why, FAULT_RANGE, "a save of step %" PRIu64 ": steps go to %d; not opened",
                       step, CHECKPOINT_STEP_MAX);
    int rc = checkpoint_root_open(root, why, &fd);
    if (rc < 0) return rc;
    struct pieces *self = calloc(1, sizeof *self);
    if (!self) rc = why_set(why, FAULT_MEMORY, "a save of step %" PRIu64 "; not opened", step);
    else {
        char name[PIECES_NAME];
        snprintf(self->place, sizeof self->place, "%s/%s", root, pieces_folder_name(step, name));
        self->dir = -1;
        rc = open_save(self, fd, step, run, why);
        if (rc < 0) {
            why_wrap(why, rc, "%s", self->place);
            pieces_close(&self);
        } else *ret_pieces = self;
    }
    close(fd);
    return rc;
}

void pieces_close(pieces_t **self)
{
    if (!*self) return;
    if ((*self)->dir >= 0) close((*self)->dir);
    pieces_manifest_clear(&(*self)->manifest);
    pieces_meta_clear(&(*self)->meta);
    free(*self);
    *self = NULL;
}

const struct pieces_about *pieces_about(const pieces_t *self) { return &self->manifest.about; }

const struct pieces_meta *pieces_meta(const pieces_t *self) { return &self->meta; }

const struct pieces_item *pieces_find(const pieces_t *self, const char *name)
{
    for (size_t i = 0; i < self->meta.count; i++)
        if (strcmp(self->meta.items[i].name, name) == 0) return &self->meta.items[i];
    return NULL;
}

// ---- reading ------------------------------------------------------------------------------------

// The piece of worker w, which is not empty. It borrows `name`.
static int open_piece(const pieces_t *self, const struct pieces_item *item, uint32_t w,
                      char name[PIECES_NAME], struct why *why, struct piece_file *ret_file)
{
    const size_t index = (size_t)(item - self->meta.items) * self->meta.workers + w;
    return piece_file_open(self->dir, pieces_piece_name(item, w, name), pieces_bytes_of(item, w),
                           &self->manifest.roots[index], why, ret_file);
}

// The part `at` of the piece of worker w.
static int read_part(const pieces_t *self, const struct pieces_item *item, uint32_t w,
                     struct interval at, uint8_t *bytes, struct why *why)
{
    const uint64_t size = item->element_bytes;
    char name[PIECES_NAME];
    struct piece_file file;
    int rc = open_piece(self, item, w, name, why, &file);
    if (rc < 0) return rc;
    rc = piece_file_read(&file, (at.begin - item->begins[w]) * size, bytes,
                         interval_length(at) * size, why);
    piece_file_close(&file);
    return rc;
}

int pieces_read(const pieces_t *self, const struct pieces_item *item, struct interval want,
                void *bytes, struct why *why)
{
    const uint32_t workers = self->meta.workers;
    ensure(want.begin <= want.end && want.end <= item->begins[workers]);
    for (uint32_t w = 0; w < workers; w++) {
        const struct interval has = { item->begins[w], item->begins[w + 1] };
        const struct interval at = interval_meet(has, want);
        if (interval_empty(at)) continue;
        uint8_t *to = (uint8_t *)bytes + (at.begin - want.begin) * item->element_bytes;
        const int rc = read_part(self, item, w, at, to, why);
        if (rc < 0) return why_wrap(why, rc, "%s", self->place);
    }
    return 0;
}

// Adds the leaves of an item to the tree, and writes them to ret_leaves, unless that is NULL.
static int add_leaves(const pieces_t *self, const struct pieces_item *item, struct merkle *tree,
                      struct hash *ret_leaves, struct why *why)
{
    uint64_t reached = 0;
    for (uint32_t w = 0; w < self->meta.workers; w++) {
        const uint64_t count = pieces_bytes_of(item, w);
        char name[PIECES_NAME];
        struct piece_file file;
        if (count == 0) continue;
        // mutant: pieces: a piece that begins within a leaf has a root
        if (reached % PIECE_LEAF_BYTES != 0)
            return why_set(why, FAULT_UNSUPPORTED,
                           "%s: item '%s': the piece of worker %" PRIu32 " begins at byte %" PRIu64
                           ", within a leaf of %d",
                           self->place, item->name, w, reached, PIECE_LEAF_BYTES);
        const int rc = open_piece(self, item, w, name, why, &file);
        if (rc < 0) return why_wrap(why, rc, "%s", self->place);
        for (uint64_t i = 0; i * PIECE_LEAF_BYTES < count; i++) {
            merkle_add(tree, &file.leaves[i]);
            if (ret_leaves) *ret_leaves++ = file.leaves[i];
        }
        piece_file_close(&file);
        reached += count;
    }
    return 0;
}

int pieces_root(const pieces_t *self, const struct pieces_item *item, struct why *why,
                struct hash *ret_root)
{
    struct merkle tree = { 0 };
    const int rc = add_leaves(self, item, &tree, NULL, why);
    if (rc == 0) *ret_root = merkle_end(&tree);
    return rc;
}

int pieces_leaves(const pieces_t *self, const struct pieces_item *item, struct why *why,
                  struct hash *ret_leaves)
{
    struct merkle tree = { 0 };
    return add_leaves(self, item, &tree, ret_leaves, why);
}

// In blocks, so that a piece of any size takes little memory.
enum { BLOCK = 16 * PIECE_LEAF_BYTES };

static int walk_piece(const pieces_t *self, const struct pieces_item *item, uint32_t w,
                      uint8_t *block, pieces_visit *visit, void *arg, struct why *why)
{
    const uint64_t count = pieces_bytes_of(item, w);
    char name[PIECES_NAME];
    struct piece_file file;
    if (count == 0) return 0;
    int rc = open_piece(self, item, w, name, why, &file);
    if (rc < 0) return rc;
    for (uint64_t at = 0; rc == 0 && at < count; at += BLOCK) {
        const uint64_t bytes = count - at < BLOCK ? count - at : BLOCK;
        rc = piece_file_read(&file, at, block, bytes, why);
        if (rc == 0 && visit)
            rc = visit(arg, item->begins[w] * item->element_bytes + at, block, (size_t)bytes, why);
    }
    piece_file_close(&file);
    return rc;
}

int pieces_walk(const pieces_t *self, const struct pieces_item *item, pieces_visit *visit,
                void *arg, struct why *why)
{
    uint8_t *block = malloc(BLOCK);
    int rc = block ? 0 : why_set(why, FAULT_MEMORY, "no memory to read item '%s'", item->name);
    for (uint32_t w = 0; rc == 0 && w < self->meta.workers; w++)
        rc = walk_piece(self, item, w, block, visit, arg, why);
    free(block);
    return rc < 0 ? why_wrap(why, rc, "%s", self->place) : 0;
}

int pieces_verify(const pieces_t *self, struct why *why)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < self->meta.count; i++)
        rc = pieces_walk(self, &self->meta.items[i], NULL, NULL, why);
    return rc;
}
