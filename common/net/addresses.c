// The addresses are those of all interfaces that are up, in the kernel's order. Link-local IPv6
// addresses are left out: peers on other machines cannot use them.
#include "common/net/addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LIST_MAX = 600 };

static bool is_useful(const struct ifaddrs *at)
{
    if (!at->ifa_addr || !(at->ifa_flags & IFF_UP)) return false;
    if (at->ifa_addr->sa_family != AF_INET6) return at->ifa_addr->sa_family == AF_INET;
    return !IN6_IS_ADDR_LINKLOCAL(
        &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr);
}

// "127.0.0.1, 10.0.0.5"; "" if the interfaces cannot be read.
static void list(char text[LIST_MAX])
{
    struct ifaddrs *all = NULL;
    size_t used = 0;
    text[0] = 0;
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        char host[NI_MAXHOST];
        if (!is_useful(at)) continue;
        const socklen_t size = at->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                                  : sizeof(struct sockaddr_in6);
        if (getnameinfo(at->ifa_addr, size, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        if (used + strlen(host) + 3 > LIST_MAX) break;
        used += (size_t)snprintf(text + used, LIST_MAX - used, "%s%s", used ? ", " : "", host);
    }
    freeifaddrs(all);
}

int addresses_refuse(const char *host, int error, struct why *why)
{
    char text[LIST_MAX];
    if (error != EADDRNOTAVAIL && error != ENODEV) return 0;
    list(text);
    return why_set(why, FAULT_UNAVAILABLE, "%s is no address of this machine; it has %s", host,
                   text[0] ? text : "none that can be read");
}
