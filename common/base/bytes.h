#pragma once
// bytes -- numbers as bytes, in a written order: what is hashed, stored and sent is the same on
// every machine.
//
//     le_put (bytes, 0x0102, 2)   02 01   little-endian: hashes, payloads, token files, invitations
//     be_put (bytes, 0x0102, 2)   01 02   big-endian: msgpack, and keys that are sorted as bytes
//
// `count` is 0 to 8 bytes; a number that does not fit into them loses its upper ones. With a
// constant count each little-endian function is a single load or store. Pure; any thread.

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void le_put(void *bytes, uint64_t number, size_t count)
{
    number = htole64(number);
    memcpy(bytes, &number, count);
}

static inline uint64_t le_get(const void *bytes, size_t count)
{
    uint64_t number = 0;
    memcpy(&number, bytes, count);
    return le64toh(number);
}

static inline void be_put(void *bytes, uint64_t number, size_t count)
{
    for (uint8_t *at = (uint8_t *)bytes; count-- > 0;) *at++ = (uint8_t)(number >> 8 * count);
}

static inline uint64_t be_get(const void *bytes, size_t count)
{
    uint64_t number = 0;
    for (const uint8_t *at = (const uint8_t *)bytes; count-- > 0;) number = number << 8 | *at++;
    return number;
}
