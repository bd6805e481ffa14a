// core_process -- what the process of a core does for it. Its disk keeps records, journal and blobs;
// its learner and its fetcher get jobs, and answer them when the conversation says so. What they
// answer is true, but may fail and may come at any time.

#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/rounds_config.h"
#include "tests/fuzz/talk.h"

#include <stdlib.h>
#include <string.h>

// ---- the disk -----------------------------------------------------------------------------------

// The blob store.
static void keep_blob(struct talk *talk, const struct hash *hash, uint32_t bytes)
{
    for (uint32_t i = 0; i < talk->stored_count; i++)
        if (hash_equal(&talk->stored[i].hash, hash)) return;
    if (talk->stored_count < STORED_MAX)
        talk->stored[talk->stored_count++] = (struct wire_blob){ *hash, bytes };
}

static void forget_blobs(struct talk *talk, const struct wire_forget *forget)
{
    for (uint32_t i = 0; i < forget->blobs_count; i++)
        for (uint32_t j = 0; j < talk->stored_count; j++)
            if (hash_equal(&talk->stored[j].hash, &forget->blobs[i].hash))
                talk->stored[j--] = talk->stored[--talk->stored_count];
}

void talk_store(struct talk *talk, const struct effect *effect)
{
    const struct {
        uint32_t kind, bytes;
    } head = { effect->kind, effect->bytes };
    if (effect->kind == FRAME_JOURNAL) {
        talk->journal = *(const struct wire_journal *)talk_unpack(&talk->scratch, effect->kind,
                                                                  effect->body, effect->bytes);
        talk->has_journal = true;
    } else if (effect->kind == FRAME_FORGET) {
        ensure(!talk_is_coordinator(talk));
        forget_blobs(talk, talk_unpack(&talk->scratch, effect->kind, effect->body, effect->bytes));
    } else if (effect->kind == FRAME_SEND_COMMITS || effect->kind == FRAME_POSITION) {
        ensure(talk_is_coordinator(talk)); // Questions: the disk keeps nothing of them
    } else {
        ensure(effect->kind >= 200 && talk_is_coordinator(talk));
        ensure(talk->records_bytes + sizeof head + effect->bytes <= RECORDS_BYTES);
        memcpy(talk->records + talk->records_bytes, &head, sizeof head);
        memcpy(talk->records + talk->records_bytes + sizeof head, effect->body, effect->bytes);
        talk->records_bytes += sizeof head + effect->bytes;
    }
}

void talk_replay(struct talk *talk, struct run *run)
{
    for (size_t at = 0; at < talk->records_bytes;) {
        struct {
            uint32_t kind, bytes;
        } head;
        memcpy(&head, talk->records + at, sizeof head);
        at += sizeof head;
        run_apply(run, (uint16_t)head.kind,
                  talk_unpack(&talk->scratch, (uint16_t)head.kind, talk->records + at, head.bytes));
        at += head.bytes;
    }
}

// ---- learner and fetcher ------------------------------------------------------------------------

void talk_keep_job(struct talk *talk, const struct effect *effect)
{
    if (effect->kind == FRAME_PIN || effect->kind == FRAME_FORGET) return;
    if (talk->jobs_count == JOBS_MAX) return; // The worker never answers: as if it hung
    struct job job = { effect->kind, effect->bytes, malloc(effect->bytes) };
    ensure(job.body);
    memcpy(job.body, effect->body, effect->bytes);
    talk->jobs[talk->jobs_count++] = job;
}

void talk_forget_jobs(struct talk *talk)
{
    while (talk->jobs_count) free(talk->jobs[--talk->jobs_count].body);
}

static void answer_fetch(struct talk *talk, const struct wire_fetch *fetch, bool ok, uint8_t salt)
{
    for (uint32_t i = 0; i < fetch->blobs_count; i++) {
        const struct wire_blob *blob = &fetch->blobs[i];
        const bool here = ok || (salt >> i % 8 & 1);
        if (here) keep_blob(talk, &blob->hash, blob->bytes);
        talk_hear_local(
            talk, FRAME_FETCHED,
            &(struct wire_fetched){ .hash = blob->hash, .ok = here, .turn = fetch->turn });
    }
}

// What the round's number and the residual lead to, in the store.
static void answer_train(struct talk *talk, const struct wire_train *train, bool ok)
{
    const struct hash payload = honest_payload(train->round, talk->core->person);
    const struct member *member = talk->state;
    if (ok) {
        keep_blob(talk, &payload, rounds_config_of(&member->config)->payload_bytes);
        talk->candidate = honest_residual(train->round, talk->core->person);
        talk->candidate_payload = payload;
    }
    talk_hear_local(
        talk, FRAME_TRAINED,
        &(struct wire_trained){ .round = train->round,
                                .ok = ok,
                                .base = honest_digest(train->step),
                                .residual_from = talk->residual,
                                .residual_to = talk->candidate,
                                .payload = payload,
                                .payload_bytes = rounds_config_of(&member->config)->payload_bytes,
                                .loss = 2 });
}

static void answer_apply(struct talk *talk, const struct wire_apply *apply, bool ok)
{
    if (ok && !hash_is_none(&apply->own_payload) &&
        hash_equal(&apply->own_payload, &talk->candidate_payload))
        talk->residual = talk->candidate;
    talk_hear_local(talk, FRAME_APPLIED,
                    &(struct wire_applied){ .ok = ok,
                                            .step = apply->step + 1,
                                            .digest = honest_digest(apply->step + 1) });
}

static void answer_show(struct talk *talk, const struct wire_show *show, bool ok)
{
    const struct wire_blob blob = { hash_of(show->residual.bytes, HASH_BYTES),
                                    HONEST_FLOATS * sizeof(float) };
    if (ok) keep_blob(talk, &blob.hash, blob.bytes);
    talk_hear_local(talk, FRAME_SHOWN,
                    &(struct wire_shown){ .round = show->round, .ok = ok, .blob = blob });
}

static void answer_save(struct talk *talk, const struct wire_save *save, bool ok)
{
    if (ok)
        talk->resume =
            (struct wire_load){ .step = save->step, .path = "checkpoints", .epoch = save->epoch };
    talk_hear_local(talk, FRAME_SAVED,
                    &(struct wire_saved){ .ok = ok,
                                          .epoch = save->epoch,
                                          .step = save->step,
                                          .digest = save->digest,
                                          .name = "step" });
}

static void answer_recompute(struct talk *talk, const struct wire_recompute *recompute, bool ok)
{
    if (recompute->ahead) return; // Only the gradient
    talk_hear_local(talk, FRAME_RECOMPUTED,
                    &(struct wire_finding){ .round = recompute->round,
                                            .result = recompute->audit.result,
                                            .finding = ok ? FINDING_SAME : FINDING_DIFFERENT,
                                            .payload = recompute->audit.payload,
                                            .residual_to = recompute->audit.residual_to });
}

static void answer_learner(struct talk *talk, uint16_t kind, const void *body, bool ok)
{
    switch (kind) {
    case FRAME_BUILD:
        talk_hear_local(
            talk, FRAME_BUILT,
            &(struct wire_built){ .ok = ok,
                                  .floats = HONEST_FLOATS,
                                  .may_pass = true,
                                  .payload_bytes = rounds_config_of(body)->payload_bytes });
        break;
    case FRAME_LOAD: {
        const struct wire_load *load = body;
        talk_hear_local(talk, FRAME_LOADED,
                        &(struct wire_loaded){ .ok = ok,
                                               .step = load->step,
                                               .digest = honest_digest(load->step),
                                               .epoch = load->epoch });
        break;
    }
    case FRAME_TRAIN: answer_train(talk, body, ok); break;
    case FRAME_APPLY: answer_apply(talk, body, ok); break;
    case FRAME_SHOW: answer_show(talk, body, ok); break;
    case FRAME_RECOMPUTE: answer_recompute(talk, body, ok); break;
    case FRAME_SAVE: answer_save(talk, body, ok); break;
    default: ensure_failed("a job that a learner knows", __FILE__, __LINE__);
    }
}

void talk_answer(struct talk *talk, const struct event *event)
{
    if (talk->jobs_count == 0) return;
    const uint8_t *choices = event->choices;
    const uint32_t place = (event->choices_count > 0 ? choices[0] : 0) % talk->jobs_count;
    const bool ok = event->choices_count < 2 || choices[1] == 0;
    const struct job job = talk->jobs[place];
    memmove(talk->jobs + place, talk->jobs + place + 1, (--talk->jobs_count - place) * sizeof job);
    const void *body = talk_unpack(&talk->arena, job.kind, job.body, job.bytes);
    if (job.kind == FRAME_FETCH) answer_fetch(talk, body, ok, ok ? 0 : choices[1]);
    else if (job.kind == FRAME_FETCH_MODEL) {
        const struct wire_fetch_model *fetch = body;
        talk_hear_local(talk, FRAME_FETCHED_MODEL,
                        &(struct wire_fetched_model){ .ok = ok, .step = fetch->step });
    } else answer_learner(talk, job.kind, body, ok);
    free(job.body);
}
