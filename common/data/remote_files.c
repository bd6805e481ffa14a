// remote_files -- opening loads the manifest (if its digest is given), then the size and header of
// each file. A read is cut into runs of samples that lie end to end in one file. With a manifest
// each request is widened to whole blocks, or to a whole MiB where its block hashes are not known,
// and every block is checked before a token of it is decoded.

#include "common/data/remote_files.h"
#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/data/block_tree.h"
#include "common/data/npy.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct remote_files {
    struct samples samples;      // Its files are named by their URLs without secrets
    struct remote_source source; // Its texts are owned
    uint64_t *sizes;             // In bytes, of each file
    uint32_t *listed;            // Of each file: its index in the manifest
    struct manifest manifest;    // All zero without one
    struct block_tree *tree;     // NULL without one
    bool no_blocks;              // A request for NAME.blocks failed: none is made again
    http_range_t *http;
    uint8_t *buffer;  // One run of samples as they lie in a file
    size_t run_bytes; // Length of the longest run; the buffer has more room, for widened requests
};

static bool is_proved(const remote_files_t *self) { return self->tree != NULL; }

static const char *name_of(const remote_files_t *self, uint32_t file)
{
    return self->manifest.files[self->listed[file]].name;
}

// ---- bytes of a file, checked if there is a manifest --------------------------------------------

// The bytes that a request asks for: those that are needed, widened to blocks that can be proved.
struct window {
    remote_files_t *self;
    uint32_t file;
    uint64_t begin, end;
};

static uint64_t before(uint64_t at, uint64_t step) { return at / step * step; }
static uint64_t after(uint64_t at, uint64_t step) { return (at + step - 1) / step * step; }

struct wanted {
    remote_files_t *self;
    uint32_t file;
    uint64_t leaf;
};

static int take_blocks(void *arg, const uint8_t *bytes, size_t count, struct why *why)
{
    const struct wanted *wanted = arg;
    remote_files_t *self = wanted->self;
    struct hash blocks[MANIFEST_LEAF_BLOCKS];
    ensure(count <= sizeof blocks);
    memcpy(blocks, bytes, count);
    return block_tree_take(self->tree, self->listed[wanted->file], wanted->leaf, blocks,
                           name_of(self, wanted->file), why);
}

// Whether the hashes of a MiB's blocks are known; tries to fetch them from NAME.blocks. A failure
// is no fault: from then on no block hashes are asked for, and each MiB is fetched whole.
static bool knows(remote_files_t *self, uint32_t file, uint64_t leaf)
{
    const uint32_t listed = self->listed[file];
    struct wanted wanted = { self, file, leaf };
    struct hash blocks[MANIFEST_LEAF_BLOCKS];
    struct remote_urls urls;
    if (block_tree_known(self->tree, listed, leaf)) return true;
    if (self->no_blocks) return false;
    const uint64_t before = leaf * MANIFEST_LEAF_BLOCKS,
                   all = manifest_block_count(self->sizes[file]);
    const uint64_t count =
        all - before < MANIFEST_LEAF_BLOCKS ? all - before : MANIFEST_LEAF_BLOCKS;
    const struct http_part part = { .size = all * HASH_BYTES,
                                    .offset = before * HASH_BYTES,
                                    .count = (size_t)count * HASH_BYTES,
                                    .out = blocks,
                                    .check = take_blocks,
                                    .arg = &wanted,
                                    .spare = true };
    remote_source_blocks(&self->source, file, &urls);
    self->no_blocks = http_range_read(self->http, &urls.places, &part, NULL) < 0;
    return !self->no_blocks;
}

// Widens to whole blocks; at either end to the whole MiB, if the hashes of its blocks are not
// known.
static struct window widen(remote_files_t *self, uint32_t file, uint64_t offset, size_t count)
{
    struct window window = { self, file, offset, offset + count };
    if (!is_proved(self)) return window;
    const bool has_first = knows(self, file, offset / MANIFEST_LEAF_BYTES),
               has_last = knows(self, file, (window.end - 1) / MANIFEST_LEAF_BYTES);
    window.begin = before(offset, has_first ? MANIFEST_BLOCK_BYTES : MANIFEST_LEAF_BYTES);
    window.end = after(window.end, has_last ? MANIFEST_BLOCK_BYTES : MANIFEST_LEAF_BYTES);
    if (window.end > self->sizes[file]) window.end = self->sizes[file];
    return window;
}

static int check_blocks(const struct window *window, uint64_t at, const uint8_t *bytes,
                        size_t count, const struct hash *leaf, struct why *why)
{
    for (size_t done = 0; done < count; done += MANIFEST_BLOCK_BYTES) {
        const size_t rest = count - done;
        const struct hash hash =
            merkle_leaf(bytes + done, rest < MANIFEST_BLOCK_BYTES ? rest : MANIFEST_BLOCK_BYTES);
        const uint64_t block = (at + done) / MANIFEST_BLOCK_BYTES % MANIFEST_LEAF_BLOCKS;
        if (!hash_equal(&hash, &leaf[block]))
            return why_set(why, FAULT_DIGEST,
                           "%s: the block that begins at byte %" PRIu64
                           " differs from " MANIFEST_NAME "; nothing is read from it",
                           name_of(window->self, window->file), (uint64_t)(at + done));
    }
    return 0;
}

static int check_window(void *arg, const uint8_t *bytes, size_t count, struct why *why)
{
    const struct window *window = arg;
    remote_files_t *self = window->self;
    const uint32_t listed = self->listed[window->file];
    int rc = 0;
    ensure(count == window->end - window->begin);
    for (uint64_t at = window->begin, next; rc == 0 && at < window->end; at = next) {
        const uint64_t leaf = at / MANIFEST_LEAF_BYTES;
        const struct hash *known = block_tree_known(self->tree, listed, leaf);
        const uint8_t *here = bytes + (at - window->begin);
        next = (leaf + 1) * MANIFEST_LEAF_BYTES < window->end ? (leaf + 1) * MANIFEST_LEAF_BYTES
                                                              : window->end;
        if (known) {
            rc = check_blocks(window, at, here, (size_t)(next - at), known, why);
        } else {
            ensure(next - at == manifest_leaf_bytes(&self->manifest.files[listed], leaf));
            rc = block_tree_check(self->tree, listed, leaf, here, name_of(self, window->file), why);
        }
    }
    return rc;
}

// Reads [offset, offset + count) of a file into the buffer; *ret_bytes points to the first byte.
static int fetch(remote_files_t *self, uint32_t file, uint64_t offset, size_t count,
                 struct why *why, const uint8_t **ret_bytes)
{
    struct window window = widen(self, file, offset, count);
    struct remote_urls urls;
    const struct http_part part = { .size = self->sizes[file],
                                    .offset = window.begin,
                                    .count = (size_t)(window.end - window.begin),
                                    .out = self->buffer,
                                    .arg = &window,
                                    .check = is_proved(self) ? check_window : NULL };
    remote_source_file(&self->source, file, &urls);
    int rc = http_range_read(self->http, &urls.places, &part, why);
    if (rc == 0) *ret_bytes = self->buffer + (offset - window.begin);
    return rc;
}

// ---- open ---------------------------------------------------------------------------------------

static int take_manifest(void *arg, const uint8_t *bytes, size_t count, struct why *why)
{
    remote_files_t *self = arg;
    struct manifest manifest;
    int rc = manifest_parse((const char *)bytes, count, MANIFEST_NAME, why, &manifest);
    if (rc == FAULT_MEMORY) return rc;
    if (rc < 0) return why_wrap(why, FAULT_DIGEST, "it does not match [data] manifest_digest");
    if (hash_equal(&manifest.digest, &self->source.manifest_digest)) {
        self->manifest = manifest;
        return 0;
    }
    manifest_free(&manifest);
    return why_set(why, FAULT_DIGEST, "it does not match [data] manifest_digest");
}

static int load_manifest(remote_files_t *self, struct why *why)
{
    struct remote_urls urls;
    if (hash_is_none(&self->source.manifest_digest)) return 0;
    remote_source_manifest(&self->source, &urls);
    int rc =
        http_range_whole(self->http, &urls.places, MANIFEST_TEXT_MAX, take_manifest, self, why);
    if (rc == FAULT_NOT_FOUND)
        return why_wrap(why, rc,
                        "there is no manifest beside the files; make it with `shoal "
                        "manifest` and put it there");
    if (rc < 0) return rc;
    if (self->manifest.token_bytes != self->samples.config.token_bytes)
        return why_set(why, FAULT_DIGEST,
                       MANIFEST_NAME ": token_bytes is %u and the configured "
                                     "token size is %u",
                       self->manifest.token_bytes, self->samples.config.token_bytes);
    return block_tree_new(&self->manifest, why, &self->tree);
}

static int compare_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct manifest_file *)file)->name);
}

// The size of the file: from the manifest, else by a HEAD request.
static int find_size(remote_files_t *self, uint32_t file, const char *name, struct why *why)
{
    const struct manifest *manifest = &self->manifest;
    struct remote_urls urls;
    if (!is_proved(self)) {
        remote_source_file(&self->source, file, &urls);
        return http_range_size(self->http, &urls.places, why, &self->sizes[file]);
    }
    const struct manifest_file *found = bsearch(strrchr(name, '/') + 1, manifest->files,
                                                manifest->file_count, sizeof *found, compare_name);
    if (!found) return why_set(why, FAULT_DIGEST, "%s: " MANIFEST_NAME " names no such file", name);
    self->listed[file] = (uint32_t)(found - manifest->files);
    self->sizes[file] = found->bytes;
    return 0;
}

static int read_header(remote_files_t *self, uint32_t file, const char *name, struct why *why,
                       struct npy *ret_npy)
{
    const uint64_t size = self->sizes[file];
    const size_t count = size < NPY_HEADER_MAX ? (size_t)size : NPY_HEADER_MAX;
    const uint8_t *header;
    struct npy npy;
    if (size == 0) return why_set(why, FAULT_FORMAT, "%s is empty", name);
    int rc = fetch(self, file, 0, count, why, &header);
    if (rc == 0) rc = npy_parse(header, count, size, name, why, &npy);
    if (rc < 0) return rc;
    if (npy.token_bytes != self->samples.config.token_bytes)
        return why_set(why, FAULT_FORMAT,
                       "%s: its tokens have %u bytes and the configured token"
                       " size is %u",
                       name, npy.token_bytes, self->samples.config.token_bytes);
    *ret_npy = npy;
    return 0;
}

static int add_file(remote_files_t *self, uint32_t file, struct why *why)
{
    const uint32_t token_bytes = self->samples.config.token_bytes;
    struct remote_urls urls;
    struct npy npy = { 0 };
    char name[HTTP_URL_MAX + 1];
    remote_source_file(&self->source, file, &urls);
    http_range_name(urls.text[0], name);
    int rc = find_size(self, file, name, why);
    if (rc < 0) return rc;
    const uint64_t size = self->sizes[file];
    if (npy_is_name(name)) rc = read_header(self, file, name, why, &npy);
    else if (size % token_bytes)
        rc = why_set(why, FAULT_FORMAT,
                     "%s has %" PRIu64 " bytes, which is not a multiple of the token size"
                     " %u",
                     name, size, token_bytes);
    else npy.tokens = size / token_bytes;
    return rc < 0 ? rc : samples_add(&self->samples, name, npy.offset, npy.tokens, why);
}

static int keep_source(remote_files_t *self, const struct remote_source *source, struct why *why)
{
    const uint32_t count = remote_source_count(source);
    self->source = *source;
    self->source.url = strdup(source->url);
    self->source.mirror = source->mirror ? strdup(source->mirror) : NULL;
    self->sizes = calloc(count, sizeof *self->sizes);
    self->listed = calloc(count, sizeof *self->listed);
    if (self->source.url && !source->mirror == !self->source.mirror && self->sizes && self->listed)
        return 0;
    return why_set(why, FAULT_MEMORY, "%u files", count);
}

static int make_buffer(remote_files_t *self, struct why *why)
{
    const size_t one = samples_bytes(&self->samples);
    self->run_bytes = one > REMOTE_RUN_BYTES ? one : REMOTE_RUN_BYTES;
    self->buffer = malloc(self->run_bytes + 2 * MANIFEST_LEAF_BYTES); // Widened at both ends
    return self->buffer ? 0 : why_set(why, FAULT_MEMORY, "a buffer of %zu bytes", self->run_bytes);
}

int remote_files_open(const struct remote_source *source, const struct http_config *http,
                      const struct samples_config *config, struct why *why,
                      remote_files_t **ret_self)
{
    int rc = remote_source_check(source, why);
    if (rc < 0) return rc;
    remote_files_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a dataset");
    rc = samples_init(&self->samples, config, why);
    if (rc == 0) rc = keep_source(self, source, why);
    if (rc == 0) rc = make_buffer(self, why);
    if (rc == 0) rc = http_range_new(http, why, &self->http);
    if (rc == 0) rc = load_manifest(self, why);
    for (uint32_t i = 0; rc == 0 && i < remote_source_count(source); i++)
        rc = add_file(self, i, why);
    if (rc < 0) remote_files_close(&self);
    else *ret_self = self;
    return rc;
}

void remote_files_close(remote_files_t **self_p)
{
    remote_files_t *self = *self_p;
    if (!self) return;
    samples_free(&self->samples);
    http_range_destroy(&self->http);
    block_tree_destroy(&self->tree);
    manifest_free(&self->manifest);
    free((char *)(uintptr_t)self->source.url);
    free((char *)(uintptr_t)self->source.mirror);
    free(self->sizes);
    free(self->listed);
    free(self->buffer);
    free(self);
    *self_p = NULL;
}

uint64_t remote_files_count(const remote_files_t *self) { return self->samples.count; }

const struct hash *remote_files_digest(const remote_files_t *self)
{
    return is_proved(self) ? &self->manifest.digest : NULL;
}

// ---- read ---------------------------------------------------------------------------------------

// How many of the samples from `place` on, `most` at most, lie end to end in one file and in one
// buffer.
static uint32_t run_length(remote_files_t *self, const struct sample_place *place, uint32_t most)
{
    const uint64_t step = (uint64_t)self->samples.config.seq_len * self->samples.config.token_bytes;
    uint64_t bytes = samples_bytes(&self->samples);
    uint32_t length = 1;
    while (length < most && bytes + step <= self->run_bytes) {
        const struct sample_place next = samples_locate(&self->samples, place->position + length);
        if (next.file != place->file || next.offset != place->offset + length * step) break;
        bytes += step;
        length++;
    }
    return length;
}

static int read_run(remote_files_t *self, const struct sample_place *place, uint32_t length,
                    uint32_t *tokens, struct why *why)
{
    const uint64_t step = (uint64_t)self->samples.config.seq_len * self->samples.config.token_bytes;
    const size_t bytes = samples_bytes(&self->samples) + (size_t)((length - 1) * step);
    const uint8_t *run;
    int rc = fetch(self, place->file, place->offset, bytes, why, &run);
    for (uint32_t i = 0; rc == 0 && i < length; i++) {
        const struct sample_place one = samples_locate(&self->samples, place->position + i);
        rc = samples_decode(&self->samples, &one, run + i * step,
                            tokens + i * samples_tokens(&self->samples), why);
    }
    return rc;
}

int remote_files_read(remote_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why)
{
    if (position > UINT64_MAX - count)
        return why_set(why, FAULT_RANGE,
                       "%u samples from position %" PRIu64 ": beyond the last position"
                       " there is",
                       count, position);
    for (uint32_t done = 0; done < count;) {
        const struct sample_place place = samples_locate(&self->samples, position + done);
        const uint32_t length = run_length(self, &place, count - done);
        int rc =
            read_run(self, &place, length, tokens + done * samples_tokens(&self->samples), why);
        if (rc < 0) return rc;
        done += length;
    }
    return 0;
}
