// gradient -- pieces go to the pool, a group at a time. Either their squares are summed, and added
// in the order of the pieces, or they are scaled.

#include "common/kernel/gradient.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <math.h>

// Pieces go to the pool GROUP at a time, so that the norm needs no more memory than their squares.
enum { GROUP = 256 };

struct pieces {
    const float *read; // To measure
    float *write;      // To scale
    uint64_t count, first;
    float factor;
    double *squares;
};

static uint64_t piece_length(const struct pieces *job, uint64_t piece)
{
    const uint64_t left = job->count - piece * GRADIENT_PIECE;
    return left < GRADIENT_PIECE ? left : GRADIENT_PIECE;
}

static void square_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct pieces *job = arg;
    const uint64_t piece = job->first + task;
    job->squares[task] =
        kernels_chosen()->square_sum(piece_length(job, piece), job->read + piece * GRADIENT_PIECE);
}

static void scale_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct pieces *job = arg;
    const uint64_t piece = job->first + task;
    kernels_chosen()->scale(piece_length(job, piece), job->factor,
                            job->write + piece * GRADIENT_PIECE);
}

static uint32_t group_at(uint64_t first, uint64_t end)
{
    return end - first < GROUP ? (uint32_t)(end - first) : GROUP;
}

void gradient_squares(pool_t *pool, const float *gradient, uint64_t count, uint64_t first,
                      uint64_t pieces, double *ret_squares)
{
    ensure(first + pieces <= gradient_piece_count(count));
    const uint64_t end = first + pieces;
    struct pieces job = { .read = gradient, .count = count, .squares = ret_squares };
    for (job.first = first; job.first < end; job.first += GROUP) {
        const uint32_t tasks = group_at(job.first, end);
        pool_run(pool, tasks, square_task, &job);
        job.squares += tasks;
    }
}

double gradient_norm(pool_t *pool, const float *gradient, uint64_t count)
{
    const uint64_t end = gradient_piece_count(count);
    double sum = 0.0, squares[GROUP];
    for (uint64_t first = 0; first < end; first += GROUP) {
        const uint32_t pieces = group_at(first, end);
        gradient_squares(pool, gradient, count, first, pieces, squares);
        for (uint32_t i = 0; i < pieces; i++) sum += squares[i];
    }
    return sqrt(sum);
}

static int clip_to(pool_t *pool, float *gradient, uint64_t count, double norm, double norm_max,
                   struct why *why, double *ret_norm)
{
    ensure(norm_max > 0.0);
    if (!isfinite(norm))
        return why_set(why, FAULT_NAN,
                       "gradient: its norm is %g, allowed finite numbers; the gradient is unusable",
                       norm);
    *ret_norm = norm;
    if (norm <= norm_max) return 0;
    const uint64_t end = gradient_piece_count(count);
    struct pieces job = { .write = gradient, .count = count, .factor = (float)(norm_max / norm) };
    for (; job.first < end; job.first += GROUP)
        pool_run(pool, group_at(job.first, end), scale_task, &job);
    return 0;
}

int gradient_clip(pool_t *pool, float *gradient, uint64_t count, double norm_max, struct why *why,
                  double *ret_norm)
{
    return clip_to(pool, gradient, count, gradient_norm(pool, gradient, count), norm_max, why,
                   ret_norm);
}

int gradient_clip_by(pool_t *pool, float *gradient, struct interval at, const double *squares,
                     uint64_t pieces, double norm_max, struct why *why, double *ret_norm)
{
    double sum = 0.0;
    ensure(at.begin <= at.end && at.begin % GRADIENT_PIECE == 0);
    for (uint64_t i = 0; i < pieces; i++) sum += squares[i];
    return clip_to(pool, gradient + at.begin, interval_length(at), sqrt(sum), norm_max, why,
                   ret_norm);
}
