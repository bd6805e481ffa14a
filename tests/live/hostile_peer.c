// hostile_peer -- makes the CURVE handshake by hand, then sends parts of any size and number (ZMTP
// 3.0, CurveZMQ).

#include "tests/live/hostile_peer.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include <arpa/inet.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { HANDSHAKE_S = 5, PATIENCE_MS = 300, PART_MAX = 65536, COOKIE_BYTES = 96 };

struct pair {
    uint8_t public_key[32], secret[32];
};

static bool send_all(int fd, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t sent = send(fd, (const uint8_t *)bytes + done, count - done, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        done += (size_t)sent;
    }
    return true;
}

static bool send_frame(int fd, uint8_t flags, const uint8_t *bytes, size_t count)
{
    uint8_t head[9] = { (uint8_t)(flags | (count > 255 ? 2 : 0)), (uint8_t)count };
    if (count > 255) be_put(head + 1, count, 8);
    return send_all(fd, head, count > 255 ? 9 : 2) && send_all(fd, bytes, count);
}

// A short frame; returns its bytes, or 0.
static size_t recv_frame(int fd, uint8_t bytes[255])
{
    uint8_t head[2];
    if (recv(fd, head, 2, MSG_WAITALL) != 2) return 0;
    return recv(fd, bytes, head[1], MSG_WAITALL) == head[1] ? head[1] : 0;
}

static void make_nonce(uint8_t nonce[24], const char prefix[16], uint64_t number)
{
    memcpy(nonce, prefix, 16);
    be_put(nonce + 16, number, 8);
}

static bool greet(int fd)
{
    uint8_t greeting[64] = { 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'C', 'U', 'R', 'V', 'E' };
    return send_all(fd, greeting, 64) && recv(fd, greeting, 64, MSG_WAITALL) == 64;
}

static bool say_hello(struct hostile_peer *self, const struct pair *transient,
                      const uint8_t *server)
{
    uint8_t hello[200] = "\x05HELLO\x01", nonce[24];
    static const uint8_t zeros[64];
    make_nonce(nonce, "CurveZMQHELLO---", ++self->nonce);
    memcpy(hello + 80, transient->public_key, 32);
    memcpy(hello + 112, nonce + 16, 8);
    ensure(crypto_box_easy(hello + 120, zeros, 64, nonce, server, transient->secret) == 0);
    return send_frame(self->fd, 4, hello, sizeof hello);
}

// [server's transient key][cookie]
static bool hear_welcome(struct hostile_peer *self, const struct pair *transient,
                         const uint8_t *server, uint8_t ret_welcome[32 + COOKIE_BYTES])
{
    uint8_t frame[255], nonce[24] = "WELCOME-";
    if (recv_frame(self->fd, frame) != 168 || memcmp(frame, "\x07WELCOME", 8) != 0) return false;
    memcpy(nonce + 8, frame + 8, 16);
    return crypto_box_open_easy(ret_welcome, frame + 24, 144, nonce, server, transient->secret) ==
           0;
}

static bool say_initiate(struct hostile_peer *self, const struct pair *transient,
                         const struct pair *own, const uint8_t *server, const uint8_t *welcome,
                         const uint32_t *number)
{
    // The last five bytes are the name: a zero and the number
    uint8_t metadata[] = "\x0bSocket-Type\0\0\0\x06"
                         "DEALER\x08Identity\0\0\0\x05\0....";
    const size_t metadata_bytes = sizeof metadata - 1 - (number ? 0 : 5);
    if (number) be_put(metadata + metadata_bytes - 4, *number, 4);
    else metadata[metadata_bytes - 1] = 0; // The name has no bytes
    uint8_t plain[128 + sizeof metadata], vouch[64], nonce[24] = "VOUCH---";
    uint8_t frame[113 + 16 + sizeof plain] = "\x08INITIATE";
    const size_t plain_bytes = 128 + metadata_bytes;
    randombytes_buf(nonce + 8, 16);
    memcpy(vouch, transient->public_key, 32), memcpy(vouch + 32, server, 32);
    memcpy(plain, own->public_key, 32), memcpy(plain + 32, nonce + 8, 16);
    ensure(crypto_box_easy(plain + 48, vouch, 64, nonce, welcome, own->secret) == 0);
    memcpy(plain + 128, metadata, metadata_bytes);
    memcpy(frame + 9, welcome + 32, COOKIE_BYTES);
    make_nonce(nonce, "CurveZMQINITIATE", ++self->nonce);
    memcpy(frame + 105, nonce + 16, 8);
    ensure(crypto_box_easy(frame + 113, plain, plain_bytes, nonce, welcome, transient->secret) ==
           0);
    return send_frame(self->fd, 4, frame, 113 + 16 + plain_bytes);
}

static bool shake_hands(struct hostile_peer *self, const struct pair *own, const uint8_t *server,
                        const uint32_t *number)
{
    struct pair transient;
    uint8_t welcome[32 + COOKIE_BYTES], ready[255];
    crypto_box_keypair(transient.public_key, transient.secret);
    if (!greet(self->fd) || !say_hello(self, &transient, server) ||
        !hear_welcome(self, &transient, server, welcome) ||
        !say_initiate(self, &transient, own, server, welcome, number))
        return false;
    size_t count = recv_frame(self->fd, ready);
    ensure(crypto_box_beforenm(self->shared, welcome, transient.secret) == 0);
    return count > 6 && memcmp(ready, "\x05READY", 6) == 0;
}

bool hostile_peer_connect(struct hostile_peer *self, unsigned port, const struct key *server,
                          const uint32_t *number)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timeval answer = { .tv_sec = HANDSHAKE_S }, // Under load, and ASan
        patience = { .tv_usec = PATIENCE_MS * 1000 };
    struct pair own;
    crypto_box_keypair(own.public_key, own.secret);
    *self = (struct hostile_peer){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    ensure(self->fd >= 0);
    setsockopt(self->fd, SOL_SOCKET, SO_RCVTIMEO, &answer, sizeof answer);
    setsockopt(self->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(self->fd, (struct sockaddr *)&to, sizeof to) == 0 &&
        shake_hands(self, &own, server->bytes, number))
        return true;
    hostile_peer_close(self);
    return false;
}

bool hostile_peer_send(struct hostile_peer *self, bool more, const void *bytes, size_t count)
{
    static _Thread_local uint8_t plain[1 + PART_MAX], frame[16 + 16 + 1 + PART_MAX];
    uint8_t nonce[24];
    ensure(count <= PART_MAX);
    plain[0] = more;
    memcpy(plain + 1, bytes, count);
    make_nonce(nonce, "CurveZMQMESSAGEC", ++self->nonce);
    memcpy(frame, "\x07MESSAGE", 8);
    memcpy(frame + 8, nonce + 16, 8);
    ensure(crypto_box_easy_afternm(frame + 16, plain, 1 + count, nonce, self->shared) == 0);
    if (send_frame(self->fd, 0, frame, 16 + 16 + 1 + count)) return true;
    hostile_peer_close(self);
    return false;
}

void hostile_peer_close(struct hostile_peer *self)
{
    if (self->fd >= 0) close(self->fd);
    self->fd = -1;
}
