// token_files -- opening lists the folder, finds where each file's tokens begin, and compares names
// and sizes with the manifest if there is one. A read finds the sample's file, checks that the file
// did not change since it was opened, reads the sample's blocks and compares each with its hash.

#include "common/data/token_files.h"
#include "common/data/block_tree.h"
#include "common/data/npy.h"
#include "common/data/proof.h"
#include "common/data/token_dir.h"
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct token_files {
    struct samples samples;   // Its files are named by their paths
    struct stat *stats;       // Of each file, taken when it was opened
    struct manifest manifest; // All zero without one
    struct block_tree *tree;  // Its hashes; NULL without one
    uint8_t *buffer;          // The blocks that one sample lies in
    int fd;                   // The file that was read last; -1 at first
    uint32_t fd_file;
};

static bool has_manifest(const token_files_t *self) { return self->manifest.file_count > 0; }

// ---- open

static int read_header(int fd, const char *path, uint64_t bytes, struct why *why,
                       struct npy *ret_npy)
{
    const size_t count = bytes < NPY_HEADER_MAX ? (size_t)bytes : NPY_HEADER_MAX;
    uint8_t header[NPY_HEADER_MAX];
    int rc = token_dir_read(fd, path, 0, count, header, why);
    return rc < 0 ? rc : npy_parse(header, count, bytes, path, why, ret_npy);
}

static int measure_npy(int fd, const char *path, uint64_t bytes, uint32_t token_bytes,
                       struct why *why, struct npy *ret_npy)
{
    struct npy npy;
    int rc = read_header(fd, path, bytes, why, &npy);
    if (rc < 0) return rc;
    if (npy.token_bytes != token_bytes)
        return why_set(why, FAULT_FORMAT,
                       "%s: its tokens have %u bytes and the configured token"
                       " size is %u",
                       path, npy.token_bytes, token_bytes);
    *ret_npy = npy;
    return 0;
}

// Where the tokens of an open file lie.
static int measure(int fd, const char *path, uint64_t bytes, uint32_t token_bytes, struct why *why,
                   struct npy *ret_npy)
{
    if (npy_is_name(path)) return measure_npy(fd, path, bytes, token_bytes, why, ret_npy);
    if (bytes % token_bytes)
        return why_set(why, FAULT_FORMAT,
                       "%s has %" PRIu64 " bytes, which is not a multiple of the token"
                       " size %u",
                       path, bytes, token_bytes);
    *ret_npy = (struct npy){ .tokens = bytes / token_bytes, .token_bytes = token_bytes };
    return 0;
}

static int add_path(token_files_t *self, const char *path, struct why *why)
{
    int fd;
    uint64_t bytes;
    struct npy npy = { 0 };
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc < 0) return rc;
    const uint32_t file = self->samples.file_count;
    rc = measure(fd, path, bytes, self->samples.config.token_bytes, why, &npy);
    if (rc == 0) rc = samples_add(&self->samples, path, npy.offset, npy.tokens, why);
    if (rc == 0 && fstat(fd, &self->stats[file]) < 0)
        rc = why_set(why, FAULT_IO, "cannot examine %s: %s", path, strerror(errno));
    if (rc == 0 && (uint64_t)self->stats[file].st_size != bytes)
        rc = why_set(why, FAULT_CORRUPT, "%s changed its size while it was opened", path);
    close(fd);
    return rc;
}

static int add_files(token_files_t *self, const char *dir, const struct token_dir *list,
                     struct why *why)
{
    int rc = 0;
    self->stats = calloc(list->count, sizeof *self->stats);
    if (!self->stats) return why_set(why, FAULT_MEMORY, "%s: %u files", dir, list->count);
    for (uint32_t i = 0; rc == 0 && i < list->count; i++) {
        char *path = token_dir_path(dir, list->names[i]);
        rc = path ? add_path(self, path, why) : why_set(why, FAULT_MEMORY, "a path in %s", dir);
        free(path);
    }
    return rc;
}

// The folder has the files that the manifest names, with those sizes. Contents are compared later,
// when they are read.
static int match_manifest(const token_files_t *self, const char *dir, const struct token_dir *list,
                          struct why *why)
{
    const struct manifest *manifest = &self->manifest;
    if (manifest->token_bytes != self->samples.config.token_bytes)
        return why_set(why, FAULT_DIGEST,
                       "%s/%s: token_bytes is %u and the configured token size"
                       " is %u",
                       dir, MANIFEST_NAME, manifest->token_bytes, self->samples.config.token_bytes);
    if (manifest->file_count != list->count)
        return why_set(why, FAULT_DIGEST, "%s has %u token files and its %s names %u", dir,
                       list->count, MANIFEST_NAME, manifest->file_count);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct manifest_file *file = &manifest->files[i];
        if (strcmp(file->name, list->names[i]) != 0)
            return why_set(why, FAULT_DIGEST, "%s has %s where its %s names %s", dir,
                           list->names[i], MANIFEST_NAME, file->name);
        if (file->bytes != (uint64_t)self->stats[i].st_size)
            return why_set(why, FAULT_DIGEST, "%s/%s has %" PRIu64 " bytes and %s says %" PRIu64,
                           dir, file->name, self->stats[i].st_size, MANIFEST_NAME, file->bytes);
    }
    return 0;
}

static int load_manifest(token_files_t *self, const char *dir, const struct token_dir *list,
                         struct why *why)
{
    int rc = manifest_read(dir, why, &self->manifest);
    if (rc == FAULT_NOT_FOUND) return 0;
    if (rc == 0) rc = match_manifest(self, dir, list, why);
    return rc < 0 ? rc : block_tree_new(&self->manifest, why, &self->tree);
}

int token_files_open(const char *dir, const struct samples_config *config, struct why *why,
                     token_files_t **ret_self)
{
    struct token_dir list = { 0 };
    token_files_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a dataset");
    self->fd = -1;
    int rc = samples_init(&self->samples, config, why);
    if (rc == 0) rc = token_dir_list(dir, why, &list);
    if (rc == 0) rc = add_files(self, dir, &list, why);
    if (rc == 0) rc = load_manifest(self, dir, &list, why);
    if (rc == 0) {
        self->buffer = malloc(samples_bytes(&self->samples) + 2 * MANIFEST_BLOCK_BYTES);
        if (!self->buffer) rc = why_set(why, FAULT_MEMORY, "a sample of %s", dir);
    }
    token_dir_free(&list);
    if (rc < 0) token_files_close(&self);
    else if (why) why->text[0] = 0; // A missing manifest is no fault: its text goes
    if (rc == 0) *ret_self = self;
    return rc;
}

void token_files_close(token_files_t **self_p)
{
    token_files_t *self = *self_p;
    if (!self) return;
    if (self->fd >= 0) close(self->fd);
    samples_free(&self->samples);
    block_tree_destroy(&self->tree);
    manifest_free(&self->manifest);
    free(self->stats);
    free(self->buffer);
    free(self);
    *self_p = NULL;
}

// ---- the width of a token

// Of a file without a manifest: only a .npy file says it.
static int width_of_file(const char *dir, const char *name, struct why *why, uint32_t *ret)
{
    int fd;
    uint64_t bytes;
    struct npy npy = { 0 };
    if (!npy_is_name(name))
        return why_set(why, FAULT_USAGE,
                       "%s/%s: a token of it may have 2 or 4 bytes, and no " MANIFEST_NAME
                       " says which; say --token-bytes 2 or --token-bytes 4",
                       dir, name);
    char *path = token_dir_path(dir, name);
    int rc = path ? token_dir_open(path, why, &fd, &bytes)
                  : why_set(why, FAULT_MEMORY, "a path in %s", dir);
    if (rc == 0) {
        rc = read_header(fd, path, bytes, why, &npy);
        close(fd);
    }
    free(path);
    *ret = npy.token_bytes;
    return rc;
}

int token_files_width(const char *dir, struct why *why, uint32_t *ret_token_bytes)
{
    struct manifest manifest = { 0 };
    struct token_dir list = { 0 };
    uint32_t width = 0;
    int rc = manifest_read(dir, why, &manifest);
    if (rc == 0) {
        *ret_token_bytes = manifest.token_bytes;
        manifest_free(&manifest);
        return 0;
    }
    if (rc == FAULT_NOT_FOUND) rc = token_dir_list(dir, why, &list);
    for (uint32_t i = 0; rc == 0 && i < list.count; i++)
        rc = width_of_file(dir, list.names[i], why, &width);
    token_dir_free(&list);
    if (rc == 0) *ret_token_bytes = width;
    return rc;
}

uint64_t token_files_count(const token_files_t *self) { return self->samples.count; }

const struct hash *token_files_digest(const token_files_t *self)
{
    return has_manifest(self) ? &self->manifest.digest : NULL;
}

// ---- read

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

// Leaves `file` open in self->fd, and unchanged since token_files_open.
static int use_file(token_files_t *self, uint32_t file, struct why *why)
{
    const char *path = self->samples.files[file].name;
    struct stat now;
    uint64_t bytes;
    if (self->fd < 0 || self->fd_file != file) {
        if (self->fd >= 0) close(self->fd);
        self->fd = -1;
        int rc = token_dir_open(path, why, &self->fd, &bytes);
        if (rc < 0) return rc;
        self->fd_file = file;
    }
    if (fstat(self->fd, &now) < 0)
        return why_set(why, FAULT_IO, "cannot examine %s: %s", path, strerror(errno));
    if (!is_same(&now, &self->stats[file]))
        return why_set(why, FAULT_CORRUPT,
                       "%s was changed after it was opened (%" PRIu64 " bytes then,"
                       " %" PRIu64 " now); restart to read the new file",
                       path, self->stats[file].st_size, now.st_size);
    return 0;
}

static int check_block(token_files_t *self, uint32_t file, uint64_t block, const uint8_t *bytes,
                       size_t count, struct why *why)
{
    const char *path = self->samples.files[file].name;
    const struct hash *blocks, hash = merkle_leaf(bytes, count);
    int rc = block_tree_learn(self->tree, file, block / MANIFEST_LEAF_BLOCKS, self->fd, path, why,
                              &blocks);
    if (rc < 0 || hash_equal(&hash, &blocks[block % MANIFEST_LEAF_BLOCKS])) return rc;
    return why_set(why, FAULT_DIGEST,
                   "%s: the block that begins at byte %" PRIu64 " differs from " MANIFEST_NAME
                   "; nothing is read from it",
                   path, (uint64_t)(block * MANIFEST_BLOCK_BYTES));
}

// The blocks that a sample lies in, each checked, end to end in the buffer.
static int read_blocks(token_files_t *self, const struct sample_place *place, struct why *why,
                       struct sample_blocks *ret_blocks)
{
    const uint64_t size = (uint64_t)self->stats[place->file].st_size;
    const struct sample_blocks blocks = samples_blocks(&self->samples, place, size);
    int rc = token_dir_read(self->fd, self->samples.files[place->file].name,
                            blocks.first * MANIFEST_BLOCK_BYTES, blocks.bytes, self->buffer, why);
    for (uint64_t block = blocks.first; rc == 0 && block < blocks.end; block++) {
        const size_t at = (size_t)(block - blocks.first) * MANIFEST_BLOCK_BYTES;
        const size_t rest = blocks.bytes - at;
        rc = check_block(self, place->file, block, self->buffer + at,
                         rest < MANIFEST_BLOCK_BYTES ? rest : MANIFEST_BLOCK_BYTES, why);
    }
    *ret_blocks = blocks;
    return rc;
}

static int read_sample(token_files_t *self, uint64_t position, uint32_t *tokens, struct why *why)
{
    const struct sample_place place = samples_locate(&self->samples, position);
    struct sample_blocks blocks = { .skip = 0 };
    int rc = use_file(self, place.file, why);
    if (rc == 0 && has_manifest(self)) rc = read_blocks(self, &place, why, &blocks);
    else if (rc == 0)
        rc = token_dir_read(self->fd, self->samples.files[place.file].name, place.offset,
                            samples_bytes(&self->samples), self->buffer, why);
    if (rc == 0)
        rc = samples_decode(&self->samples, &place, self->buffer + blocks.skip, tokens, why);
    return rc;
}

// ---- prove

static int prove_sample(token_files_t *self, uint64_t position, struct proof *proof,
                        struct why *why)
{
    const struct sample_place place = samples_locate(&self->samples, position);
    struct sample_blocks blocks;
    struct hash path[MERKLE_RANGE_MAX];
    size_t count;
    int rc = use_file(self, place.file, why);
    if (rc == 0) rc = read_blocks(self, &place, why, &blocks);
    if (rc == 0)
        rc = block_tree_prove(self->tree, place.file, blocks.first, blocks.end, self->fd,
                              self->samples.files[place.file].name, why, path, &count);
    return rc < 0 ? rc : proof_add(proof, path, count, self->buffer, blocks.bytes, why);
}

int token_files_prove(token_files_t *self, uint64_t position, uint32_t count, struct proof *proof,
                      struct why *why)
{
    int rc = has_manifest(self)
                 ? 0
                 : why_set(why, FAULT_NOT_FOUND,
                           "there is no " MANIFEST_NAME " here; make it with `shoal manifest`");
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = prove_sample(self, position + i, proof, why);
    return rc;
}

const struct samples *token_files_samples(const token_files_t *self) { return &self->samples; }
const struct manifest *token_files_manifest(const token_files_t *self)
{
    return has_manifest(self) ? &self->manifest : NULL;
}

int token_files_read(token_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                     struct why *why)
{
    int rc = 0;
    if (position > UINT64_MAX - count)
        return why_set(why, FAULT_RANGE,
                       "%u samples from position %" PRIu64 ": beyond the last position"
                       " there is",
                       count, position);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = read_sample(self, position + i, tokens + i * samples_tokens(&self->samples), why);
    return rc;
}
