// ZeroMQ's monitor reports which descriptors a socket uses; getsockopt and shutdown act on them
// directly. A descriptor may have been closed and given to another connection since then, so all
// first check the port of its own end.

#include "common/net/descriptors.h"
#include "common/base/ensure.h"
#include "common/net/net.h"
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

uint32_t descriptors_raise(void)
{
    struct rlimit limit;
    ensure(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max < CONNECTIONS_FD_MAX ? limit.rlim_max : CONNECTIONS_FD_MAX;
    ensure(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return (uint32_t)limit.rlim_cur;
}

void *descriptors_watch(void *context, void *socket)
{
    return net_watch(context, socket,
                     ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CLOSED |
                         ZMQ_EVENT_DISCONNECTED);
}

bool descriptors_next(void *events, int *ret_fd, bool *ret_opened)
{
    struct net_event event;
    if (!net_hear(events, &event)) return false;
    *ret_fd = event.value;
    *ret_opened = event.kind == ZMQ_EVENT_ACCEPTED || event.kind == ZMQ_EVENT_CONNECTED;
    return true;
}

static bool is_at(int fd, uint16_t port)
{
    struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof own;
    if (port == 0) return true;
    if (getsockname(fd, (struct sockaddr *)&own, &size) != 0) return false;
    return own.ss_family == AF_INET6  ? ((struct sockaddr_in6 *)&own)->sin6_port == htons(port)
           : own.ss_family == AF_INET ? ((struct sockaddr_in *)&own)->sin_port == htons(port)
                                      : false;
}

void descriptors_hear(void *events, struct connections *connections, uint32_t where, uint16_t port,
                      uint64_t now_ms, descriptors_tell *tell, void *arg)
{
    int fd;
    bool opened;
    while (descriptors_next(events, &fd, &opened)) {
        if (opened && !is_at(fd, port)) continue;
        if (opened) connections_opened(connections, fd, where, now_ms);
        else connections_closed(connections, fd, where);
        if (tell) tell(arg, fd, opened);
    }
}

bool descriptors_measure(int fd, uint16_t port, struct connection_counts *ret_counts)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (!is_at(fd, port) || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
    // Linux 4.6 counts these
    ensure(size >= offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof info.tcpi_notsent_bytes);
    *ret_counts = (struct connection_counts){ .received = info.tcpi_bytes_received,
                                              .acked = info.tcpi_bytes_acked,
                                              .none_wait = info.tcpi_unacked == 0 &&
                                                           info.tcpi_notsent_bytes == 0 };
    return true;
}

void descriptors_cut(int fd, uint16_t port)
{
    static const struct linger none = { .l_onoff = 1 };
    if (!is_at(fd, port)) return;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    shutdown(fd, SHUT_RDWR);
}
