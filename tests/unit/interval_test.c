// interval_test -- lists of intervals and the plans made of them, against sets of bits.

#include "common/base/interval.h"
#include "tests/test.h"

#include <string.h>

enum { SPACE = 48, PIECES_MAX = 24, ROUNDS = 20000 };

static uint64_t roll(uint64_t *prng, uint64_t below)
{
    uint64_t z = *prng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

static struct interval at(uint64_t begin, uint64_t end) { return (struct interval){ begin, end }; }

// A tidy list of random intervals of [0, SPACE), touching ones included.
static size_t random_list(uint64_t *prng, struct interval list[PIECES_MAX])
{
    size_t count = 0;
    for (uint64_t reached = roll(prng, 6); reached < SPACE && count < PIECES_MAX;) {
        const uint64_t end = reached + 1 + roll(prng, 7);
        list[count++] = at(reached, end < SPACE ? end : SPACE);
        reached = end + roll(prng, 4);
    }
    return count;
}

static uint64_t bits_of(const struct interval *list, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        for (uint64_t k = list[i].begin; k < list[i].end; k++) bits |= (uint64_t)1 << k;
    }
    return bits;
}

static void two_intervals_compare(void **state)
{
    (void)state;
    assert_true(interval_contains(at(2, 8), at(2, 8)));
    assert_true(interval_contains(at(2, 8), at(100, 100)));
    assert_false(interval_contains(at(2, 8), at(1, 3)));
    assert_true(interval_equal(interval_meet(at(0, 7), at(3, UINT64_MAX)), at(3, 7)));
    assert_true(interval_equal(interval_meet(at(0, 3), at(5, 6)), at(0, 0)));
}

static void shares_tile_any_total(void **state)
{
    (void)state;
    const uint64_t totals[] = { 0, 1, 7, 1000003, ((uint64_t)1 << 48) - 1, UINT64_MAX };
    const uint32_t worlds[] = { 1, 2, 3, 7, 64, 1000 };
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++) {
        for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
            const uint64_t least = totals[t] / worlds[w];
            uint64_t reached = 0;
            for (uint32_t rank = 0; rank < worlds[w]; rank++) {
                const struct interval share = interval_share(totals[t], rank, worlds[w]);
                assert_int_equal(share.begin, reached);
                assert_true(interval_length(share) - least <= 1);
                reached = share.end;
            }
            assert_true(reached == totals[t]);
        }
    }
    assert_true(interval_equal(interval_share(10, 1, 3), at(3, 6))); // floor(10/3), floor(20/3)
    const uint32_t world = UINT32_MAX;
    assert_true(interval_share(UINT64_MAX, world - 1, world).end == UINT64_MAX);
}

static void untidy_lists_are_seen(void **state)
{
    (void)state;
    const struct interval touching[] = { { 0, 2 }, { 2, 3 } },
                          overlapping[] = { { 0, 3 }, { 2, 4 } };
    const struct interval hollow[] = { { 1, 1 } }, backward[] = { { 5, 6 }, { 0, 1 } };
    assert_true(interval_list_tidy(touching, 2));
    assert_true(interval_list_tidy(NULL, 0));
    assert_false(interval_list_tidy(overlapping, 2));
    assert_false(interval_list_tidy(hollow, 1));
    assert_false(interval_list_tidy(backward, 2));
}

// A known case, drawn in the header.
static void overlap_plans_the_drawn_case(void **state)
{
    (void)state;
    const struct interval_piece have[] = { { { 0, 18 }, 0 }, { { 18, 36 }, 1 }, { { 36, 54 }, 2 } };
    const struct interval want[] = { { 9, 23 }, { 32, 38 } };
    struct interval_copy plan[5];
    uint64_t missing = 99;
    assert_int_equal(interval_overlap(have, 3, want, 2, plan, &missing), 4);
    assert_int_equal(missing, 0);
    const struct interval_copy wanted[] = {
        { { 9, 18 }, 0, 9, 0 },
        { { 18, 23 }, 1, 0, 9 },
        { { 32, 36 }, 1, 14, 14 },
        { { 36, 38 }, 2, 0, 18 },
    };
    for (size_t i = 0; i < 4; i++) {
        assert_true(interval_equal(plan[i].at, wanted[i].at));
        assert_int_equal(plan[i].piece, wanted[i].piece);
        assert_int_equal(plan[i].from_offset, wanted[i].from_offset);
        assert_int_equal(plan[i].to_offset, wanted[i].to_offset);
    }
}

// Does what a plan says with real values, and compares with what each wanted element should be.
static void overlap_moves_every_element_to_its_place(void **state)
{
    (void)state;
    uint64_t prng = 2;
    for (int round = 0; round < ROUNDS; round++) {
        struct interval held[PIECES_MAX], want[PIECES_MAX];
        struct interval_piece have[PIECES_MAX];
        struct interval_copy plan[2 * PIECES_MAX];
        uint64_t packed[SPACE], missing;
        const size_t hn = random_list(&prng, held), wn = random_list(&prng, want);
        for (size_t i = 0; i < hn; i++)
            have[i] = (struct interval_piece){ held[i], (uint32_t)i % 3 };
        const size_t count = interval_overlap(have, hn, want, wn, plan, &missing);
        assert_in_range(count, 0, hn + wn);
        memset(packed, 0xff, sizeof packed);
        for (size_t i = 0; i < count; i++) {
            assert_false(interval_empty(plan[i].at));
            for (uint64_t k = 0; k < interval_length(plan[i].at); k++) {
                // An element's value is its own place in [0, SPACE): a piece stores its interval's
                uint64_t *place = &packed[plan[i].to_offset + k];
                assert_true(*place == UINT64_MAX);
                *place = have[plan[i].piece].at.begin + plan[i].from_offset + k;
            }
        }
        const uint64_t there = bits_of(held, hn);
        uint64_t lacking = 0, offset = 0;
        for (size_t i = 0; i < wn; i++) {
            for (uint64_t k = want[i].begin; k < want[i].end; k++, offset++) {
                const bool found = there >> k & 1;
                assert_true(packed[offset] == (found ? k : UINT64_MAX));
                lacking += !found;
            }
        }
        assert_int_equal(missing, lacking);
    }
}

static void cover_sees_holes_and_ends(void **state)
{
    (void)state;
    const struct interval_piece whole[] = { { { 0, 4 }, 1 }, { { 4, 9 }, 0 } };
    const struct interval_piece hole[] = { { { 0, 4 }, 1 }, { { 5, 9 }, 0 } };
    assert_true(interval_pieces_cover(whole, 2, 9));
    assert_false(interval_pieces_cover(whole, 2, 10));
    assert_false(interval_pieces_cover(whole, 2, 8));
    assert_false(interval_pieces_cover(whole, 2, 4));
    assert_false(interval_pieces_cover(hole, 2, 9));
    assert_true(interval_pieces_cover(NULL, 0, 0));
    assert_false(interval_pieces_cover(NULL, 0, 1));
}

TESTS(TEST(two_intervals_compare), TEST(shares_tile_any_total), TEST(untidy_lists_are_seen),
      TEST(overlap_plans_the_drawn_case), TEST(overlap_moves_every_element_to_its_place),
      TEST(cover_sees_holes_and_ends))
