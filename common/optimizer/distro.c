// A result of one member, chunk by chunk: transform, momentum, choice, payload, candidate. The
// threads share out the chunks in groups that own whole bytes of the payload. Below stand the
// exchange of the two residuals and their hashes, which are computed when first asked for.
#include "common/optimizer/distro.h"
#include "common/base/ensure.h"
#include "common/kernel/digest.h"
#include "common/optimizer/distro_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS_MAX = 256 }; // Enough for every pool to share evenly

struct worker {
    struct distro_scratch scratch;
    _Alignas(64) float candidate[DISTRO_ELEMENTS_MAX];
    uint16_t numbers[DISTRO_ELEMENTS_MAX];
    float values[DISTRO_ELEMENTS_MAX];
};

struct distro {
    const payload_form_t *form;
    const chunks_t *chunks;
    pool_t *pool;
    float decay;
    const struct distro_kernels *kernels;
    uint64_t total;
    float *residual[2];  // [adopted] and the candidate; borrowed
    struct hash hash[2]; // Of each; none: not computed yet
    uint32_t adopted;    // 0 or 1
    bool candidate;      // The other residual is a candidate
    uint32_t leaf_count;
    struct hash *leaves;    // Of a digest under way
    struct worker *workers; // One per thread of the pool
};

static bool take_memory(struct distro *self)
{
    self->leaves = calloc(self->leaf_count + 1, sizeof self->leaves[0]);
    const size_t bytes = pool_threads(self->pool) * sizeof(struct worker);
    self->workers = aligned_alloc(64, bytes);
    if (self->workers) memset(self->workers, 0, bytes);
    return self->leaves && self->workers;
}

int distro_check_decay(float decay, struct why *why)
{
    if (decay >= 0.0f && decay < 1.0f) return 0;
    return why_set(why, FAULT_RANGE, "compression_decay is %g, it must be in [0, 1); refused",
                   (double)decay);
}

int distro_new(const payload_form_t *form, float decay, pool_t *pool, float *const residual[2],
               struct why *why, distro_t **ret_distro)
{
    const int rc = distro_check_decay(decay, why);
    if (rc < 0) return rc;
    struct distro *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a DisTrO state");
    const chunks_t *chunks = payload_chunks(form);
    *self = (struct distro){ .form = form,
                             .chunks = chunks,
                             .pool = pool,
                             .decay = decay,
                             .kernels = distro_kernels_best(),
                             .total = chunks_total(chunks),
                             .residual = { residual[0], residual[1] } };
    self->leaf_count = (uint32_t)digest_leaf_count(self->total);
    if (!take_memory(self)) {
        distro_destroy(&self);
        return why_set(why, FAULT_MEMORY, "scratch for %u threads", pool_threads(pool));
    }
    *ret_distro = self;
    return 0;
}

void distro_destroy(distro_t **self)
{
    if (!*self) return;
    free((*self)->leaves);
    free((*self)->workers);
    free(*self);
    *self = NULL;
}

void distro_set_kernels(distro_t *self, const struct distro_kernels *kernels)
{
    self->kernels = kernels;
}

// ---- compress

struct compress_job {
    struct distro *self;
    const float *gradient;
    float rate;
    uint8_t *payload;
    uint32_t tasks;
    uint32_t largest[TASKS_MAX]; // Of each task: the largest magnitude, as bits
};

// Asks for a quarter of the memory that the next chunk reads.
static void prefetch(const struct compress_job *job, const struct chunk *next, uint32_t quarter)
{
    const uint32_t share = next->part->elements / 4;
    chunks_prefetch(next, job->gradient, quarter, 4);
    chunks_prefetch_floats(
        job->self->residual[job->self->adopted] + next->coefficients + quarter * share, share);
}

static uint32_t compress_chunk(const struct compress_job *job, uint32_t number, struct chunk chunk,
                               const struct chunk *next, struct worker *worker)
{
    const struct distro *self = job->self;
    const struct chunks_part *part = chunk.part;
    const float *old = self->residual[self->adopted] + chunk.coefficients;
    float *candidate = worker->candidate; // First the coefficients of the gradient

    prefetch(job, next, 0);
    self->kernels->encode(part->row_dct, part->column_dct, job->gradient + chunk.at, part->columns,
                          &worker->scratch, candidate);
    prefetch(job, next, 1);
    const uint32_t largest =
        self->kernels->momentum(part->elements, self->decay, job->rate, old, candidate, candidate);
    if (largest >= DISTRO_VALUE_LIMIT_BITS) return largest;
    prefetch(job, next, 2);
    const uint32_t count =
        self->kernels->select(part->elements, candidate, payload_top_k(self->form, number),
                              &worker->scratch, worker->numbers);
    for (uint32_t i = 0; i < count; i++) {
        worker->values[i] = candidate[worker->numbers[i]];
        candidate[worker->numbers[i]] = 0.0f;
    }
    prefetch(job, next, 3);
    payload_write(self->form, number, worker->numbers, worker->values, count, job->payload);
    self->kernels->store(part->elements, candidate,
                         self->residual[!self->adopted] + chunk.coefficients);
    return largest;
}

static void compress_task(void *arg, uint32_t task, uint32_t worker)
{
    struct compress_job *job = arg;
    struct distro *self = job->self;
    const struct pool_share share = pool_share_of(chunks_count(self->chunks), 1, job->tasks, task);
    const uint32_t first = payload_group(self->form, (uint32_t)share.first);
    const uint32_t end = payload_group(self->form, (uint32_t)share.end);
    uint32_t largest = 0;
    struct chunk next = chunks_at(self->chunks, first);
    for (uint32_t number = first; number < end; number++) {
        const struct chunk chunk = next;
        if (number + 1 < end) next = chunks_at(self->chunks, number + 1);
        const uint32_t magnitude =
            compress_chunk(job, number, chunk, &next, &self->workers[worker]);
        if (magnitude > largest) largest = magnitude;
    }
    job->largest[task] = largest;
}

int distro_compress(distro_t *self, const float *gradient, float rate, uint8_t *ret_payload,
                    struct why *why)
{
    ensure(isfinite(rate) && rate >= 0.0f);
    self->candidate = true; // The other residual is overwritten: its hash goes too
    distro_discard(self);
    const uint32_t count = chunks_count(self->chunks);
    struct compress_job job = { .self = self,
                                .gradient = gradient,
                                .rate = rate,
                                .payload = ret_payload,
                                .tasks = count < TASKS_MAX ? count : TASKS_MAX };
    payload_clear(self->form, ret_payload);
    pool_run(self->pool, job.tasks, compress_task, &job);
    for (uint32_t task = 0; task < job.tasks; task++)
        if (job.largest[task] >= DISTRO_VALUE_LIMIT_BITS)
            return why_set(why, FAULT_NAN,
                           "a momentum of magnitude 0x%08" PRIx32 " (bits), it must be finite and"
                           " below 2^64; no result",
                           job.largest[task]);
    self->candidate = true;
    return 0;
}

// ---- which residual is which

uint32_t distro_adopted(const distro_t *self) { return self->adopted; }

void distro_adopt(distro_t *self)
{
    ensure(self->candidate);
    self->adopted = !self->adopted;
    self->candidate = false;
}

void distro_discard(distro_t *self)
{
    if (self->candidate) self->hash[!self->adopted] = (struct hash){ 0 };
    self->candidate = false;
}

int distro_check_residual(const float *residual, uint64_t count, struct why *why)
{
    for (uint64_t i = 0; i < count; i++)
        if (!(fabsf(residual[i]) < DISTRO_VALUE_LIMIT))
            return why_set(why, FAULT_NAN,
                           "residual %" PRIu64
                           " is %g, it must be finite and below 2^64; not taken",
                           i, (double)residual[i]);
    return 0;
}

int distro_set_residual(distro_t *self, const float *residual, struct why *why)
{
    const int rc = residual ? distro_check_residual(residual, self->total, why) : 0;
    if (rc < 0) return rc;
    float *adopted = self->residual[self->adopted];
    if (residual) memcpy(adopted, residual, self->total * sizeof *adopted);
    else memset(adopted, 0, self->total * sizeof *adopted);
    distro_changed(self);
    return 0;
}

void distro_changed(distro_t *self)
{
    self->hash[self->adopted] = (struct hash){ 0 };
    distro_discard(self);
}

// ---- hashes

static struct hash hash_residual(struct distro *self, uint32_t which)
{
    if (hash_is_none(&self->hash[which])) {
        digest_leaves(self->residual[which], self->total, self->pool, self->leaves);
        self->hash[which] = merkle_root(self->leaves, self->leaf_count);
    }
    return self->hash[which];
}

const float *distro_residual_of(distro_t *self, const struct hash *digest)
{
    for (uint32_t which = 0; which < 2; which++) {
        const struct hash hash = hash_residual(self, which);
        if (hash_equal(&hash, digest)) return self->residual[which];
    }
    return NULL;
}

struct hash distro_residual_hash(distro_t *self) { return hash_residual(self, self->adopted); }

struct hash distro_candidate_hash(distro_t *self)
{
    ensure(self->candidate);
    return hash_residual(self, !self->adopted);
}
