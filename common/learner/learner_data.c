// Where a learner's samples come from. CONFIG names one of three sources: data-provider actors, a
// folder of this machine, or a web server. A folder needs a manifest, by which its bytes are
// checked; data-providers prove each sample against the dataset that the run is bound to; the web
// server's files are checked if the run pins a manifest. The source is opened at BUILD, or later if
// a web server is down.

#include "common/base/log.h"
#include "common/data/source.h"
#include "common/learner/learner_inside.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int know_dataset(void *arg, const uint8_t *bytes, size_t count, struct why *why)
{
    struct learner *self = arg;
    struct dataset dataset;
    int rc = dataset_parse(bytes, count, &self->data, &self->order, why, &dataset);
    if (rc < 0) return rc;
    if (dataset.samples.config.seq_len != self->config.seq_len) {
        rc = why_set(why, FAULT_RANGE, "its samples are of seq_len %u, the run's of %u",
                     dataset.samples.config.seq_len, self->config.seq_len);
        dataset_free(&dataset);
        return rc;
    }
    dataset.samples.config.vocab_size = self->shape.vocab;
    dataset_free(&self->dataset);
    self->dataset = dataset;
    return 0;
}

static int take_samples(void *arg, uint64_t position, uint32_t count, const uint8_t *bytes,
                        size_t bytes_count, uint32_t *tokens, struct why *why)
{
    struct learner *self = arg;
    return dataset_check(&self->dataset, position, count, bytes, bytes_count, tokens, why);
}

static void refuse_provider(void *arg, const char *endpoint, const char *reason)
{
    (void)arg;
    log_line(LOG_WARNING, "data.refused provider=%s reason=\"%s\"; another one is asked", endpoint,
             reason);
}

static bool is_known(const struct learner *self)
{
    return self->dataset.manifest.file_count > 0 &&
           hash_equal(&self->dataset.manifest.digest, &self->data) &&
           hash_equal(&self->dataset.order, &self->order);
}

static int fetch_samples(void *context, uint64_t position, uint32_t count, uint32_t *tokens,
                         struct why *why)
{
    struct learner *self = context;
    if (self->providers_count == 0)
        return why_set(why, FAULT_UNREACHABLE, "no data-provider has joined the run; start one");
    bulk_client_set_providers(self->client, self->providers, self->providers_count);
    int rc = is_known(self) ? 0 : bulk_know_dataset(self->client, why);
    return rc < 0 ? rc : bulk_read_samples(self->client, position, count, tokens, why);
}

static void refuse_server(void *arg, const char *reason, const char *next)
{
    (void)arg;
    log_line(LOG_WARNING, "data.refused reason=\"%s\"; %s", reason, next);
}

static int open_web(struct learner *self, const struct samples_config *samples, struct why *why)
{
    const struct source_check check = { .manifest_digest = self->config.data_digest,
                                        .refused = refuse_server };
    if (hash_is_none(&check.manifest_digest))
        log_line(LOG_WARNING,
                 "data.unpinned source=http; [data] manifest_digest is not set, so what the web "
                 "server sends is believed");
    return source_open(&self->config.data, samples, &check, why, &self->provider);
}

// Opens without asking: a data-provider that has the samples may join later.
static int open_client(struct learner *self, const struct samples_config *samples, struct why *why)
{
    struct provider_fetch fetch = { .fetch = fetch_samples, .context = self, .count = 1 };
    // A short wait: the core retries, with the providers that have joined by then
    struct bulk_client_options client = { .identity = self->options->identity,
                                          .run = self->options->run_id,
                                          .seq_len = self->config.seq_len,
                                          .patience_ms = 1500,
                                          .rounds_max = 2,
                                          .take = take_samples,
                                          .know = know_dataset,
                                          .refused = refuse_provider,
                                          .arg = self };
    int rc = bulk_client_new(&client, why, &self->client);
    return rc < 0 ? rc : provider_open_fetch(&fetch, samples, why, &self->provider);
}

static int open_source(struct learner *self, struct why *why)
{
    const struct wire_data_source *data = &self->config.data;
    const struct samples_config samples = { .seq_len = self->config.seq_len,
                                            .vocab_size = self->shape.vocab,
                                            .token_bytes = data->token_bytes };
    if (data->kind == DATA_SERVER) return open_client(self, &samples, why);
    if (data->kind != DATA_LOCAL) return open_web(self, &samples, why);
    return source_open_folder(data, &samples, &self->config.data_digest, why, &self->provider);
}

// A web server that is down or lies is no fault yet: it is opened again when samples are wanted.
int learner_open_data(struct learner *self, struct why *why)
{
    const bool web = self->config.data.kind == DATA_URL || self->config.data.kind == DATA_NUMBERED;
    int rc = open_source(self, why);
    if (!web || (rc != FAULT_UNREACHABLE && rc != FAULT_TIMEOUT && rc != FAULT_DIGEST &&
                 rc != FAULT_CORRUPT))
        return rc;
    log_line(LOG_WARNING, "data.unavailable reason=\"%s\"; asked again when samples are wanted",
             why->text);
    return 0;
}

void learner_close_data(struct learner *self)
{
    provider_close(&self->provider);
    bulk_client_destroy(&self->client);
    dataset_free(&self->dataset);
}

int learner_read_samples(struct learner *self, const struct learner_samples *samples,
                         struct why *why, uint64_t *ret_count)
{
    const uint64_t row = (uint64_t)self->config.seq_len + 1;
    const uint64_t count = interval_list_total(samples->list, samples->list_count);
    if (count == 0 || count > 65535) return why_set(why, FAULT_RANGE, "%" PRIu64 " samples", count);
    if (count * row > self->tokens_max) {
        free(self->tokens);
        self->tokens = malloc(count * row * sizeof *self->tokens);
        self->tokens_max = self->tokens ? count * row : 0;
        if (!self->tokens) return why_set(why, FAULT_MEMORY, "%" PRIu64 " samples", count);
    }
    self->data = samples->data;
    self->order = samples->order;
    self->providers_count = samples->providers_count;
    if (samples->providers_count)
        memcpy(self->providers, samples->providers,
               samples->providers_count * sizeof *samples->providers);
    if (!self->provider) {
        int rc = open_source(self, why);
        if (rc < 0) return rc;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < samples->list_count; i++) {
        uint32_t n = (uint32_t)(samples->list[i].end - samples->list[i].begin);
        int rc =
            provider_read(self->provider, samples->list[i].begin, n, self->tokens + at * row, why);
        if (rc < 0) return rc;
        at += n;
    }
    *ret_count = count;
    return 0;
}
