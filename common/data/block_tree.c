// block_tree -- above the leaves of the manifest every level is computed at opening. Below them,
// the 256 block hashes of a MiB come from its bytes, from hashes sent beside it, or from the file;
// they are compared with the manifest's leaf before they are kept, with the levels above them. The
// table of kept MiB has 4096 slots; a newer MiB replaces the one in its slot. A proof takes each
// subtree from the level that has it, and hashes nothing.

#include "common/base/ensure.h"
#include "common/data/block_tree.h"
#include "common/data/token_dir.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 4096, LEVELS_MAX = 48 };

// Of a MiB: its blocks, then the levels above them, each behind the one below (level_at).
struct known {
    uint32_t file;
    uint64_t leaf;
    struct hash nodes[2 * MANIFEST_LEAF_BLOCKS];
};

// Level 0 is the manifest's leaves. Where a level has an odd number of nodes, the last one moves up
// unchanged.
struct levels {
    struct hash *of[LEVELS_MAX];
    uint64_t count[LEVELS_MAX];
    unsigned height;
};

struct block_tree {
    const struct manifest *manifest;
    struct levels *files;
    uint64_t *first; // Index of each file's first leaf, among the leaves of all files
    struct known *kept[KEPT_MAX];
};

static void rise_one(const struct hash *below, uint64_t count, struct hash *level)
{
    for (uint64_t i = 0; i < count; i += 2)
        level[i / 2] = i + 1 < count ? merkle_node(&below[i], &below[i + 1]) : below[i];
}

static bool rise(struct levels *self, const struct manifest_file *file)
{
    self->of[0] = file->leaves;
    self->count[0] = file->leaf_count;
    for (self->height = 1; self->count[self->height - 1] > 1; self->height++) {
        const struct hash *below = self->of[self->height - 1];
        const uint64_t count = self->count[self->height - 1];
        ensure(self->height < LEVELS_MAX);
        struct hash *level = calloc((size_t)(count + 1) / 2, sizeof *level);
        if (!level) return false;
        rise_one(below, count, level);
        self->of[self->height] = level;
        self->count[self->height] = (count + 1) / 2;
    }
    return true;
}

int block_tree_new(const struct manifest *manifest, struct why *why, struct block_tree **ret_self)
{
    struct block_tree *self = calloc(1, sizeof *self);
    bool made = self != NULL;
    if (made) {
        self->manifest = manifest;
        self->files = calloc(manifest->file_count, sizeof *self->files);
        self->first = calloc(manifest->file_count, sizeof *self->first);
        made = self->files && self->first;
    }
    uint64_t leaves = 0;
    for (uint32_t i = 0; made && i < manifest->file_count; i++) {
        self->first[i] = leaves;
        leaves += manifest->files[i].leaf_count;
        made = rise(&self->files[i], &manifest->files[i]);
    }
    if (made) *ret_self = self;
    else block_tree_destroy(&self);
    return made ? 0 : why_set(why, FAULT_MEMORY, "the hashes of %u files", manifest->file_count);
}

void block_tree_destroy(struct block_tree **self_p)
{
    struct block_tree *self = *self_p;
    *self_p = NULL;
    if (!self) return;
    for (uint32_t i = 0; self->files && i < self->manifest->file_count; i++)
        for (unsigned level = 1; level < LEVELS_MAX; level++) free(self->files[i].of[level]);
    for (int i = 0; i < KEPT_MAX; i++) free(self->kept[i]);
    free(self->files);
    free(self->first);
    free(self);
}

const struct hash *block_tree_known(const struct block_tree *self, uint32_t file, uint64_t leaf)
{
    const struct known *known = self->kept[(self->first[file] + leaf) % KEPT_MAX];
    const bool is_it = known && known->file == file && known->leaf == leaf + 1;
    return is_it ? known->nodes : NULL;
}

// The slot of a MiB, emptied for it. NULL when memory is out.
static struct known *empty_place(struct block_tree *self, uint32_t file, uint64_t leaf)
{
    struct known **place = &self->kept[(self->first[file] + leaf) % KEPT_MAX];
    if (!*place) *place = calloc(1, sizeof **place);
    if (*place) (*place)->leaf = 0; // Leaves count from 1 here: 0 is an empty slot
    return *place;
}

static size_t level_at(unsigned level)
{
    const size_t all = 2 * MANIFEST_LEAF_BLOCKS;
    return all - (all >> level);
}

// The blocks are there, and are the file's.
static void keep(const struct block_tree *self, struct known *known, uint32_t file, uint64_t leaf)
{
    uint64_t count = manifest_block_count(manifest_leaf_bytes(&self->manifest->files[file], leaf));
    for (unsigned level = 0; count > 1; level++, count = (count + 1) / 2)
        rise_one(known->nodes + level_at(level), count, known->nodes + level_at(level + 1));
    known->file = file;
    known->leaf = leaf + 1;
}

int block_tree_check(struct block_tree *self, uint32_t file, uint64_t leaf, const uint8_t *bytes,
                     const char *path, struct why *why)
{
    struct known *known = empty_place(self, file, leaf);
    if (!known) return why_set(why, FAULT_MEMORY, "the block hashes of a MiB of %s", path);
    int rc =
        manifest_check_leaf(&self->manifest->files[file], leaf, bytes, path, why, known->nodes);
    if (rc < 0) return rc;
    keep(self, known, file, leaf);
    return 0;
}

int block_tree_take(struct block_tree *self, uint32_t file, uint64_t leaf,
                    const struct hash *blocks, const char *path, struct why *why)
{
    const struct manifest_file *of = &self->manifest->files[file];
    const size_t count = (size_t)manifest_block_count(manifest_leaf_bytes(of, leaf));
    const struct hash root = merkle_root(blocks, count);
    struct known *known = empty_place(self, file, leaf);
    if (!known) return why_set(why, FAULT_MEMORY, "the block hashes of a MiB of %s", path);
    if (!hash_equal(&root, &of->leaves[leaf]))
        return why_set(why, FAULT_DIGEST,
                       "%s" MANIFEST_BLOCKS ": the hashes of MiB %" PRIu64 " are not "
                       "those of " MANIFEST_NAME,
                       path, leaf);
    memcpy(known->nodes, blocks, count * sizeof *blocks);
    keep(self, known, file, leaf);
    return 0;
}

int block_tree_learn(struct block_tree *self, uint32_t file, uint64_t leaf, int fd,
                     const char *path, struct why *why, const struct hash **ret_blocks)
{
    int rc = 0;
    if (!block_tree_known(self, file, leaf)) {
        uint8_t *buffer = malloc(MANIFEST_LEAF_BYTES);
        if (!buffer) return why_set(why, FAULT_MEMORY, "a MiB of %s", path);
        rc = token_dir_read(fd, path, leaf * MANIFEST_LEAF_BYTES,
                            manifest_leaf_bytes(&self->manifest->files[file], leaf), buffer, why);
        if (rc == 0) rc = block_tree_check(self, file, leaf, buffer, path, why);
        free(buffer);
    }
    if (rc == 0) *ret_blocks = block_tree_known(self, file, leaf);
    return rc;
}

struct asked {
    struct block_tree *self;
    uint32_t file;
    int fd, rc;
    const char *path;
    struct why *why;
};

static struct hash subtree(void *arg, uint64_t from, uint64_t to)
{
    struct asked *asked = arg;
    struct levels *levels = &asked->self->files[asked->file];
    const struct hash *blocks;
    if (to - from > MANIFEST_LEAF_BLOCKS ||
        (from % MANIFEST_LEAF_BLOCKS == 0 &&
         to == manifest_block_count(asked->self->manifest->files[asked->file].bytes))) {
        unsigned level = 0;
        uint64_t at = from / MANIFEST_LEAF_BLOCKS;
        while ((uint64_t)MANIFEST_LEAF_BLOCKS << level < to - from) level++, at /= 2;
        return levels->of[level][at];
    }
    if (to - from == MANIFEST_LEAF_BLOCKS) return levels->of[0][from / MANIFEST_LEAF_BLOCKS];
    if (asked->rc == 0)
        asked->rc = block_tree_learn(asked->self, asked->file, from / MANIFEST_LEAF_BLOCKS,
                                     asked->fd, asked->path, asked->why, &blocks);
    if (asked->rc < 0) return (struct hash){ { 0 } };
    unsigned level = 0;
    while (1u << level < to - from) level++;
    return blocks[level_at(level) + (from % MANIFEST_LEAF_BLOCKS >> level)];
}

int block_tree_prove(struct block_tree *self, uint32_t file, uint64_t first, uint64_t end, int fd,
                     const char *path, struct why *why, struct hash ret_path[MERKLE_RANGE_MAX],
                     size_t *ret_count)
{
    struct asked asked = { self, file, fd, 0, path, why };
    const size_t count = merkle_make_range(manifest_block_count(self->manifest->files[file].bytes),
                                           first, end, subtree, &asked, ret_path);
    if (asked.rc == 0) *ret_count = count;
    return asked.rc;
}
