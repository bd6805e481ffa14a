// adamw_bench -- a step of AdamW against moving what it needs through memory.
//
//     make bench T=adamw_bench

#include "common/base/clock.h"
#include "common/kernel/kernels.h"
#include "common/optimizer/adamw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8000, COLUMNS = 4000, REPEATS = 7 }; // 32 M parameters

struct copy_job {
    uint64_t count;
    const float *from;
    float *to;
};

static void copy_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct copy_job *job = arg;
    const struct pool_share share = pool_share_of(job->count, 16, 64, task);
    (void)worker;
    memcpy(job->to + share.first, job->from + share.first,
           (share.end - share.first) * sizeof(float));
}

// Seven vectors pass through memory in a step, three of them back: as many bytes as copying 3.5.
static double copy_ms(pool_t *pool, float *from, float *to, uint64_t count)
{
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        struct copy_job job = { count, from, to };
        const double began = clock_s();
        pool_run(pool, 64, copy_task, &job);
        const double took = clock_s() - began;
        if (took < best) best = took;
    }
    return 3.5 * best * 1e3;
}

static double step_ms(struct adamw *adamw, const float *gradient, float *params)
{
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        const double began = clock_s();
        adamw_step(adamw, gradient, 1e-3f, params);
        const double took = clock_s() - began;
        if (took < best) best = took;
    }
    return best * 1e3;
}

int main(void)
{
    static const struct adamw_options options = { 0.9, 0.95, 1e-8, 0.1, false };
    struct layout_tensor room[1];
    struct layout layout;
    struct why why = { 0 };
    layout_init(&layout, room, 1);
    if (layout_add_matrix(&layout, "w", ROWS, COLUMNS, LAYOUT_F32, &why) < 0) return 1;
    float *params = malloc(layout.total * sizeof *params);
    float *gradient = malloc(layout.total * sizeof *gradient);
    float *m = aligned_alloc(64, layout.total * sizeof *m); // A multiple of 64 bytes
    float *v = aligned_alloc(64, layout.total * sizeof *v);
    if (!params || !gradient || !m || !v) return 1;
    memset(m, 0, layout.total * sizeof *m);
    memset(v, 0, layout.total * sizeof *v);
    for (uint64_t i = 0; i < layout.total; i++)
        params[i] = 1, gradient[i] = (float)(i % 97) * 1e-3f - 0.04f;
    printf("AdamW, %" PRIu64 " M parameters (%s), best of %d:\n",
           (uint64_t)(layout.total / 1000000), kernels_chosen()->name, REPEATS);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        pool_t *pool = pool_new(threads);
        if (!pool) return 1;
        struct adamw adamw = { options, &layout, { 0, layout.total }, pool, m, v, 0 };
        const double step = step_ms(&adamw, gradient, params);
        const double copy = copy_ms(pool, gradient, params, layout.total);
        printf("  %u thread%s  step %6.2f ms   the same bytes copied %6.2f ms   ratio %.2f\n",
               threads, threads == 1 ? " " : "s", step, copy, step / copy);
        pool_destroy(&pool);
    }
    free(params);
    free(gradient);
    free(m);
    free(v);
    return 0;
}
