// An actor that the broker forgot is known again soon, however much it sends meanwhile.

#include "broker/broker.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { FD = 20, MINUTE_MS = 60000, TICK_MS = 200 };

static uint8_t frame[4096];

static size_t pack(uint16_t kind, const void *body)
{
    const struct wire_head head = { .kind = kind };
    const size_t count = wire_pack(&head, body, frame, sizeof frame);
    assert_true(count > 0);
    return count;
}

static bool may_say(struct broker *self, size_t count, uint64_t now_ms)
{
    const struct delivery in = { .is_sound = true,
                                 .frame = frame,
                                 .count = count,
                                 .parts = 2,
                                 .bytes = count,
                                 .fd = FD,
                                 .now_ms = now_ms };
    return broker_may_say(self, &in, NULL);
}

// At each tick first its mail, which takes all that a stranger may say, then a HELLO.
static void a_hello_gets_through_behind_other_mail(void **state)
{
    (void)state;
    struct broker *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->connections = broker_connections_new(100);
    self->backlog = backlog_new();
    const struct wire_ping ping = { .instance = 1 };
    const struct wire_hello hello = { .role = ACTOR_TRAINER, .name = "trainer.1", .instance = 1 };
    uint32_t pings = 0, hellos = 0, ticks = 0;
    for (uint64_t now_ms = 1000; now_ms < 1000 + MINUTE_MS; now_ms += TICK_MS, ticks++) {
        const size_t bytes = pack(FRAME_PING, &ping);
        pings += may_say(self, bytes, now_ms);
        pings += may_say(self, bytes, now_ms);
        hellos += may_say(self, pack(FRAME_HELLO, &hello), now_ms);
    }
    assert_int_equal(hellos, ticks);
    assert_in_range(pings, ticks, ticks + 20);
    connections_destroy(&self->connections);
    backlog_destroy(&self->backlog);
    free(self);
}

TESTS(TEST(a_hello_gets_through_behind_other_mail))
