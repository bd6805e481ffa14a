// The library's ZAP requests about connections: any number of parts of any bytes, one after the
// other, each behind its length. Of a real request the routing id, the key and the address come
// from the network.

#include "common/base/ensure.h"
#include "common/net/zap.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum {
    PARTS_MAX = 12,
    PART_ID = 1,
    PART_DOMAIN = 2,
    PART_MECHANISM = 5,
    PART_KEY = 6,
    PARTS = 7,
    ANSWER_PARTS = 7
};

struct part {
    const uint8_t *bytes;
    size_t count;
};

struct asked {
    const struct part *parts;
    unsigned times;
};

// The test's own judge: it must be told exactly what the request said.
static bool judge(void *arg, const struct zap_request *request)
{
    struct asked *asked = arg;
    const struct part *domain = &asked->parts[PART_DOMAIN];
    asked->times++;
    ensure(memcmp(request->key.bytes, asked->parts[PART_KEY].bytes, CURVE_BYTES) == 0);
    ensure(strlen(request->domain) <= domain->count && strlen(request->address) <= ZAP_ADDRESS_MAX);
    ensure(memcmp(request->domain, domain->bytes, strlen(request->domain)) == 0);
    return request->key.bytes[0] & 1;
}

static void *asker, *zap;

static void open_once(void)
{
    static void *context;
    if (context) return;
    context = zmq_ctx_new();
    zap = zap_open(context);
    asker = zmq_socket(context, ZMQ_DEALER);
    ensure(asker && zmq_connect(asker, "inproc://zeromq.zap.01") == 0);
}

static bool is_said(const char *text, size_t count, const struct part *part)
{
    return count == part->count && (count == 0 || memcmp(text, part->bytes, count) == 0);
}

static unsigned take_parts(const uint8_t *bytes, size_t count, struct part *parts)
{
    unsigned number = 0;
    for (size_t at = 0; at < count && number < PARTS_MAX; number++) {
        const size_t rest = count - at - 1, length = bytes[at] < rest ? bytes[at] : rest;
        parts[number] = (struct part){ bytes + at + 1, length };
        at += 1 + length;
    }
    return number;
}

static size_t receive(char *text, size_t max)
{
    const int count = zmq_recv(asker, text, max, ZMQ_DONTWAIT);
    ensure(count >= 0 && (size_t)count < max);
    text[count] = 0;
    return (size_t)count;
}

// One whole answer: 200 with the client's key, or 400 with nothing.
static void check_answer(const struct part *id, bool welcome, const struct part *key)
{
    char text[ANSWER_PARTS][512], hex[ZAP_USER_MAX] = "";
    size_t counts[ANSWER_PARTS];
    int more = 0;
    size_t size = sizeof more;
    for (int i = 0; i < ANSWER_PARTS; i++) counts[i] = receive(text[i], sizeof text[i]);
    ensure(zmq_getsockopt(asker, ZMQ_RCVMORE, &more, &size) == 0 && !more);
    if (welcome) sodium_bin2hex(hex, sizeof hex, key->bytes, CURVE_BYTES);
    ensure(counts[0] == 0 && strcmp(text[1], "1.0") == 0);
    ensure(is_said(text[2], counts[2], id));
    ensure(strcmp(text[3], welcome ? "200" : "400") == 0 && strcmp(text[5], hex) == 0);
}

bool zap_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct part parts[PARTS_MAX] = { { NULL, 0 } };
    struct asked asked = { parts, 0 };
    const unsigned number = take_parts(bytes, count, parts);
    open_once();
    if (number == 0) return false;
    ensure(zmq_send(asker, "", 0, ZMQ_SNDMORE) == 0);
    for (unsigned i = 0; i < number; i++)
        ensure(zmq_send(asker, parts[i].bytes, parts[i].count, i + 1 < number ? ZMQ_SNDMORE : 0) >=
               0);
    ensure(zap_serve(zap, judge, &asked, 4) == 1);
    const bool is_whole = number == PARTS && parts[PART_KEY].count == CURVE_BYTES &&
                          is_said("CURVE", 5, &parts[PART_MECHANISM]);
    const bool welcome = is_whole && parts[PART_KEY].bytes[0] & 1;
    ensure(asked.times == is_whole);
    check_answer(&parts[PART_ID], welcome, &parts[PART_KEY]);
    return welcome;
}

void zap_fuzz_write_seeds(const char *folder)
{
    static const char *const says[PARTS] = {
        "1.0", "1", "member", "127.0.0.1", "", "CURVE", "\1..............................."
    };
    uint8_t seed[256];
    size_t used = 0;
    for (int i = 0; i < PARTS; i++) {
        const size_t length = strlen(says[i]);
        seed[used++] = (uint8_t)length;
        memcpy(seed + used, says[i], length);
        used += length;
    }
    fuzz_write_seed(folder, "accepted-whole", seed, used);
    seed[used - CURVE_BYTES] = 2;
    fuzz_write_seed(folder, "refused-guest", seed, used);
    fuzz_write_seed(folder, "refused-cut", seed, used - CURVE_BYTES - 1);
    seed[used] = 3;
    fuzz_write_seed(folder, "refused-long", seed, used + 4);
}
