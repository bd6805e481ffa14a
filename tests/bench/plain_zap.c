// plain_zap -- connections without CURVE, for cost_bench and nothing else, so that it can say what
// CURVE costs. THIS PROTECTS NOTHING: every peer is believed to have the key that it names.
//
// The programs of build/bench/plain are the product's own objects, linked with --wrap so that these
// three functions are called instead of those of common/net/zap.h. An actor's connection key
// travels, in hexadecimal, as the user name of ZMQ_PLAIN (ZeroMQ RFC 24) instead of being proved by
// CURVE; domain, judge and User-Id are as they are there, so that all else stays the same, claims
// and frames are signed as ever. The product has no such switch. `make install` does not know these
// programs, and each says what it is as soon as it starts.

#include "tests/bench/plain_zap.h"
#include "common/base/ensure.h"
#include "common/net/zap.h"
#include <sodium.h>
#include <stdio.h>
#include <string.h>

// [version][request id][domain][address][routing id]["PLAIN"][user name: 64 digits][password: ""]
enum {
    ENFORCE_DOMAIN = 93,
    PARTS = 8,
    PART_ID = 1,
    PART_DOMAIN = 2,
    PART_ADDRESS = 3,
    PART_MECHANISM = 5,
    PART_USER = 6,
    PART_BYTES_MAX = 256
};

// The benchmark has a definition of its own, since it speaks both.
__attribute__((weak)) bool plain_zap_is_on = true;

#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

__attribute__((constructor)) static void say_so(void)
{
    if (plain_zap_is_on)
        fputs(PLAIN_ZAP_NOTICE ": a measuring build, for cost_bench. Connections are neither "
                               "encrypted nor proved. Never use it for a run.\n",
              stderr);
}

static void name_key(void *socket, const struct curve_pair *own)
{
    char user[ZAP_USER_MAX];
    sodium_bin2hex(user, sizeof user, own->public.bytes, CURVE_BYTES);
    ensure(zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, user, strlen(user)) == 0);
}

WRAP(void, zap_secure_client, void *socket, const struct curve_pair *own,
     const struct curve_key *server)
{
    if (plain_zap_is_on) name_key(socket, own);
    else __real_zap_secure_client(socket, own, server);
}

WRAP(void, zap_secure_server, void *socket, const struct curve_pair *own, const char *domain)
{
    const int on = 1;
    ensure(plain_zap_is_on); // The benchmark itself binds nothing
    (void)own;
    ensure(zmq_setsockopt(socket, ZMQ_PLAIN_SERVER, &on, sizeof on) == 0);
    ensure(zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, domain, strlen(domain)) == 0);
    ensure(zmq_setsockopt(socket, ENFORCE_DOMAIN, &on, sizeof on) == 0);
}

struct part {
    char text[PART_BYTES_MAX];
    size_t count;
};

static void put(void *zap, const void *bytes, size_t count, bool more)
{
    ensure(zmq_send(zap, bytes, count, more ? ZMQ_SNDMORE : 0) >= 0);
}

static bool serve_one(void *zap, zap_judge *judge, void *arg)
{
    struct part parts[PARTS];
    struct zap_request request = { .domain = "" };
    size_t size = 0;
    int more = 1, count = 0;
    for (size_t bytes = sizeof more; more && count < PARTS; count++) {
        const int got = zmq_recv(zap, parts[count].text, PART_BYTES_MAX - 1, ZMQ_DONTWAIT);
        if (got < 0) return false;
        ensure(got < PART_BYTES_MAX);
        parts[count].count = (size_t)got;
        parts[count].text[got] = 0;
        ensure(zmq_getsockopt(zap, ZMQ_RCVMORE, &more, &bytes) == 0);
    }
    ensure(!more && count == PARTS && strcmp(parts[PART_MECHANISM].text, "PLAIN") == 0);
    snprintf(request.domain, sizeof request.domain, "%.*s", ZAP_DOMAIN_MAX,
             parts[PART_DOMAIN].text);
    snprintf(request.address, sizeof request.address, "%.*s", ZAP_ADDRESS_MAX,
             parts[PART_ADDRESS].text);
    const bool is_in = sodium_hex2bin(request.key.bytes, CURVE_BYTES, parts[PART_USER].text,
                                      parts[PART_USER].count, NULL, &size, NULL) == 0 &&
                       size == CURVE_BYTES && judge(arg, &request);
    put(zap, "1.0", 3, true);
    put(zap, parts[PART_ID].text, parts[PART_ID].count, true);
    put(zap, is_in ? "200" : "400", 3, true);
    put(zap, "", 0, true);
    put(zap, parts[PART_USER].text, is_in ? parts[PART_USER].count : 0, true);
    put(zap, "", 0, false);
    return true;
}

WRAP(unsigned, zap_serve, void *zap, zap_judge *judge, void *arg, unsigned max)
{
    unsigned count = 0;
    while (count < max && serve_one(zap, judge, arg)) count++;
    return count;
}
