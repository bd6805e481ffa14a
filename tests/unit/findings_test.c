// A finding is late by what is usual for findings and for the round's results; of those that are, a
// liar's suspicion grows, and that of an honest member does not.

#include "common/pace/rounds/findings.h"
#include "tests/test.h"
#include <stdlib.h>

enum { LEAST_MS = 2000, HALF_MS = 20, MOST = 6 };

static struct round *round_;
static struct findings findings;
static uint32_t suspects[PARTIES];

static int set_up(void **state)
{
    (void)state;
    round_ = calloc(1, sizeof *round_);
    findings = (struct findings){ .known = 0 };
    if (!round_) return -1;
    round_->audits_count = 1;
    round_->audits[0].residual_from.bytes[0] = 1;
    for (uint32_t i = 0; i < 4; i++) round_->clients[i].member = i;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(round_);
    return 0;
}

// One round with one audit, whose finding took so long.
static void hear(uint64_t took_ms)
{
    findings_begin(&findings);
    findings_hear(&findings, 0, took_ms);
    findings_learn(&findings, round_);
}

static uint64_t limit(bool needs_author)
{
    return findings_limit_ms(&findings, LEAST_MS, HALF_MS, needs_author);
}

static void at_first_no_author_is_late(void **state)
{
    (void)state;
    assert_int_equal(limit(false), LEAST_MS);
    for (int i = 0; i < FINDINGS_FIRST; i++) {
        assert_true(limit(true) == UINT64_MAX);
        hear(30);
    }
    assert_int_equal(limit(true), LEAST_MS);
    assert_int_equal(findings_limit_ms(&findings, LEAST_MS, 5000, true), 15000);
    assert_true(findings_limit_ms(&findings, LEAST_MS, 0, false) == UINT64_MAX);
}

static void where_all_are_slow_nobody_is_late(void **state)
{
    (void)state;
    for (int i = 0; i < FINDINGS_FIRST; i++) hear(9000);
    assert_int_equal(limit(true), 27000);
    assert_int_equal(limit(false), 27000);
}

// Of four trainers one is a party to half of all audits, at times to some more in a row.
static void one_party_does_not_make_slow_usual(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * FINDINGS_KEPT; i++) {
        hear(i % 3 ? 9000 : 30);
        if (i > FINDINGS_KEPT) assert_int_equal(limit(true), LEAST_MS);
    }
}

static void what_began_with_zero_is_not_learned_from(void **state)
{
    (void)state;
    round_->audits[0].residual_from.bytes[0] = 0;
    for (int i = 0; i < 2 * FINDINGS_FIRST; i++) hear(30);
    assert_true(limit(true) == UINT64_MAX);
}

// A finding that is missing took the whole round; one of before a restart is not known.
static void what_a_finding_took(void **state)
{
    (void)state;
    findings_begin(&findings);
    assert_int_equal(findings_took_ms(&findings, round_, 0, 7000), 7000);
    round_->findings[0].finding = FINDING_SAME;
    assert_int_equal(findings_took_ms(&findings, round_, 0, 7000), 0);
    findings_hear(&findings, 0, 40), findings_hear(&findings, 0, 1040);
    assert_int_equal(findings_took_ms(&findings, round_, 0, 7000), 40);
}

// Member 0 is late whenever it audits, or whenever it is audited. True: it is found before any other is.
static bool is_found(bool as_auditor, int *ret_late)
{
    findings = (struct findings){ .known = 0 };
    for (*ret_late = 0; *ret_late < 1000;) {
        const uint32_t auditor = (uint32_t)rand() % 4,
                       author = (auditor + 1 + (uint32_t)rand() % 3) % 4;
        const bool is_late = (as_auditor ? auditor : author) == 0;
        round_->audits[0].auditor = auditor, round_->audits[0].member = author;
        *ret_late += is_late;
        if (!findings_suspect(&findings, round_, 0, is_late, MOST, suspects)) continue;
        const uint32_t mine = suspects[as_auditor ? PARTY_AUDITOR : PARTY_AUTHOR];
        const uint32_t others = suspects[as_auditor ? PARTY_AUTHOR : PARTY_AUDITOR];
        return mine == 0 && others == NO_MEMBER;
    }
    return false;
}

static void a_liar_is_found_and_the_honest_are_not(void **state)
{
    (void)state;
    int wrong = 0, late = 0;
    srand(1);
    for (int i = 0; i < 10000; i++) {
        if (!is_found(i & 1, &late)) wrong++;
        else assert_int_equal(late, MOST);
    }
    assert_true(wrong < 50);
}

static void one_that_is_on_time_as_often_is_not_suspected(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        assert_false(findings_suspect(&findings, round_, 0, i % 2 == 0, MOST, suspects));
}

TESTS(TEST_WITH(one_that_is_on_time_as_often_is_not_suspected, set_up, tear_down),
      TEST_WITH(at_first_no_author_is_late, set_up, tear_down),
      TEST_WITH(where_all_are_slow_nobody_is_late, set_up, tear_down),
      TEST_WITH(one_party_does_not_make_slow_usual, set_up, tear_down),
      TEST_WITH(what_began_with_zero_is_not_learned_from, set_up, tear_down),
      TEST_WITH(what_a_finding_took, set_up, tear_down),
      TEST_WITH(a_liar_is_found_and_the_honest_are_not, set_up, tear_down))
