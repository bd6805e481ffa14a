// The sentence of a round whose time is up has room for the longest names and numbers, advice included.

#include "common/pace/rounds/missed.h"
#include "common/pace/rounds/rounds_run.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct share shares[MEMBERS_MAX];
static uint32_t by_trainer[MEMBERS_MAX], indices[MEMBERS_MAX];

static struct rules rules;
static struct run *run;
static struct tally *tally;

// Round 5 of so many healthy trainers, that joined in round `joined_number`.
static struct round *open_round(uint32_t trainers, const char *label, uint64_t joined_number)
{
    static const struct wire_rounds_config strategy = { .least_train_ms = 2000 };
    rules = (struct rules){ .train_ms = 0 };
    rules_set_strategy(&rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    run = calloc(1, sizeof *run);
    tally = calloc(1, sizeof *tally);
    run->number = 5;
    for (uint32_t i = 0; i < trainers; i++) {
        struct wire_member *line = &run->roster.members[i];
        *line = (struct wire_member){ .index = i, .role = ACTOR_TRAINER, .state = MEMBER_HEALTHY };
        line->joined_number = joined_number;
        actor_name_with(ACTOR_TRAINER, label, &line->key, line->name);
        indices[i] = i;
    }
    return &((struct rounds_run *)(void *)run->pace_state)->round;
}

static void say_missed(struct deal *deal, uint32_t waited_ms, char ret_text[MISSED_BYTES])
{
    const struct turn turn = { .run = run, .rules = &rules };
    missed_sentence(&turn, tally, deal, waited_ms, ret_text);
    free(tally);
    free(run);
}

// As many healthy trainers, elected, voters and no results.
static void say(uint32_t trainers, uint32_t elected, const char *label, uint32_t train_ms,
                uint32_t waited_ms, char ret_text[MISSED_BYTES])
{
    static const struct hash secret;
    struct deal deal = { .capacity = MEMBERS_MAX, .shares = shares, .by_trainer = by_trainer };
    struct round *round = open_round(trainers, label, 0);
    rules.train_ms = train_ms;
    round->clients_count = trainers;
    for (uint32_t i = 0; i < trainers; i++) round->clients[i].member = i;
    tally_init(tally, trainers, elected, &secret);
    tally->voted = elected;
    assignment_deal(7, indices, trainers, MEMBERS_MAX, &deal);
    say_missed(&deal, waited_ms, ret_text);
}

static void the_longest_sentence_is_whole(void **state)
{
    (void)state;
    char text[MISSED_BYTES];
    say(2, 3, "", 30000, 0, text);
    assert_string_equal(
        text,
        "the round's time was up without the results of trainer.00000000, trainer.00000000 (3 "
        "of 3 votes lack them); if unreachable, `shoal doctor` says so; if too slow, "
        "raise max_round_train_time (now 30 s)");
    say(MEMBERS_MAX, WITNESSES_MAX, "fifteen-letters", UINT32_MAX, 0, text);
    assert_string_equal(
        text, "the round's time was up without the results of trainer.fifteen-letters.0000 and "
              "16383 more (64 of 64 votes lack them); if unreachable, `shoal doctor` says so; "
              "if too slow, raise max_round_train_time (now 4.29497e+06 s)");
    say(MEMBERS_MAX, WITNESSES_MAX, "fifteen-letters", 30000, UINT32_MAX, text);
    assert_string_equal(
        text, "the round went on after 4.29e+06 s without the results of "
              "trainer.fifteen-letters.0000 and 16383 more (64 of 64 votes lack them): it waits 3 "
              "times as long as half of them take, at least min_round_train_time (now 2 s)");
    say(2, 3, "", 30000, 2000, text);
    assert_string_equal(text, ""); // Nobody had to wait
}

// Of two witnesses none has voted; both have joined in round `joined_number`.
static void say_votes(uint64_t joined_number, const char *label, char ret_text[MISSED_BYTES])
{
    static const struct hash secret;
    struct deal deal = { .capacity = MEMBERS_MAX, .shares = shares, .by_trainer = by_trainer };
    struct round *round = open_round(2, label, joined_number);
    rules.witness_ms = UINT32_MAX;
    round->witnesses_count = 2;
    for (uint32_t i = 0; i < 2; i++) round->witnesses[i].member = i;
    tally_init(tally, 2, 2, &secret);
    say_missed(&deal, 0, ret_text);
}

static void who_began_again_is_not_told_to_take_more_time(void **state)
{
    (void)state;
    char text[MISSED_BYTES];
    say_votes(4, "fifteen-letters", text);
    assert_string_equal(text, "the round's time was up without the votes of "
                              "trainer.fifteen-letters.0000, trainer.fifteen-letters.0000 (0 of 2, "
                              "2 are needed): raise round_witness_time (now 4.29497e+06 s)");
    say_votes(5, "fifteen-letters", text);
    assert_string_equal(text,
                        "the round's time was up without the votes of "
                        "trainer.fifteen-letters.0000, trainer.fifteen-letters.0000 (0 of 2, 2 are "
                        "needed): they began again in this round, and do not vote a second time");
}

static void one_that_is_waited_for_is_named_whole(void **state)
{
    (void)state;
    char text[MISSED_BYTES];
    open_round(1, "fifteen-letters", 0);
    const struct turn turn = { .run = run, .rules = &rules };
    missed_waits(&turn, 0, UINT32_MAX, UINT32_MAX - 1, text);
    assert_string_equal(
        text, "the rounds wait for trainer.fifteen-letters.0000 for more than a tenth of the time: "
              "of late up to 4.3e+06 s, when half of the results took 4.3e+06 s; a result is late "
              "after min_round_train_time (now 2 s) or more");
    free(tally);
    free(run);
}

TESTS(TEST(one_that_is_waited_for_is_named_whole), TEST(the_longest_sentence_is_whole),
      TEST(who_began_again_is_not_told_to_take_more_time))
