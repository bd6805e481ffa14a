// text_tokens -- appends tokens to the training file, or to the held-out file in every k-th block.
// Finish checks that the text was long enough. Then, durably and in this order: it removes what an
// earlier text left (baselines, manifests, held-out file), commits both files, writes the
// tokenizer, writes the manifests. So after a crash at any instruction a folder with a manifest is
// complete, and training and held-out file are of one text, or the held-out file is missing.

#include "common/base/bytes.h"
#include "common/text/text_tokens.h"
#include "common/base/durable_file.h"
#include "common/base/folder.h"
#include "common/data/manifest.h"
#include "common/data/token_dir.h"
#include "common/text/tokenizer_json.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRAIN, HELDOUT, PARTS, CHUNK = 8192, BYTE_TOKEN_BYTES = 2 };

static const struct {
    const char *folder, *file;
    const char *old[4]; // Removed before a file of the new text appears; ends with NULL
} parts[PARTS] = {
    [TRAIN] = { "train", "train.bin", { MANIFEST_NAME, "train.bin" MANIFEST_BLOCKS } },
    [HELDOUT] = { "heldout",
                  "heldout.bin",
                  { MANIFEST_NAME, "heldout.bin" MANIFEST_BLOCKS, "heldout.bin" } },
};
static const char *const old_baselines[] = { "baselines.json", NULL }; // The callers write them

struct text_tokens {
    struct text_config config;
    char *dir, *folders[PARTS];
    struct durable_file files[PARTS];
    int parts_count; // 1: nothing is held out
    uint64_t tokens; // Added so far; decides the block
};

static int check_config(struct text_config *config, struct why *why)
{
    if (!config->block_tokens) config->block_tokens = TEXT_BLOCK_TOKENS;
    if (!config->token_bytes) config->token_bytes = BYTE_TOKEN_BYTES;
    if (!config->tokenizer) config->tokenizer = "bytes";
    if (!config->heldout_every) config->heldout_every = TEXT_HELDOUT_EVERY;
    if (config->block_tokens > 1 << 24)
        return why_set(why, FAULT_RANGE, "block_tokens is %u; it must be 1 to 2^24",
                       config->block_tokens);
    if (config->heldout_every < 2 || config->heldout_every > 1 << 20)
        return why_set(why, FAULT_RANGE, "heldout_every is %u; it must be 2 to 2^20",
                       config->heldout_every);
    if (config->token_bytes != 2 && config->token_bytes != 4)
        return why_set(why, FAULT_RANGE, "token_bytes is %u; it must be 2 or 4",
                       config->token_bytes);
    return 0;
}

static int open_parts(text_tokens_t *self, struct why *why)
{
    int rc = folder_make(self->dir, 0755, why);
    for (int part = 0; rc == 0 && part < PARTS; part++) {
        self->folders[part] = token_dir_path(self->dir, parts[part].folder);
        if (!self->folders[part]) return why_set(why, FAULT_MEMORY, "a path in %s", self->dir);
        if (part >= self->parts_count) break;
        rc = folder_make(self->folders[part], 0755, why);
        if (rc == 0)
            rc =
                durable_file_create(self->folders[part], parts[part].file, why, &self->files[part]);
    }
    return rc;
}

int text_tokens_new(const char *dir, const struct text_config *config, struct why *why,
                    text_tokens_t **ret_self)
{
    text_tokens_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a text converter");
    self->config = *config;
    self->dir = strdup(dir);
    self->parts_count = config->no_heldout ? 1 : PARTS;
    for (int part = 0; part < PARTS; part++) self->files[part].fd = self->files[part].dir_fd = -1;
    int rc = self->dir ? check_config(&self->config, why) : why_set(why, FAULT_MEMORY, "a path");
    if (rc == 0) rc = open_parts(self, why);
    if (rc < 0) text_tokens_destroy(&self);
    else *ret_self = self;
    return rc;
}

void text_tokens_destroy(text_tokens_t **self_p)
{
    text_tokens_t *self = *self_p;
    if (!self) return;
    for (int part = 0; part < PARTS; part++) {
        durable_file_abandon(&self->files[part]);
        free(self->folders[part]);
    }
    free(self->dir);
    free(self);
    *self_p = NULL;
}

// ---- the text

static int append(struct durable_file *file, const uint32_t *ids, size_t count, uint32_t size,
                  struct why *why)
{
    uint8_t bytes[CHUNK * 4];
    for (size_t done = 0; done < count;) {
        const size_t step = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < step; i++) {
            const uint32_t id = ids[done + i];
            if (size == 2 && id > UINT16_MAX)
                return why_set(why, FAULT_RANGE, "token %u does not fit into 2 bytes", id);
            le_put(bytes + size * i, id, size);
        }
        int rc = durable_file_append(file, bytes, step * size, why);
        if (rc < 0) return rc;
        done += step;
    }
    return 0;
}

int text_tokens_add_ids(text_tokens_t *self, const uint32_t *ids, size_t count, struct why *why)
{
    const uint32_t size = self->config.block_tokens, every = self->config.heldout_every;
    for (size_t left = count; left > 0;) {
        const uint64_t block_left = size - self->tokens % size;
        const size_t step = left < block_left ? left : (size_t)block_left;
        const bool is_heldout =
            !self->config.no_heldout && self->tokens / size % every == every - 1;
        int rc = append(&self->files[is_heldout ? HELDOUT : TRAIN], ids, step,
                        self->config.token_bytes, why);
        if (rc < 0) return rc;
        self->tokens += step;
        ids += step;
        left -= step;
    }
    return 0;
}

int text_tokens_add(text_tokens_t *self, const void *bytes, size_t count, struct why *why)
{
    uint32_t ids[CHUNK];
    int rc = 0;
    for (size_t done = 0; rc == 0 && done < count;) {
        const size_t step = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < step; i++) ids[i] = ((const uint8_t *)bytes)[done + i];
        rc = text_tokens_add_ids(self, ids, step, why);
        done += step;
    }
    return rc;
}

// ---- the files

// Durably. Names that are not there, and a folder that is not there, are passed over.
static int remove_files(const char *folder, const char *const *names, struct why *why)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *name = "files";
    int rc = fd >= 0 || errno == ENOENT ? 0 : fault_from_errno(errno);
    for (; fd >= 0 && rc == 0 && *names; names++)
        if (unlinkat(fd, name = *names, 0) < 0 && errno != ENOENT) rc = fault_from_errno(errno);
    if (fd >= 0 && rc == 0 && fsync(fd) < 0) rc = fault_from_errno(errno);
    if (rc < 0)
        why_set(why, rc, "cannot remove an earlier text's %s in %s: %s", name, folder,
                strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

static int remove_earlier(const text_tokens_t *self, struct why *why)
{
    int rc = remove_files(self->dir, old_baselines, why);
    for (int part = 0; rc == 0 && part < PARTS; part++)
        rc = remove_files(self->folders[part], parts[part].old, why);
    // With other files in it, it stays
    if (rc == 0 && self->config.no_heldout) rmdir(self->folders[HELDOUT]);
    return rc;
}

static int write_manifest(const char *folder, uint32_t token_bytes, struct why *why)
{
    struct manifest manifest;
    int rc = manifest_build(folder, token_bytes, why, &manifest);
    if (rc < 0) return rc;
    rc = manifest.file_count == 1
             ? manifest_write(&manifest, folder, why)
             : why_set(why, FAULT_FORMAT,
                       "%s holds %u token files, and only one was written here; move the others"
                       " away",
                       folder, manifest.file_count);
    manifest_free(&manifest);
    return rc;
}

static int check_length(const text_tokens_t *self, const struct text_counts *counts,
                        struct why *why)
{
    const uint64_t tokens = self->tokens, block = self->config.block_tokens;
    const uint64_t largest_every = tokens ? (tokens - 1) / block + 1 : 0;
    char smaller[60] = "";
    if (self->config.no_heldout && counts->train == 0)
        return why_set(why, FAULT_RANGE, "the text has no tokens");
    if (self->config.no_heldout || counts->heldout > 0) return 0;
    if (largest_every >= 2)
        snprintf(smaller, sizeof smaller, ", or --heldout-every %" PRIu64, largest_every);
    return why_set(why, FAULT_RANGE,
                   "the text has %" PRIu64 " tokens; to hold one block of %" PRIu64 " out of "
                   "every %u it needs more than %" PRIu64
                   ": add text%s, or --heldout-every 0 to hold nothing out",
                   tokens, block, self->config.heldout_every,
                   block * (self->config.heldout_every - 1), smaller);
}

int text_tokens_finish(text_tokens_t *self, struct why *why, struct text_counts *ret_counts)
{
    const uint32_t size = self->config.token_bytes;
    const struct text_counts counts = { .train = self->files[TRAIN].bytes / size,
                                        .heldout = self->files[HELDOUT].bytes / size };
    int rc = check_length(self, &counts, why);
    if (rc == 0) rc = remove_earlier(self, why);
    for (int part = 0; rc == 0 && part < self->parts_count; part++)
        rc = durable_file_commit(&self->files[part], why);
    if (rc == 0)
        rc = tokenizer_install(self->config.tokenizer, self->dir, self->config.seq_len, why);
    for (int part = 0; rc == 0 && part < self->parts_count; part++)
        rc = write_manifest(self->folders[part], size, why);
    if (rc == 0) *ret_counts = counts;
    return rc;
}

// ---- whole corpora

static int add_all(text_tokens_t *self, corpus_t *corpus, struct why *why)
{
    const struct corpus_unit *units;
    size_t count = 1;
    int rc = 0;
    while (rc == 0 && count > 0) {
        rc = corpus_next(corpus, why, &units, &count);
        for (size_t i = 0; rc == 0 && i < count; i++) {
            rc = text_tokens_add(self, units[i].text, units[i].count, why);
            if (rc == 0 && units[i].line) rc = text_tokens_add(self, "\n", 1, why);
        }
    }
    return rc;
}

int text_tokens_convert(corpus_t *corpus, const char *dir, const struct text_config *config,
                        struct why *why, struct text_counts *ret_counts)
{
    text_tokens_t *self;
    int rc = text_tokens_new(dir, config, why, &self);
    if (rc < 0) return rc;
    rc = add_all(self, corpus, why);
    if (rc == 0) rc = text_tokens_finish(self, why, ret_counts);
    text_tokens_destroy(&self);
    return rc;
}

// Turns 2-byte tokens into bytes, in place.
static int narrow_to_bytes(uint8_t *bytes, size_t count, const char *path, struct why *why)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[2 * i + 1])
            return why_set(why, FAULT_RANGE, "%s: token %zu is %u; a byte token is 0 to 255", path,
                           i, bytes[2 * i] + 256u * bytes[2 * i + 1]);
        bytes[i] = bytes[2 * i];
    }
    return 0;
}

int text_tokens_load(const char *path, size_t bytes_max, struct why *why, uint8_t **ret_bytes,
                     size_t *ret_count)
{
    int fd;
    uint64_t size;
    int rc = token_dir_open(path, why, &fd, &size);
    if (rc < 0) return rc;
    uint8_t *bytes = NULL;
    if (size % BYTE_TOKEN_BYTES)
        rc = why_set(why, FAULT_FORMAT,
                     "%s has %" PRIu64 " bytes; with tokens of 2 bytes their number is even", path,
                     size);
    else if (size / BYTE_TOKEN_BYTES > bytes_max)
        rc = why_set(why, FAULT_LIMIT, "%s has %" PRIu64 " tokens; at most %zu are allowed", path,
                     size / BYTE_TOKEN_BYTES, bytes_max);
    else if (!(bytes = malloc(size ? (size_t)size : 1)))
        rc = why_set(why, FAULT_MEMORY, "%s: %" PRIu64 " bytes", path, size);
    if (rc == 0) rc = token_dir_read(fd, path, 0, (size_t)size, bytes, why);
    if (rc == 0) rc = narrow_to_bytes(bytes, (size_t)size / BYTE_TOKEN_BYTES, path, why);
    close(fd);
    if (rc < 0) {
        free(bytes);
        return rc;
    }
    *ret_bytes = bytes;
    *ret_count = (size_t)size / BYTE_TOKEN_BYTES;
    return 0;
}
