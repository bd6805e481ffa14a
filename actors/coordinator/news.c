// news -- what everybody is told, and what is told again to those who missed it.

#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include <float.h>
#include <string.h>

// The mean loss and the sum of rates over the trainers at work, as they report them: any finite
// number.
static void add_progress(const struct coordinator *self, struct wire_run *state)
{
    double loss = 0, rate = 0;
    uint32_t reporting = 0;
    for (uint32_t i = 0; i < self->run.roster.count; i++)
        if (self->run.roster.members[i].role == ACTOR_TRAINER && members_is_live(self, i)) {
            rate += (double)self->tokens_per_s[i];
            if (self->loss[i] > 0) loss += (double)self->loss[i], reporting++;
        }
    state->tokens_per_s = rate > FLT_MAX ? FLT_MAX : rate < -FLT_MAX ? -FLT_MAX : (float)rate;
    state->loss = reporting ? (float)(loss / reporting) : 0;
}

struct wire_run news_run_state(const struct coordinator *self, uint64_t now_ms)
{
    const struct run *run = &self->run;
    uint64_t left_ms = self->deadline_ms == UINT64_MAX || self->deadline_ms < now_ms
                           ? 0
                           : self->deadline_ms - now_ms;
    struct wire_run state = {
        .phase = run->phase,
        .epoch = run->epoch,
        .round = run->round.opened.round,
        .step = run->step,
        .total_steps = self->rules.total_steps,
        .log_seq = run->log_seq,
        .phase_left_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX,
        .pending = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_PENDING),
        .healthy = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY),
        .roster_version = run->roster.version,
        .samples_done = run->samples_done,
        .digest_step = run->digest_step,
        .digest = run->digest,
        .pin_step = run->pin_step,
        .pin_digest = run->pin_digest,
        .source = run->source,
        .way_back_step = run->way_back.step,
        .restored_step = run->restored_step,
        .restored_epoch = run->restored_epoch,
        .checkpoint_step = run->checkpoint.step,
        .checkpoint_digest = run->checkpoint.digest,
        .data = run->data,
        .order = run->order,
        .pausing = run->pausing,
        .tokens_done = run->samples_done * self->rules.seq_len,
        .passes = run->pass_samples ? table_frontier(&run->table) / run->pass_samples : 0,
    };
    memcpy(state.checkpoint_name, run->checkpoint.name, sizeof state.checkpoint_name);
    add_progress(self, &state);
    return state;
}

void news_run(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    struct wire_run state = news_run_state(self, now_ms);
    outbox_news(out, FRAME_RUN, &state);
}

void news_round(struct coordinator *self, struct outbox *out)
{
    struct wire_round round = round_frame(&self->run.round);
    outbox_news(out, FRAME_ROUND, &round);
}

static struct wire_roster roster(const struct coordinator *self)
{
    return (struct wire_roster){ .version = self->run.roster.version,
                                 .members = self->run.roster.members,
                                 .members_count = self->run.roster.count };
}

void news_roster(struct coordinator *self, struct outbox *out)
{
    struct wire_roster all = roster(self);
    outbox_news(out, FRAME_ROSTER, &all);
    self->roster_changed = false;
    self->roster_told = self->run.roster.version;
}

void news_beat(struct coordinator *self, struct outbox *out)
{
    const struct run *run = &self->run;
    outbox_news(out, FRAME_BEAT,
                &(struct wire_beat){ .log_seq = run->log_seq,
                                     .phase = run->phase,
                                     .round = run->round.opened.round,
                                     .step = run->step,
                                     .roster_version = run->roster.version,
                                     .chain = run->chain,
                                     .born_unix_ms = run->born_unix_ms });
    self->beat_seq = run->log_seq;
}

void news_hear_ask(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_ask *ask = in->body;
    if (!in->from[0]) return;
    switch (ask->topic) {
    case TOPIC_RUN: {
        struct wire_run state = news_run_state(self, in->now_ms);
        outbox_mail(out, in->from, FRAME_RUN, &state);
        epoch_tell_end(self, in->from, out);
        if (!self->run.round.open) break;
        struct wire_round round = round_frame(&self->run.round);
        outbox_mail(out, in->from, FRAME_ROUND, &round);
        break;
    }
    case TOPIC_ROSTER: {
        struct wire_roster all = roster(self);
        outbox_mail(out, in->from, FRAME_ROSTER, &all);
        break;
    }
    case TOPIC_CONFIG: outbox_mail(out, in->from, FRAME_CONFIG, &self->rules.frame); break;
    case TOPIC_COMMITS: { // Answered by the ledger's keeper, COMMIT by COMMIT
        // No further than the run has come: beyond lie those that a restore gave up.
        uint64_t count = ask->from < self->run.step ? self->run.step - ask->from : 0;
        if (count == 0) break;
        struct wire_recite recite = { .from_step = ask->from,
                                      .count = count < 64 ? (uint32_t)count : 64 };
        memcpy(recite.to, in->from, strlen(in->from) + 1);
        // mutant: a member that asks for commits is not answered
        outbox_job(out, PORT_DISK, FRAME_RECITE, &recite);
        break;
    }
    }
}
