// samples -- a position becomes a pass and an index; the index goes through the pass's shuffle, if
// there is one, and gives a sample; binary search finds the sample's file, and the offset follows.

#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/data/samples.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t count_max = UINT64_C(1) << 62;

int samples_init(struct samples *self, const struct samples_config *config, struct why *why)
{
    *self = (struct samples){ .config = *config };
    if (config->token_bytes != 2 && config->token_bytes != 4)
        return why_set(why, FAULT_RANGE, "token size is %u bytes; it must be 2 or 4",
                       config->token_bytes);
    if (config->seq_len < 1 || config->seq_len > SAMPLES_SEQ_MAX)
        return why_set(why, FAULT_RANGE, "seq_len is %u; it must be 1 to %d", config->seq_len,
                       SAMPLES_SEQ_MAX);
    return 0;
}

// Makes room for one more file. The room doubles at powers of two, so no capacity need be stored.
static int grow(struct samples *self, struct why *why)
{
    const size_t count = self->file_count;
    if (count & (count - 1)) return 0;
    const size_t capacity = count ? 2 * count : 1;
    struct samples_file *files = realloc(self->files, capacity * sizeof *files);
    if (!files) return why_set(why, FAULT_MEMORY, "a list of %zu token files", capacity);
    self->files = files;
    return 0;
}

int samples_add(struct samples *self, const char *name, uint64_t offset, uint64_t tokens,
                struct why *why)
{
    const uint64_t samples = tokens ? (tokens - 1) / self->config.seq_len : 0;
    if (samples == 0)
        return why_set(why, FAULT_RANGE,
                       "%s has %" PRIu64 " tokens; a sample is seq_len + 1 = %zu of"
                       " them",
                       name, tokens, samples_tokens(self));
    if (self->file_count == SAMPLES_FILES_MAX)
        return why_set(why, FAULT_LIMIT, "%s: more than %d token files", name, SAMPLES_FILES_MAX);
    if (samples >= count_max - self->count)
        return why_set(why, FAULT_LIMIT, "%s: more than 2^62 samples", name);
    int rc = grow(self, why);
    if (rc < 0) return rc;
    char *copy = strdup(name);
    if (!copy) return why_set(why, FAULT_MEMORY, "the name of %s", name);
    self->files[self->file_count++] =
        (struct samples_file){ .name = copy, .offset = offset, .first = self->count };
    self->count += samples;
    return 0;
}

void samples_free(struct samples *self)
{
    for (uint32_t i = 0; i < self->file_count; i++) free(self->files[i].name);
    free(self->files);
    *self = (struct samples){ 0 };
}

size_t samples_tokens(const struct samples *self) { return (size_t)self->config.seq_len + 1; }

size_t samples_bytes(const struct samples *self)
{
    return samples_tokens(self) * self->config.token_bytes;
}

// The last file that begins at or before `sample`.
static uint32_t file_of(const struct samples *self, uint64_t sample)
{
    uint32_t low = 0, high = self->file_count; // It is in [low, high)
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (self->files[middle].first <= sample) low = middle;
        else high = middle;
    }
    return low;
}

struct sample_place samples_locate(struct samples *self, uint64_t position)
{
    ensure(self->count > 0);
    const uint64_t pass = position / self->count;
    uint64_t sample = position % self->count;
    if (self->config.shuffled) {
        if (pass != self->pass || self->shuffle.count != self->count)
            shuffle_init(&self->shuffle, self->count, self->config.seed, pass);
        self->pass = pass;
        sample = shuffle_at(&self->shuffle, sample);
    }
    const uint32_t file = file_of(self, sample);
    const uint64_t token = (sample - self->files[file].first) * self->config.seq_len;
    return (struct sample_place){ .position = position,
                                  .file = file,
                                  .token = token,
                                  .offset =
                                      self->files[file].offset + token * self->config.token_bytes };
}

static uint32_t load(const uint8_t *bytes, uint32_t count)
{
    return (uint32_t)(count == 2 ? le_get(bytes, 2) : le_get(bytes, 4));
}

int samples_decode(const struct samples *self, const struct sample_place *place,
                   const uint8_t *bytes, uint32_t *tokens, struct why *why)
{
    const uint32_t size = self->config.token_bytes, vocab = self->config.vocab_size;
    const size_t count = samples_tokens(self);
    for (size_t i = 0; i < count; i++) {
        tokens[i] = load(bytes + i * size, size);
        if (vocab && tokens[i] >= vocab)
            return why_set(why, FAULT_RANGE,
                           "%s: token %" PRIu64 " is %u and the vocabulary ends below"
                           " %u; the sample at position %" PRIu64 " is refused",
                           self->files[place->file].name, (uint64_t)(place->token + i), tokens[i],
                           vocab, place->position);
    }
    return 0;
}

struct sample_blocks samples_blocks(const struct samples *self, const struct sample_place *place,
                                    uint64_t size)
{
    enum { BLOCK = 4096 };
    const uint64_t first = place->offset / BLOCK;
    const uint64_t end = (place->offset + samples_bytes(self) + BLOCK - 1) / BLOCK;
    const uint64_t stop = end * BLOCK < size ? end * BLOCK : size;
    return (struct sample_blocks){ .first = first,
                                   .end = end,
                                   .bytes = (size_t)(stop - first * BLOCK),
                                   .skip = (size_t)(place->offset - first * BLOCK) };
}
