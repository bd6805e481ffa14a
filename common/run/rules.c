#include "common/run/rules.h"
#include <string.h>

uint64_t rules_run_seed(const char *run_id)
{
    const struct hash hash = hash_of_two("shoal run seed 1", 16, run_id, strlen(run_id));
    return hash_to_number(&hash);
}
