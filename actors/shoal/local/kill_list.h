#pragma once
// kill_list -- which clients may be killed, and which are next. Pure: chance is a seed in the
// struct.

#include "common/base/fault.h"
#include <stdint.h>

enum { KILL_CLIENTS_MAX = 256 };

struct kill_list {
    uint32_t clients[KILL_CLIENTS_MAX]; // Numbers from 1, all different
    uint32_t count;
    uint64_t seed;
};

// "1,2,5": numbers from 1 to `clients`, each once. NULL or "": all of them. FAULT_USAGE names the
// wrong number.
int kill_list_parse(const char *text, uint32_t clients, uint64_t seed, struct why *why,
                    struct kill_list *ret_list);

// Puts `wanted` of them (at most count) at the front, in random order; the seed goes on.
void kill_list_draw(struct kill_list *self, uint32_t wanted);
