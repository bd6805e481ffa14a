#include "common/data/text_tokens.h"
#include "common/data/byte_tokenizer.h"
#include "common/data/durable_file.h"
#include "common/data/manifest.h"
#include "common/data/token_dir.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRAIN, HELDOUT, PARTS, CHUNK = 8192, TOKEN_BYTES = 2 };

static const struct { const char *folder, *file; } parts[PARTS] = {
    [TRAIN] = { "train", "train.bin" },
    [HELDOUT] = { "heldout", "heldout.bin" },
};

struct text_tokens {
    struct text_config config;
    char *dir, *folders[PARTS];
    struct durable_file files[PARTS];
    uint64_t bytes;                         // Of text so far
};

// ---- the folders

static int make_folder(const char *path, struct why *why)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST) return 0;
    const int error = errno;
    return why_set(why, fault_from_errno(error), "cannot make the folder %s: %s", path,
                   strerror(error));
}

static int check_config(struct text_config *config, struct why *why)
{
    if (!config->block_bytes) config->block_bytes = TEXT_BLOCK_BYTES;
    if (!config->heldout_every) config->heldout_every = TEXT_HELDOUT_EVERY;
    if (config->block_bytes > 1 << 24)
        return why_set(why, FAULT_RANGE, "block_bytes is %u; it must be 1 to 2^24",
                       config->block_bytes);
    if (config->heldout_every < 2 || config->heldout_every > 1 << 20)
        return why_set(why, FAULT_RANGE, "heldout_every is %u; it must be 2 to 2^20",
                       config->heldout_every);
    if (config->seq_len < 1)
        return why_set(why, FAULT_RANGE, "seq_len is 0; it must be 1 or more");
    return 0;
}

static int open_parts(text_tokens_t *self, struct why *why)
{
    int rc = make_folder(self->dir, why);
    for (int part = 0; rc == 0 && part < PARTS; part++) {
        self->folders[part] = token_dir_path(self->dir, parts[part].folder);
        if (!self->folders[part]) return why_set(why, FAULT_MEMORY, "a path in %s", self->dir);
        rc = make_folder(self->folders[part], why);
        if (rc == 0) rc = durable_file_create(self->folders[part], parts[part].file, why,
                                              &self->files[part]);
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

static int append(struct durable_file *file, const uint8_t *bytes, size_t count, struct why *why)
{
    uint8_t tokens[CHUNK * TOKEN_BYTES];
    for (size_t done = 0; done < count; ) {
        const size_t step = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < step; i++) {
            tokens[2 * i] = bytes[done + i];
            tokens[2 * i + 1] = 0;
        }
        int rc = durable_file_append(file, tokens, step * TOKEN_BYTES, why);
        if (rc < 0) return rc;
        done += step;
    }
    return 0;
}

int text_tokens_add(text_tokens_t *self, const void *bytes, size_t count, struct why *why)
{
    const uint32_t size = self->config.block_bytes, every = self->config.heldout_every;
    const uint8_t *at = bytes;
    for (size_t left = count; left > 0; ) {
        const uint64_t room = size - self->bytes % size;
        const size_t step = left < room ? left : (size_t)room;
        const int part = self->bytes / size % every == every - 1 ? HELDOUT : TRAIN;
        int rc = append(&self->files[part], at, step, why);
        if (rc < 0) return rc;
        self->bytes += step;
        at += step;
        left -= step;
    }
    return 0;
}

static int write_manifest(const char *folder, struct why *why)
{
    struct manifest manifest;
    int rc = manifest_build(folder, TOKEN_BYTES, why, &manifest);
    if (rc < 0) return rc;
    rc = manifest.file_count == 1 ? manifest_write(&manifest, folder, why)
       : why_set(why, FAULT_FORMAT, "%s holds %u token files and only one is ours; move the others"
                 " away", folder, manifest.file_count);
    manifest_free(&manifest);
    return rc;
}

int text_tokens_finish(text_tokens_t *self, struct why *why, struct text_counts *ret_counts)
{
    const struct text_counts counts = { .train = self->files[TRAIN].bytes / TOKEN_BYTES,
                                        .heldout = self->files[HELDOUT].bytes / TOKEN_BYTES };
    int rc = 0;
    if (counts.heldout == 0)
        return why_set(why, FAULT_RANGE, "the text has %llu bytes; to hold one block of %u out of"
                       " every %u it needs more than %llu", (unsigned long long)self->bytes,
                       self->config.block_bytes, self->config.heldout_every,
                       (unsigned long long)self->config.block_bytes
                           * (self->config.heldout_every - 1));
    for (int part = 0; rc == 0 && part < PARTS; part++)
        rc = durable_file_commit(&self->files[part], why);
    if (rc == 0) rc = byte_tokenizer_write(self->dir, self->config.seq_len, why);
    for (int part = 0; rc == 0 && part < PARTS; part++)
        rc = write_manifest(self->folders[part], why);
    if (rc == 0) *ret_counts = counts;
    return rc;
}

// ---- whole files

static int add_file(text_tokens_t *self, const char *path, struct why *why)
{
    int fd;
    uint64_t bytes;
    uint8_t chunk[CHUNK];
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc < 0) return rc;
    for (uint64_t at = 0; rc == 0 && at < bytes; ) {
        const size_t step = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        rc = token_dir_read(fd, path, at, step, chunk, why);
        if (rc == 0) rc = text_tokens_add(self, chunk, step, why);
        at += step;
    }
    close(fd);
    return rc;
}

int text_tokens_convert(const char *const *paths, size_t count, const char *dir,
                        const struct text_config *config, struct why *why,
                        struct text_counts *ret_counts)
{
    text_tokens_t *self;
    int rc = text_tokens_new(dir, config, why, &self);
    if (rc < 0) return rc;
    for (size_t i = 0; rc == 0 && i < count; i++) rc = add_file(self, paths[i], why);
    if (rc == 0) rc = text_tokens_finish(self, why, ret_counts);
    text_tokens_destroy(&self);
    return rc;
}

// Squeezes 2-byte tokens into bytes, in place.
static int squeeze(uint8_t *bytes, size_t count, const char *path, struct why *why)
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
    if (size % TOKEN_BYTES || size / TOKEN_BYTES > bytes_max)
        rc = why_set(why, FAULT_LIMIT, "%s has %llu bytes; it must be even and at most twice %zu",
                     path, (unsigned long long)size, bytes_max);
    else if (!(bytes = malloc(size ? (size_t)size : 1)))
        rc = why_set(why, FAULT_MEMORY, "%s: %llu bytes", path, (unsigned long long)size);
    if (rc == 0) rc = token_dir_read(fd, path, 0, (size_t)size, bytes, why);
    if (rc == 0) rc = squeeze(bytes, (size_t)size / TOKEN_BYTES, path, why);
    close(fd);
    if (rc < 0) {
        free(bytes);
        return rc;
    }
    *ret_bytes = bytes;
    *ret_count = (size_t)size / TOKEN_BYTES;
    return 0;
}
