// manifest -- built from files leaf by leaf, one MiB at a time; written as JSON; read back
// strictly. Reading checks in this order: the size of the text and its number of values, the JSON,
// the fields, each file's root from its leaves, then the digest from the roots.

#include "common/data/manifest.h"
#include "common/base/durable_file.h"
#include "common/base/json_file.h"
#include "common/base/strict_json.h"
#include "common/crypto/merkle.h"
#include "common/data/samples.h"
#include "common/data/token_dir.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char format_name[] = "shoal-manifest-2";

// An honest manifest has nine values for each file, as strict_json counts them.
enum { HEX = 2 * HASH_BYTES, DEPTH_MAX = 3, VALUES_MAX = 16 * SAMPLES_FILES_MAX };

static uint64_t leaves_of(uint64_t bytes)
{
    return bytes / MANIFEST_LEAF_BYTES + (bytes % MANIFEST_LEAF_BYTES != 0);
}

struct hash manifest_digest(const struct manifest *self)
{
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, format_name, sizeof format_name - 1);
    hasher_add_number(&hasher, self->token_bytes, 4);
    hasher_add_number(&hasher, self->file_count, 4);
    for (uint32_t i = 0; i < self->file_count; i++) {
        const struct manifest_file *file = &self->files[i];
        hasher_add_number(&hasher, strlen(file->name), 4);
        hasher_add(&hasher, file->name, strlen(file->name));
        hasher_add_number(&hasher, file->bytes, 8);
        hasher_add(&hasher, file->root.bytes, HASH_BYTES);
    }
    return hasher_end(&hasher);
}

void manifest_free(struct manifest *self)
{
    for (uint32_t i = 0; i < self->file_count; i++) {
        free(self->files[i].name);
        free(self->files[i].leaves);
    }
    free(self->files);
    *self = (struct manifest){ 0 };
}

// Room for a file's name and leaves; the leaves are not set yet.
static int file_init(struct manifest_file *self, const char *name, uint64_t bytes, struct why *why)
{
    *self = (struct manifest_file){ .name = strdup(name),
                                    .bytes = bytes,
                                    .leaf_count = leaves_of(bytes) };
    self->leaves = calloc(self->leaf_count ? self->leaf_count : 1, sizeof *self->leaves);
    if (self->name && self->leaves) return 0;
    return why_set(why, FAULT_MEMORY, "%s: %" PRIu64 " leaf hashes", name, self->leaf_count);
}

// ---- from files

size_t manifest_leaf_bytes(const struct manifest_file *file, uint64_t leaf)
{
    const uint64_t left = file->bytes - leaf * MANIFEST_LEAF_BYTES;
    return left < MANIFEST_LEAF_BYTES ? (size_t)left : MANIFEST_LEAF_BYTES;
}

uint64_t manifest_block_count(uint64_t bytes)
{
    return bytes / MANIFEST_BLOCK_BYTES + (bytes % MANIFEST_BLOCK_BYTES != 0);
}

static struct hash hash_leaf(const uint8_t *bytes, size_t count,
                             struct hash ret_blocks[MANIFEST_LEAF_BLOCKS])
{
    const size_t whole = count / MANIFEST_BLOCK_BYTES, rest = count % MANIFEST_BLOCK_BYTES;
    merkle_leaves(bytes, MANIFEST_BLOCK_BYTES, whole, ret_blocks);
    if (rest) ret_blocks[whole] = merkle_leaf(bytes + count - rest, rest);
    return merkle_root(ret_blocks, whole + (rest != 0));
}

static int read_leaf(const struct manifest_file *file, uint64_t leaf, int fd, const char *path,
                     uint8_t *buffer, struct why *why)
{
    return token_dir_read(fd, path, leaf * MANIFEST_LEAF_BYTES, manifest_leaf_bytes(file, leaf),
                          buffer, why);
}

static int build_file(struct manifest_file *self, const char *path, const char *name,
                      uint8_t *buffer, struct why *why)
{
    int fd;
    uint64_t bytes;
    struct hash blocks[MANIFEST_LEAF_BLOCKS];
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc < 0) return rc;
    rc =
        bytes ? file_init(self, name, bytes, why) : why_set(why, FAULT_FORMAT, "%s is empty", path);
    for (uint64_t leaf = 0; rc == 0 && leaf < self->leaf_count; leaf++) {
        rc = read_leaf(self, leaf, fd, path, buffer, why);
        if (rc == 0)
            self->leaves[leaf] = hash_leaf(buffer, manifest_leaf_bytes(self, leaf), blocks);
    }
    close(fd);
    if (rc == 0) self->root = merkle_root(self->leaves, (size_t)self->leaf_count);
    return rc;
}

static int build_files(struct manifest *self, const char *dir, const struct token_dir *list,
                       uint8_t *buffer, struct why *why)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < list->count; i++) {
        char *path = token_dir_path(dir, list->names[i]);
        if (!path) return why_set(why, FAULT_MEMORY, "the path of %s", list->names[i]);
        self->file_count++;
        rc = build_file(&self->files[i], path, list->names[i], buffer, why);
        free(path);
    }
    return rc;
}

int manifest_build(const char *dir, uint32_t token_bytes, struct why *why,
                   struct manifest *ret_manifest)
{
    struct token_dir list = { 0 };
    struct manifest self = { .token_bytes = token_bytes };
    if (token_bytes != 2 && token_bytes != 4)
        return why_set(why, FAULT_RANGE, "token size is %u bytes; it must be 2 or 4", token_bytes);
    int rc = token_dir_list(dir, why, &list);
    if (rc < 0) return rc;
    uint8_t *buffer = malloc(MANIFEST_LEAF_BYTES);
    self.files = calloc(list.count, sizeof *self.files);
    rc = buffer && self.files ? build_files(&self, dir, &list, buffer, why)
                              : why_set(why, FAULT_MEMORY, "a manifest of %u files", list.count);
    token_dir_free(&list);
    free(buffer);
    if (rc < 0) {
        manifest_free(&self);
        return rc;
    }
    self.digest = manifest_digest(&self);
    *ret_manifest = self;
    return 0;
}

int manifest_check_leaf(const struct manifest_file *file, uint64_t leaf, const uint8_t *bytes,
                        const char *path, struct why *why,
                        struct hash ret_blocks[MANIFEST_LEAF_BLOCKS])
{
    const struct hash hash = hash_leaf(bytes, manifest_leaf_bytes(file, leaf), ret_blocks);
    if (hash_equal(&hash, &file->leaves[leaf])) return 0;
    return why_set(why, FAULT_DIGEST,
                   "%s: the MiB that begins at byte %" PRIu64 " differs from %s;"
                   " nothing is read from it",
                   path, (uint64_t)(leaf * MANIFEST_LEAF_BYTES), MANIFEST_NAME);
}

static int verify_file(const struct manifest_file *file, const char *dir, uint8_t *buffer,
                       struct why *why)
{
    char *path = token_dir_path(dir, file->name);
    if (!path) return why_set(why, FAULT_MEMORY, "the path of %s", file->name);
    int fd;
    uint64_t bytes;
    struct hash blocks[MANIFEST_LEAF_BLOCKS];
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc == 0) {
        if (bytes != file->bytes)
            rc = why_set(why, FAULT_DIGEST, "%s has %" PRIu64 " bytes and %s says %" PRIu64, path,
                         bytes, MANIFEST_NAME, file->bytes);
        for (uint64_t leaf = 0; rc == 0 && leaf < file->leaf_count; leaf++) {
            rc = read_leaf(file, leaf, fd, path, buffer, why);
            if (rc == 0) rc = manifest_check_leaf(file, leaf, buffer, path, why, blocks);
        }
        close(fd);
    }
    free(path);
    return rc;
}

int manifest_verify(const struct manifest *self, const char *dir, struct why *why)
{
    struct token_dir list;
    int rc = token_dir_list(dir, why, &list);
    if (rc < 0) return rc;
    uint8_t *buffer = malloc(MANIFEST_LEAF_BYTES);
    if (!buffer) rc = why_set(why, FAULT_MEMORY, "a leaf of %s", dir);
    if (rc == 0 && list.count != self->file_count)
        rc = why_set(why, FAULT_DIGEST, "%s has %u token files and %s names %u", dir, list.count,
                     MANIFEST_NAME, self->file_count);
    for (uint32_t i = 0; rc == 0 && i < list.count; i++) {
        if (strcmp(list.names[i], self->files[i].name) != 0)
            rc = why_set(why, FAULT_DIGEST, "%s has %s where %s names %s", dir, list.names[i],
                         MANIFEST_NAME, self->files[i].name);
        else rc = verify_file(&self->files[i], dir, buffer, why);
    }
    free(buffer);
    token_dir_free(&list);
    return rc;
}

static int write_blocks_of(const struct manifest_file *file, const char *dir, const char *path,
                           uint8_t *buffer, struct why *why)
{
    struct durable_file out;
    struct hash blocks[MANIFEST_LEAF_BLOCKS];
    char name[TOKEN_NAME_MAX + sizeof MANIFEST_BLOCKS];
    uint64_t bytes;
    int fd;
    snprintf(name, sizeof name, "%s" MANIFEST_BLOCKS, file->name);
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc < 0) return rc;
    rc = durable_file_create(dir, name, why, &out);
    for (uint64_t leaf = 0; rc == 0 && leaf < file->leaf_count; leaf++) {
        const size_t count = manifest_leaf_bytes(file, leaf);
        rc = read_leaf(file, leaf, fd, path, buffer, why);
        if (rc == 0) rc = manifest_check_leaf(file, leaf, buffer, path, why, blocks);
        if (rc == 0)
            rc = durable_file_append(&out, blocks, manifest_block_count(count) * HASH_BYTES, why);
        if (rc < 0) durable_file_abandon(&out);
    }
    close(fd);
    return rc < 0 ? rc : durable_file_commit(&out, why);
}

int manifest_write_blocks(const struct manifest *self, const char *dir, struct why *why)
{
    uint8_t *buffer = malloc(MANIFEST_LEAF_BYTES);
    int rc = buffer ? 0 : why_set(why, FAULT_MEMORY, "a leaf of %s", dir);
    for (uint32_t i = 0; rc == 0 && i < self->file_count; i++) {
        char *path = token_dir_path(dir, self->files[i].name);
        rc = path ? write_blocks_of(&self->files[i], dir, path, buffer, why)
                  : why_set(why, FAULT_MEMORY, "the path of %s", self->files[i].name);
        free(path);
    }
    free(buffer);
    return rc;
}

// ---- to and from text

static json_t *hex_of(const struct hash *hashes, uint64_t count)
{
    char *text = malloc((size_t)count * HEX + 1);
    if (!text) return NULL;
    for (uint64_t i = 0; i < count; i++) hash_to_hex(&hashes[i], text + i * HEX);
    json_t *json = json_stringn(text, (size_t)count * HEX);
    free(text);
    return json;
}

static json_t *json_of_file(const struct manifest_file *file)
{
    return json_pack("{s:s, s:I, s:o, s:o}", "name", file->name, "bytes", (json_int_t)file->bytes,
                     "root", hex_of(&file->root, 1), "leaves",
                     hex_of(file->leaves, file->leaf_count));
}

int manifest_write(const struct manifest *self, const char *dir, struct why *why)
{
    json_t *files = json_array();
    for (uint32_t i = 0; i < self->file_count; i++)
        if (json_array_append_new(files, json_of_file(&self->files[i])) < 0) {
            json_decref(files);
            return why_set(why, FAULT_FORMAT, "%s/%s: the name is not UTF-8; rename the file", dir,
                           self->files[i].name);
        }
    json_t *json = json_pack("{s:s, s:i, s:i, s:o, s:o}", "format", format_name, "token_bytes",
                             (int)self->token_bytes, "leaf_bytes", MANIFEST_LEAF_BYTES, "digest",
                             hex_of(&self->digest, 1), "files", files);
    return json_file_write(dir, MANIFEST_NAME, json, MANIFEST_TEXT_MAX, why);
}

// `count` hashes of 64 digits each, and nothing else.
static bool hashes_from(const json_t *json, uint64_t count, struct hash *out)
{
    if (!json_is_string(json) || json_string_length(json) / HEX != count ||
        json_string_length(json) % HEX != 0)
        return false;
    const char *text = json_string_value(json);
    for (uint64_t i = 0; i < count; i++) {
        char one[HASH_HEX] = { 0 };
        memcpy(one, text + i * HEX, HEX);
        if (!hash_from_hex(one, &out[i])) return false;
    }
    return true;
}

static int parse_file(json_t *json, const char *place, uint32_t index, struct why *why,
                      struct manifest_file *file)
{
    const char *name = NULL;
    json_int_t bytes = 0;
    json_t *root = NULL, *leaves = NULL;
    if (json_unpack(json, "{s:s, s:I, s:o, s:o!}", "name", &name, "bytes", &bytes, "root", &root,
                    "leaves", &leaves) < 0)
        return why_set(why, FAULT_FORMAT,
                       "%s: files[%u] must have name, bytes, root and leaves,"
                       " and nothing else",
                       place, index);
    if (!token_dir_is_name(name))
        return why_set(why, FAULT_FORMAT, "%s: files[%u]: its name is not that of a token file",
                       place, index);
    // The leaves are counted before room is made for them, so the text bounds the memory
    if (bytes < 1 || !json_is_string(leaves) ||
        json_string_length(leaves) / HEX != leaves_of((uint64_t)bytes))
        return why_set(why, FAULT_FORMAT,
                       "%s: %s: bytes is %" PRId64 ", which must be 1 or more and fit"
                       " the leaves",
                       place, name, (int64_t)bytes);
    int rc = file_init(file, name, (uint64_t)bytes, why);
    if (rc < 0) return rc;
    if (!hashes_from(root, 1, &file->root) || !hashes_from(leaves, file->leaf_count, file->leaves))
        return why_set(why, FAULT_FORMAT,
                       "%s: %s: root and leaves must be hexadecimal digits, 64"
                       " for each hash",
                       place, name);
    const struct hash computed = merkle_root(file->leaves, (size_t)file->leaf_count);
    if (!hash_equal(&computed, &file->root))
        return why_set(why, FAULT_DIGEST, "%s: %s: its root does not follow from its leaves", place,
                       name);
    return 0;
}

static int parse_files(json_t *json, const char *place, struct why *why, struct manifest *self)
{
    const size_t count = json_array_size(json);
    if (count < 1 || count > SAMPLES_FILES_MAX)
        return why_set(why, FAULT_FORMAT, "%s: files must be a list of 1 to %d", place,
                       SAMPLES_FILES_MAX);
    self->files = calloc(count, sizeof *self->files);
    if (!self->files) return why_set(why, FAULT_MEMORY, "%s: %zu files", place, count);
    for (uint32_t i = 0; i < count; i++) {
        self->file_count++;
        int rc = parse_file(json_array_get(json, i), place, i, why, &self->files[i]);
        if (rc < 0) return rc;
        if (i && strcmp(self->files[i - 1].name, self->files[i].name) >= 0)
            return why_set(why, FAULT_FORMAT, "%s: %s stands after %s; names must ascend", place,
                           self->files[i].name, self->files[i - 1].name);
    }
    return 0;
}

static int parse_json(json_t *json, const char *place, struct why *why, struct manifest *self)
{
    const char *format = NULL;
    int token_bytes = 0, leaf_bytes = 0;
    json_t *digest = NULL, *files = NULL;
    struct hash claimed;
    if (json_unpack(json, "{s:s, s:i, s:i, s:o, s:o!}", "format", &format, "token_bytes",
                    &token_bytes, "leaf_bytes", &leaf_bytes, "digest", &digest, "files",
                    &files) < 0)
        return why_set(why, FAULT_FORMAT,
                       "%s: must have format, token_bytes, leaf_bytes, digest"
                       " and files, and nothing else",
                       place);
    if (strcmp(format, format_name) != 0 || leaf_bytes != MANIFEST_LEAF_BYTES)
        return why_set(why, FAULT_UNSUPPORTED,
                       "%s: format and leaf_bytes must be %s and %d; write a new "
                       "one with `shoal manifest`",
                       place, format_name, MANIFEST_LEAF_BYTES);
    if (token_bytes != 2 && token_bytes != 4)
        return why_set(why, FAULT_RANGE, "%s: token_bytes is %d; it must be 2 or 4", place,
                       token_bytes);
    if (!hashes_from(digest, 1, &claimed))
        return why_set(why, FAULT_FORMAT, "%s: digest must be 64 hexadecimal digits", place);
    self->token_bytes = (uint32_t)token_bytes;
    int rc = parse_files(files, place, why, self);
    if (rc < 0) return rc;
    self->digest = manifest_digest(self);
    if (!hash_equal(&self->digest, &claimed))
        return why_set(why, FAULT_DIGEST, "%s: its digest does not follow from its files", place);
    return 0;
}

int manifest_parse(const char *text, size_t count, const char *name, struct why *why,
                   struct manifest *ret_manifest)
{
    struct manifest self = { 0 };
    json_t *json;
    if (count > MANIFEST_TEXT_MAX)
        return why_set(why, FAULT_LIMIT, "%s: %zu bytes; at most %d are read", name, count,
                       MANIFEST_TEXT_MAX);
    int rc = strict_json_parse(name, text, count, DEPTH_MAX, VALUES_MAX, why, &json);
    if (rc < 0) return rc;
    rc = parse_json(json, name, why, &self);
    json_decref(json);
    if (rc < 0) manifest_free(&self);
    else *ret_manifest = self;
    return rc;
}

int manifest_read(const char *dir, struct why *why, struct manifest *ret_manifest)
{
    int fd = -1;
    uint64_t bytes = 0;
    char *text = NULL, *path = token_dir_path(dir, MANIFEST_NAME);
    int rc = path ? token_dir_open(path, why, &fd, &bytes)
                  : why_set(why, FAULT_MEMORY, "the path of %s", MANIFEST_NAME);
    if (rc < 0) goto out;
    if (bytes > MANIFEST_TEXT_MAX) {
        rc = why_set(why, FAULT_LIMIT, "%s has %" PRIu64 " bytes; at most %d are read", path, bytes,
                     MANIFEST_TEXT_MAX);
        goto out;
    }
    text = malloc(bytes ? (size_t)bytes : 1);
    rc = text ? token_dir_read(fd, path, 0, (size_t)bytes, text, why)
              : why_set(why, FAULT_MEMORY, "%s: %" PRIu64 " bytes", path, bytes);
    if (rc == 0) rc = manifest_parse(text, (size_t)bytes, path, why, ret_manifest);
out:
    if (fd >= 0) close(fd);
    free(text);
    free(path);
    return rc;
}
