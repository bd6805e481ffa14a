// Verdicts from the findings of a case's judges: liars alone never make one, in a run of any size,
// and a trainer that shows its result to one judge and hides it from another does not escape.

#include "common/pace/rounds/verdict.h"
#include "common/run/quorum.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { ACCUSED = 1, ACCUSER = 2 };

static struct values {
    struct round round;
    struct roster roster;
} * run;

static int set_up(void **state)
{
    (void)state;
    run = calloc(1, sizeof *run);
    return run ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(run);
    return 0;
}

// A case with the words of its judges so far.
static uint8_t judged(uint32_t trainers, uint8_t accusation, uint8_t tries, uint32_t same,
                      uint32_t different, uint32_t withheld, uint32_t pending)
{
    const uint32_t counts[] = { pending, same, different, withheld };
    run->round.opened.trainers = trainers;
    run->round.audits_count = 0;
    for (uint8_t word = FINDING_PENDING; word <= FINDING_WITHHELD; word++)
        for (uint32_t i = 0; i < counts[word]; i++) {
            run->round.audits[run->round.audits_count] =
                (struct wire_audit){ .auditor = 3 + run->round.audits_count,
                                     .member = ACCUSED,
                                     .accuser = ACCUSER,
                                     .accusation = accusation,
                                     .judges = true,
                                     .tries = tries };
            run->round.findings[run->round.audits_count++].finding = word;
        }
    return verdict_of(&run->round, 0);
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Fewer than a third lie. If one party calls the other's result wrong, one of the liars is a party.
static uint32_t lying_judges(uint32_t trainers, uint8_t accusation, uint8_t said)
{
    const uint32_t liars = (trainers - 1) / 3;
    const bool both_honest = accusation == FINDING_WITHHELD && said == FINDING_DIFFERENT;
    return liars == 0 || both_honest ? liars : liars - 1;
}

// However many of the liars are among the judges, they convict no trainer; all the honest ones
// together decide.
static void liars_alone_make_no_verdict(void **state)
{
    (void)state;
    static const uint8_t accusations[] = { FINDING_DIFFERENT, FINDING_WITHHELD };
    for (uint32_t trainers = 4; trainers <= 300; trainers++)
        for (int a = 0; a < 2; a++)
            for (uint8_t tries = 0; tries <= 1; tries++) {
                const uint32_t due = verdict_judges(trainers, accusations[a], tries);
                const uint32_t judges = least(due, trainers - 2);
                const uint32_t liars =
                    least(lying_judges(trainers, accusations[a], FINDING_DIFFERENT), judges);
                const uint32_t false_same =
                    least(lying_judges(trainers, accusations[a], FINDING_SAME), judges);
                assert_true(due % 2);
                if (tries == 0 && due < verdict_judges(trainers, accusations[a], 1)) {
                    // Few: an honest word is likely, not certain
                    assert_int_equal(judged(trainers, accusations[a], 0, 2, due - 2, 0, 0),
                                     FINDING_PENDING);
                    assert_int_equal(judged(trainers, accusations[a], 0, 1, due - 1, 0, 0),
                                     FINDING_DIFFERENT);
                    continue;
                }
                assert_int_equal(
                    judged(trainers, accusations[a], tries, 0, liars, 0, judges - liars),
                    FINDING_PENDING);
                assert_int_equal(
                    judged(trainers, accusations[a], tries, false_same, 0, 0, judges - false_same),
                    FINDING_PENDING);
                if (judges == due)
                    assert_int_equal(
                        judged(trainers, accusations[a], tries, judges - liars, liars, 0, 0),
                        FINDING_SAME);
            }
}

static void a_large_run_asks_few_first(void **state)
{
    (void)state;
    assert_int_equal(verdict_judges(4, FINDING_DIFFERENT, 0), 3);
    assert_int_equal(verdict_judges(35, FINDING_DIFFERENT, 0), 21);
    assert_int_equal(verdict_judges(100, FINDING_DIFFERENT, 0), 21);
    assert_int_equal(verdict_judges(100, FINDING_DIFFERENT, 1), 65);
    assert_int_equal(verdict_judges(16384, FINDING_DIFFERENT, 1), 255);
    // Five of the 21 judges that are due are not enough, even if all agree
    assert_int_equal(judged(100, FINDING_DIFFERENT, 0, 0, 5, 0, 0), FINDING_PENDING);
}

static void a_result_shown_to_some_judges_is_withheld(void **state)
{
    (void)state;
    assert_int_equal(judged(4, FINDING_DIFFERENT, 0, 0, 1, 1, 0), FINDING_WITHHELD);
    assert_int_equal(judged(6, FINDING_WITHHELD, 0, 0, 2, 2, 0), FINDING_WITHHELD);
    assert_int_equal(judged(7, FINDING_DIFFERENT, 0, 0, 1, 1, 1), FINDING_PENDING); // Still open
    assert_int_equal(judged(7, FINDING_DIFFERENT, 0, 0, 2, 1, 0), FINDING_DIFFERENT);
    assert_int_equal(judged(7, FINDING_DIFFERENT, 0, 1, 1, 1, 0), FINDING_WITHHELD);
    assert_int_equal(judged(7, FINDING_DIFFERENT, 0, 2, 1, 0, 0), FINDING_SAME);
    assert_int_equal(judged(4, FINDING_DIFFERENT, 0, 1, 0, 1, 0), FINDING_PENDING);
}

// A member that was cut off a moment ago counts, so that attackers that cut members off gain no
// majority. A member that left long ago does not count: otherwise a run of strangers could reach no
// verdict any more.
static void a_member_that_left_long_ago_does_not_count(void **state)
{
    (void)state;
    enum { PRESENT = 6, GONE = 60 };
    memset(run, 0, sizeof *run);
    for (uint32_t i = 0; i < PRESENT + GONE; i++) {
        const struct wire_member member = { .index = i,
                                            .key.bytes = { (uint8_t)(i + 1) },
                                            .role = ACTOR_TRAINER,
                                            .state = i < PRESENT ? MEMBER_HEALTHY : MEMBER_DROPPED,
                                            .dropped_number = 10 };
        roster_put(&run->roster, &member);
    }
    run->round.opened.round = 10 + 63;
    assert_int_equal(roster_trainers(&run->roster, run->round.opened.round), PRESENT + GONE);
    assert_int_equal(judged(roster_trainers(&run->roster, run->round.opened.round),
                            FINDING_DIFFERENT, 1, 0, PRESENT - 2, 0, 0),
                     FINDING_PENDING);
    run->round.opened.round++;
    assert_int_equal(roster_trainers(&run->roster, run->round.opened.round), PRESENT);
    assert_int_equal(judged(roster_trainers(&run->roster, run->round.opened.round),
                            FINDING_DIFFERENT, 1, 0, PRESENT - 2, 0, 0),
                     FINDING_DIFFERENT);
}

TESTS_WITH(set_up, tear_down, TEST(liars_alone_make_no_verdict), TEST(a_large_run_asks_few_first),
           TEST(a_result_shown_to_some_judges_is_withheld),
           TEST(a_member_that_left_long_ago_does_not_count))
