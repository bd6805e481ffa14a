#include "common/run/rules.h"
#include "common/base/ensure.h"
#include <string.h>

uint64_t rules_run_seed(const char *run_id)
{
    const struct hash hash = hash_of_two("shoal run seed 1", 16, run_id, strlen(run_id));
    return hash_to_number(&hash);
}

void rules_set_strategy(struct rules *rules, uint16_t kind, const void *body, size_t bytes)
{
    ensure(bytes <= sizeof rules->strategy);
    rules->frame.strategy = (struct wire_part){ kind, NULL };
    memcpy(rules->strategy, body, bytes);
}

struct wire_config rules_frame(const struct rules *rules)
{
    struct wire_config frame = rules->frame;
    frame.strategy.body = rules->strategy;
    return frame;
}
