#include "common/data/source.h"

#include <stdio.h>
#include <string.h>

int source_of_config(const struct run_config *config, struct why *why,
                     struct wire_data_source *ret_source)
{
    struct wire_data_source source = { .token_bytes = 2 };
    int rc = 0;
    if (config->data_location == CONFIG_DATA_SERVER) {
        source.kind = DATA_SERVER;
        snprintf(source.where, sizeof source.where, "%s", config->data_server);
    } else if (config->data_location == CONFIG_DATA_LOCAL) {
        source.kind = DATA_LOCAL;
        rc = config_resolve(&config->origin, config->data_local, source.where, sizeof source.where);
    } else {
        if (config->http_location == CONFIG_LOCATION_GCP)
            return why_set(why, FAULT_UNSUPPORTED,
                           "data_location Http.location.Gcp: buckets are not listed; "
                           "name the files with NumberedFiles");
        source.kind = config->http_location == CONFIG_LOCATION_URL ? DATA_URL : DATA_NUMBERED;
        snprintf(source.where, sizeof source.where, "%s", config->http_url);
        snprintf(source.mirror, sizeof source.mirror, "%s", config->data_mirror);
        source.token_bytes = (uint8_t)config_token_bytes(config->http_token_size);
        source.seeded = config->http_shuffle == CONFIG_SHUFFLE_SEEDED;
        memcpy(source.seed, config->http_seed, sizeof source.seed);
        source.first = (uint32_t)config->http_file_first;
        source.digits = (uint32_t)config->http_file_digits;
        source.count = (uint32_t)config->http_file_count;
    }
    if (rc < 0) return why_set(why, rc, "data_location Local: the path is too long");
    *ret_source = source;
    return 0;
}

int source_of_data_config(const struct data_config *config, struct why *why,
                          struct wire_data_source *ret_source)
{
    struct wire_data_source source = { .kind = DATA_LOCAL,
                                       .seeded = true,
                                       .token_bytes =
                                           (uint8_t)config_token_bytes(config->token_size) };
    memcpy(source.seed, config->shuffle_seed, sizeof source.seed);
    int rc = config_resolve(&config->origin, config->dir, source.where, sizeof source.where);
    if (rc < 0) return why_set(why, rc, "dir: the path is too long");
    *ret_source = source;
    return 0;
}

static struct remote_source remote_of(const struct wire_data_source *source,
                                      const struct hash *manifest_digest)
{
    return (struct remote_source){ .kind = source->kind == DATA_URL ? REMOTE_SINGLE_URL
                                                                    : REMOTE_NUMBERED_FILES,
                                   .url = source->where,
                                   .mirror = source->mirror[0] ? source->mirror : NULL,
                                   .manifest_digest = *manifest_digest,
                                   .start_index = source->first,
                                   .num_files = source->count,
                                   .n_left_pad_zeros = source->digits };
}

int source_check_web(const struct wire_data_source *source, const struct hash *manifest_digest,
                     struct why *why)
{
    const struct remote_source remote = remote_of(source, manifest_digest);
    return remote_source_check(&remote, why);
}

int source_open(const struct wire_data_source *source, const struct samples_config *wanted,
                const struct source_check *check, struct why *why, provider_t **ret_provider)
{
    struct samples_config samples = *wanted;
    samples.token_bytes = source->token_bytes;
    samples.shuffled = source->seeded;
    memcpy(samples.seed, source->seed, sizeof samples.seed);
    if (source->kind == DATA_SERVER)
        return why_set(why, FAULT_UNSUPPORTED,
                       "the tokens come from the actor %s; only a member of a run can ask it",
                       source->where);
    if (source->kind == DATA_LOCAL)
        return provider_open_local(source->where, &samples, why, ret_provider);
    struct http_config http = HTTP_CONFIG_DEFAULT;
    http.refused = check->refused;
    http.arg = check->arg;
    const struct remote_source remote = remote_of(source, &check->manifest_digest);
    return provider_open_http(&remote, &http, &samples, why, ret_provider);
}

int source_open_folder(const struct wire_data_source *source, const struct samples_config *samples,
                       const struct hash *pin, struct why *why, provider_t **ret_provider)
{
    provider_t *provider;
    int rc = source_open(source, samples, NULL, why, &provider);
    if (rc < 0) return rc;
    const struct hash *digest = provider_digest(provider);
    if (!digest)
        rc = why_set(why, FAULT_NOT_FOUND,
                     "%s has no " MANIFEST_NAME
                     ", by which trainers check the samples; make it with "
                     "`shoal manifest %s --token-bytes %u`",
                     source->where, source->where, source->token_bytes);
    else if (!hash_is_none(pin) && !hash_equal(digest, pin))
        rc = why_set(why, FAULT_DIGEST, "%s is another dataset than [data] manifest_digest names",
                     source->where);
    if (rc == 0) *ret_provider = provider;
    else provider_close(&provider);
    return rc;
}
