#include "common/config/data_config.h"

#include <string.h>

#include "common/base/ensure.h"

int config_load_data(const char *path, struct data_config *ret_config, struct config_faults *faults)
{
    struct data_config config;
    memset(&config, 0, sizeof config);
    const int rc =
        config_load_file(&config_data_schema, path, NULL, &config, &config.origin, faults);
    if (rc == 0) *ret_config = config;
    return rc;
}

unsigned config_token_bytes(enum config_value token_size)
{
    ensure(token_size == CONFIG_TOKEN_SIZE_TWO || token_size == CONFIG_TOKEN_SIZE_FOUR);
    return token_size == CONFIG_TOKEN_SIZE_TWO ? 2 : 4;
}
