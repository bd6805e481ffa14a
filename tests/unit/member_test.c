// What a member knows of the others.
#include "actors/member/member.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PROVIDERS = 40, LIST = 16 };

// Also where more than a message has room for would keep it from those that follow.
static void every_provider_has_its_turn(void **state)
{
    (void)state;
    struct member *self = calloc(1, sizeof *self);
    struct wire_holder list[LIST];
    bool met[PROVIDERS] = { false };
    assert_non_null(self);
    self->members_count = PROVIDERS;
    for (uint32_t i = 0; i < PROVIDERS; i++) {
        self->members[i] = (struct wire_member){ .index = i, .role = ACTOR_PROVIDER,
                                                 .state = MEMBER_HEALTHY };
        snprintf(self->members[i].endpoint, sizeof self->members[i].endpoint, "tcp://127.0.0.1:%u",
                 10000 + i);
    }
    self->index = 7;
    for (self->round.round = 1; self->round.round <= PROVIDERS; self->round.round++) {
        assert_int_equal(member_providers(self, list, LIST), LIST);
        for (uint32_t i = 0; i < LIST; i++) {
            const uint32_t provider = (uint32_t)atoi(strrchr(list[i].endpoint, ':') + 1) - 10000;
            assert_int_equal(provider, (7 + self->round.round + i) % PROVIDERS);
            met[provider] = true;
        }
    }
    for (uint32_t i = 0; i < PROVIDERS; i++) assert_true(met[i]);
    free(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_provider_has_its_turn) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
