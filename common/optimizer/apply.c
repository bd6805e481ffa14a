// A commit is checked as a whole, sorted by position, and then applied chunk by chunk; chunks are
// independent, so threads share them out. Per chunk: weigh the results, sum what they send in
// commit order, divide by the number of senders, transform back, move the parameters by the signs.
#include "common/optimizer/apply.h"
#include "common/kernel/digest.h"
#include "common/optimizer/distro_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TASKS_MAX = 256, WORDS = DISTRO_ELEMENTS_MAX / 64 };

struct worker {
    struct distro_scratch scratch;
    _Alignas(64) float sums[DISTRO_ELEMENTS_MAX]; // These three are zero between chunks
    uint32_t hits[DISTRO_ELEMENTS_MAX];           // Results that sent this coefficient
    uint64_t hit[WORDS];                          // One bit each: any did
    uint16_t numbers[DISTRO_ELEMENTS_MAX];
    float values[DISTRO_ELEMENTS_MAX];
    struct apply_weights *weights;
};

struct job {
    const payload_form_t *form;
    const struct apply_result *results; // Sorted
    uint32_t count, tasks;
    const struct distro_kernels *kernels;
    float rate, keep;
    float *parameters;
    struct worker *workers;
};

// Adds the results from `first` on, as many as can be read at once. Returns their number.
static uint32_t add_results(const struct job *job, uint32_t first, uint32_t chunk, uint32_t top_k,
                            struct worker *worker)
{
    struct payload_chosen chosen[PAYLOAD_READ_MAX];
    uint32_t count = DISTRO_ELEMENTS_MAX / top_k;
    if (count > PAYLOAD_READ_MAX) count = PAYLOAD_READ_MAX;
    if (count > job->count - first) count = job->count - first;
    for (uint32_t i = 0; i < count; i++)
        chosen[i] = (struct payload_chosen){ .bytes = job->results[first + i].payload,
                                             .numbers = worker->numbers + i * top_k,
                                             .values = worker->values + i * top_k };
    payload_read_each(job->form, chunk, chosen, count);
    for (uint32_t i = 0; i < count; i++) {
        const float factor = worker->weights->factors[first + i];
        for (uint32_t place = 0; place < chosen[i].count; place++) {
            const uint32_t number = chosen[i].numbers[place];
            worker->sums[number] += factor * chosen[i].values[place];
            worker->hits[number]++;
            worker->hit[number / 64] |= UINT64_C(1) << number % 64;
        }
    }
    return count;
}

// Writes the means to worker->values, by ascending number. Leaves sums and hits zero.
static uint32_t take_means(struct worker *worker, uint32_t elements)
{
    uint32_t count = 0;
    for (uint32_t word = 0; word * 64 < elements; word++) {
        for (; worker->hit[word] != 0; worker->hit[word] &= worker->hit[word] - 1, count++) {
            const uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(worker->hit[word]);
            worker->numbers[count] = (uint16_t)number;
            worker->values[count] = worker->sums[number] / (float)worker->hits[number];
            worker->sums[number] = 0.0f;
            worker->hits[number] = 0;
        }
    }
    return count;
}

static void apply_chunk(const struct job *job, uint32_t number, struct chunk chunk,
                        const struct chunk *next, struct worker *worker)
{
    const struct chunks_part *part = chunk.part;
    const uint32_t top_k = payload_top_k(job->form, number);
    chunks_prefetch(next, job->parameters, 0, 3);
    apply_weigh(job->form, number, job->results, job->count, worker->weights);
    for (uint32_t i = 0; i < job->count;) i += add_results(job, i, number, top_k, worker);
    chunks_prefetch(next, job->parameters, 1, 3);
    const uint32_t count = take_means(worker, part->elements);
    float *dense = worker->scratch.dense;
    job->kernels->decode(part->row_dct, part->column_dct, worker->numbers, worker->values, count,
                         &worker->scratch, dense);
    chunks_prefetch(next, job->parameters, 2, 3);
    for (uint32_t row = 0; row < part->row_dct->side; row++)
        job->kernels->update(part->column_dct->side, dense + (size_t)row * part->column_dct->stride,
                             job->keep, job->rate,
                             job->parameters + chunk.at + (size_t)row * part->columns);
}

static void apply_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct job *job = arg;
    const chunks_t *chunks = payload_chunks(job->form);
    const struct pool_share share = pool_share_of(chunks_count(chunks), 1, job->tasks, task);
    struct chunk next = chunks_at(chunks, (uint32_t)share.first);
    for (uint32_t number = (uint32_t)share.first; number < share.end; number++) {
        const struct chunk chunk = next;
        if (number + 1 < share.end) next = chunks_at(chunks, number + 1);
        apply_chunk(job, number, chunk, &next, &job->workers[worker]);
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct apply_result *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

static int check_step(const struct apply_step *step, struct why *why)
{
    if (!(isfinite(step->rate) && step->rate >= 0.0f))
        return why_set(why, FAULT_RANGE,
                       "the learning rate is %g, it must be finite and >= 0; not applied",
                       (double)step->rate);
    if (!(isfinite(step->weight_decay) && step->weight_decay >= 0.0f &&
          step->rate * step->weight_decay <= 1.0f))
        return why_set(why, FAULT_RANGE,
                       "the weight decay is %g, it must be finite, >= 0 and times the rate %g at"
                       " most 1; not applied",
                       (double)step->weight_decay, (double)step->rate);
    return 0;
}

int apply_check(const payload_form_t *form, const struct apply_result *results, uint32_t count,
                const struct apply_step *step, struct why *why, struct apply_result **ret_sorted)
{
    const int bad_step = check_step(step, why);
    if (bad_step < 0) return bad_step;
    if (count < 1 || count > APPLY_RESULTS_MAX)
        return why_set(why, FAULT_RANGE, "%u results, it must be 1..%d; not applied", count,
                       APPLY_RESULTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const int rc = results[i].is_checked
                           ? 0
                           : payload_check(form, results[i].payload, results[i].bytes, why);
        if (rc < 0)
            return why_wrap(why, rc, "result %u of the commit, batch at %" PRIu64, i,
                            results[i].begin);
    }
    struct apply_result *sorted = malloc(count * sizeof *sorted);
    if (!sorted) return why_set(why, FAULT_MEMORY, "a list of %u results; not applied", count);
    memcpy(sorted, results, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_begin);
    for (uint32_t i = 1; i < count; i++) {
        if (sorted[i].begin != sorted[i - 1].begin) continue;
        const int rc = why_set(why, FAULT_RANGE,
                               "two results for the batch at %" PRIu64 ", it must be one; not"
                               " applied",
                               sorted[i].begin);
        free(sorted);
        return rc;
    }
    *ret_sorted = sorted;
    return 0;
}

// Scratch, all zero, in pages of its own. Pages beyond the largest chunk are never touched, so the system neither
// takes nor clears them. NULL: no memory.
static struct worker *workers_new(uint32_t count, struct apply_weights *weights)
{
    struct worker *workers = mmap(NULL, count * sizeof *workers, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (workers == MAP_FAILED) return NULL;
    for (uint32_t i = 0; i < count; i++) workers[i].weights = &weights[i];
    return workers;
}

int apply_commit(const payload_form_t *form, const struct apply_result *results, uint32_t count,
                 const struct apply_step *step, pool_t *pool, float *parameters, struct why *why)
{
    struct apply_result *sorted = NULL;
    int rc = apply_check(form, results, count, step, why, &sorted);
    if (rc < 0) return rc;
    const uint32_t chunks = chunks_count(payload_chunks(form));
    struct job job = { .form = form,
                       .results = sorted,
                       .count = count,
                       .tasks = chunks < TASKS_MAX ? chunks : TASKS_MAX,
                       .kernels = step->kernels ? step->kernels : distro_kernels_best(),
                       .rate = step->rate,
                       .keep = fmaf(-step->rate, step->weight_decay, 1.0f),
                       .parameters = parameters };
    const uint32_t threads = pool_threads(pool);
    struct apply_weights *weights = NULL;
    rc = apply_weights_new(threads, count, &weights);
    job.workers = rc == 0 ? workers_new(threads, weights) : NULL;
    if (job.workers) pool_run(pool, job.tasks, apply_task, &job);
    else rc = why_set(why, FAULT_MEMORY, "scratch for %u threads; not applied", threads);
    if (job.workers) munmap(job.workers, threads * sizeof *job.workers);
    free(weights);
    free(sorted);
    return rc;
}

int apply_digest(const float *parameters, uint64_t count, pool_t *pool, struct hash *ret_digest)
{
    const size_t leaf_count = digest_leaf_count(count);
    struct hash *leaves = malloc((leaf_count + 1) * sizeof *leaves);
    if (!leaves) return FAULT_MEMORY;
    digest_leaves(parameters, count, pool, leaves);
    *ret_digest = merkle_root(leaves, leaf_count);
    free(leaves);
    return 0;
}
