#include "common/config/run_config.h"

#include <string.h>

#include "common/base/ensure.h"
#include "common/config/rules.h"
#include "common/config/value.h"

int config_load_run(const char *path, struct run_config *ret_config, struct config_faults *faults)
{
    struct run_config config;
    memset(&config, 0, sizeof config);
    const int rc = config_load_file(&config_run_schema, path, config_run_rules, &config,
                                    &config.origin, faults);
    if (rc == 0) *ret_config = config;
    return rc;
}

static bool counts(const struct config_key *key, const struct run_config *config)
{
    return key->scope == CONFIG_RUN && config_path_active(&config_run_schema, key->path, config) &&
           config_value_is_set(key, config);
}

size_t config_canonical(const struct run_config *config, char ret_bytes[CONFIG_CANONICAL_MAX])
{
    struct config_text out = config_text_in(ret_bytes, CONFIG_CANONICAL_MAX);
    config_text_add(&out, "shoal run 1\n");
    for (size_t i = 0; i < config_run_schema.count; i++) {
        const struct config_key *key = &config_run_schema.keys[i];
        if (!counts(key, config)) continue;
        config_text_add(&out, "%s = ", key->path);
        config_value_print(key, config, &out);
        config_text_add(&out, "\n");
    }
    ensure(!out.cut);
    return out.count;
}

bool config_sums(const struct run_config *config)
{
    return config->strategy == CONFIG_STRATEGY_ALLREDUCE ||
           config->strategy == CONFIG_STRATEGY_SHARDED ||
           config->strategy == CONFIG_STRATEGY_SERVER;
}

uint32_t config_servers(const struct run_config *config)
{
    return config->strategy == CONFIG_STRATEGY_SERVER ? (uint32_t)config->servers : 0;
}

bool config_is_async(const struct run_config *config)
{
    return config->strategy == CONFIG_STRATEGY_SERVER &&
           config->server_mode == CONFIG_SERVER_MODE_ASYNC;
}

bool config_shares(const struct run_config *config)
{
    return config->strategy == CONFIG_STRATEGY_SHARDED ||
           config->strategy == CONFIG_STRATEGY_SERVER;
}

struct hash config_digest(const struct run_config *config)
{
    char bytes[CONFIG_CANONICAL_MAX];
    const size_t count = config_canonical(config, bytes);
    return hash_of(bytes, count);
}

static void print_counting(const struct config_key *key, const struct run_config *config,
                           char text[CONFIG_VALUE_MAX])
{
    struct config_text out = config_text_in(text, CONFIG_VALUE_MAX);
    if (counts(key, config)) config_value_print(key, config, &out);
    else config_text_add(&out, "(not set)");
}

bool config_first_difference(const struct run_config *a, const struct run_config *b,
                             struct config_difference *ret_difference)
{
    struct config_difference found;
    for (size_t i = 0; i < config_run_schema.count; i++) {
        const struct config_key *key = &config_run_schema.keys[i];
        print_counting(key, a, found.a);
        print_counting(key, b, found.b);
        if (strcmp(found.a, found.b) == 0) continue;
        found.path = key->path;
        *ret_difference = found;
        return true;
    }
    return false;
}

int config_resolve(const struct config_origin *origin, const char *path, char *ret_path, size_t max)
{
    const char *slash = strrchr(origin->file, '/');
    const size_t folder = path[0] == '/' || !slash ? 0 : (size_t)(slash - origin->file) + 1;
    if (folder + strlen(path) + 1 > max) return FAULT_LIMIT;
    memcpy(ret_path, origin->file, folder);
    memcpy(ret_path + folder, path, strlen(path) + 1);
    return 0;
}
