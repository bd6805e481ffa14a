// Reads a ZAP request whole, whatever its number of parts, checks that it is a CURVE request, asks
// the judge about the key and answers 200 or 400. The answer's User-Id is the key, which later
// messages of the connection carry as metadata.

#include "common/base/ensure.h"
#include "common/net/net.h"
#include "common/net/zap.h"
#include <sodium.h>
#include <string.h>

enum { ZAP_ENFORCE_DOMAIN = 93 }; // Marked as a draft, but Debian's library has it

// [version][request id][domain][address][routing id][mechanism][credentials: 32 bytes for CURVE]
enum {
    PARTS = 7,
    PART_ID = 1,
    PART_DOMAIN = 2,
    PART_ADDRESS = 3,
    PART_MECHANISM = 5,
    PART_KEY = 6
};

void *zap_open(void *context)
{
    void *zap = zmq_socket(context, ZMQ_REP);
    ensure(zap);
    net_set(zap, ZMQ_LINGER, 0);
    ensure(zmq_bind(zap, "inproc://zeromq.zap.01") == 0);
    return zap;
}

static void put(void *zap, const void *bytes, size_t count, bool more)
{
    ensure(zmq_send(zap, bytes, count, more ? ZMQ_SNDMORE : 0) >= 0);
}

static void answer(void *zap, const zmq_msg_t *id, const struct curve_key *welcome)
{
    char user[ZAP_USER_MAX] = "";
    if (welcome) sodium_bin2hex(user, sizeof user, welcome->bytes, CURVE_BYTES);
    put(zap, "1.0", 3, true);
    put(zap, zmq_msg_data((zmq_msg_t *)(uintptr_t)id), zmq_msg_size(id), true);
    put(zap, welcome ? "200" : "400", 3, true);
    put(zap, "", 0, true);
    put(zap, user, strlen(user), true);
    put(zap, "", 0, false);
}

static void copy_text(char *text, size_t max, zmq_msg_t *part)
{
    size_t count = zmq_msg_size(part) < max - 1 ? zmq_msg_size(part) : max - 1;
    memcpy(text, zmq_msg_data(part), count);
    text[count] = 0;
}

// One request. Parts beyond the expected ones are read and dropped; their number makes the request
// invalid.
static bool serve_one(void *zap, zap_judge *judge, void *arg)
{
    zmq_msg_t parts[PARTS + 1];
    struct zap_request request = { .domain = "" };
    int count = 0;
    for (int i = 0; i <= PARTS; i++) zmq_msg_init(&parts[i]);
    for (bool more = true; more; count++) {
        zmq_msg_t *part = &parts[count < PARTS ? count : PARTS];
        if (zmq_msg_recv(part, zap, ZMQ_DONTWAIT) < 0) {
            ensure(count == 0); // A message is there whole or not at all
            return false;
        }
        more = zmq_msg_more(part);
    }
    bool is_curve = count == PARTS && zmq_msg_size(&parts[PART_MECHANISM]) == 5 &&
                    memcmp(zmq_msg_data(&parts[PART_MECHANISM]), "CURVE", 5) == 0 &&
                    zmq_msg_size(&parts[PART_KEY]) == CURVE_BYTES;
    copy_text(request.domain, sizeof request.domain, &parts[PART_DOMAIN]);
    copy_text(request.address, sizeof request.address, &parts[PART_ADDRESS]);
    if (is_curve) memcpy(request.key.bytes, zmq_msg_data(&parts[PART_KEY]), CURVE_BYTES);
    answer(zap, &parts[PART_ID], is_curve && judge(arg, &request) ? &request.key : NULL);
    for (int i = 0; i <= PARTS; i++) zmq_msg_close(&parts[i]);
    return true;
}

unsigned zap_serve(void *zap, zap_judge *judge, void *arg, unsigned max)
{
    unsigned count = 0;
    while (count < max && serve_one(zap, judge, arg)) count++;
    return count;
}

static void set_keys(void *socket, const struct curve_pair *own)
{
    ensure(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, own->public.bytes, CURVE_BYTES) == 0);
    ensure(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, own->secret, CURVE_BYTES) == 0);
}

void zap_secure_server(void *socket, const struct curve_pair *own, const char *domain)
{
    set_keys(socket, own);
    net_set(socket, ZMQ_CURVE_SERVER, 1);
    ensure(zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, domain, strlen(domain)) == 0);
    net_set(socket, ZAP_ENFORCE_DOMAIN, 1);
}

void zap_secure_client(void *socket, const struct curve_pair *own, const struct curve_key *server)
{
    set_keys(socket, own);
    ensure(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server->bytes, CURVE_BYTES) == 0);
}

bool zap_user(zmq_msg_t *part, struct curve_key *ret_key)
{
    const char *user = zmq_msg_gets(part, "User-Id");
    size_t count;
    return user && strlen(user) == ZAP_USER_MAX - 1 &&
           sodium_hex2bin(ret_key->bytes, CURVE_BYTES, user, ZAP_USER_MAX - 1, NULL, &count,
                          NULL) == 0 &&
           count == CURVE_BYTES;
}
