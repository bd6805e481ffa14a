#pragma once
// cores -- what must hold of an actor's core, whatever is said to it. Bytes are a conversation
// (events.h); each returns whether they hold an event at all.

#include "common/actor/msg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool core_check_coordinator(const uint8_t *bytes, size_t count);
bool core_check_trainer(const uint8_t *bytes, size_t count);
bool core_check_witness(const uint8_t *bytes, size_t count);
bool core_check_checkpointer(const uint8_t *bytes, size_t count);
bool core_check_provider(const uint8_t *bytes, size_t count);

// What the target of this name heard and said in this process so far, by kind, and the first words
// of its notes. Of view and broker: what they made something of.
enum { CORE_KINDS = 256, CORE_NOTES = 64 };
struct core_counts {
    const char *name;
    uint64_t heard[CORE_KINDS], said[PORT_COUNT][CORE_KINDS];
    char noted[CORE_NOTES][32];
    uint32_t notes;
};
struct core_counts *core_counted(const char *name); // `name` stays where it is

// The broker's table of names: HELLO, mail, silence, lost connections.
bool core_check_post_office(const uint8_t *bytes, size_t count);

// The whole broker: letters over connections, budgets, news that are kept, ejected actors.
bool core_check_broker(const uint8_t *bytes, size_t count);
void core_write_seeds_broker(const char *folder);

// The view that an observer makes of the news.
bool core_check_view(const uint8_t *bytes, size_t count);

void core_write_seeds_coordinator(const char *folder);
void core_write_seeds_member(const char *folder); // Of all that follow a coordinator
