// Text to socket address first, then one function for each deed. A socket to or on a loopback gets
// its congestion control before it connects: switched later, it keeps the pacing of the one before.

#include "common/net/tcp.h"
#include "common/base/private_address.h"
#include "common/net/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 128,
    SHORT_LINE_US = 2000,
    PROBES_MAX = 20,
    KEEP_IDLE_S = 10,
    KEEP_EVERY_S = 5,
    KEEP_COUNT = 3
};
static const char SHORT_LINE_CONTROL[] = "reno";

struct place {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_storage room;
    } at;
    socklen_t size;
    char host[TCP_ADDRESS_MAX];
};

static bool read_port(const char *text, uint16_t *ret_port)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    const unsigned long port = strtoul(text, &end, 10);
    *ret_port = (uint16_t)port;
    return *end == 0 && port <= 65535;
}

// "ADDRESS:PORT", "[ADDRESS]:PORT", either behind "tcp://".
static bool read_place(const char *text, struct place *ret_place)
{
    uint16_t port;
    if (strncmp(text, "tcp://", 6) == 0) text += 6;
    const bool six = *text == '[';
    const char *host = text + six, *end = strstr(host, six ? "]:" : ":");
    *ret_place = (struct place){ .size = 0 };
    if (!end || end - host >= TCP_ADDRESS_MAX || !read_port(end + 1 + six, &port)) return false;
    snprintf(ret_place->host, sizeof ret_place->host, "%.*s", (int)(end - host), host);
    if (six) {
        ret_place->size = sizeof ret_place->at.six;
        ret_place->at.six.sin6_family = AF_INET6;
        ret_place->at.six.sin6_port = htons(port);
        return inet_pton(AF_INET6, ret_place->host, &ret_place->at.six.sin6_addr) == 1;
    }
    ret_place->size = sizeof ret_place->at.four;
    ret_place->at.four.sin_family = AF_INET;
    ret_place->at.four.sin_port = htons(port);
    return inet_pton(AF_INET, ret_place->host, &ret_place->at.four.sin_addr) == 1;
}

static void set(int fd, int name)
{
    static const int one = 1;
    setsockopt(fd, name == TCP_NODELAY ? IPPROTO_TCP : SOL_SOCKET, name, &one, sizeof one);
}

static void use_short_line(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, SHORT_LINE_CONTROL, sizeof SHORT_LINE_CONTROL - 1);
}

static int open_socket(const struct place *place)
{
    const int fd = socket(place->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    set(fd, TCP_NODELAY);
    if (addresses_is_loopback(place->host)) use_short_line(fd);
    return fd;
}

int tcp_listen(const char *bind_to, struct why *why, int *ret_fd, uint16_t *ret_port)
{
    struct place place;
    if (!read_place(bind_to, &place))
        return why_set(why, FAULT_CONFIG,
                       "%s: no address to listen on; write ADDRESS:PORT in numbers, for example "
                       "0.0.0.0:7001 (port 0: any)",
                       bind_to);
    const int fd = open_socket(&place);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", bind_to, strerror(errno));
    set(fd, SO_REUSEADDR);
    if (bind(fd, &place.at.any, place.size) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, &place.at.any, &place.size) == 0) {
        *ret_fd = fd;
        *ret_port = ntohs(place.at.any.sa_family == AF_INET6 ? place.at.six.sin6_port
                                                             : place.at.four.sin_port);
        return 0;
    }
    const int error = errno, rc = addresses_refuse(place.host, error, why);
    close(fd);
    if (rc < 0) return rc;
    if (error == EADDRINUSE)
        return why_set(why, FAULT_BUSY, "%s: another process has this port; choose another",
                       bind_to);
    return why_set(why, fault_from_errno(error), "%s: %s", bind_to, strerror(error));
}

int tcp_accept(int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) set(fd, TCP_NODELAY);
    return fd;
}

int tcp_connect(const char *endpoint, struct why *why, int *ret_fd)
{
    struct place place;
    if (!read_place(endpoint, &place))
        return why_set(why, FAULT_CONFIG, "%s: no endpoint of the form tcp://ADDRESS:PORT",
                       endpoint);
    const int fd = open_socket(&place);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", endpoint, strerror(errno));
    if (connect(fd, &place.at.any, place.size) == 0 || errno == EINPROGRESS) {
        *ret_fd = fd;
        return 0;
    }
    const int error = errno;
    close(fd);
    errno = error;
    return why_set(why, FAULT_UNREACHABLE, "%s: %s", endpoint, strerror(error));
}

int tcp_connected(int fd)
{
    struct pollfd writable = { .fd = fd, .events = POLLOUT };
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&writable, 1, 0) == 0) return EINPROGRESS;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    return error;
}

static void probe_ends(struct tcp_probe *self, int error)
{
    if (self->fd >= 0) close(self->fd);
    self->fd = -1;
    self->error = error;
}

static void probe_connect(struct tcp_probe *self)
{
    errno = 0;
    self->stands = false;
    if (tcp_connect(self->endpoint, NULL, &self->fd) == 0) return;
    self->fd = -1;
    self->error = errno ? errno : EINVAL;
}

void tcp_probe_begin(struct tcp_probe *self, const char *endpoint)
{
    *self = (struct tcp_probe){ .endpoint = endpoint, .fd = -1 };
    probe_connect(self);
}

short tcp_probe_events(const struct tcp_probe *self) { return self->stands ? POLLIN : POLLOUT; }

// A process that accepts ends the connection, too. It is asked twice, as it may have died after it accepted. One
// that is dying resets what its machine took before the port was closed: the next connection is refused.
void tcp_probe_move(struct tcp_probe *self)
{
    char byte;
    if (self->fd < 0) return;
    int error = self->stands ? 0 : tcp_connected(self->fd);
    if (error == EINPROGRESS) return;
    if (error == 0) {
        if (!self->stands) shutdown(self->fd, SHUT_WR);
        self->stands = true;
        const ssize_t n = recv(self->fd, &byte, 1, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) error = ECONNRESET;
        else self->accepted++;
    }
    probe_ends(self, error);
    if ((error && error != ECONNRESET) || self->accepted == 2 || ++self->turns == PROBES_MAX)
        return;
    probe_connect(self);
}

// A connection that stands was taken, though nobody has accepted it yet: its process is busy.
void tcp_probe_end(struct tcp_probe *self)
{
    if (self->fd >= 0) probe_ends(self, self->stands ? 0 : ETIMEDOUT);
}

static bool read_address(int fd, bool peer, char *text)
{
    struct place place = { .size = sizeof place.at };
    const int rc = peer ? getpeername(fd, &place.at.any, &place.size)
                        : getsockname(fd, &place.at.any, &place.size);
    if (rc != 0) return false;
    const bool six = place.at.any.sa_family == AF_INET6;
    return inet_ntop(six ? AF_INET6 : AF_INET,
                     six ? (const void *)&place.at.six.sin6_addr
                         : (const void *)&place.at.four.sin_addr,
                     text, TCP_ADDRESS_MAX) != NULL;
}

struct sockaddr_storage tcp_other_end(int fd)
{
    struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof from;
    if (getpeername(fd, (struct sockaddr *)&from, &size) != 0) from.ss_family = AF_UNSPEC;
    return from;
}

void tcp_tune(int fd)
{
    struct tcp_info info = { .tcpi_rtt = 0 };
    socklen_t size = sizeof info;
    char control[16] = "";
    socklen_t length = sizeof control - 1;
    getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &length);
    if (strcmp(control, SHORT_LINE_CONTROL) == 0) return;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    if (info.tcpi_rtt < SHORT_LINE_US) use_short_line(fd);
}

void tcp_watch(int fd)
{
    const int idle = KEEP_IDLE_S, every = KEEP_EVERY_S, count = KEEP_COUNT;
    set(fd, SO_KEEPALIVE);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

void tcp_bound_unsent(int fd, int bytes_max)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes_max, sizeof bytes_max);
}

bool tcp_is_loopback(int fd)
{
    char address[TCP_ADDRESS_MAX];
    for (int peer = 0; peer < 2; peer++)
        if (!read_address(fd, peer, address) || !addresses_is_loopback(address)) return false;
    return true;
}

bool tcp_names_loopback(const char *endpoint)
{
    struct place place;
    return read_place(endpoint, &place) && addresses_is_loopback(place.host);
}

bool tcp_is_private(int fd, char ret_address[TCP_ADDRESS_MAX])
{
    for (int peer = 0; peer < 2; peer++) {
        if (!read_address(fd, peer, ret_address)) {
            snprintf(ret_address, TCP_ADDRESS_MAX, "?");
            return false;
        }
        if (!address_is_private(ret_address)) return false;
    }
    return true;
}

bool tcp_names_private(const char *text)
{
    struct place place;
    if (!read_place(text, &place)) return false;
    return address_is_private(place.host) || strcmp(place.host, "0.0.0.0") == 0 ||
           strcmp(place.host, "::") == 0;
}
