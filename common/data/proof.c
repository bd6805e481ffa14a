// proof -- three parts: descriptions are written and parsed, their two hashes are computed, and
// proved samples are checked. Parsing is strict: every length is compared with the bytes that are
// left before it is used, and bytes that are left over at the end are a fault.

#include "common/base/bytes.h"
#include "common/data/proof.h"
#include "common/crypto/merkle.h"
#include "common/data/manifest.h"
#include "common/data/npy.h"
#include "common/data/token_dir.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// ---- bytes --------------------------------------------------------------------------------------

static bool add(struct proof *self, const void *bytes, size_t count)
{
    if (self->count + count > self->max) {
        const size_t max = 2 * (self->count + count);
        uint8_t *grown = realloc(self->bytes, max);
        if (!grown) return false;
        self->bytes = grown;
        self->max = max;
    }
    if (count) memcpy(self->bytes + self->count, bytes, count);
    self->count += count;
    return true;
}

static bool add_number(struct proof *self, uint64_t value, size_t count)
{
    uint8_t bytes[8];
    le_put(bytes, value, count);
    return add(self, bytes, count);
}

struct cursor {
    const uint8_t *at, *end;
};

// The next `count` bytes; NULL if fewer are left.
static const uint8_t *take(struct cursor *self, size_t count)
{
    if (count > (size_t)(self->end - self->at)) return NULL;
    self->at += count;
    return self->at - count;
}

static bool take_number(struct cursor *self, size_t count, uint64_t *ret_value)
{
    const uint8_t *bytes = take(self, count);
    if (bytes) *ret_value = le_get(bytes, count);
    return bytes != NULL;
}

int proof_add(struct proof *self, const struct hash *path, size_t path_count, const uint8_t *blocks,
              size_t bytes, struct why *why)
{
    bool fits = add_number(self, path_count, 4) && add(self, path, path_count * HASH_BYTES) &&
                add(self, blocks, bytes);
    return fits ? 0 : why_set(why, FAULT_MEMORY, "a proof of %zu bytes", bytes);
}

// ---- the description ----------------------------------------------------------------------------

struct hash dataset_positions(const struct samples *samples)
{
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, "shoal-positions-1", 17);
    hasher_add_number(&hasher, samples->config.seq_len, 4);
    hasher_add_number(&hasher, samples->config.shuffled, 4);
    hasher_add(&hasher, samples->config.seed, SHUFFLE_SEED_BYTES);
    for (uint32_t i = 0; i < samples->file_count; i++)
        hasher_add_number(&hasher, samples->files[i].offset, 8);
    return hasher_end(&hasher);
}

struct hash dataset_order_of(const struct samples *samples)
{
    const struct hash positions = dataset_positions(samples);
    return dataset_order(&positions, samples->count);
}

struct hash dataset_digest_of(const struct samples *samples, const struct manifest *manifest)
{
    const struct hash order = dataset_order_of(samples);
    return dataset_digest(&manifest->digest, &order);
}

int dataset_describe(const struct samples *samples, const struct manifest *manifest,
                     struct why *why, uint8_t **ret_bytes, size_t *ret_count)
{
    struct proof out = { 0 };
    bool fits = add_number(&out, samples->config.token_bytes, 4) &&
                add_number(&out, samples->config.seq_len, 4) &&
                add_number(&out, samples->config.shuffled, 4) &&
                add(&out, samples->config.seed, SHUFFLE_SEED_BYTES) &&
                add_number(&out, manifest->file_count, 4);
    for (uint32_t i = 0; fits && i < manifest->file_count; i++) {
        const struct manifest_file *file = &manifest->files[i];
        fits = add_number(&out, strlen(file->name), 4) &&
               add(&out, file->name, strlen(file->name)) && add_number(&out, file->bytes, 8) &&
               add_number(&out, samples->files[i].offset, 8) && add(&out, &file->root, HASH_BYTES);
    }
    int rc = !fits ? why_set(why, FAULT_MEMORY, "a description of %u files", manifest->file_count)
             : out.count > DESCRIPTION_MAX
                 ? why_set(why, FAULT_LIMIT,
                           "%u token files take %zu bytes to describe, at most %d;"
                           " join them into fewer",
                           manifest->file_count, out.count, DESCRIPTION_MAX)
                 : 0;
    if (rc < 0) free(out.bytes);
    else *ret_bytes = out.bytes, *ret_count = out.count;
    return rc;
}

// Whether tokens can begin at that offset, by the rules of token_files.c and remote_files.c.
static bool is_begin_of_tokens(const char *name, uint64_t bytes, uint64_t offset,
                               uint32_t token_bytes)
{
    if (offset >= bytes || offset % token_bytes || (bytes - offset) % token_bytes) return false;
    return npy_is_name(name) ? offset > 0 && offset <= NPY_HEADER_MAX : offset == 0;
}

static int parse_file(struct cursor *in, struct dataset *self, struct why *why)
{
    struct manifest_file *file = &self->manifest.files[self->manifest.file_count];
    const uint32_t token_bytes = self->samples.config.token_bytes;
    char name[TOKEN_NAME_MAX + 1];
    uint64_t length, offset;
    const uint8_t *text = NULL, *root = NULL;
    if (take_number(in, 4, &length) && length >= 1 && length <= TOKEN_NAME_MAX)
        text = take(in, (size_t)length);
    if (text && take_number(in, 8, &file->bytes) && take_number(in, 8, &offset))
        root = take(in, HASH_BYTES);
    if (!root || memchr(text, 0, (size_t)length))
        return why_set(why, FAULT_FORMAT, "file %u of the description is cut off or impossible",
                       self->manifest.file_count);
    memcpy(name, text, (size_t)length);
    name[length] = 0;
    if (!token_dir_is_name(name))
        return why_set(why, FAULT_FORMAT, "file %u of the description has no token file's name",
                       self->manifest.file_count);
    // mutant: data: tokens begin where a provider likes
    if (!is_begin_of_tokens(name, file->bytes, offset, token_bytes))
        return why_set(why, FAULT_FORMAT,
                       "%s of the description: no tokens of %u bytes from byte "
                       "%" PRIu64 " to the end of %" PRIu64 " bytes",
                       name, token_bytes, offset, file->bytes);
    memcpy(&file->root, root, HASH_BYTES);
    if (!(file->name = strdup(name))) return why_set(why, FAULT_MEMORY, "the name of a file");
    self->manifest.file_count++;
    return samples_add(&self->samples, name, offset, (file->bytes - offset) / token_bytes, why);
}

static int parse(struct cursor *in, struct dataset *self, struct why *why)
{
    uint64_t token_bytes, seq_len, shuffled, files;
    const uint8_t *seed = NULL;
    if (take_number(in, 4, &token_bytes) && take_number(in, 4, &seq_len) &&
        take_number(in, 4, &shuffled))
        seed = take(in, SHUFFLE_SEED_BYTES);
    if (!seed || shuffled > 1 || !take_number(in, 4, &files) || files < 1 ||
        files > SAMPLES_FILES_MAX || files > (size_t)(in->end - in->at) / HASH_BYTES)
        return why_set(why, FAULT_FORMAT, "the description is cut off or impossible");
    struct samples_config config = { .token_bytes = (uint32_t)token_bytes,
                                     .seq_len = (uint32_t)seq_len,
                                     .shuffled = shuffled };
    memcpy(config.seed, seed, sizeof config.seed);
    int rc = samples_init(&self->samples, &config, why);
    if (rc < 0) return rc;
    self->manifest.token_bytes = config.token_bytes;
    self->manifest.files = calloc((size_t)files, sizeof *self->manifest.files);
    if (!self->manifest.files) return why_set(why, FAULT_MEMORY, "a list of files");
    for (uint64_t i = 0; rc == 0 && i < files; i++) rc = parse_file(in, self, why);
    if (rc == 0 && in->at != in->end)
        rc = why_set(why, FAULT_FORMAT, "%zu bytes after the description",
                     (size_t)(in->end - in->at));
    return rc;
}

int dataset_parse(const uint8_t *bytes, size_t count, const struct hash *data,
                  const struct hash *order, struct why *why, struct dataset *ret_dataset)
{
    struct dataset self = { .order = { { 0 } } };
    struct cursor in = { bytes, bytes + count };
    int rc = parse(&in, &self, why);
    if (rc == 0) {
        self.manifest.digest = manifest_digest(&self.manifest);
        self.order = dataset_order_of(&self.samples);
        if (!hash_equal(&self.manifest.digest, data) || !hash_equal(&self.order, order))
            rc = why_set(why, FAULT_DIGEST,
                         "the description is not of the dataset that the run is "
                         "bound to");
    }
    if (rc < 0) dataset_free(&self);
    else *ret_dataset = self;
    return rc;
}

void dataset_free(struct dataset *self)
{
    samples_free(&self->samples);
    manifest_free(&self->manifest);
}

// ---- the check ----------------------------------------------------------------------------------

static int check_one(struct dataset *self, uint64_t position, struct cursor *in, uint32_t *tokens,
                     struct why *why)
{
    const struct sample_place place = samples_locate(&self->samples, position);
    const struct manifest_file *file = &self->manifest.files[place.file];
    const struct sample_blocks blocks = samples_blocks(&self->samples, &place, file->bytes);
    struct hash leaves[SAMPLES_SEQ_MAX * 4 / MANIFEST_BLOCK_BYTES + 3], path[MERKLE_RANGE_MAX];
    uint64_t hashes = 0;
    const uint8_t *raw = NULL, *bytes = NULL;
    if (take_number(in, 4, &hashes) && hashes <= MERKLE_RANGE_MAX)
        raw = take(in, (size_t)hashes * HASH_BYTES);
    if (raw) bytes = take(in, blocks.bytes);
    if (!bytes)
        return why_set(why, FAULT_FORMAT,
                       "the proof of the sample at position %" PRIu64 " is cut off", position);
    memcpy(path, raw, (size_t)hashes * HASH_BYTES);
    for (uint64_t i = 0; i < blocks.end - blocks.first; i++) {
        const size_t rest = blocks.bytes - (size_t)i * MANIFEST_BLOCK_BYTES;
        leaves[i] = merkle_leaf(bytes + i * MANIFEST_BLOCK_BYTES,
                                rest < MANIFEST_BLOCK_BYTES ? rest : MANIFEST_BLOCK_BYTES);
    }
    if (!merkle_check_range(&file->root, manifest_block_count(file->bytes), blocks.first,
                            blocks.end, leaves, path, (size_t)hashes))
        return why_set(why, FAULT_DIGEST,
                       "the sample at position %" PRIu64 " is not of the dataset", position);
    return samples_decode(&self->samples, &place, bytes + blocks.skip, tokens, why);
}

int dataset_check(struct dataset *self, uint64_t position, uint32_t count, const uint8_t *bytes,
                  size_t bytes_count, uint32_t *tokens, struct why *why)
{
    struct cursor in = { bytes, bytes + bytes_count };
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = check_one(self, position + i, &in, tokens + i * samples_tokens(&self->samples), why);
    if (rc == 0 && in.at != in.end)
        rc = why_set(why, FAULT_FORMAT, "%zu bytes after the proofs", (size_t)(in.end - in.at));
    return rc;
}
