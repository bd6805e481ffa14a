#pragma once
// last_heard -- when the broker last heard an actor, and whether that actor is connected.
//
// An actor asks by mail: a RECALL, addressed to the other actor instead of the broker. The broker
// does not deliver it. It sends it back as UNDELIVERABLE, and the reason has this as a text:
//
//     connected, last heard 412 ms ago
//     not connected, last heard 7012 ms ago
//     not connected
//
// Pure.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER_HEARD UINT64_MAX
// An actor that is well says HELLO once a second, and a coordinator BEAT.
enum { LAST_HEARD_MAX_MS = 3000 };

struct last_heard {
    bool connected;
    uint64_t ms_ago; // NEVER_HEARD: the broker does not know
};

void last_heard_print(const struct last_heard *self, char *out, size_t max);
bool last_heard_parse(const char *text, struct last_heard *ret_self); // False: another text

// Connected, and heard within LAST_HEARD_MAX_MS.
bool last_heard_is_alive(const struct last_heard *self);
