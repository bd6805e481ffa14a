// epoch -- the phases around the rounds. One function enters a phase: it records, arms the alarm
// and tells; one function looks whether the present phase is over.

#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include "common/run/quorum.h"
#include <stdio.h>
#include <string.h>

void epoch_arm(struct coordinator *self, uint64_t now_ms)
{
    const struct rules *rules = &self->rules;
    // mutant: a round takes twice its time, and never less (2)
    const uint32_t lasts_ms[PHASE_COUNT] = {
        [PHASE_WAITING] = rules->waiting_ms,   [PHASE_WARMUP] = rules->warmup_ms,
        [PHASE_TRAIN] = rules->train_ms,       [PHASE_WITNESS] = rules->witness_ms,
        [PHASE_COOLDOWN] = rules->cooldown_ms,
    };
    bool ends = self->run.phase != PHASE_FINISHED && self->run.phase != PHASE_PAUSED;
    self->phase_began_ms = now_ms;
    self->deadline_ms = ends ? now_ms + lasts_ms[self->run.phase] : UINT64_MAX;
}

// A joiner's model comes from its peers if one who took part in the last round is here again.
static uint8_t model_source(const struct coordinator *self)
{
    const struct run *run = &self->run;
    for (uint32_t i = 0; i < run->round.clients_count; i++)
        if (run->roster.members[run->round.clients[i].member].state == MEMBER_PENDING)
            return SOURCE_P2P;
    return SOURCE_HUB;
}

void epoch_enter(struct coordinator *self, uint8_t phase, uint64_t now_ms, struct outbox *out,
                 const char *cause)
{
    const struct run *run = &self->run;
    struct wire_record_phase record = { .phase = phase,
                                        .epoch = run->epoch,
                                        .cold_start = run->cold_start,
                                        .source = run->source,
                                        .epoch_start_step = run->epoch_start_step };
    snprintf(record.cause, sizeof record.cause, "%s", cause);
    uint8_t from = run->phase;
    if (phase == PHASE_WARMUP) {
        record.source = model_source(self);
        record.epoch_start_step = run->step;
        self->epoch_began_ms = now_ms;
        self->proved = true;
    }
    if (from == PHASE_COOLDOWN) { // The epoch is over
        record.epoch++;
        record.cold_start = phase == PHASE_PAUSED;
        record.source = SOURCE_P2P;
    } else if (phase == PHASE_PAUSED) {
        record.cold_start = true;
    }
    coordinator_put(self, FRAME_RECORD_PHASE, &record, out);
    self->holding = 0;
    for (uint32_t i = 0; i < run->roster.count; i++)
        if (self->holdings[i].known && self->holdings[i].step == run->step) self->holding++;
    epoch_arm(self, now_ms);
    if (self->roster_told != run->roster.version)
        news_roster(self, out); // First, or all would ask for it
    news_run(self, now_ms, out);
    outbox_note(out, "phase.entered phase=%s epoch=%llu step=%llu cause=\"%s\"",
                run_phase_name(phase), (unsigned long long)run->epoch,
                (unsigned long long)run->step, cause);
}

// ---- who holds what -----------------------------------------------------------------------------

static bool holds(const struct coordinator *self, uint32_t member, const struct hash *digest)
{
    const struct holding *holding = &self->holdings[member];
    return holding->known && holding->step == self->run.step &&
           hash_equal(&holding->digest, digest);
}

// In a Cooldown that has too few left, those who came back speak with them: after the last step
// there is no next epoch that would let them in.
static bool returned_speak(const struct coordinator *self)
{
    return self->run.phase == PHASE_COOLDOWN &&
           roster_count(&self->run.roster, ACTOR_TRAINER, MEMBER_HEALTHY) < self->rules.min_clients;
}

static bool speaks(const struct coordinator *self, uint32_t member)
{
    const struct wire_member *place = &self->run.roster.members[member];
    // mutant: a checkpointer speaks for the trainers
    return place->role == ACTOR_TRAINER &&
           (place->state == MEMBER_HEALTHY ||
            (place->state == MEMBER_PENDING && returned_speak(self)));
}

// Of those who speak and were heard since then.
static uint32_t count_holders(const struct coordinator *self, const struct hash *digest,
                              uint64_t since_ms)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->run.roster.count; i++)
        if (speaks(self, i) && holds(self, i, digest) && self->heard_ms[i] >= since_ms) count++;
    return count;
}

// The digest that most of those trainers report for the present step, or NULL: Boyer and Moore's
// vote.
static const struct hash *candidate_digest(const struct coordinator *self)
{
    const struct hash *candidate = NULL;
    uint32_t lead = 0;
    for (uint32_t i = 0; i < self->run.roster.count; i++) {
        const struct holding *holding = &self->holdings[i];
        if (!speaks(self, i) || !holding->known || holding->step != self->run.step) continue;
        if (lead == 0) candidate = &holding->digest;
        lead += hash_equal(candidate, &holding->digest) ? 1 : UINT32_MAX;
    }
    return candidate;
}

static struct wire_epoch_end end_at(struct coordinator *self, uint64_t epoch,
                                    const struct hash *digest)
{
    struct run *run = &self->run;
    return (struct wire_epoch_end){ .epoch = epoch,
                                    .step = run->step,
                                    .digest = *digest,
                                    .cursor = run->table.cursor,
                                    .returned = self->scratch,
                                    .returned_count = run_returned(run, self->scratch),
                                    .samples_done = run->samples_done };
}

// The digest of the present step is on record.
static bool is_pinned(const struct run *run)
{
    return run->digest_step == run->step && !hash_is_none(&run->digest);
}

// Binds the run to the digest of the present step once two thirds of the trainers report it.
static bool pin(struct coordinator *self, struct outbox *out)
{
    struct run *run = &self->run;
    if (is_pinned(run)) return true;
    uint32_t live = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY);
    if (returned_speak(self)) live += roster_count(&run->roster, ACTOR_TRAINER, MEMBER_PENDING);
    // Whoever is left alone does not speak for the run.
    // mutant: a trainer that is left alone speaks for the run
    if (live < self->rules.min_clients || live == 0 ||
        3 * (uint64_t)self->holding < 2 * (uint64_t)live)
        return false;
    const struct hash *digest = candidate_digest(self);
    if (!digest || 3 * (uint64_t)count_holders(self, digest, 0) < 2 * (uint64_t)live) return false;
    struct wire_epoch_end end = end_at(self, run->epoch, digest);
    coordinator_put(self, FRAME_RECORD_EPOCH_END, &end, out);
    outbox_news(out, FRAME_EPOCH_END, &end);
    char hex[HASH_HEX];
    outbox_note(out, "digest.pinned step=%llu digest=%.16s", (unsigned long long)end.step,
                hash_to_hex(&end.digest, hex));
    return true;
}

void epoch_tell_end(struct coordinator *self, const char *to, struct outbox *out)
{
    const struct run *run = &self->run;
    bool ended = run->phase == PHASE_COOLDOWN || run->phase == PHASE_FINISHED;
    if (!ended || !is_pinned(run)) return;
    struct wire_epoch_end end =
        end_at(self, run->epoch - (run->phase == PHASE_FINISHED), &run->digest);
    outbox_mail(out, to, FRAME_EPOCH_END, &end);
}

void epoch_hear_holds(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_holds *said = in->body;
    const struct run *run = &self->run;
    uint32_t member = members_of(self, in, out);
    if (member == NO_MEMBER) return;
    if (said->step == run->digest_step && !hash_is_none(&run->digest) &&
        !hash_equal(&said->digest, &run->digest)) {
        char hex[HASH_HEX];
        coordinator_refuse(in, REFUSAL_WRONG_MODEL, said->step, out,
                           "the digest of step %llu is %s; fetch "
                           "the intervals that differ",
                           (unsigned long long)said->step, hash_to_hex(&run->digest, hex));
        return;
    }
    // mutant: restore: what was held before it counts
    if (said->step > run->step) { // Said before a restore: the run may come there again, otherwise
        coordinator_refuse(in, REFUSAL_STALE, said->step, out, "the run is at step %llu",
                           (unsigned long long)run->step);
        return;
    }
    struct holding *holding = &self->holdings[member];
    bool fresh = said->step == run->step && !(holding->known && holding->step == run->step);
    *holding = (struct holding){ said->step, said->digest, true };
    if (fresh) self->holding++;
    coordinator_ack(in, said->step, &said->digest, out);
}

// ---- phases -------------------------------------------------------------------------------------

static void look_waiting(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    if (roster_count(&self->run.roster, ACTOR_TRAINER, MEMBER_PENDING) >=
            self->rules.init_min_clients &&
        now_ms >= self->deadline_ms)
        epoch_enter(self, PHASE_WARMUP, now_ms, out, "enough members");
}

static void look_warmup(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    struct run *run = &self->run;
    uint32_t live = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY);
    bool late = now_ms >= self->deadline_ms;
    if (live < self->rules.min_clients) {
        epoch_enter(self, PHASE_WAITING, now_ms, out, "too few members");
        return;
    }
    if (!late && self->holding < live) return;
    uint32_t ready = pin(self, out) ? count_holders(self, &run->digest, 0) : 0;
    bool witnessed = !self->rules.draw.witness_standalone ||
                     roster_count(&run->roster, ACTOR_WITNESS, MEMBER_HEALTHY) > 0;
    if (witnessed && ready == live) {
        rounds_open(self, now_ms, out);
    } else if (late && (ready < self->rules.min_clients || !witnessed)) {
        epoch_enter(self, PHASE_WAITING, now_ms, out,
                    witnessed ? "too few hold the model" : "no witness has joined");
    } else if (late) {
        // mutant: a checkpointer speaks for the trainers (2)
        for (uint32_t i = 0; i < run->roster.count; i++) // They enter with the next epoch
            if (run->roster.members[i].role == ACTOR_TRAINER && members_is_live(self, i) &&
                !holds(self, i, &run->digest))
                members_set_state(self, i, MEMBER_PENDING, out);
        rounds_open(self, now_ms, out);
    }
}

static bool checkpointed(const struct coordinator *self)
{
    const struct run *run = &self->run;
    return run->checkpoint.step == run->step && hash_equal(&run->checkpoint.digest, &run->digest);
}

// The present step, as the newest PINGs say of more of those who keep parameters than may lie.
static bool somebody_holds(const struct coordinator *self)
{
    const struct run *run = &self->run;
    uint32_t holders = 0;
    for (uint32_t i = 0; i < run->roster.count; i++)
        holders +=
            members_keeps_parameters(&run->roster.members[i]) && self->step_held[i] >= run->step;
    return holders > quorum_liars(roster_trainers(&run->roster, run->round.opened.round));
}

// The pinned step: there is a checkpoint, or more of those who speak hold it than may lie. A lease that
// has not run out says nothing of who died just now.
static bool is_kept(const struct coordinator *self, uint64_t now_ms)
{
    const uint64_t recent_ms = 2 * (uint64_t)self->rules.heartbeat_ms;
    const uint64_t since_ms = now_ms > recent_ms ? now_ms - recent_ms : 0;
    uint32_t speakers = 0;
    for (uint32_t i = 0; i < self->run.roster.count; i++) speakers += speaks(self, i);
    return checkpointed(self) ||
           count_holders(self, &self->run.digest, since_ms) > quorum_liars(speakers);
}

static bool all_done(const struct coordinator *self)
{
    // mutant: a run ends a step early
    return self->run.step >= self->rules.total_steps;
}

// A Cooldown that nobody is left to end: it has no digest, or was the last one and is kept by nobody.
static bool is_stuck(const struct coordinator *self, uint64_t now_ms)
{
    // mutant: restore: a last cooldown that nobody keeps has no way back
    return self->run.phase == PHASE_COOLDOWN && !somebody_holds(self) &&
           (!is_pinned(&self->run) || (all_done(self) && !is_kept(self, now_ms)));
}

static void look_cooldown(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    const struct run *run = &self->run;
    bool pinned = pin(self, out);
    bool awaited =
        roster_count(&run->roster, ACTOR_CHECKPOINTER, MEMBER_HEALTHY) > 0 && !checkpointed(self);
    if (now_ms < self->deadline_ms && (!pinned || awaited)) return;
    // mutant: a run is finished and nobody has its parameters
    if (all_done(self) && (!pinned || !is_kept(self, now_ms))) {
        // A finished run has a digest, and somebody has its parameters: give it more time
        if (now_ms < self->deadline_ms) return;
        outbox_note(out,
                    "run.unfinished step=%llu: too few are here who hold the last parameters and "
                    "agree on them; if all copies are lost, %s",
                    (unsigned long long)run->step,
                    hash_is_none(&run->way_back.digest)
                        ? "begin another run: of this one there is no checkpoint"
                        : "shoal restore goes back to the newest checkpoint");
        epoch_arm(self, now_ms);
        return;
    }
    // mutant: a pause outlives the last step
    uint8_t next = all_done(self) ? PHASE_FINISHED : run->pausing ? PHASE_PAUSED : PHASE_WAITING;
    const char *cause = !pinned              ? "the time is up, no digest yet"
                        : awaited            ? "the time is up, no checkpoint"
                        : checkpointed(self) ? "checkpointed"
                                             : "no checkpointer to wait for";
    epoch_enter(self, next, now_ms, out, cause);
}

void epoch_look(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    switch (self->run.phase) {
    case PHASE_WAITING: look_waiting(self, now_ms, out); break;
    case PHASE_WARMUP: look_warmup(self, now_ms, out); break;
    case PHASE_COOLDOWN: look_cooldown(self, now_ms, out); break;
    case PHASE_TRAIN:
    case PHASE_WITNESS:
        if (now_ms >= self->deadline_ms || self->roster_changed) rounds_look(self, now_ms, out);
        break;
    default: break;
    }
}

// ---- checkpoints and control --------------------------------------------------------------------

void epoch_hear_checkpoint(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_checkpoint *said = in->body;
    const struct run *run = &self->run;
    uint32_t member = members_of(self, in, out);
    if (member == NO_MEMBER) return;
    bool committed = (said->step == run->digest_step && hash_equal(&said->digest, &run->digest)) ||
                     (said->step == run->pin_step && hash_equal(&said->digest, &run->pin_digest));
    // mutant: a checkpointer is believed any digest
    if (run->roster.members[member].role != ACTOR_CHECKPOINTER) {
        coordinator_refuse(in, REFUSAL_WRONG_ROLE, said->step, out,
                           "only a checkpointer registers checkpoints");
    } else if (!committed || hash_is_none(&said->digest)) {
        coordinator_refuse(in, REFUSAL_WRONG_MODEL, said->step, out,
                           "no such digest is on record for step %llu",
                           (unsigned long long)said->step);
    } else {
        if (said->step > run->checkpoint.step || hash_is_none(&run->checkpoint.digest)) {
            coordinator_put(self, FRAME_RECORD_CHECKPOINT, said, out);
            outbox_note(out, "checkpoint.registered step=%llu name=%s",
                        (unsigned long long)said->step, said->name);
            news_run(self, in->now_ms, out);
        }
        coordinator_ack(in, said->step, &said->digest, out);
    }
}

static void set_pausing(struct coordinator *self, bool pausing, uint64_t now_ms, struct outbox *out)
{
    coordinator_put(self, FRAME_RECORD_PAUSE, &(struct wire_record_pause){ pausing }, out);
    news_run(self, now_ms, out);
}

// All copies of what was committed since are lost: the owner gives it up, and every later sample is
// todo again. What members say they hold is of the time before.
static bool restore(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    struct wire_record_restore back = run_way_back(&self->run);
    if (hash_is_none(&back.digest) || back.step >= self->run.step) return false;
    if (self->run.phase == PHASE_WARMUP || is_stuck(self, now_ms))
        epoch_enter(self, PHASE_WAITING, now_ms, out, "restore");
    else if (self->run.phase != PHASE_WAITING && self->run.phase != PHASE_PAUSED) return false;
    outbox_note(out, "run.restored from_step=%llu to_step=%llu", (unsigned long long)self->run.step,
                (unsigned long long)back.step);
    // mutant: restore: no new epoch
    back.epoch = self->run.epoch + 1;
    coordinator_put(self, FRAME_RECORD_RESTORE, &back, out);
    for (uint32_t i = 0; i < self->run.roster.count; i++) {
        self->holdings[i].known = false;
        self->step_held[i] = 0;
    }
    self->holding = 0;
    epoch_arm(self, now_ms);
    news_run(self, now_ms, out);
    return true;
}

static bool control(struct coordinator *self, uint8_t action, const struct msg *in,
                    struct outbox *out)
{
    const struct run *run = &self->run;
    uint8_t phase = run->phase;
    switch (action) {
    case ACTION_PAUSE:
        if (phase == PHASE_PAUSED || phase == PHASE_FINISHED) return false;
        if (phase == PHASE_WAITING || phase == PHASE_WARMUP)
            epoch_enter(self, PHASE_PAUSED, in->now_ms, out, "pause");
        else set_pausing(self, true, in->now_ms, out);
        return true;
    case ACTION_RESUME:
        if (phase == PHASE_PAUSED) epoch_enter(self, PHASE_WAITING, in->now_ms, out, "resume");
        else if (run->pausing) set_pausing(self, false, in->now_ms, out);
        else return false;
        return true;
    case ACTION_RESTORE: return restore(self, in->now_ms, out);
    case ACTION_CHECKPOINT:
        for (uint32_t i = 0; i < run->roster.count; i++)
            if (run->roster.members[i].role == ACTOR_CHECKPOINTER && members_is_live(self, i))
                outbox_mail(out, run->roster.members[i].name, FRAME_CONTROL, in->body);
        return roster_count(&run->roster, ACTOR_CHECKPOINTER, MEMBER_HEALTHY) > 0;
    }
    return false;
}

// True if this order is new; else it has been answered as it was before.
static bool is_new_order(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_control *said = in->body;
    if (said->incarnation != self->run.incarnation || said->number < self->control_number)
        coordinator_refuse(in, REFUSAL_STALE, 0, out,
                           "an order of before: it was given to incarnation %llu, this is %llu; "
                           "give it again",
                           (unsigned long long)said->incarnation,
                           (unsigned long long)self->run.incarnation);
    else if (said->number > self->control_number) return true;
    else if (self->control_done) coordinator_ack(in, 0, NULL, out);
    else coordinator_refuse(in, REFUSAL_NOT_NOW, 0, out, "as was said before: not now");
    return false;
}

void epoch_hear_control(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_control *said = in->body;
    const char *name = wire_enum_name(&wire_enum_action, said->action);
    if (!key_equal(&in->sender, &self->rules.owner)) {
        coordinator_refuse(in, REFUSAL_NOT_ALLOWED, 0, out,
                           "only the owner of the run may %s it: sign with the coordinator's key",
                           name);
        return;
    }
    if (!is_new_order(self, in, out)) return;
    self->control_number = said->number;
    self->control_done = false;
    if (said->action == ACTION_CHECKPOINT &&
        roster_count(&self->run.roster, ACTOR_CHECKPOINTER, MEMBER_HEALTHY) == 0)
        coordinator_refuse(in, REFUSAL_NOT_NOW, 0, out, "no checkpointer is in the run; start one");
    else if (!control(self, said->action, in, out))
        coordinator_refuse(in, REFUSAL_NOT_NOW, 0, out, "cannot %s in phase %s", name,
                           run_phase_name(self->run.phase));
    else {
        self->control_done = true;
        coordinator_ack(in, 0, NULL, out);
    }
}
