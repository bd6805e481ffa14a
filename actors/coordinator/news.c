// news -- packs what is on record and who is present into RUN, ROSTER, ROUND, BEAT and EPOCH_END.

#include "actors/coordinator/news.h"
#include "common/pace/turn.h"
#include <float.h>
#include <string.h>

// The mean loss and the sum of rates over the trainers at work, as they report them: any finite
// number.
static void add_progress(const struct turn *turn, struct wire_run *state)
{
    double loss = 0, rate = 0;
    uint32_t reporting = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (turn->run->roster.members[i].role == ACTOR_TRAINER && turn_is_live(turn, i)) {
            rate += (double)turn->presence->tokens_per_s[i];
            if (turn->presence->loss[i] > 0) loss += (double)turn->presence->loss[i], reporting++;
        }
    state->tokens_per_s = rate > FLT_MAX ? FLT_MAX : rate < -FLT_MAX ? -FLT_MAX : (float)rate;
    state->loss = reporting ? (float)(loss / reporting) : 0;
}

static struct wire_run run_state(const struct turn *turn)
{
    const struct run *run = turn->run;
    uint64_t left_ms =
        turn->presence->deadline_ms == UINT64_MAX || turn->presence->deadline_ms < turn->now_ms
            ? 0
            : turn->presence->deadline_ms - turn->now_ms;
    struct wire_run state = {
        .phase = run->phase,
        .epoch = run->epoch,
        .round = run->round.opened.round,
        .step = run->step,
        .total_steps = turn->rules->total_steps,
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
        .tokens_done = run->samples_done * turn->rules->seq_len,
        .passes = run->pass_samples ? table_frontier(&run->table) / run->pass_samples : 0,
    };
    memcpy(state.checkpoint_name, run->checkpoint.name, sizeof state.checkpoint_name);
    add_progress(turn, &state);
    return state;
}

void news_run(const struct turn *turn)
{
    struct wire_run state = run_state(turn);
    outbox_news(turn->out, FRAME_RUN, &state);
}

void news_round(const struct turn *turn)
{
    struct wire_round round = round_frame(&turn->run->round);
    outbox_news(turn->out, FRAME_ROUND, &round);
}

static struct wire_roster roster(const struct turn *turn)
{
    return (struct wire_roster){ .version = turn->run->roster.version,
                                 .members = turn->run->roster.members,
                                 .members_count = turn->run->roster.count };
}

void news_roster(const struct turn *turn)
{
    struct wire_roster all = roster(turn);
    outbox_news(turn->out, FRAME_ROSTER, &all);
    turn->presence->roster_changed = false;
    turn->presence->roster_told = turn->run->roster.version;
}

void news_beat(const struct turn *turn)
{
    const struct run *run = turn->run;
    outbox_news(turn->out, FRAME_BEAT,
                &(struct wire_beat){ .log_seq = run->log_seq,
                                     .phase = run->phase,
                                     .round = run->round.opened.round,
                                     .step = run->step,
                                     .roster_version = run->roster.version,
                                     .chain = run->chain,
                                     .born_unix_ms = run->born_unix_ms });
}

void news_phase(const struct turn *turn, const char *cause)
{
    const struct run *run = turn->run;
    if (turn->presence->roster_told != run->roster.version)
        news_roster(turn); // First, or all would ask for it
    news_run(turn);
    outbox_note(turn->out, "phase.entered phase=%s epoch=%llu step=%llu cause=\"%s\"",
                run_phase_name(run->phase), (unsigned long long)run->epoch,
                (unsigned long long)run->step, cause);
}

struct wire_epoch_end news_epoch_end(const struct turn *turn, uint64_t epoch,
                                     const struct hash *digest)
{
    struct run *run = turn->run;
    return (struct wire_epoch_end){ .epoch = epoch,
                                    .step = run->step,
                                    .digest = *digest,
                                    .cursor = run->table.cursor,
                                    .returned = turn->scratch,
                                    .returned_count = run_returned(run, turn->scratch),
                                    .samples_done = run->samples_done };
}

static void tell_end(const struct turn *turn, const char *to)
{
    const struct run *run = turn->run;
    bool ended = run->phase == PHASE_COOLDOWN || run->phase == PHASE_FINISHED;
    if (!ended || !run_is_pinned(run)) return;
    struct wire_epoch_end end =
        news_epoch_end(turn, run->epoch - (run->phase == PHASE_FINISHED), &run->digest);
    outbox_mail(turn->out, to, FRAME_EPOCH_END, &end);
}

void news_hear_ask(const struct turn *turn, const struct msg *in)
{
    const struct wire_ask *ask = in->body;
    if (!in->from[0]) return;
    switch (ask->topic) {
    case TOPIC_RUN: {
        struct wire_run state = run_state(turn);
        outbox_mail(turn->out, in->from, FRAME_RUN, &state);
        tell_end(turn, in->from);
        if (!turn->run->round.open) break;
        struct wire_round round = round_frame(&turn->run->round);
        outbox_mail(turn->out, in->from, FRAME_ROUND, &round);
        break;
    }
    case TOPIC_ROSTER: {
        struct wire_roster all = roster(turn);
        outbox_mail(turn->out, in->from, FRAME_ROSTER, &all);
        break;
    }
    case TOPIC_CONFIG: outbox_mail(turn->out, in->from, FRAME_CONFIG, &turn->rules->frame); break;
    case TOPIC_COMMITS: { // Answered by the ledger's keeper, COMMIT by COMMIT
        // No further than the run has come: beyond lie those that a restore gave up.
        uint64_t count = ask->from < turn->run->step ? turn->run->step - ask->from : 0;
        if (count == 0) break;
        struct wire_recite recite = { .from_step = ask->from,
                                      .count = count < 64 ? (uint32_t)count : 64 };
        memcpy(recite.to, in->from, strlen(in->from) + 1);
        // mutant: a member that asks for commits is not answered
        outbox_job(turn->out, PORT_DISK, FRAME_RECITE, &recite);
        break;
    }
    }
}
