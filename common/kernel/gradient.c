// gradient -- one walk serves both functions: pieces of the gradient go to the pool, a group at a
// time, and either their squares are summed, in the order of the pieces, or they are scaled.

#include "common/kernel/gradient.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <math.h>

// Pieces go to the pool GROUP at a time, so that their sums need no more memory than this.
enum { GROUP = 256 };

struct measure {
    const float *read;
    float *write;          // NULL while only measuring
    uint64_t count, first; // First piece of the group
    float factor;
    double sums[GROUP];
};

static uint64_t piece_count(const struct measure *job, uint64_t piece)
{
    const uint64_t left = job->count - piece * GRADIENT_PIECE;
    return left < GRADIENT_PIECE ? left : GRADIENT_PIECE;
}

static void square_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    struct measure *job = arg;
    const uint64_t piece = job->first + task;
    job->sums[task] =
        kernels_chosen()->square_sum(piece_count(job, piece), job->read + piece * GRADIENT_PIECE);
}

static void scale_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct measure *job = arg;
    const uint64_t piece = job->first + task;
    kernels_chosen()->scale(piece_count(job, piece), job->factor,
                            job->write + piece * GRADIENT_PIECE);
}

// Runs one of the two over all pieces and returns the sum of what square_task found.
static double run_groups(pool_t *pool, struct measure *job, pool_task_fn *fn)
{
    const uint64_t pieces = (job->count + GRADIENT_PIECE - 1) / GRADIENT_PIECE;
    double sum = 0.0;
    for (job->first = 0; job->first < pieces; job->first += GROUP) {
        const uint64_t left = pieces - job->first;
        const uint32_t tasks = left < GROUP ? (uint32_t)left : GROUP;
        pool_run(pool, tasks, fn, job);
        for (uint32_t i = 0; i < tasks; i++) sum += job->sums[i]; // Zeros while scaling
    }
    return sum;
}

double gradient_norm(pool_t *pool, const float *gradient, uint64_t count)
{
    struct measure job = { .read = gradient, .count = count };
    return sqrt(run_groups(pool, &job, square_task));
}

int gradient_clip(pool_t *pool, float *gradient, uint64_t count, double norm_max, struct why *why,
                  double *ret_norm)
{
    ensure(norm_max > 0.0);
    const double norm = gradient_norm(pool, gradient, count);
    if (!isfinite(norm))
        return why_set(why, FAULT_NAN,
                       "gradient: its norm is %g, allowed finite numbers; the gradient is unusable",
                       norm);
    *ret_norm = norm;
    if (norm <= norm_max) return 0;
    struct measure job = { .write = gradient, .count = count, .factor = (float)(norm_max / norm) };
    run_groups(pool, &job, scale_task);
    return 0;
}
