// The squares of the sum's pieces, and who measures which: the owner of a share those of its pieces.
// A member's pieces are counted in the order of the buckets (group.h): so HAVE names them by the first
// and how many. Of a small vector each member owns all, and nothing has to be told.

#include "common/base/ensure.h"
#include "common/kernel/gradient.h"
#include "common/learner/learner_windows.h"

_Static_assert((int)GROUP_LEAF_FLOATS == (int)GRADIENT_PIECE,
               "a share is whole pieces of the norm");

static struct interval pieces_in(const struct learner *self, uint64_t bucket, uint32_t member)
{
    struct learner_window_work *work = self->window;
    const struct interval share = group_share(work->group, &work->sum, bucket, member);
    if (interval_empty(share)) return (struct interval){ 0, 0 };
    return (struct interval){ share.begin / GRADIENT_PIECE, gradient_piece_count(share.end) };
}

uint64_t learner_squares_of(const struct learner *self, uint32_t member)
{
    struct learner_window_work *work = self->window;
    const uint64_t buckets = group_buckets(work->group, &work->sum);
    uint64_t count = 0;
    for (uint64_t b = 0; b < buckets; b++) count += interval_length(pieces_in(self, b, member));
    return count;
}

double learner_squares_sum(const struct learner *self, uint32_t member)
{
    struct learner_window_work *work = self->window;
    const uint64_t buckets = group_buckets(work->group, &work->sum);
    double sum = 0;
    for (uint64_t b = 0; b < buckets; b++) {
        const struct interval pieces = pieces_in(self, b, member);
        for (uint64_t i = pieces.begin; i < pieces.end; i++) sum += work->squares[i];
    }
    return sum;
}

void learner_squares_begin(struct learner *self)
{
    struct learner_window_work *work = self->window;
    const uint32_t members = work->now->said.group_count;
    work->has_squares = true;
    for (uint32_t m = 0; m < members; m++) {
        work->squares_left[m] = learner_squares_of(self, m);
        if (work->squares_left[m] != work->squares_count) work->has_squares = false;
    }
    for (uint32_t m = 0; m < members && work->has_squares; m++) work->squares_left[m] = 0;
}

void learner_squares_move(struct learner *self, uint32_t member, struct interval at,
                          enum squares_way way, uint8_t *bytes)
{
    struct learner_window_work *work = self->window;
    ensure(at.begin <= at.end && at.end <= learner_squares_of(self, member));
    uint64_t first = 0; // Number of the bucket's first piece among the member's
    for (uint64_t b = 0; first < at.end; b++) {
        const struct interval pieces = pieces_in(self, b, member);
        for (uint64_t i = 0; i < interval_length(pieces); i++) {
            double *square = work->squares + pieces.begin + i;
            const uint64_t number = first + i;
            if (number < at.begin || number >= at.end) continue;
            uint8_t *told = bytes + (number - at.begin) * sizeof *square;
            if (way == SQUARES_TELL) memcpy(told, square, sizeof *square);
            else memcpy(square, told, sizeof *square);
        }
        first += interval_length(pieces);
    }
}
