// run_files -- sets keys, and reads the data as a data-provider does.

#include "actors/shoal/local/run_files.h"
#include "actors/shoal/local/toml_edit.h"
#include "common/data/source.h"
#include <stdio.h>
#include <stdlib.h>

int run_files_set(char **text, const char *table, const char *key, const char *value,
                  struct why *why)
{
    char *edited = toml_edit(*text, table, key, value);
    if (!edited)
        return why_set(why, FAULT_CONFIG, "there is no table [%s] to set %s in", table, key);
    free(*text);
    *text = edited;
    return 0;
}

int run_files_dataset(const char *data_toml, struct why *why, struct hash *ret_digest)
{
    static struct config_faults faults;
    static struct data_config config;
    struct wire_data_source source;
    provider_t *provider;
    int rc = config_load_data(data_toml, &config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return why_set(why, rc, "%s is refused (see above)", data_toml);
    const struct samples_config samples = { .seq_len = (uint32_t)config.seq_len };
    rc = source_of_data_config(&config, why, &source);
    const struct hash any = { { 0 } };
    if (rc == 0) rc = source_open_folder(&source, &samples, &any, why, &provider);
    if (rc < 0) return rc;
    *ret_digest = provider_dataset_digest(provider);
    provider_close(&provider);
    return 0;
}
