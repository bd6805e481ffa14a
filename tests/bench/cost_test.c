// cost_test -- the short form of cost_bench in "make test": one counted run with a quarter of the
// clients auditing. What coordinator and trainers sign and verify in a round is more than zero
// and at most a bound that follows from the protocol; cost_bench measures how long it takes.
//
// Of C clients that are trainers and witnesses, in a round without trouble:
//
//     a trainer signs      CLAIM to all and to each other witness (C), ACK of their claims (C - 1),
//                          VOTE, PROGRESS twice, REVEAL or FINDING                  2 C + 3
//     a trainer verifies   RUN twice, ROUND, COMMIT, BEAT after each of three records; each other
//                          CLAIM as news and as mail, ACK of its own to each, of its VOTE and
//                          FINDING, one REVEAL                                      3 (C - 1) + 10
//     coordinator signs    RUN twice, ROUND, COMMIT, three BEATs, ACK of each VOTE and of a FINDING
//                                                                                   C + 8
//     coordinator verifies each VOTE, a FINDING                                     C + 1
//
// Mail is sent again until it is acknowledged: so the bound is twice as much. In addition, by the
// clock: HELLO and PING of each member in half a second, a BEAT in a second.

#include "tests/bench/cost_run.h"
#include <stdio.h>
#include <string.h>

enum { PERCENT = 25, ROUNDS = 10, C = COST_TRAINERS, MEMBERS = COST_TRAINERS + 1 };

static const struct bound {
    const char *actors;
    unsigned signs, verifies, signs_s, verifies_s;
} bounds[] = {
    { "coordinator", C + 8, C + 1, 1, 2 * MEMBERS },
    { "trainer", 2 * C + 3, 3 * (C - 1) + 10, 4, 1 },
};

static unsigned tests_told;

static bool judge(const char *name, const char *what, double number, double most)
{
    const bool well = number > 0 && number <= most;
    printf("%sok %u - %s %s %.1f a round, at most %.1f\n", well ? "" : "not ", ++tests_told, name,
           what, number, most);
    return well;
}

int main(void)
{
    static const struct cost_kind kind = { .name = "audits 25 %",
                                           .percent = PERCENT,
                                           .counted = true };
    struct cost_run run;
    bool well = true;
    cost_run_measure(&kind, ROUNDS, true, &run);
    const double seconds = run.round_ms / 1000;
    for (unsigned i = 0; i < run.actors; i++)
        for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
            const struct bound *bound = &bounds[b];
            const struct crypto_count *of = run.of[i].use.crypto.of;
            if (strncmp(run.of[i].name, bound->actors, strlen(bound->actors)) != 0) continue;
            well &= judge(run.of[i].name, "signs", (double)of[COUNT_SIGNED].calls / run.rounds,
                          2 * bound->signs + bound->signs_s * seconds);
            well &= judge(run.of[i].name, "verifies", (double)of[COUNT_VERIFIED].calls / run.rounds,
                          2 * bound->verifies + bound->verifies_s * seconds);
        }
    well &= tests_told == 2 * (COST_TRAINERS + 1);
    return well ? 0 : 1;
}
