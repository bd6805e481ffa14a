// linking: who is in the list of 64 that link with one another, when more would be in it.

#include "common/pace/windows/linking.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CROWD = WINDOW_MEMBERS_MAX + 6, SERVERS = 2 };

// The members in the list that a run with two parameter servers tells, once the links of all are known.
static void list_of(uint32_t trainers, uint32_t servers, uint32_t ret_counts[ACTOR_COUNT])
{
    static struct effect effects[4];
    static uint8_t bytes[1 << 16];
    const uint32_t count = trainers + servers;
    struct run *run = calloc(1, sizeof *run);
    struct windows *self = calloc(1, sizeof *self);
    struct rules rules = { .min_clients = 1, .init_min_clients = 1, .heartbeat_ms = 1000 };
    struct outbox out = { effects, 0, 4, bytes, 0, sizeof bytes };
    const struct turn turn = { .run = run, .rules = &rules, .live = self, .out = &out };
    const struct wire_windows_config config = { .lanes = 8, .servers = SERVERS };
    const struct wire_stands said = { .instance = 1 };
    const struct msg in = { .kind = FRAME_STANDS, .run = "r", .from = "m0", .body = &said };
    assert_true(run && self);
    rules_set_strategy(&rules, FRAME_WINDOWS_CONFIG, &config, sizeof config);
    for (uint32_t i = 0; i < count; i++) {
        struct wire_member *member = &run->roster.members[run->roster.count++];
        *member = (struct wire_member){ .index = i, .instance = 1, .state = MEMBER_PENDING };
        member->role = i < servers ? ACTOR_SERVER : ACTOR_TRAINER;
        snprintf(member->name, sizeof member->name, "m%u", i);
        self->stands[i].instance = 1;
        snprintf(self->stands[i].links, sizeof self->stands[i].links, "tcp://127.0.0.1:%u",
                 7000 + i);
    }
    linking_hear(self, &turn, &in, 0);
    memset(ret_counts, 0, ACTOR_COUNT * sizeof *ret_counts);
    assert_int_equal(out.count, 1);
    for (uint32_t i = 0; i < self->linking.count; i++)
        ret_counts[run->roster.members[self->linking.trainers[i].member].role]++;
    free(self);
    free(run);
}

static void neither_role_crowds_out_the_other(void **state)
{
    uint32_t counts[ACTOR_COUNT];
    (void)state;
    list_of(1, CROWD, counts);
    assert_int_equal(counts[ACTOR_TRAINER], 1);
    assert_int_equal(counts[ACTOR_SERVER], WINDOW_MEMBERS_MAX - 1);
    list_of(CROWD, SERVERS + 1, counts);
    assert_int_equal(counts[ACTOR_SERVER], SERVERS);
    assert_int_equal(counts[ACTOR_TRAINER], WINDOW_MEMBERS_MAX - SERVERS);
}

TESTS(TEST(neither_role_crowds_out_the_other))
