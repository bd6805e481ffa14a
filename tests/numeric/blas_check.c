// blas_check -- our float32 products held against OpenBLAS's, and both timed: `make blas-check`.
//
// How far two right answers may lie apart: a sum of k products in float32, in any order, rounded
// once or twice a term, differs from the exact one by at most g · S, where S = sum |a||b| + |c| and
// g = (k + 2) u / (1 - (k + 2) u), u = 2^-24 (Higham, "Accuracy and Stability of Numerical
// Algorithms", 3.1: k products, k additions with c). So ours and theirs lie within 2 g S. The bound
// is taken for each element with its own S. A wrong stride, a lost term or a lost part of k is far
// outside: for numbers of one size a single term is S / k, and 2 g S is below that up to k = 2,800.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/kernel/gemm.h"
#include "common/kernel/kernels.h"
#include "tests/bench/train_models.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// Its second thread spins for a while after each product: ours wait till it sleeps.
enum { TURNS = 5, THREADS_MAX = 2, PAD = 3, SPIN_NS = 60000000 };

static const char *const forms[] = { [GEMM_NT] = "NT", [GEMM_NN] = "NN", [GEMM_TN] = "TN" };

static size_t a_rows(const struct gemm *job) { return job->form == GEMM_TN ? job->k : job->m; }
static size_t a_columns(const struct gemm *job) { return job->form == GEMM_TN ? job->m : job->k; }
static size_t b_rows(const struct gemm *job) { return job->form == GEMM_NT ? job->n : job->k; }
static size_t b_columns(const struct gemm *job) { return job->form == GEMM_NT ? job->k : job->n; }

static void theirs(const struct gemm *job)
{
    cblas_sgemm(CblasRowMajor, job->form == GEMM_TN ? CblasTrans : CblasNoTrans,
                job->form == GEMM_NT ? CblasTrans : CblasNoTrans, (int)job->m, (int)job->n,
                (int)job->k, 1.0f, job->a, (int)job->a_stride, job->b, (int)job->b_stride,
                job->add ? 1.0f : 0.0f, job->c, (int)job->c_stride);
}

// Memory for one product and what its calls need. `pad` floats beside each row.
struct room {
    struct gemm job;
    float *a, *b, *before, *ours, *theirs, *scratch;
    size_t count;
};

static struct room room_of(enum gemm_form form, bool add, uint32_t m, uint32_t n, uint32_t k,
                           size_t pad)
{
    struct room self = { .job = { .form = form, .add = add, .m = m, .n = n, .k = k } };
    struct gemm *job = &self.job;
    job->a_stride = a_columns(job) + pad, job->b_stride = b_columns(job) + pad;
    job->c_stride = n + pad, self.count = m * job->c_stride;
    job->a = self.a = train_numbers(a_rows(job) * job->a_stride);
    job->b = self.b = train_numbers(b_rows(job) * job->b_stride);
    self.before = train_numbers(self.count);
    self.ours = train_numbers(self.count), self.theirs = train_numbers(self.count);
    self.scratch = train_numbers(gemm_scratch_count(THREADS_MAX, n, k));
    return self;
}

static void room_free(struct room *self)
{
    free(self->a);
    free(self->b);
    free(self->before);
    free(self->ours);
    free(self->theirs);
    free(self->scratch);
}

static void run_ours(struct room *self, pool_t *pool)
{
    self->job.c = self->ours;
    gemm_run(pool, &self->job, self->scratch);
}

static void run_theirs(struct room *self)
{
    self->job.c = self->theirs;
    theirs(&self->job);
}

// ---- held against each other --------------------------------------------------------------------

// The difference at (i, j) as a part of what is allowed there.
static double share_of_bound(const struct room *self, size_t i, size_t j)
{
    const struct gemm *job = &self->job;
    const size_t at = i * job->c_stride + j;
    const bool tn = job->form == GEMM_TN, nt = job->form == GEMM_NT;
    double sum = job->add ? fabs((double)self->before[at]) : 0.0;
    for (size_t k = 0; k < job->k; k++)
        sum += fabs((double)job->a[tn ? k * job->a_stride + i : i * job->a_stride + k] *
                    (double)job->b[nt ? j * job->b_stride + k : k * job->b_stride + j]);
    const double terms = ((double)job->k + 2) * 0x1p-24, bound = 2 * terms / (1 - terms) * sum;
    const double apart = fabs((double)self->ours[at] - (double)self->theirs[at]);
    return apart == 0.0 ? 0.0 : bound > 0.0 && isfinite(apart) ? apart / bound : INFINITY;
}

// The worst element of one product. INFINITY if either wrote beside the rows of c.
static double compare(struct room *self, pool_t *pool)
{
    const size_t bytes = self->count * sizeof(float), n = self->job.n;
    double worst = 0.0;
    memcpy(self->ours, self->before, bytes);
    memcpy(self->theirs, self->before, bytes);
    run_ours(self, pool);
    run_theirs(self);
    for (size_t i = 0; i < self->job.m; i++) {
        const size_t row = i * self->job.c_stride,
                     beside = (self->job.c_stride - n) * sizeof(float);
        for (size_t j = 0; j < n; j++) worst = fmax(worst, share_of_bound(self, i, j));
        if (memcmp(self->ours + row + n, self->before + row + n, beside) != 0) worst = INFINITY;
    }
    return worst;
}

// Returns how many products lie outside the bound.
static int check_all(pool_t *const pools[THREADS_MAX])
{
    static const uint32_t sizes[][3] = {
        { 1, 1, 1 },     { 1, 7, 3 },      { 15, 33, 17 },    { 29, 65, 5 },
        { 71, 19, 48 },  { 100, 40, 257 }, { 9, 20, 1030 },   { 5, 2100, 7 },
        { 150, 35, 20 }, { 33, 31, 2500 }, { 257, 129, 511 },
    };
    int count = 0, outside = 0;
    double worst = 0.0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int kind = 0; kind < 6; kind++) {
            struct room room = room_of((enum gemm_form)(kind % 3), kind >= 3, sizes[s][0],
                                       sizes[s][1], sizes[s][2], PAD);
            for (int t = 0; t < THREADS_MAX; t++) {
                openblas_set_num_threads(t + 1);
                const double share = compare(&room, pools[t]);
                worst = fmax(worst, share);
                count++;
                if (share <= 1.0) continue;
                printf("%s%s %u x %u x %u, %d threads: %.3g times what is allowed\n",
                       forms[room.job.form], kind >= 3 ? " added" : "", sizes[s][0], sizes[s][1],
                       sizes[s][2], t + 1, share);
                outside++;
            }
            room_free(&room);
        }
    }
    printf("%d products, three forms, 1 and 2 threads: %d outside the bound; the worst element at "
           "%.2f of it\n",
           count, outside, worst);
    return outside;
}

// ---- timed beside each other --------------------------------------------------------------------

enum { LINEARS = 5 };
struct linear {
    uint32_t in, out, count;
}; // y = x W, and how often a step has it

static void linears_of(const struct model_shape *shape, struct linear linears[LINEARS])
{
    const uint32_t dim = shape->dim, width = shape->heads * shape->head_dim;
    const uint32_t qkv = width + 2 * shape->kv_heads * shape->head_dim;
    linears[0] = (struct linear){ dim, qkv, shape->layers };
    linears[1] = (struct linear){ width, dim, shape->layers };
    linears[2] = (struct linear){ dim, 2 * shape->ffn, shape->layers };
    linears[3] = (struct linear){ shape->ffn, dim, shape->layers };
    linears[4] = (struct linear){ dim, shape->vocab, 1 };
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double times[TURNS])
{
    qsort(times, TURNS, sizeof *times, by_size);
    return times[TURNS / 2];
}

// Adds the medians of one product, in turns, times how often a step has it.
static void time_product(struct room *room, pool_t *pool, uint32_t count, double *ours,
                         double *theirs_s)
{
    double times[2][TURNS];
    for (int turn = -1; turn < TURNS; turn++) { // The first one warms up
        const double began = clock_s();
        run_ours(room, pool);
        const double middle = clock_s();
        run_theirs(room);
        const double ended = clock_s();
        if (turn >= 0) times[0][turn] = middle - began, times[1][turn] = ended - middle;
        if (pool_threads(pool) > 1) nanosleep(&(struct timespec){ .tv_nsec = SPIN_NS }, NULL);
    }
    *ours += count * median(times[0]);
    *theirs_s += count * median(times[1]);
}

static void time_form(const struct bench_model *bench, enum gemm_form form, pool_t *pool)
{
    const uint32_t rows = bench->batch * bench->shape.seq_len_max;
    struct linear linears[LINEARS];
    double ours = 0, theirs_s = 0, operations = 0;
    linears_of(&bench->shape, linears);
    for (int i = 0; i < LINEARS; i++) {
        const uint32_t in = linears[i].in, out = linears[i].out;
        const uint32_t m = form == GEMM_TN ? out : rows, n = form == GEMM_NT ? out : in;
        const uint32_t k = form == GEMM_NT ? in : form == GEMM_NN ? out : rows;
        struct room room = room_of(form, false, m, n, k, 0);
        time_product(&room, pool, linears[i].count, &ours, &theirs_s);
        operations += 2.0 * m * n * k * linears[i].count;
        room_free(&room);
    }
    printf("  %-4s %s  %u thread%s %8.1f %9.1f   %.2f\n", bench->name, forms[form],
           pool_threads(pool), pool_threads(pool) > 1 ? "s" : " ", operations / ours / 1e9,
           operations / theirs_s / 1e9, theirs_s / ours);
}

int main(void)
{
    pool_t *pools[THREADS_MAX];
    for (uint32_t t = 0; t < THREADS_MAX; t++) ensure((pools[t] = pool_new(t + 1)));
    printf("ours: %s kernels; theirs: %s\n", kernels_chosen()->name, openblas_get_config());
    const int outside = check_all(pools);
    printf("GFLOP/s of the products with weights in one step, medians of %d turns each\n"
           "                        ours    theirs   ours/theirs\n",
           TURNS);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int form = GEMM_NT; form <= GEMM_TN; form++)
            for (int t = 0; t < THREADS_MAX; t++) {
                openblas_set_num_threads(t + 1);
                time_form(&models[i], (enum gemm_form)form, pools[t]);
            }
    for (uint32_t t = 0; t < THREADS_MAX; t++) pool_destroy(&pools[t]);
    return outside != 0;
}
