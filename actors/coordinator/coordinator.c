#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void coordinator_init(struct coordinator *self, const struct rules *rules)
{
    self->rules = *rules;
    run_init(&self->run, rules->snapshot_rounds);
}

// On disk first, true next; whatever is said because of it comes later in the outbox.
void coordinator_put(struct coordinator *self, uint16_t kind, const void *record,
                     struct outbox *out)
{
    struct run *run = &self->run;
    // mutant: a member is admitted before it is stored
    outbox_store(out, kind, record);
    const struct effect *stored = &out->effects[out->count - 1];
    run->chain = run_chain(&run->chain, run->log_seq + 1, kind, stored->body, stored->bytes);
    run_apply(run, kind, record);
}

void coordinator_refuse(const struct msg *in, uint8_t reason, uint64_t round, struct outbox *out,
                        const char *format, ...)
{
    struct wire_refused refused = { .kind = in->kind, .reason = reason, .round = round };
    va_list args;
    va_start(args, format);
    vsnprintf(refused.text, sizeof refused.text, format, args);
    va_end(args);
    if (in->from[0]) outbox_mail(out, in->from, FRAME_REFUSED, &refused);
}

void coordinator_mail_refusal(struct outbox *out, const char *to, uint16_t kind, uint8_t reason,
                              uint64_t round, const char *text)
{
    struct wire_refused refused = { .kind = kind, .reason = reason, .round = round };
    snprintf(refused.text, sizeof refused.text, "%s", text);
    outbox_mail(out, to, FRAME_REFUSED, &refused);
}

void coordinator_ack(const struct msg *in, uint64_t round, const struct hash *hash,
                     struct outbox *out)
{
    struct wire_ack ack = { .kind = in->kind, .round = round };
    if (hash) ack.hash = *hash;
    outbox_mail(out, in->from, FRAME_ACK, &ack);
}

static void begin_run(struct coordinator *self, struct outbox *out)
{
    const struct rules *rules = &self->rules;
    struct wire_record_genesis genesis = {
        .config = rules->config,
        .seed = rules->run_seed,
        .digest = rules->genesis_digest,
        .epoch = rules->first_epoch,
        .step = rules->first_step,
        .cursor = rules->first_position,
    };
    memcpy(genesis.run, rules->run_id, sizeof genesis.run);
    coordinator_put(self, FRAME_RECORD_GENESIS, &genesis, out);
    if (!rules->start_paused) return;
    struct wire_record_phase paused = { .phase = PHASE_PAUSED,
                                        .epoch = rules->first_epoch,
                                        .cold_start = true,
                                        .source = SOURCE_HUB,
                                        .epoch_start_step = rules->first_step,
                                        .cause = "run_state = \"Paused\"" };
    coordinator_put(self, FRAME_RECORD_PHASE, &paused, out);
}

// The first message of a life: what was durable has been replayed. Instants are set anew, everybody
// gets a full lease again, and a move that the crash cut in two is finished.
static void start(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_start *start = in->body;
    if (self->run.log_seq == 0) begin_run(self, out);
    coordinator_put(
        self, FRAME_RECORD_START,
        &(struct wire_record_start){ .incarnation = start->incarnation, .unix_ms = start->unix_ms },
        out);
    self->started = self->proved = true;
    for (uint32_t i = 0; i < self->run.roster.count; i++) self->heard_ms[i] = in->now_ms;
    self->epoch_began_ms =
        in->now_ms - self->run.epoch_elapsed_ms; // Modulo 2^64: before this boot, perhaps
    epoch_arm(self, in->now_ms);
    self->beat_ms = in->now_ms + self->rules.heartbeat_ms;
    news_roster(self, out);
    news_run(self, in->now_ms, out);
    news_beat(self, out);
    if (self->run.round.open) {
        // mutant: a deadline is kept over a reboot (2)
        rounds_resume(self, in->now_ms);
        // mutant: audit: a verdict that a crash cut off is forgotten
        audit_resume(self, out);
        news_round(self, out);
    } else if (self->run.phase == PHASE_TRAIN || self->run.phase == PHASE_WITNESS) {
        // mutant: a restart does not finish a half-finished move
        rounds_settle(self, in->now_ms, out);
    }
}

static void wake(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    if (self->roster_changed && in->now_ms >= self->roster_ms) news_roster(self, out);
    if (in->now_ms < self->beat_ms) return;
    bool late = in->now_ms > self->beat_ms + self->rules.heartbeat_ms;
    self->beat_ms = in->now_ms + self->rules.heartbeat_ms;
    // If it was we who were held up, pings wait unread: nobody is judged before the next beat.
    if (!late) members_check_leases(self, in->now_ms, out);
    news_beat(self, out);
}

// The far side of the disk holds it against the ledger and ends the process if that does not have
// it: so the acknowledgement, which comes later in the outbox, is the proof.
static void hear_position(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_position *said = in->body;
    if (members_of(self, in, out) == NO_MEMBER) return;
    // mutant: what members saw is not held against the ledger
    outbox_job(out, PORT_DISK, FRAME_POSITION, said);
    // mutant: a position is not answered
    coordinator_ack(in, said->log_seq, &said->chain, out);
}

static void hear(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    switch (in->kind) {
    case FRAME_JOIN: members_hear_join(self, in, out); break;
    case FRAME_PING: members_hear_ping(self, in, out); break;
    case FRAME_LEAVE: members_hear_leave(self, in, out); break;
    case FRAME_ASK: news_hear_ask(self, in, out); break;
    case FRAME_HOLDS: epoch_hear_holds(self, in, out); break;
    case FRAME_VOTE: rounds_hear_vote(self, in, out); break;
    case FRAME_FINDING: audit_hear_finding(self, in, out); break;
    case FRAME_TESTIMONY: audit_hear_testimony(self, in, out); break;
    case FRAME_CHECKPOINT: epoch_hear_checkpoint(self, in, out); break;
    case FRAME_POSITION: hear_position(self, in, out); break;
    case FRAME_CONTROL: epoch_hear_control(self, in, out); break;
    case FRAME_WELCOME: // A broker that has forgotten what it was told
        news_roster(self, out);
        news_run(self, in->now_ms, out);
        if (self->run.round.open) news_round(self, out);
        news_beat(self, out);
        break;
    case FRAME_REFUSED:
    case FRAME_UNDELIVERABLE: break; // A refusal is never refused
    default:
        coordinator_refuse(in, REFUSAL_NOT_ALLOWED, 0, out,
                           "%s is nothing a coordinator is sent; ignored",
                           wire_kind_name(in->kind));
    }
}

void coordinator_step(void *state, const struct msg *in, struct outbox *out)
{
    struct coordinator *self = state;
    if (in->kind == FRAME_START) start(self, in, out);
    else if (!self->started) return;
    else if (in->kind == FRAME_WAKE) wake(self, in, out);
    else if (in->from[0] && in->run[0] && strcmp(in->run, self->rules.run_id) != 0) {
        coordinator_refuse(in, REFUSAL_WRONG_RUN, 0, out,
                           "this coordinator keeps run \"%s\", not \"%s\"; "
                           "check --run-id",
                           self->rules.run_id, in->run);
        return;
    } else hear(self, in, out);
    uint8_t phase;
    do { // One thing may ripen another, as a vote the next round
        phase = self->run.phase;
        epoch_look(self, in->now_ms, out);
    } while (phase != self->run.phase);
    if (self->beat_seq != self->run.log_seq) news_beat(self, out);
    uint64_t next_ms = self->beat_ms;
    // A deadline that has passed without effect waits for a message, not for the clock.
    // mutant: the clock is asked for a deadline that has passed
    if (self->deadline_ms > in->now_ms && self->deadline_ms < next_ms) next_ms = self->deadline_ms;
    if (self->roster_changed && self->roster_ms < next_ms) next_ms = self->roster_ms;
    outbox_wake(out, next_ms);
}
