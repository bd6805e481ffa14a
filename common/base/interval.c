// Everything here is one walk along lists that are sorted: two indices go up, and the interval that
// ends first is left behind. No function compares each with each.
#include "common/base/interval.h"
#include "common/base/ensure.h"

bool interval_equal(struct interval a, struct interval b)
{
    return a.begin == b.begin && a.end == b.end;
}

bool interval_contains(struct interval outer, struct interval inner)
{
    return interval_empty(inner) || (outer.begin <= inner.begin && inner.end <= outer.end);
}

struct interval interval_meet(struct interval a, struct interval b)
{
    struct interval meet = { a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end };
    return interval_empty(meet) ? (struct interval){ 0, 0 } : meet;
}

struct interval interval_share(uint64_t total, uint32_t rank, uint32_t world)
{
    ensure(rank < world);
    // floor(total * r / world) without a product that overflows: total = q * world + rest
    const uint64_t q = total / world, rest = total % world;
    return (struct interval){ q * rank + rest * rank / world,
                              q * (rank + 1ull) + rest * (rank + 1ull) / world };
}

bool interval_list_tidy(const struct interval *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (interval_empty(list[i]) || (i && list[i].begin < list[i - 1].end)) return false;
    }
    return true;
}

uint64_t interval_list_total(const struct interval *list, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) total += interval_length(list[i]);
    return total;
}

size_t interval_list_slice(const struct interval *list, size_t count, uint64_t begin, uint64_t end,
                           struct interval_walk *walk, struct interval *ret_list)
{
    struct interval_walk once = { 0 };
    size_t pieces = 0;
    if (!walk) walk = &once;
    for (; walk->index < count; walk->index++) {
        const struct interval at = list[walk->index];
        const uint64_t next = walk->place + interval_length(at);
        const uint64_t from = begin > walk->place ? begin : walk->place,
                       to = end < next ? end : next;
        if (from < to)
            ret_list[pieces++] =
                (struct interval){ at.begin + (from - walk->place), at.begin + (to - walk->place) };
        if (end < next) break; // The next piece may begin in this interval
        walk->place = next;
    }
    return pieces;
}

bool interval_pieces_tidy(const struct interval_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (interval_empty(pieces[i].at)) return false;
        if (i && pieces[i].at.begin < pieces[i - 1].at.end) return false;
    }
    return true;
}

bool interval_pieces_cover(const struct interval_piece *pieces, size_t count, uint64_t total)
{
    ensure(interval_pieces_tidy(pieces, count));
    uint64_t reached = 0;
    for (size_t i = 0; i < count && pieces[i].at.begin == reached; i++) reached = pieces[i].at.end;
    return reached == total && (!count || pieces[count - 1].at.end == total);
}

size_t interval_overlap(const struct interval_piece *have, size_t have_count,
                        const struct interval *want, size_t want_count,
                        struct interval_copy *ret_copies, uint64_t *ret_missing)
{
    ensure(interval_pieces_tidy(have, have_count) && interval_list_tidy(want, want_count));
    size_t i = 0, j = 0, count = 0;
    uint64_t before = 0, found = 0; // Wanted elements ahead of want[j]; elements planned
    while (i < have_count && j < want_count) {
        const struct interval at = interval_meet(have[i].at, want[j]);
        if (!interval_empty(at)) {
            ret_copies[count++] = (struct interval_copy){
                .at = at,
                .piece = i,
                .from_offset = at.begin - have[i].at.begin,
                .to_offset = before + at.begin - want[j].begin,
            };
            found += interval_length(at);
        }
        if (have[i].at.end < want[j].end) i++;
        else before += interval_length(want[j++]);
    }
    *ret_missing = interval_list_total(want, want_count) - found;
    return count;
}
