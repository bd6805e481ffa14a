// A task is a fixed number of parameters; it walks along the tensors that it touches.
#include "common/optimizer/tensor_pieces.h"
#include "common/base/ensure.h"

enum { TASK = 1 << 14 }; // Parameters

struct job {
    const struct layout *layout;
    struct interval at;
    tensor_piece_fn move;
    const void *arg;
};

static void walk(void *arg, uint32_t task, uint32_t worker)
{
    const struct job *job = arg;
    uint64_t at = job->at.begin + (uint64_t)task * TASK, end = at + TASK;
    (void)worker;
    if (end > job->at.end) end = job->at.end;
    for (const struct layout_tensor *t = layout_at(job->layout, at); at < end; t++) {
        const uint64_t tensor_end = layout_interval(t).end;
        const uint64_t stop = tensor_end < end ? tensor_end : end;
        job->move(job->arg, t->dims == 2, (struct interval){ at, stop });
        at = stop;
    }
}

void tensor_pieces(pool_t *pool, const struct layout *layout, struct interval at,
                   tensor_piece_fn move, const void *arg)
{
    struct job job = { layout, at, move, arg };
    const uint64_t tasks = (interval_length(at) + TASK - 1) / TASK;
    ensure(tasks <= UINT32_MAX);
    if (tasks > 0) pool_run(pool, (uint32_t)tasks, walk, &job);
}
