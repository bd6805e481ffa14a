#include "common/base/private_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_private_4(uint32_t address)
{
    static const struct {
        uint32_t prefix, bits;
    } blocks[] = { { 0x7f000000, 8 },
                   { 0x0a000000, 8 },
                   { 0xac100000, 12 },
                   { 0xc0a80000, 16 },
                   { 0xa9fe0000, 16 } };
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if ((address ^ blocks[i].prefix) >> (32 - blocks[i].bits) == 0) return true;
    return false;
}

static bool is_private_6(const struct in6_addr *address)
{
    uint32_t mapped;
    memcpy(&mapped, &address->s6_addr[12], sizeof mapped);
    if (IN6_IS_ADDR_V4MAPPED(address)) return is_private_4(ntohl(mapped));
    return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_LINKLOCAL(address) ||
           (address->s6_addr[0] & 0xfe) == 0xfc;
}

bool address_is_private(const char *address)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, address, &four) == 1) return is_private_4(ntohl(four.s_addr));
    return inet_pton(AF_INET6, address, &six) == 1 && is_private_6(&six);
}

bool address_of_endpoint_is_public(const char *endpoint)
{
    char host[INET6_ADDRSTRLEN];
    struct in6_addr bytes;
    const char *colon = strrchr(endpoint, ':');
    if (strncmp(endpoint, "tcp://", 6) != 0 || colon < endpoint + 6) return false;
    const char *from = endpoint + 6, *end = colon;
    if (*from == '[' && end[-1] == ']') from++, end--;
    if (end <= from || (size_t)(end - from) >= sizeof host) return false;
    snprintf(host, sizeof host, "%.*s", (int)(end - from), from);
    const bool is_address =
        inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1;
    return is_address && !address_is_private(host);
}
