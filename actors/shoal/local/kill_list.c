// kill_list -- parses the list of --allowed-to-kill, then draws victims by a partial shuffle: the
// first `wanted` entries are a random choice without repetition, and the list itself stays
// complete.

#include "actors/shoal/local/kill_list.h"
#include "common/base/ensure.h"
#include <stdbool.h>
#include <stdlib.h>

static bool holds(const struct kill_list *self, uint32_t client)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->clients[i] == client) return true;
    return false;
}

int kill_list_parse(const char *text, uint32_t clients, uint64_t seed, struct why *why,
                    struct kill_list *ret_list)
{
    struct kill_list list = { .seed = seed };
    ensure(clients <= KILL_CLIENTS_MAX);
    if (!text || !text[0])
        for (uint32_t i = 0; i < clients; i++) list.clients[list.count++] = i + 1;
    for (const char *at = text ? text : ""; *at;) {
        char *end;
        unsigned long client = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (client < 1 || client > clients || (*end && *end != ',') || (*end == ',' && !end[1]))
            return why_set(why, FAULT_USAGE,
                           "--allowed-to-kill %.100s: at \"%.20s\": client numbers from 1 to %u, "
                           "separated by commas",
                           text, at, clients);
        if (holds(&list, (uint32_t)client))
            return why_set(why, FAULT_USAGE, "--allowed-to-kill %.100s: %lu twice", text, client);
        list.clients[list.count++] = (uint32_t)client;
        at = *end ? end + 1 : end;
    }
    *ret_list = list;
    return 0;
}

// SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void kill_list_draw(struct kill_list *self, uint32_t wanted)
{
    for (uint32_t i = 0; i < wanted && i + 1 < self->count; i++) {
        uint32_t other = i + (uint32_t)(draw(&self->seed) % (self->count - i));
        uint32_t client = self->clients[i];
        self->clients[i] = self->clients[other];
        self->clients[other] = client;
    }
}
