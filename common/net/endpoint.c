// Checks from left to right: tcp://, the host (in brackets: IPv6), the port. inet_pton decides
// about the host, so no name and no shortened form passes.

#include "common/net/endpoint.h"
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HOST_MAX = INET6_ADDRSTRLEN - 1 };
static const char TCP[] = "tcp://";

static bool is_port(const char *text)
{
    uint32_t number = 0;
    if (*text == '0') return false;
    for (; *text >= '0' && *text <= '9' && number <= 65535; text++)
        number = number * 10 + (uint32_t)(*text - '0');
    return *text == 0 && number >= 1 && number <= 65535;
}

// A valid address, and not the unspecified one (0.0.0.0, ::).
static bool is_address(int family, const char *text, size_t count)
{
    static const uint8_t nowhere[sizeof(struct in6_addr)];
    uint8_t address[sizeof(struct in6_addr)] = { 0 };
    char copy[HOST_MAX + 1];
    if (count > HOST_MAX) return false;
    snprintf(copy, sizeof copy, "%.*s", (int)count, text);
    return inet_pton(family, copy, address) == 1 && memcmp(address, nowhere, sizeof nowhere) != 0;
}

bool endpoint_is_ipv6(const char *text) { return text[sizeof TCP - 1] == '['; }

bool endpoint_is_numeric(const char *text)
{
    if (strncmp(text, TCP, sizeof TCP - 1) != 0) return false;
    const bool is_ipv6 = endpoint_is_ipv6(text);
    const char *host = text + sizeof TCP - 1 + is_ipv6, *end = strstr(host, is_ipv6 ? "]:" : ":");
    return end && is_address(is_ipv6 ? AF_INET6 : AF_INET, host, (size_t)(end - host)) &&
           is_port(end + 1 + is_ipv6);
}
