#pragma once
// data_config -- a data-provider's data.toml, as Psyche writes it: the folder of the token files,
// the width of a token, the length of a sequence, and the seed of their order. All four are
// required.

#include "common/config/load.h"

#define DATA_KEY(scope, path, field, type, of, fallback, min, max, sentence)                       \
    CONFIG_FIELD_##type(field)
struct data_config {
#include "common/config/keys.def"
    struct config_origin origin; // For config_resolve, which gives the folder
};

// As config_load_run.
int config_load_data(const char *path, struct data_config *ret_config,
                     struct config_faults *faults);

unsigned config_token_bytes(enum config_value token_size); // 2 or 4
