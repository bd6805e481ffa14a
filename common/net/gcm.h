#pragma once
// gcm -- AES-256-GCM by a library, one key and one direction. sealing.h is what the rest of the tree uses.
//
//     gcm_ipsec_mb.c   Intel's libIPSec_MB, on x86-64: knows VAES, 11 GB/s on one core of a Xeon of 2023
//     gcm_openssl.c    OpenSSL, everywhere: 3.9 GB/s there (3.0, AES-NI only); from 3.1 on it knows VAES, too
//
// Both write the same bytes, so each end of a link may have another one.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GCM_KEY = 32, GCM_NONCE = 12, GCM_TAG = 16, GCM_COUNT_MAX = 1 << 30 };

struct gcm {
    const char *name;
    // `seals`: for seal; else for open. NULL: no memory.
    void *(*make)(const uint8_t key[GCM_KEY], bool seals);
    void (*destroy)(void *self); // Wipes; NULL is allowed
    // `to` may be `from`.
    void (*seal)(void *self, const uint8_t nonce[GCM_NONCE], const void *from, size_t count,
                 void *to, uint8_t ret_tag[GCM_TAG]);
    // In place. False: the tag is not that of these bytes, which then mean nothing.
    bool (*open)(void *self, const uint8_t nonce[GCM_NONCE], void *bytes, size_t count,
                 const uint8_t tag[GCM_TAG]);
};

extern const struct gcm gcm_openssl;

// NULL: this program was built without it, or this processor has no AES instructions. Any thread.
const struct gcm *gcm_ipsec_mb(void);
