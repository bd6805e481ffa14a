// world FOLDER STEP WORKER WORKERS [FROM] -- saves one worker's state, loaded from step FROM if given.
#include "common/checkpoint/world.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
// What all have seen together is what the first of the new workers has seen.
static int add_up(void *arg, const struct world_value *all, uint32_t count, uint32_t worker,
                  uint32_t workers, struct why *why, struct world_value *ret_value)
{
    uint64_t *sum = calloc(1, sizeof *sum);
    (void)arg, (void)workers;
    if (!sum) return why_set(why, FAULT_MEMORY, "the sum");
    for (uint32_t w = 0; w < count && worker == 0; w++)
        if (all[w].elements) *sum += *(const uint64_t *)all[w].bytes;
    *ret_value = (struct world_value){ 1, sum };
    return 0;
}
int main(int argc, char **argv)
{
    struct pieces_save at = { .root = argv[1], .run = "example", .attempt = 1 };
    if (argc < 5) return fprintf(stderr, "usage: world FOLDER STEP WORKER WORKERS [FROM]\n"), 64;
    at.worker = (uint32_t)atoi(argv[3]), at.workers = (uint32_t)atoi(argv[4]);
    struct why why = { 0 };
    uint64_t rows[1009], timer = 1, seen = at.worker + 1, count = at.worker == 0 ? 1009 : 0, first;
    for (uint64_t i = 0; i < 1009; i++) rows[i] = i; // At first worker 0 has all rows
    struct world_item items[] = { world_item("rows", TAG_RESHARD, 8, count, rows),
                                  world_item("name", TAG_REPLICATE, 1, 5, (char[]){ "shoal" }),
                                  world_item("timer", TAG_DROP, 8, 1, &timer),
                                  world_item("seen", TAG_CUSTOM, 8, 1, &seen) };
    items[3].merge = add_up;
    if (argc > 5) at.step = (uint64_t)atoi(argv[5]);
    int rc = argc > 5 ? world_load(&at, items, 4, &why) : 0;
    at.step = (uint64_t)atoi(argv[2]);
    if (rc == 0) rc = world_save(&at, items, 4, &why, &(uint32_t){ 0 });
    if (rc < 0) return fault_exit(rc, &why);
    count = items[0].elements, first = count ? *(uint64_t *)items[0].bytes : 0;
    printf("worker %s of %s: rows %" PRIu64 " to %" PRIu64 ", seen %" PRIu64 "%s\n", argv[3],
           argv[4], first, first + count, *(uint64_t *)items[3].bytes,
           items[2].is_fresh ? ", a new timer" : "");
}
