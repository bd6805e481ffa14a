// What audits ask of a learner: to show the starting residual of a result of its own (SHOW), and to
// make another member's result again and compare it (RECOMPUTE).
//
// A recomputation takes the parameters of the step, which are kept for the newest one and made again
// for others (past.h), reads the samples, and computes the gradient; all of that may come ahead of the
// residual. It checks the revealed residual, and computes the payload and the next residual. The
// finding is SAME or DIFFERENT if all of that worked, WITHHELD if the revealed residual is not the
// claimed one, and UNABLE if something is missing here.

#include "common/learner/learner_inside.h"
#include <stdio.h>
#include <string.h>

static int show(struct learner *self, const struct wire_show *job, struct why *why,
                struct wire_shown *ret_shown)
{
    const float *residual = self->holding ? result_residual(self->optimizer, &job->residual) : NULL;
    if (!residual)
        return why_set(why, FAULT_NOT_FOUND, "the residual of that result is no longer here");
    ret_shown->blob.bytes = (uint32_t)(self->floats * sizeof *residual);
    return learner_keep(self, residual, self->floats * sizeof *residual, why,
                        &ret_shown->blob.hash);
}

void learner_show(struct learner *self, const struct wire_show *job)
{
    struct why why = { 0 };
    struct wire_shown shown = { .round = job->round };
    shown.ok = show(self, job, &why, &shown) == 0;
    learner_put_reason(shown.reason, &why);
    worker_answer(self->worker, FRAME_SHOWN, &shown);
}

// The revealed residual, if it is the one that the claim names. NULL for the declared zero.
static int take_residual(struct learner *self, const struct wire_recompute *job, struct why *why,
                         struct blob_ref *ret_ref)
{
    struct hash digest;
    if (hash_is_none(&job->audit.residual_from)) return 0;
    int rc = blob_store_get(self->options->store, &job->residual, why, ret_ref);
    if (rc < 0) return rc;
    if (ret_ref->count == self->floats * sizeof(float))
        rc = apply_digest((const void *)ret_ref->bytes, self->floats, self->pool, &digest);
    if (rc < 0) return rc;
    if (ret_ref->count == self->floats * sizeof(float) &&
        hash_equal(&digest, &job->audit.residual_from))
        return 0;
    return why_set(why, FAULT_FORMAT, "what was revealed is not the residual that the claim names");
}

// The parameters of the audited step, to self->spare. Those before the newest commit lie there already.
static int take_params(struct learner *self, const struct wire_audit *audit, struct why *why)
{
    const struct past_means means = { self->options->store, self->form, self->pool,
                                      self->config.weight_decay, self->floats };
    // mutant: audit: the parameters of another step are taken
    if (self->spare_step == audit->step && hash_equal(&self->spare_digest, &audit->base)) return 0;
    self->spare_digest = (struct hash){ { 0 } };
    learner_pin_wait(self); // past_params may begin at this pin
    const int rc = past_params(&self->past, &means, audit->step, &audit->base, why, self->spare);
    if (rc == 0) self->spare_step = audit->step, self->spare_digest = audit->base;
    return rc;
}

// The gradient of the audited result, unless it is here already: most of the work, and it needs no residual.
static int take_gradient(struct learner *self, const struct wire_recompute *job, struct why *why)
{
    const struct learner_samples samples = { .list = job->samples,
                                             .list_count = job->samples_count,
                                             .providers = job->providers,
                                             .providers_count = job->providers_count,
                                             .data = job->data,
                                             .order = job->order };
    struct result_work work = { .clip = (double)self->config.clip_norm };
    uint64_t count = 0;
    // mutant: audit: the gradient of another result is taken
    if (hash_equal(&self->gradient_of, &job->audit.result)) return 0;
    self->gradient_of = (struct hash){ { 0 } };
    int rc = take_params(self, &job->audit, why);
    if (rc == 0) rc = learner_read_samples(self, &samples, why, &count);
    if (rc < 0) return rc;
    work.params = self->spare, work.tokens = self->tokens, work.count = (uint32_t)count;
    rc = result_gradient_again(self->optimizer, &work, why);
    if (rc == 0) self->gradient_of = job->audit.result;
    return rc;
}

static int compute(struct learner *self, const struct wire_recompute *job,
                   const struct blob_ref *residual, struct why *why, struct wire_finding *ret)
{
    struct result_work work = { .residual = (const void *)residual->bytes };
    memcpy(&work.rate, &job->audit.lr_bits, sizeof work.rate);
    int rc = take_gradient(self, job, why);
    if (rc == 0) rc = result_again(self->optimizer, &work, why, self->payload, &ret->residual_to);
    if (rc == 0) ret->payload = hash_of(self->payload, payload_bytes(self->form));
    return rc;
}

// A residual that does not fit the claim counts as withheld, not as a different result: its author
// may have shown the right one to other auditors, and then the auditor that called the result
// different would look like the liar. What is missing on our side says nothing about the author.
// But no result can be made from a residual that fits the claim and has a NaN in it, so the claimed
// result differs.
void learner_recompute(struct learner *self, const struct wire_recompute *job)
{
    const bool can = self->built && self->options->trains;
    struct why why = { 0 };
    struct blob_ref residual = { 0 };
    if (job->ahead) { // What fails now is tried again with the residual, and then answered
        if (can) take_gradient(self, job, &why);
        return;
    }
    struct wire_finding finding = { .round = job->round,
                                    .result = job->audit.result,
                                    .finding = FINDING_UNABLE };
    int rc = can ? take_residual(self, job, &why, &residual)
                 : why_set(&why, FAULT_CONFIG, "no model has been built");
    if (rc == FAULT_FORMAT) finding.finding = FINDING_WITHHELD;
    if (rc == 0) rc = compute(self, job, &residual, &why, &finding);
    if (rc == FAULT_NAN) finding.finding = FINDING_DIFFERENT;
    if (rc == 0)
        finding.finding = hash_equal(&finding.payload, &job->audit.payload) &&
                                  hash_equal(&finding.residual_to, &job->audit.residual_to)
                              ? FINDING_SAME
                              : FINDING_DIFFERENT;
    blob_store_release(&residual);
    snprintf(finding.reason, sizeof finding.reason, "%.*s", (int)sizeof finding.reason - 1,
             rc < 0 ? why.text : "");
    for (char *c = finding.reason; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    worker_answer(self->worker, FRAME_RECOMPUTED, &finding);
}
