// DisTrO's results on a GPU: kernels of the device transform, choose and apply; the host encodes
// and decodes payloads. A commit goes in ranges of chunks, so that the coefficients of many results
// fit; while the device works on one range the host decodes the next.
//
// Never run on a GPU (cuda/plugin.h).
#include "common/compute/cuda/plugin.h"
#include "common/crypto/merkle.h"
#include "common/optimizer/distro_plan.h"
#include "common/optimizer/result_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { TASKS_MAX = 256, RANGE_BYTES = 64 << 20 };

struct result_far {
    const struct compute_far *device;
    uint32_t adopted;                // Which residual: 0 or 1
    struct hash residual, candidate; // Digests; none: not asked for yet
    struct cuda_coefficients chosen; // Of one result, if it trains
    struct hash *leaves;             // Of a digest under way, likewise
};

// First slot of a chunk, also of the one past the last.
static uint64_t slot_of(const struct results *self, uint32_t chunk)
{
    if (chunk == self->plan->chunks) return self->plan->slots;
    const struct plan_part *part = &self->plan->parts[chunks_part_of(self->chunks, chunk)];
    return part->slot + (uint64_t)(chunk - part->first) * part->top_k;
}

// ---- its life

void result_far_destroy(struct result_far **self)
{
    if (!*self) return;
    free((*self)->chosen.counts), free((*self)->chosen.numbers), free((*self)->chosen.values);
    free((*self)->leaves);
    free(*self);
    *self = NULL;
}

static bool take_chosen(struct result_far *self, const struct results *results)
{
    const struct plan *plan = results->plan;
    self->chosen.counts = malloc(plan->chunks * sizeof *self->chosen.counts);
    self->chosen.numbers = malloc(plan->slots * sizeof *self->chosen.numbers);
    self->chosen.values = malloc(plan->slots * sizeof *self->chosen.values);
    self->leaves = malloc(digest_leaf_count(plan->total) * sizeof *self->leaves);
    return self->chosen.counts && self->chosen.numbers && self->chosen.values && self->leaves;
}

int result_far_new(struct results *results, struct why *why, struct result_far **ret_far)
{
    struct result_far *self = calloc(1, sizeof *self);
    const bool trains = compute_config(results->base.compute)->trains;
    if (!self || (trains && !take_chosen(self, results))) {
        result_far_destroy(&self);
        return why_set(why, FAULT_MEMORY, "the host's side of results");
    }
    self->device = compute_far(results->base.compute);
    *ret_far = self;
    return 0;
}

// ---- the residual

uint32_t result_far_adopted(const struct result_far *self) { return self->adopted; }

void result_far_adopt(struct result_far *self)
{
    self->adopted = !self->adopted;
    self->residual = self->candidate;
}

void result_far_changed(struct result_far *self) { self->residual = (struct hash){ { 0 } }; }

static int hash_vector(struct results *self, uint32_t vector, struct why *why, struct hash *hash)
{
    if (!hash_is_none(hash)) return 0;
    const int rc = compute_leaves(self->base.compute, vector, why, self->far->leaves);
    if (rc == 0) *hash = merkle_root(self->far->leaves, digest_leaf_count(self->plan->total));
    return rc;
}

int result_far_hashes(struct results *self, struct why *why, struct hash *ret_from,
                      struct hash *ret_to)
{
    struct result_far *far = self->far;
    int rc = hash_vector(self, COMPUTE_STATE + far->adopted, why, &far->residual);
    if (rc == 0) rc = hash_vector(self, COMPUTE_STATE + !far->adopted, why, &far->candidate);
    if (rc < 0) return rc;
    *ret_from = far->residual, *ret_to = far->candidate;
    return 0;
}

// ---- a result

struct encode_job {
    const struct results *self;
    uint8_t *payload;
    uint32_t tasks;
};

static void encode_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct encode_job *job = arg;
    const payload_form_t *form = job->self->form;
    const struct cuda_coefficients *chosen = &job->self->far->chosen;
    const struct pool_share share = pool_share_of(job->self->plan->chunks, 1, job->tasks, task);
    const uint32_t end = payload_group(form, (uint32_t)share.end);
    for (uint32_t chunk = payload_group(form, (uint32_t)share.first); chunk < end; chunk++) {
        const uint64_t slot = slot_of(job->self, chunk);
        payload_write(form, chunk, chosen->numbers + slot, chosen->values + slot,
                      chosen->counts[chunk], job->payload);
    }
}

int result_far_make(struct results *self, float rate, struct why *why, uint8_t *ret_payload)
{
    struct result_far *far = self->far;
    const struct cuda_compression compression = { .residual = COMPUTE_STATE + far->adopted,
                                                  .candidate = COMPUTE_STATE + !far->adopted,
                                                  .decay = self->decay,
                                                  .rate = rate };
    far->candidate = (struct hash){ { 0 } };
    const int rc =
        far->device->plugin->compress(far->device->replica, &compression, &far->chosen, why);
    if (rc < 0) return rc;
    const uint32_t chunks = self->plan->chunks;
    struct encode_job job = { self, ret_payload, chunks < TASKS_MAX ? chunks : TASKS_MAX };
    payload_clear(self->form, ret_payload);
    pool_run(self->base.place.pool, job.tasks, encode_task, &job);
    return 0;
}

// ---- a commit

struct decode_job {
    const struct results *self;
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
    const payload_form_t *form = job->self->form;
    const uint32_t chunks = range->end - range->first;
    const struct pool_share share = pool_share_of(chunks, 1, job->tasks, task);
    for (uint64_t i = share.first; i < share.end; i++) {
        const uint32_t chunk = range->first + (uint32_t)i;
        const uint64_t slot = slot_of(job->self, chunk) - range->slot;
        struct apply_weights *weights = &job->weights[worker];
        apply_weigh(form, chunk, job->results, range->results, weights);
        for (uint32_t r = 0; r < range->results; r++)
            range->sent.counts[(size_t)r * chunks + i] =
                decode(form, chunk, job->results[r].payload, weights->factors[r],
                       range->sent.numbers + r * range->slots + slot,
                       range->sent.values + r * range->slots + slot);
    }
}

// Bytes that a range of `slots` and `chunks` takes for each result.
static uint64_t range_bytes(uint64_t slots, uint64_t chunks)
{
    return slots * (sizeof(float) + sizeof(uint16_t)) + chunks * sizeof(uint16_t);
}

// The end of the range that begins at `first`: as far as RANGE_BYTES go, at least one chunk.
static uint32_t range_end(const struct results *self, uint32_t first, uint32_t results)
{
    const uint64_t begin = slot_of(self, first);
    uint32_t low = first + 1, high = self->plan->chunks;
    while (low < high) { // Up to `low` fits
        const uint32_t middle = low + (high - low + 1) / 2;
        if (range_bytes(slot_of(self, middle) - begin, middle - first) * results <= RANGE_BYTES)
            low = middle;
        else high = middle - 1;
    }
    return low;
}

static int apply_range(struct results *self, struct decode_job *job, struct why *why)
{
    const struct compute_far *device = self->far->device;
    struct cuda_commit *range = &job->range;
    const uint64_t slots = range->slots * range->results;
    const uint32_t chunks = range->end - range->first;
    char *memory = malloc(range_bytes(range->slots, chunks) * range->results);
    if (!memory)
        return why_set(why, FAULT_MEMORY, "%" PRIu32 " results of a range of %" PRIu32 " chunks",
                       range->results, chunks);
    range->sent.values = (float *)(void *)memory;
    range->sent.numbers = (uint16_t *)(void *)(memory + slots * sizeof(float));
    range->sent.counts = range->sent.numbers + slots;
    job->tasks = chunks < TASKS_MAX ? chunks : TASKS_MAX;
    pool_run(self->base.place.pool, job->tasks, decode_task, job);
    const int rc = device->plugin->apply(device->replica, range, why);
    free(memory);
    return rc;
}

int result_far_apply(struct results *self, const struct apply_result *results, uint32_t count,
                     const struct apply_step *step, struct why *why)
{
    const struct compute_far *device = self->far->device;
    struct apply_result *sorted = NULL;
    int rc = apply_check(self->form, results, count, step, why, &sorted);
    if (rc < 0) return rc;
    struct decode_job job = { .self = self, .results = sorted };
    const uint32_t threads = pool_threads(self->base.place.pool);
    if (apply_weights_new(threads, count, &job.weights) < 0)
        rc = why_set(why, FAULT_MEMORY, "weights for %u threads; not applied", threads);
    for (uint32_t first = 0; first < self->plan->chunks && rc == 0; first = job.range.end) {
        const uint32_t end = range_end(self, first, count);
        const uint64_t slot = slot_of(self, first);
        job.range = (struct cuda_commit){ .first = first,
                                          .end = end,
                                          .results = count,
                                          .slot = slot,
                                          .slots = slot_of(self, end) - slot,
                                          .keep = fmaf(-step->rate, step->weight_decay, 1.0f),
                                          .rate = step->rate };
        rc = apply_range(self, &job, why);
    }
    free(job.weights);
    free(sorted);
    return rc < 0 ? rc : device->plugin->wait(device->replica, why);
}
