// The addresses in an error text are those of all interfaces that are up, in the kernel's order.
// Link-local IPv6 addresses are left out: peers on other machines cannot use them. The one that leads
// to a peer is the kernel's choice for a UDP socket that is connected there; that sends nothing.
#include "common/net/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

int addresses_towards(const char *peer, struct why *why, char ret_address[ADDRESSES_TEXT_MAX])
{
    char host[NI_MAXHOST];
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM }, *found = NULL;
    struct sockaddr_in own;
    socklen_t length = sizeof own;
    const char *address = strncmp(peer, "tcp://", 6) == 0 ? peer + 6 : peer;
    const char *colon = strrchr(address, ':');
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - address) : 0, address);
    if (!colon || getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return why_set(why, FAULT_NOT_FOUND, "%s: no such host", peer);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool done = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                      getsockname(fd, (struct sockaddr *)&own, &length) == 0;
    const int error = errno;
    if (fd >= 0) close(fd);
    freeaddrinfo(found);
    if (!done)
        return why_set(why, FAULT_UNREACHABLE, "no way from here to %s: %s", peer, strerror(error));
    inet_ntop(AF_INET, &own.sin_addr, ret_address, ADDRESSES_TEXT_MAX);
    return 0;
}

bool addresses_of_interface(const char *name, char ret_address[ADDRESSES_TEXT_MAX])
{
    struct ifaddrs *all = NULL;
    bool found = false, found_four = false;
    if (getifaddrs(&all) != 0) return false;
    for (const struct ifaddrs *at = all; at && !found_four; at = at->ifa_next) {
        if (!is_useful(at) || strcmp(at->ifa_name, name) != 0) continue;
        found_four = at->ifa_addr->sa_family == AF_INET;
        if (found && !found_four) continue;
        const void *from = at->ifa_addr; // Either structure begins with its family
        found =
            inet_ntop(at->ifa_addr->sa_family,
                      found_four ? (const void *)&((const struct sockaddr_in *)from)->sin_addr
                                 : (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr,
                      ret_address, ADDRESSES_TEXT_MAX);
    }
    freeifaddrs(all);
    return found;
}

bool addresses_is_loopback(const char *address)
{
    struct in6_addr six;
    struct in_addr four;
    if (inet_pton(AF_INET, address, &four) == 1) return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, address, &six) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}
