// fetch -- a list of holders with a state each. The next holder to ask is the untried one with the best reputation
// (reputation.h): the first that is not doubtful, then those that were slow or failed, longest ago first. A failure
// counts the states and puts them into one sentence. The silent ones come last, and the first of them is
// named with its address: it cannot be reached, and somebody has to do something about it.

#include "common/base/ensure.h"
#include "common/bulk/fetch.h"
#include "common/bulk/fetcher.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fetch_init(struct fetch *self, struct peers *peers,
                void (*hear)(struct fetch *, const struct answer *))
{
    *self = (struct fetch){ .peers = peers, .hear = hear };
}

void fetch_end(struct fetch *self)
{
    peers_forget_fetch(self->peers, self);
    for (uint32_t i = 0; i < self->holders_count; i++)
        peers_leave(self->peers, self->holders[i].peer);
    free(self->holders);
    self->holders = NULL;
    self->holders_count = 0;
}

struct holder *fetch_holder_of(struct fetch *self, const struct peer *peer)
{
    for (uint32_t i = 0; i < self->holders_count; i++)
        if (self->holders[i].peer == peer) return &self->holders[i];
    return NULL;
}

static void add_holder(struct fetch *self, const struct wire_holder *holder)
{
    struct peer *peer = peers_find(self->peers, holder);
    if (!peer) return;
    if (fetch_holder_of(self, peer)) peers_leave(self->peers, peer);
    else self->holders[self->holders_count++] = (struct holder){ .peer = peer };
}

void fetch_add_holders(struct fetch *self, const struct wire_holder *list, uint32_t count)
{
    for (uint32_t i = 0; i < self->holders_count; i++) {
        uint8_t *state = &self->holders[i].state;
        if (*state != HOLDER_LIED && *state != HOLDER_SERVING) *state = HOLDER_UNTRIED;
    }
    const uint32_t room = FETCH_HOLDERS_MAX - self->holders_count;
    if (count > room) count = room;
    if (count == 0) return;
    struct holder *holders =
        realloc(self->holders, (self->holders_count + count) * sizeof *holders);
    ensure(holders);
    self->holders = holders;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].endpoint[0]) add_holder(self, &list[i]);
}

struct holder *fetch_take_next(struct fetch *self)
{
    struct holder *next = NULL;
    for (uint32_t i = 0; i < self->holders_count; i++) {
        struct holder *holder = &self->holders[i];
        if (holder->state == HOLDER_UNTRIED &&
            (!next || reputation_is_before(&holder->peer->reputation, &next->peer->reputation, 0)))
            next = holder;
    }
    if (next) next->state = HOLDER_SERVING;
    return next;
}

uint32_t fetch_widen(struct fetch *self, uint32_t width)
{
    uint32_t serving = 0, slow = 0;
    for (uint32_t i = 0; i < self->holders_count; i++) {
        if (self->holders[i].state != HOLDER_SERVING) continue;
        serving++;
        slow += self->holders[i].peer->reputation.is_slow;
    }
    const uint32_t wanted = width + 2 * slow;
    while (serving < wanted && fetch_take_next(self)) serving++;
    return serving;
}

uint32_t fetch_count(const struct fetch *self, enum holder_state state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->holders_count; i++) count += self->holders[i].state == state;
    return count;
}

void fetch_fail(struct fetch *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self->reason, sizeof self->reason, format, args);
    va_end(args);
    self->state = FETCH_FAILED;
}

// ": trainer.anna.3fa2b4c6d8e0f112 at 203.0.113.7:7000 and 1 more"; "" if none is silent.
static void name_silent(const struct fetch *self, char text[FETCH_REASON_MAX])
{
    char name[ACTOR_NAME_MAX + 1], hex[KEY_HEX], more[32] = "";
    const uint32_t count = fetch_count(self, HOLDER_SILENT);
    uint32_t i = 0;
    text[0] = 0;
    if (count == 0) return;
    while (self->holders[i].state != HOLDER_SILENT) i++;
    const struct wire_holder *holder = &self->holders[i].peer->holder;
    const char *address = strstr(holder->endpoint, "//");
    if (self->namer) self->namer->name_of(self->namer->arg, &holder->key, name);
    else snprintf(name, sizeof name, "key %.16s", key_to_hex(&holder->key, hex));
    if (count > 1) snprintf(more, sizeof more, " and %u more", count - 1);
    snprintf(text, FETCH_REASON_MAX, ": %s at %.50s%.20s", name,
             address ? address + 2 : holder->endpoint, more);
}

void fetch_fail_for_holders(struct fetch *self, const char *what)
{
    static const struct {
        enum holder_state state;
        const char *words;
    } parts[] = { { HOLDER_LACKS, "lack it" },
                  { HOLDER_DIFFERS, "of another size" },
                  { HOLDER_LIED, "sent wrong bytes" },
                  { HOLDER_SILENT, "silent" } };
    char text[FETCH_REASON_MAX] = "", silent[FETCH_REASON_MAX];
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint32_t count = fetch_count(self, parts[i].state);
        if (parts[i].state == HOLDER_LACKS) count += fetch_count(self, HOLDER_SERVING);
        if (count == 0 || used >= sizeof text) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, ", %u %s", count, parts[i].words);
    }
    name_silent(self, silent);
    fetch_fail(self, "no holder has %s: %u asked%s%s", what, self->holders_count, text, silent);
}
