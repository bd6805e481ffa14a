// A commit, in ranges of chunks, so that what many results sent fits; while the device works on one
// range the host decodes the next.
#include "common/compute/compute_cuda.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { TASKS_MAX = 256, RANGE_BYTES = 64 << 20 };

struct decode_job {
    const struct cuda *self;
    const struct apply_result *results;
    struct apply_weights *weights; // Of each thread
    struct cuda_commit range;
    uint32_t tasks;
};

// One result's chunk, times its factor, as apply.c rounds it too. Returns how many.
static uint16_t decode(const payload_form_t *form, uint32_t chunk, const uint8_t *payload,
                       float factor, uint16_t *ret_numbers, float *ret_values)
{
    const uint32_t count = payload_read(form, chunk, payload, ret_numbers, ret_values);
    for (uint32_t i = 0; i < count; i++) ret_values[i] *= factor;
    return (uint16_t)count;
}

static void decode_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct decode_job *job = arg;
    const struct cuda_commit *range = &job->range;
    const payload_form_t *form = job->self->base.config.form;
    const uint32_t chunks = range->end - range->first;
    const struct pool_share share = pool_share_of(chunks, 1, job->tasks, task);
    for (uint64_t i = share.first; i < share.end; i++) {
        const uint32_t chunk = range->first + (uint32_t)i;
        const uint64_t slot = cuda_slot_of(job->self, chunk) - range->slot;
        struct apply_weights *weights = &job->weights[worker];
        apply_weigh(form, chunk, job->results, range->results, weights);
        for (uint32_t r = 0; r < range->results; r++)
            range->sent.counts[(size_t)r * chunks + i] =
                decode(form, chunk, job->results[r].payload, weights->factors[r],
                       range->sent.numbers + r * range->slots + slot,
                       range->sent.values + r * range->slots + slot);
    }
}

// What a range of so many slots and chunks takes, for each result.
static uint64_t range_bytes(uint64_t slots, uint64_t chunks)
{
    return slots * (sizeof(float) + sizeof(uint16_t)) + chunks * sizeof(uint16_t);
}

// The end of the range that begins at `first`: as far as RANGE_BYTES go, at least one chunk.
static uint32_t range_end(const struct cuda *self, uint32_t first, uint32_t results)
{
    const uint64_t begin = cuda_slot_of(self, first);
    uint32_t low = first + 1, high = self->plan->chunks;
    while (low < high) { // Up to `low` fits
        const uint32_t middle = low + (high - low + 1) / 2;
        if (range_bytes(cuda_slot_of(self, middle) - begin, middle - first) * results <=
            RANGE_BYTES)
            low = middle;
        else high = middle - 1;
    }
    return low;
}

static int apply_range(struct cuda *self, struct decode_job *job, struct why *why)
{
    struct cuda_commit *range = &job->range;
    const uint64_t slots = range->slots * range->results;
    const uint32_t chunks = range->end - range->first;
    char *room = malloc(range_bytes(range->slots, chunks) * range->results);
    if (!room)
        return why_set(why, FAULT_MEMORY, "%" PRIu32 " results of a range of %" PRIu32 " chunks",
                       range->results, chunks);
    range->sent.values = (float *)(void *)room;
    range->sent.numbers = (uint16_t *)(void *)(room + slots * sizeof(float));
    range->sent.counts = range->sent.numbers + slots;
    job->tasks = chunks < TASKS_MAX ? chunks : TASKS_MAX;
    pool_run(self->base.config.pool, job->tasks, decode_task, job);
    const int rc = self->plugin->apply(self->replica, range, why);
    free(room);
    return rc;
}

int cuda_apply(compute_t *base, const struct apply_result *results, uint32_t count,
               const struct apply_step *step, struct why *why)
{
    struct cuda *self = cuda_of(base);
    struct apply_result *sorted = NULL;
    int rc = apply_check(base->config.form, results, count, step, why, &sorted);
    if (rc < 0) return rc;
    struct decode_job job = { .self = self, .results = sorted };
    const uint32_t threads = pool_threads(base->config.pool);
    if (apply_weights_new(threads, count, &job.weights) < 0)
        rc = why_set(why, FAULT_MEMORY, "weights for %u threads; not applied", threads);
    for (uint32_t first = 0; first < self->plan->chunks && rc == 0; first = job.range.end) {
        const uint32_t end = range_end(self, first, count);
        const uint64_t slot = cuda_slot_of(self, first);
        job.range = (struct cuda_commit){ .first = first,
                                          .end = end,
                                          .results = count,
                                          .slot = slot,
                                          .slots = cuda_slot_of(self, end) - slot,
                                          .keep = fmaf(-step->rate, step->weight_decay, 1.0f),
                                          .rate = step->rate };
        rc = apply_range(self, &job, why);
    }
    free(job.weights);
    free(sorted);
    return rc < 0 ? rc : self->plugin->wait(self->replica, why);
}
