#pragma once
// own_actor -- an actor of the test's own at the bed's broker: a key, a post, and what came last.

#include "common/actor/post.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "tests/live/testbed.h"
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { OWN_ARENA_BYTES = 1 << 20 };

struct own {
    struct identity *identity;
    struct post *post;
    char name[ACTOR_NAME_MAX + 1];
    struct wire_arena arena;
    struct letter letter;
};

static inline struct own *own_new(struct testbed *bed, const char *key, uint8_t role)
{
    struct own *self = calloc(1, sizeof *self);
    ensure(self);
    self->identity = testbed_identity(key);
    self->arena = (struct wire_arena){ .bytes = malloc(OWN_ARENA_BYTES), .max = OWN_ARENA_BYTES };
    actor_name(role, identity_key(self->identity), self->name);
    struct post_options options = { .identity = self->identity,
                                    .role = role,
                                    .name = self->name,
                                    .run = "live",
                                    .broker = &bed->ticket,
                                    .quiet = true,
                                    .incarnation = 1,
                                    .instance = clock_unix_ms() };
    ensure(self->arena.bytes && post_new(&options, NULL, &self->post) == 0);
    return self;
}

static inline void own_destroy(struct own *self)
{
    post_destroy(&self->post);
    identity_destroy(&self->identity);
    free(self->arena.bytes);
    free(self);
}

// Takes all that is there. Whether a letter of this kind was among it: it is then self->letter.
static inline bool own_heard(struct own *self, uint16_t kind)
{
    post_tick(self->post);
    while (post_take(self->post, true, &self->arena, &self->letter) != POST_NOTHING)
        if (self->letter.msg.kind == kind) return true;
    return false;
}

// Until one has come by mail. The milliseconds it took; UINT64_MAX: the time was up.
static inline uint64_t own_await_ms(struct own *self, uint16_t kind, uint64_t timeout_ms)
{
    const uint64_t began_ms = clock_ms();
    while (clock_ms() < began_ms + timeout_ms) {
        zmq_pollitem_t item = { .socket = post_mail_socket(self->post), .events = ZMQ_POLLIN };
        if (own_heard(self, kind)) return clock_ms() - began_ms;
        zmq_poll(&item, 1, 5);
    }
    return UINT64_MAX;
}

static inline bool own_await(struct own *self, uint16_t kind, uint64_t timeout_ms)
{
    return own_await_ms(self, kind, timeout_ms) != UINT64_MAX;
}
