#pragma once
// cores -- feeds bytes, read as a conversation (events.h), to an actor's core and checks its
// invariants after each step. Returns false if the bytes hold no event.

#include "common/actor/msg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool core_check_coordinator(const uint8_t *bytes, size_t count);
bool core_check_trainer(const uint8_t *bytes, size_t count);
bool core_check_witness(const uint8_t *bytes, size_t count);
bool core_check_checkpointer(const uint8_t *bytes, size_t count);
bool core_check_provider(const uint8_t *bytes, size_t count);

// How many messages of each kind the target of this name took and sent in this process so far, and
// the first word of each note in its log. Of the view, `heard` counts the news that changed it; of
// the broker, the letters that it passed on.
enum { CORE_KINDS = 256, CORE_NOTES = 64 };
struct core_counts {
    const char *name;
    uint64_t heard[CORE_KINDS], said[PORT_COUNT][CORE_KINDS];
    char noted[CORE_NOTES][32];
    uint32_t notes;
};
struct core_counts *core_counted(const char *name); // `name` is kept, not copied

// The broker's table of names: HELLO, mail, silence, lost connections.
bool core_check_post_office(const uint8_t *bytes, size_t count);

// The whole broker: it forwards letters between connections, holds senders to their budgets, keeps
// the last news, and shuts ejected actors out. Returns false if it forwarded nothing.
bool core_check_broker(const uint8_t *bytes, size_t count);
void core_write_seeds_broker(const char *folder);

// The view of the run that an observer builds from the news. Returns false if it saw no commit.
bool core_check_view(const uint8_t *bytes, size_t count);

void core_write_seeds_coordinator(const char *folder);
void core_write_seeds_member(const char *folder); // Of all that follow a coordinator
