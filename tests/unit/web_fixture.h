#pragma once
// web_fixture -- a web server in a thread of the test, on loopback: one request for each
// connection. Either a function of the test answers, or a folder is served, honestly or otherwise.

#include "common/base/ensure.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct web_server {
    int listener;
    uint16_t port;
    pthread_t thread;
    void (*answer)(void *arg, int fd, const char *request);
    void *arg;
};

static inline void web_say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void web_say(int fd, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    send(fd, text, (size_t)count, MSG_NOSIGNAL);
}

static inline void web_wait_until_gone(int fd)
{
    char byte;
    struct pollfd gone = { .fd = fd, .events = POLLIN };
    while (poll(&gone, 1, 5000) > 0 && recv(fd, &byte, 1, 0) > 0) {
    }
}

static inline int web_listen(uint16_t *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 64) == 0 &&
           getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static inline void *web_server_loop(void *context)
{
    struct web_server *self = context;
    for (int fd; (fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(fd)) {
        char request[2048] = "";
        size_t count = 0;
        ssize_t got = 1;
        while (got > 0 && count < sizeof request - 1 && !strstr(request, "\r\n\r\n")) {
            got = recv(fd, request + count, sizeof request - 1 - count, 0);
            if (got > 0) request[count += (size_t)got] = 0;
        }
        self->answer(self->arg, fd, request);
        shutdown(fd, SHUT_WR);
        web_wait_until_gone(fd); // So that no unread byte resets what we sent
    }
    return NULL;
}

static inline void web_server_start(struct web_server *self,
                                    void (*answer)(void *arg, int fd, const char *request),
                                    void *arg)
{
    setenv("no_proxy", "*", 1);
    self->answer = answer;
    self->arg = arg;
    self->listener = web_listen(&self->port);
    ensure(pthread_create(&self->thread, NULL, web_server_loop, self) == 0);
}

static inline void web_server_stop(struct web_server *self)
{
    shutdown(self->listener, SHUT_RDWR);
    pthread_join(self->thread, NULL);
    close(self->listener);
}

// ---- a folder ---------------------------------------------------------------------------------

enum web_mischief {
    WEB_HONEST,
    WEB_FLIPS,    // One bit of every body is another one
    WEB_CUTS,     // Half of the body, then the connection is closed
    WEB_SHRINKS,  // The file is half as long as it was, and says so
    WEB_HANGS_UP, // Not a byte
    WEB_BUSY,     // 503
    WEB_GONE,     // 404
    WEB_MISCHIEFS,
};

struct web {
    struct web_server server;
    char dir[256];
    char only[64]; // Mischief with files whose name has it: all, if empty
    atomic_int mischief;
    atomic_int times; // How often; below 0: always
    atomic_uint requests, mischiefs;
    atomic_ullong bytes; // Of bodies
    uint64_t seed;       // Of what is flipped
};

static inline uint8_t *web_read(const struct web *self, const char *name, size_t *ret_count)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", self->dir, name);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *ret_count = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*ret_count + 1);
    ensure(bytes && fread(bytes, 1, *ret_count, file) == *ret_count);
    fclose(file);
    return bytes;
}

static inline bool web_has(const struct web *self, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", self->dir, name);
    return access(path, R_OK) == 0;
}

static inline int web_mischief_with(struct web *self, const char *name)
{
    const int mischief = self->mischief;
    if (mischief == WEB_HONEST || self->times == 0 || !strstr(name, self->only)) return WEB_HONEST;
    if (self->times > 0) self->times--;
    self->mischiefs++;
    return mischief;
}

static inline void web_send(struct web *self, int fd, uint8_t *body, size_t count, int mischief)
{
    self->seed = self->seed * 6364136223846793005u + 1442695040888963407u;
    if (mischief == WEB_FLIPS)
        body[(self->seed >> 16) % count] ^= (uint8_t)(1u << (self->seed >> 61));
    if (mischief == WEB_CUTS) count /= 2;
    self->bytes += count; // Before the client can have them and read the count
    for (size_t sent = 0; sent < count;) {
        const ssize_t now = send(fd, body + sent, count - sent, MSG_NOSIGNAL);
        if (now <= 0) return;
        sent += (size_t)now;
    }
}

#define WEB_CLOSE "Connection: close\r\n"

static inline void web_answer_file(struct web *self, int fd, const char *request, const char *name,
                                   int mischief)
{
    size_t size = 0, first = 0, last = 0;
    const char *range = strstr(request, "Range: bytes=");
    uint8_t *bytes = web_read(self, name, &size);
    if (mischief == WEB_GONE) {
        web_say(fd, "HTTP/1.1 404 Gone\r\n" WEB_CLOSE "Content-Length: 0\r\n\r\n");
    } else if (!range || sscanf(range, "Range: bytes=%zu-%zu", &first, &last) != 2) {
        if (mischief == WEB_SHRINKS) size /= 2;
        web_say(fd, "HTTP/1.1 200 OK\r\n" WEB_CLOSE "Content-Length: %zu\r\n\r\n", size);
        if (strncmp(request, "GET", 3) == 0) web_send(self, fd, bytes, size, mischief);
    } else {
        web_say(fd,
                "HTTP/1.1 206 Partial Content\r\n" WEB_CLOSE "Content-Length: %zu\r\n"
                "Content-Range: bytes %zu-%zu/%zu\r\n\r\n",
                last - first + 1, first, last, mischief == WEB_SHRINKS ? size / 2 : size);
        ensure(last < size && first <= last);
        web_send(self, fd, bytes + first, last - first + 1, mischief);
    }
    free(bytes);
}

static inline void web_answer(void *arg, int fd, const char *request)
{
    struct web *self = arg;
    char name[100] = "";
    self->requests++;
    if (sscanf(request, "%*[A-Z] /%99[a-z0-9._-]", name) != 1) return;
    const int mischief = web_has(self, name) ? web_mischief_with(self, name) : WEB_GONE;
    if (mischief == WEB_BUSY)
        web_say(fd, "HTTP/1.1 503 Busy\r\n" WEB_CLOSE "Content-Length: 0\r\n\r\n");
    else if (mischief != WEB_HANGS_UP) web_answer_file(self, fd, request, name, mischief);
}

static inline void web_start(struct web *self, const char *dir)
{
    *self = (struct web){ .times = -1, .seed = 7 };
    ensure((size_t)snprintf(self->dir, sizeof self->dir, "%s", dir) < sizeof self->dir);
    web_server_start(&self->server, web_answer, self);
}

static inline void web_stop(struct web *self) { web_server_stop(&self->server); }
