#include "common/kernel/gemm_blas.h"
#include "common/base/ensure.h"

#include <cblas.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { GRAIN = 16 }; // Rows

const char *gemm_blas_name(void)
{
    static char name[64];
    const char *config = openblas_get_config(); // "OpenBLAS 0.3.21 NO_LAPACKE ..."
    const size_t first = strcspn(config, " ");
    const size_t count = config[first] ? first + 1 + strcspn(config + first + 1, " ") : first;
    snprintf(name, sizeof name, "%.*s", (int)count, config);
    return name;
}

__attribute__((constructor)) static void begin(void)
{
    openblas_set_num_threads(1);
    fprintf(stderr,
            "warning: built with BLAS=1: %s computes float32 products, which are NOT "
            "reproducible: no other member can recompute these gradients to the bit\n",
            gemm_blas_name());
}

struct blas_job {
    const struct gemm *job;
    uint32_t tasks;
};

static int int_of(size_t count)
{
    ensure(count <= INT_MAX);
    return (int)count;
}

static void rows_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct blas_job *blas = arg;
    const struct gemm *job = blas->job;
    const struct pool_share rows = pool_share_of(job->m, GRAIN, blas->tasks, task);
    if (rows.first == rows.end) return;
    const bool by_column = job->form == GEMM_TN;
    cblas_sgemm(CblasRowMajor, by_column ? CblasTrans : CblasNoTrans,
                job->form == GEMM_NT ? CblasTrans : CblasNoTrans, int_of(rows.end - rows.first),
                int_of(job->n), int_of(job->k), 1.0f,
                job->a + rows.first * (by_column ? 1 : job->a_stride), int_of(job->a_stride),
                job->b, int_of(job->b_stride), job->add ? 1.0f : 0.0f,
                job->c + rows.first * job->c_stride, int_of(job->c_stride));
}

void gemm_blas_run(pool_t *pool, const struct gemm *job)
{
    struct blas_job blas = { job, pool_threads(pool) };
    pool_run(pool, blas.tasks, rows_task, &blas);
}
