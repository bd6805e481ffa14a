#pragma once
// sealing -- AES-256-GCM over one direction of a connection. Each direction has a fresh key
// (handshake.h), and record i has the nonce i. So a record that is changed, dropped, doubled or moved
// does not open. gcm.h says by which library, and how fast.
//
// One thread at a time for each.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEALING_KEY = 32, SEALING_TAG = 16 };

struct gcm;

struct sealing {
    const struct gcm *gcm;
    void *context; // NULL: none; what a plain connection has
    uint64_t next; // The nonce of the next record
};

// `seals`: for sealing_put; else for sealing_take. False: no memory.
bool sealing_new(struct sealing *self, const uint8_t key[SEALING_KEY], bool seals);
void sealing_destroy(struct sealing *self); // Wipes; one that is none is allowed

// `to` has `count` bytes and may be `from`. At most 2^30 of them.
void sealing_put(struct sealing *self, const void *from, size_t count, void *to,
                 uint8_t ret_tag[SEALING_TAG]);

// Opens in place. False: not what the other end sealed as its next record; the bytes mean nothing.
bool sealing_take(struct sealing *self, void *bytes, size_t count, const uint8_t tag[SEALING_TAG]);
