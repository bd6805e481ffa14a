#include "common/data/remote_files.h"
#include "common/data/npy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct remote_files {
    struct samples samples;                 // Whose names are URLs as texts may show them
    char **urls;                            // Owned; whole, of each file
    uint64_t *sizes;                        // In bytes, of each file when it was opened
    http_range_t *http;
    uint8_t *buffer;                        // One run of samples as they lie in a file
    size_t buffer_bytes;
};

// ---- open

static int check_source(const struct remote_source *source, struct why *why)
{
    if (source->kind == REMOTE_GCP)
        return why_set(why, FAULT_UNSUPPORTED, "Gcp: listing a bucket is not supported; name its"
                       " files as NumberedFiles or SingleUrl"
                       " (https://storage.googleapis.com/BUCKET/NAME)");
    int rc = http_range_check_url(source->url, why);
    if (rc < 0 || source->kind == REMOTE_SINGLE_URL) return rc;
    const char *mark = strstr(source->url, "{}");
    if (!mark || strstr(mark + 2, "{}"))
        return why_set(why, FAULT_CONFIG, "url_template must have exactly one {}, where the number"
                       " goes");
    if (source->num_files < 1 || source->num_files > SAMPLES_FILES_MAX)
        return why_set(why, FAULT_RANGE, "num_files is %u; it must be 1 to %d", source->num_files,
                       SAMPLES_FILES_MAX);
    if (source->n_left_pad_zeros > REMOTE_PAD_MAX)
        return why_set(why, FAULT_RANGE, "n_left_pad_zeros is %u; it must be 0 to %d",
                       source->n_left_pad_zeros, REMOTE_PAD_MAX);
    if (source->start_index > UINT32_MAX - source->num_files)
        return why_set(why, FAULT_RANGE, "start_index is %u; it must be 0 to %u with num_files %u",
                       source->start_index, UINT32_MAX - source->num_files, source->num_files);
    return 0;
}

static void write_url(const struct remote_source *source, uint32_t index, char *url, size_t max)
{
    const char *mark = source->kind == REMOTE_NUMBERED_FILES ? strstr(source->url, "{}") : NULL;
    if (mark)
        snprintf(url, max, "%.*s%0*llu%s", (int)(mark - source->url), source->url,
                 (int)source->n_left_pad_zeros, (unsigned long long)source->start_index + index,
                 mark + 2);
    else
        snprintf(url, max, "%s", source->url);
}

static int read_header(remote_files_t *self, uint32_t file, const char *name, struct why *why,
                       struct npy *ret_npy)
{
    const uint64_t size = self->sizes[file];
    uint8_t header[NPY_HEADER_MAX];
    const size_t count = size < sizeof header ? (size_t)size : sizeof header;
    struct npy npy;
    if (size == 0) return why_set(why, FAULT_FORMAT, "%s is empty", name);
    int rc = http_range_read(self->http, self->urls[file], size, 0, count, header, why);
    if (rc == 0) rc = npy_parse(header, count, size, name, why, &npy);
    if (rc < 0) return rc;
    if (npy.token_bytes != self->samples.config.token_bytes)
        return why_set(why, FAULT_FORMAT, "%s: its tokens have %u bytes and the configured token"
                       " size is %u", name, npy.token_bytes, self->samples.config.token_bytes);
    *ret_npy = npy;
    return 0;
}

static int add_url(remote_files_t *self, const char *url, struct why *why)
{
    const uint32_t token_bytes = self->samples.config.token_bytes, file = self->samples.file_count;
    char name[HTTP_URL_MAX + 1];
    struct npy npy = { 0 };
    http_range_name(url, name);
    if (!(self->urls[file] = strdup(url))) return why_set(why, FAULT_MEMORY, "the URL %s", name);
    int rc = http_range_size(self->http, url, why, &self->sizes[file]);
    if (rc < 0) return rc;
    const uint64_t size = self->sizes[file];
    if (npy_is_name(name))
        rc = read_header(self, file, name, why, &npy);
    else if (size % token_bytes)
        rc = why_set(why, FAULT_FORMAT, "%s has %llu bytes, which is no multiple of the token size"
                     " %u", name, (unsigned long long)size, token_bytes);
    else
        npy.tokens = size / token_bytes;
    return rc < 0 ? rc : samples_add(&self->samples, name, npy.offset, npy.tokens, why);
}

static int add_urls(remote_files_t *self, const struct remote_source *source, struct why *why)
{
    const uint32_t count = source->kind == REMOTE_NUMBERED_FILES ? source->num_files : 1;
    char url[HTTP_URL_MAX + 64];
    int rc = 0;
    self->sizes = calloc(count, sizeof *self->sizes);
    self->urls = calloc(count + 1, sizeof *self->urls);         // Ends with NULL
    if (!self->sizes || !self->urls) return why_set(why, FAULT_MEMORY, "%u files", count);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        write_url(source, i, url, sizeof url);
        rc = add_url(self, url, why);
    }
    return rc;
}

static int make_buffer(remote_files_t *self, struct why *why)
{
    const size_t one = samples_bytes(&self->samples);
    self->buffer_bytes = one > REMOTE_RUN_BYTES ? one : REMOTE_RUN_BYTES;
    self->buffer = malloc(self->buffer_bytes);
    return self->buffer ? 0 : why_set(why, FAULT_MEMORY, "a buffer of %zu bytes",
                                      self->buffer_bytes);
}

int remote_files_open(const struct remote_source *source, const struct http_config *http,
                      const struct samples_config *config, struct why *why,
                      remote_files_t **ret_self)
{
    int rc = check_source(source, why);
    if (rc < 0) return rc;
    remote_files_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a dataset");
    rc = samples_init(&self->samples, config, why);
    if (rc == 0) rc = http_range_new(http, why, &self->http);
    if (rc == 0) rc = add_urls(self, source, why);
    if (rc == 0) rc = make_buffer(self, why);
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
    for (char **url = self->urls; url && *url; url++) free(*url);
    free(self->urls);
    free(self->sizes);
    free(self->buffer);
    free(self);
    *self_p = NULL;
}

uint64_t remote_files_count(const remote_files_t *self) { return self->samples.count; }

// ---- read

// How many of the samples from `place` on, `most` at most, lie end to end in one file and in one
// buffer.
static uint32_t run_length(remote_files_t *self, const struct sample_place *place, uint32_t most)
{
    const uint64_t step = (uint64_t)self->samples.config.seq_len * self->samples.config.token_bytes;
    uint64_t bytes = samples_bytes(&self->samples);
    uint32_t length = 1;
    while (length < most && bytes + step <= self->buffer_bytes) {
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
    int rc = http_range_read(self->http, self->urls[place->file], self->sizes[place->file],
                             place->offset, bytes, self->buffer, why);
    for (uint32_t i = 0; rc == 0 && i < length; i++) {
        const struct sample_place one = samples_locate(&self->samples, place->position + i);
        rc = samples_decode(&self->samples, &one, self->buffer + i * step,
                            tokens + i * samples_tokens(&self->samples), why);
    }
    return rc;
}

int remote_files_read(remote_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why)
{
    if (position > UINT64_MAX - count)
        return why_set(why, FAULT_RANGE, "%u samples from position %llu: beyond the last position"
                       " there is", count, (unsigned long long)position);
    for (uint32_t done = 0; done < count; ) {
        const struct sample_place place = samples_locate(&self->samples, position + done);
        const uint32_t length = run_length(self, &place, count - done);
        int rc = read_run(self, &place, length, tokens + done * samples_tokens(&self->samples),
                          why);
        if (rc < 0) return rc;
        done += length;
    }
    return 0;
}
