#pragma once
// json_file -- a JSON value of ours as a durable file (durable_file.h). Reading one, which may have
// become another's: strict_json.h.

#include <jansson.h>

#include "common/base/fault.h"

// Takes `json`; NULL means that memory ran out while it was made. Numbers with a
// fraction are written with 9 digits, always with a point. FAULT_LIMIT above `bytes_max`.
int json_file_write(const char *dir, const char *name, json_t *json, size_t bytes_max,
                    struct why *why);
