// One portion after the other: its gradient goes to the scratch, and is added with the portion's
// share of the batch as weight. The first portion is computed in place. If it is the whole batch
// nothing is scaled, so the bits are those of model_loss_and_grad.
#include "common/model/batch.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>

enum { TASKS = 16, GRAIN = 16 };

// to = weight · from, or += it.
struct add_job {
    float weight;
    bool first;
    uint64_t count;
    const float *from;
    float *to;
};

static void add_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct add_job *job = arg;
    const struct pool_share share = pool_share_of(job->count, GRAIN, TASKS, task);
    const uint64_t count = share.end - share.first;
    if (job->first) kernels_chosen()->scale(count, job->weight, job->to + share.first);
    else
        kernels_chosen()->add_scaled(count, job->weight, job->from + share.first,
                                     job->to + share.first);
}

static int name_samples(int rc, uint32_t first, uint32_t count, struct why *why)
{
    return why_wrap(why, rc, "samples %" PRIu32 "..%" PRIu32 " of the batch", first,
                    first + count - 1);
}

static uint32_t portion(const struct batch *batch, uint32_t at)
{
    return batch->count - at < batch->micro_batch ? batch->count - at : batch->micro_batch;
}

static const uint32_t *tokens_at(const struct batch *batch, uint32_t at)
{
    return batch->tokens + (size_t)at * (batch->seq + 1);
}

int batch_gradient(model_t *model, const float *params, const struct batch *batch, pool_t *pool,
                   float *scratch, struct why *why, float *ret_gradient, double *ret_loss)
{
    ensure(batch->count >= 1 && (scratch || batch->count <= batch->micro_batch));
    double total = 0.0, loss = 0.0;
    for (uint32_t at = 0; at < batch->count; at += batch->micro_batch) {
        const uint32_t count = portion(batch, at);
        float *to = at == 0 ? ret_gradient : scratch;
        const int rc = model_loss_and_grad(model, params, tokens_at(batch, at), count, batch->seq,
                                           why, to, &loss);
        if (rc < 0) return name_samples(rc, at, count, why);
        total += loss * count;
        struct add_job job = { (float)count / (float)batch->count, at == 0,
                               model_parameter_count(model_shape_of(model)), scratch,
                               ret_gradient };
        if (count < batch->count) pool_run(pool, TASKS, add_task, &job);
    }
    *ret_loss = total / (double)batch->count;
    return 0;
}

int batch_loss(model_t *model, const float *params, const struct batch *batch, struct why *why,
               double *ret_loss)
{
    ensure(batch->count >= 1);
    double total = 0.0, loss = 0.0;
    for (uint32_t at = 0; at < batch->count; at += batch->micro_batch) {
        const uint32_t count = portion(batch, at);
        const int rc =
            model_loss(model, params, tokens_at(batch, at), count, batch->seq, why, &loss);
        if (rc < 0) return name_samples(rc, at, count, why);
        total += loss * count;
    }
    *ret_loss = total / (double)batch->count;
    return 0;
}
