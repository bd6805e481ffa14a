#pragma once
// model_config_parts -- the fields of a config.json, for model_config.c, and its rotation, which
// model_config_rope.c reads. Private to the three files.

#include "common/model/model_layout.h"

#include <jansson.h>

// Where a field stands, for error texts: "config.json: rope_scaling.factor".
struct config_place {
    const json_t *object;
    const char *prefix;
}; // "" or "rope_scaling."

// A number, or `absent` if there is none (NULL: it must be there). FAULT_FORMAT for another kind.
int config_read_real(struct config_place place, const char *name, const double *absent,
                     struct why *why, double *ret_value);

// A whole number of 0 to 2^32 - 1; likewise.
int config_read_count(struct config_place place, const char *name, const uint32_t *absent,
                      struct why *why, uint32_t *ret_value);

// FAULT_FORMAT with the field.
int config_missing(struct config_place place, const char *name, struct why *why);

// FAULT_UNSUPPORTED with the field, its value and what is allowed.
int config_unsupported(struct config_place place, const char *name, const char *allowed,
                       struct why *why);

// rope_theta and rope_scaling from rope_parameters, rope_scaling and rope_theta of the whole file;
// seq_len_max must have been read.
int config_read_rope(const json_t *root, struct why *why, struct model_shape *shape);

// The value of "rope_scaling": null without scaling. NULL for want of memory.
json_t *config_pack_rope(const struct rope_scaling *scaling);
