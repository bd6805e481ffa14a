#include "common/data/provider.h"
#include <inttypes.h>
#include <stdlib.h>

enum kind { LOCAL, HTTP, FETCH };

struct provider {
    enum kind kind;
    struct samples_config config;
    union {
        token_files_t *local;
        remote_files_t *http;
        struct provider_fetch fetch;
    };
};

static int make(enum kind kind, const struct samples_config *config, struct why *why,
                provider_t **ret_self)
{
    provider_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a data provider");
    self->kind = kind;
    self->config = *config;
    *ret_self = self;
    return 0;
}

int provider_open_local(const char *dir, const struct samples_config *config, struct why *why,
                        provider_t **ret_self)
{
    provider_t *self = NULL;
    int rc = make(LOCAL, config, why, &self);
    if (rc < 0) return rc;
    rc = token_files_open(dir, config, why, &self->local);
    if (rc < 0) free(self);
    else *ret_self = self;
    return rc;
}

int provider_open_http(const struct remote_source *source, const struct http_config *http,
                       const struct samples_config *config, struct why *why, provider_t **ret_self)
{
    provider_t *self = NULL;
    int rc = make(HTTP, config, why, &self);
    if (rc < 0) return rc;
    rc = remote_files_open(source, http, config, why, &self->http);
    if (rc < 0) free(self);
    else *ret_self = self;
    return rc;
}

int provider_open_fetch(const struct provider_fetch *fetch, const struct samples_config *config,
                        struct why *why, provider_t **ret_self)
{
    struct samples checked;
    provider_t *self = NULL;
    int rc = samples_init(&checked, config, why);
    if (rc == 0 && fetch->count == 0)
        rc = why_set(why, FAULT_RANGE, "the source of samples has none; it must have 1 or more");
    if (rc == 0) rc = make(FETCH, config, why, &self);
    if (rc < 0) return rc;
    self->fetch = *fetch;
    *ret_self = self;
    return 0;
}

void provider_close(provider_t **self_p)
{
    provider_t *self = *self_p;
    if (!self) return;
    switch (self->kind) {
    case LOCAL: token_files_close(&self->local); break;
    case HTTP: remote_files_close(&self->http); break;
    case FETCH:
        if (self->fetch.close) self->fetch.close(self->fetch.context);
        break;
    }
    free(self);
    *self_p = NULL;
}

uint64_t provider_count(const provider_t *self)
{
    switch (self->kind) {
    case LOCAL: return token_files_count(self->local);
    case HTTP: return remote_files_count(self->http);
    default: return self->fetch.count;
    }
}

uint32_t provider_seq_len(const provider_t *self) { return self->config.seq_len; }

const struct hash *provider_digest(const provider_t *self)
{
    switch (self->kind) {
    case LOCAL: return token_files_digest(self->local);
    case HTTP: return remote_files_digest(self->http);
    default: return NULL;
    }
}

token_files_t *provider_files(provider_t *self) { return self->kind == LOCAL ? self->local : NULL; }

// A callback's tokens come from elsewhere, so they are checked here; the other two kinds check
// their tokens where they decode them.
static int fetch(provider_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                 struct why *why)
{
    const size_t length = (size_t)self->config.seq_len + 1;
    const uint32_t vocab = self->config.vocab_size;
    int rc = self->fetch.fetch(self->fetch.context, position, count, tokens, why);
    if (rc < 0 || vocab == 0) return rc;
    for (size_t i = 0; i < count * length; i++)
        if (tokens[i] >= vocab)
            return why_set(why, FAULT_RANGE,
                           "fetched sample at position %" PRIu64 ": token %zu is %u and"
                           " the vocabulary ends below %u; the samples are refused",
                           (uint64_t)(position + i / length), i % length, tokens[i], vocab);
    return 0;
}

struct hash provider_dataset_digest(provider_t *self)
{
    const token_files_t *files = provider_files(self);
    const struct manifest *manifest = files ? token_files_manifest(files) : NULL;
    return manifest ? dataset_digest_of(token_files_samples(files), manifest)
                    : (struct hash){ { 0 } };
}

int provider_read(provider_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                  struct why *why)
{
    if (count == 0) return 0;
    switch (self->kind) {
    case LOCAL: return token_files_read(self->local, position, count, tokens, why);
    case HTTP: return remote_files_read(self->http, position, count, tokens, why);
    default: return fetch(self, position, count, tokens, why);
    }
}
