// Votes are counted by result, and a result is all that a vote says of it; however the liars vote, what the
// honest name is accepted. When witnesses contradict each other, enough of them are asked for the claims
// that one is honest: none of them twice, and none where all say the same.

#include "common/pace/rounds/tally.h"
#include "common/run/quorum.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 3, ELECTED = 9 }; // Three of the elected may lie

static const struct hash secret = { { 1 } };
static struct tally *tally;

static int set_up(void **state)
{
    (void)state;
    tally = calloc(1, sizeof *tally);
    if (!tally) return -1;
    tally_init(tally, CLIENTS, ELECTED, &secret);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(tally);
    return 0;
}

static void vote(uint32_t witness, uint32_t client, const char *result)
{
    struct wire_seen seen = { .client = client, .result = hash_of(result, strlen(result)) };
    const struct wire_vote vote = { .seen = &seen, .seen_count = 1 };
    assert_int_equal(tally_count(tally, witness, &vote), TALLY_COUNTED);
}

// The witnesses asked for the claims of this client, a bit each.
static uint64_t ask(uint32_t client)
{
    uint64_t asked = 0;
    for (uint32_t witness; tally_ask(tally, client, &witness);) {
        assert_false(asked >> witness & 1);
        asked |= (uint64_t)1 << witness;
    }
    return asked;
}

static void no_witness_is_asked_for_what_all_say(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < 5; w++) vote(w, 1, "a");
    assert_int_equal(ask(1), 0);
}

static void of_each_result_one_more_than_may_lie_is_asked(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < 6; w++) vote(w, 1, "a");
    vote(6, 1, "b");
    assert_int_equal(ask(1), 0x0f | 1 << 6);
    assert_int_equal(ask(1), 0);
    assert_int_equal(ask(0), 0);
    vote(7, 1, "b");
    vote(8, 1, "c");
    assert_int_equal(ask(1), 1 << 7 | 1 << 8);
}

static void a_witness_that_votes_later_is_asked_later(void **state)
{
    (void)state;
    vote(0, 2, "invented");
    vote(1, 2, "a");
    assert_int_equal(ask(2), 3);
    vote(2, 2, "a");
    assert_int_equal(ask(2), 4);
}

static void the_next_round_starts_empty(void **state)
{
    (void)state;
    vote(0, 1, "a"), vote(1, 1, "b");
    assert_int_equal(ask(1), 3);
    tally_init(tally, CLIENTS, ELECTED, &secret);
    vote(0, 1, "a"), vote(1, 1, "b");
    assert_int_equal(ask(1), 3);
}

// ---- what is accepted -----------------------------------------------------------------------------

static void cast(uint32_t witness, const struct wire_seen *seen)
{
    const struct wire_vote vote = { .seen = seen, .seen_count = 1 };
    assert_int_equal(tally_count(tally, witness, &vote), TALLY_COUNTED);
}

static void results_that_differ_in_anything_are_two(void **state)
{
    (void)state;
    const struct hash a = hash_of("a", 1), b = hash_of("b", 1);
    const struct wire_seen honest = { .client = 1,
                                      .payload_bytes = 7,
                                      .result = a,
                                      .payload = a,
                                      .base = a,
                                      .residual_from = a,
                                      .residual_to = a };
    for (int field = 0; field < 6; field++)
        for (int liars_first = 0; liars_first < 2; liars_first++) {
            struct wire_seen other = honest;
            struct hash *const hashes[] = { &other.result, &other.payload, &other.base,
                                            &other.residual_from, &other.residual_to };
            if (field < 5) *hashes[field] = b;
            else other.payload_bytes = 8;
            tally_init(tally, CLIENTS, ELECTED, &secret);
            for (uint32_t w = 0; w < ELECTED; w++) {
                cast(w, (liars_first ? w < 3 : w >= 5 && w < 8) ? &other : &honest);
                assert_true((tally_accepted(tally, 1) != NULL) == (w == 8));
            }
            const struct wire_seen *accepted = tally_accepted(tally, 1);
            assert_memory_equal(accepted, &honest, sizeof honest);
        }
}

// Every liar names a result of its own, in whatever order; the honest are just as many as they must be.
static void the_honest_result_finds_a_place(void **state)
{
    (void)state;
    for (uint32_t order = 0; order < 3; order++) {
        uint32_t honest = 0;
        tally_init(tally, CLIENTS, WITNESSES_MAX, &secret);
        for (uint32_t w = 0; w < WITNESSES_MAX; w++) {
            const bool lies = order == 0 ? w < 21 : order == 1 ? w % 3 == 1 : w >= 43;
            struct wire_seen seen = { .client = 2, .payload_bytes = lies ? w + 1 : 0 };
            cast(w, &seen);
            honest += !lies;
            assert_true((tally_accepted(tally, 2) != NULL) == (honest >= 43));
        }
        assert_int_equal(tally_accepted(tally, 2)->payload_bytes, 0);
    }
}

// ---- beside a tally that keeps all it hears -------------------------------------------------------

static struct plain {
    struct plain_rival {
        struct wire_seen seen;
        uint64_t voters;
    } rivals[TALLY_RIVALS_MAX];
    uint32_t count;
    uint64_t asked;
} plain[CLIENTS];

static void plain_count(struct plain *self, uint32_t witness, const struct wire_seen *seen)
{
    uint32_t i = 0;
    while (i < self->count && memcmp(&self->rivals[i].seen, seen, sizeof *seen) != 0) i++;
    if (i == TALLY_RIVALS_MAX) return;
    if (i == self->count) self->rivals[self->count++] = (struct plain_rival){ .seen = *seen };
    self->rivals[i].voters |= (uint64_t)1 << witness;
}

static const struct wire_seen *plain_accepted(const struct plain *self, uint32_t elected)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (quorum_reached((uint32_t)__builtin_popcountll(self->rivals[i].voters), elected))
            return &self->rivals[i].seen;
    return NULL;
}

static bool plain_ask(struct plain *self, uint32_t elected, uint32_t *ret_witness)
{
    for (uint32_t i = 0; self->count > 1 && i < self->count; i++) {
        const uint64_t voters = self->rivals[i].voters, left = voters & ~self->asked;
        if (!left || (uint32_t)__builtin_popcountll(voters & self->asked) > quorum_liars(elected))
            continue;
        *ret_witness = (uint32_t)__builtin_ctzll(left);
        self->asked |= (uint64_t)1 << *ret_witness;
        return true;
    }
    return false;
}

// Rounds of any size and any number of results, with one that most name, at times more than have a place.
static void it_says_what_one_that_keeps_all_says(void **state)
{
    (void)state;
    uint32_t accepted = 0, refused = 0;
    srand(1);
    for (int round = 0; round < 3000; round++) {
        const uint32_t elected = 1 + (uint32_t)rand() % WITNESSES_MAX;
        const int results = 1 + rand() % 40, liars = rand() % 100;
        tally_init(tally, CLIENTS, elected, &secret);
        memset(plain, 0, sizeof plain);
        for (uint32_t w = 0; w < elected; w++) {
            struct wire_seen seen[CLIENTS];
            uint32_t count = 0, one, other;
            memset(seen, 0, sizeof seen);
            for (uint32_t c = 0; c < CLIENTS; c++) {
                if (rand() % 10 == 0) continue;
                seen[count].client = c;
                seen[count].payload_bytes = rand() % 100 < liars ? (uint32_t)(rand() % results) : 0;
                plain_count(&plain[c], w, &seen[count++]);
            }
            const struct wire_vote vote = { .seen = seen, .seen_count = count };
            assert_int_equal(tally_count(tally, w, &vote), TALLY_COUNTED);
            for (uint32_t c = 0; c < CLIENTS; c++) {
                const struct wire_seen *said = tally_accepted(tally, c);
                const struct wire_seen *want = plain_accepted(&plain[c], elected);
                assert_true((said != NULL) == (want != NULL));
                if (said) assert_memory_equal(said, want, sizeof *said);
                said ? accepted++ : refused++;
                if (rand() % 4 == 0) continue;
                while (plain_ask(&plain[c], elected, &other)) {
                    assert_true(tally_ask(tally, c, &one));
                    assert_int_equal(one, other);
                }
                assert_false(tally_ask(tally, c, &one));
            }
        }
    }
    assert_true(accepted > 1000 && refused > 1000);
}

// ---- who is waited for --------------------------------------------------------------------------

static void say(uint32_t witness, uint32_t half_ms, uint32_t last, uint32_t last_ms)
{
    const struct wire_vote vote = { .half_ms = half_ms, .last = last, .last_ms = last_ms };
    assert_int_equal(tally_count(tally, witness, &vote), TALLY_COUNTED);
}

static void half_of_the_results_took_what_most_say(void **state)
{
    (void)state;
    assert_int_equal(tally_half_ms(tally), 0);
    say(0, 0, 0, 0); // It has too few to know
    assert_int_equal(tally_half_ms(tally), 0);
    say(1, 30, 0, 0);
    assert_int_equal(tally_half_ms(tally), 30);
    say(2, UINT32_MAX, 0, 0), say(3, UINT32_MAX, 0, 0), say(4, 20, 0, 0), say(5, 40, 0, 0);
    assert_int_equal(tally_half_ms(tally), 40);
}

// Three of nine may lie: it needs four.
static void the_one_that_is_waited_for_is_named_by_one_honest_vote_at_least(void **state)
{
    (void)state;
    uint32_t client = 0, waited_ms = 0;
    for (uint32_t w = 0; w < 3; w++) say(w, 20, 2, 5000);
    assert_false(tally_waited_for(tally, &client, &waited_ms));
    say(3, 20, 1, 60), say(4, 20, 1, 60), say(5, 20, 1, 60), say(6, 20, 1, 60); // On time
    assert_false(tally_waited_for(tally, &client, &waited_ms));
    say(7, 30, 2, 1800);
    assert_true(tally_waited_for(tally, &client, &waited_ms));
    assert_int_equal(client, 2);
    assert_int_equal(waited_ms, 1770);
}

TESTS(TEST_WITH(half_of_the_results_took_what_most_say, set_up, tear_down),
      TEST_WITH(the_one_that_is_waited_for_is_named_by_one_honest_vote_at_least, set_up, tear_down),
      TEST_WITH(no_witness_is_asked_for_what_all_say, set_up, tear_down),
      TEST_WITH(of_each_result_one_more_than_may_lie_is_asked, set_up, tear_down),
      TEST_WITH(a_witness_that_votes_later_is_asked_later, set_up, tear_down),
      TEST_WITH(the_next_round_starts_empty, set_up, tear_down),
      TEST_WITH(results_that_differ_in_anything_are_two, set_up, tear_down),
      TEST_WITH(the_honest_result_finds_a_place, set_up, tear_down),
      TEST_WITH(it_says_what_one_that_keeps_all_says, set_up, tear_down))
