#pragma once
// gcm -- AES-256-GCM by a library, one key and one direction: gcm_openssl.c, or with make IPSEC_MB=1
// gcm_ipsec_mb.c. Both write the same bytes. sealing.h is what the rest of the tree uses.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GCM_KEY = 32, GCM_NONCE = 12, GCM_TAG = 16, GCM_COUNT_MAX = 1 << 30 };

// `seals`: for gcm_seal; else for gcm_open. NULL: no memory.
void *gcm_new(const uint8_t key[GCM_KEY], bool seals);
void gcm_destroy(void *self); // Wipes; NULL is allowed

// `to` may be `from`.
void gcm_seal(void *self, const uint8_t nonce[GCM_NONCE], const void *from, size_t count, void *to,
              uint8_t ret_tag[GCM_TAG]);
// In place. False: the tag is not that of these bytes, which then mean nothing.
bool gcm_open(void *self, const uint8_t nonce[GCM_NONCE], void *bytes, size_t count,
              const uint8_t tag[GCM_TAG]);
