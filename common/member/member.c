// A member's life in a run: it joins and repeats JOIN until it is admitted, then pings, and asks
// for what it lacks. A message is judged in this order: what comes from our own shell or the
// broker; ADMITTED, which may name the coordinator; refusals; then only frames by the coordinator's
// key, of a followed process and not of an older incarnation.

#include "common/base/ensure.h"
#include "common/member/member.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const char COORDINATOR[] = "coordinator";

static void ask(const struct member *self, uint8_t topic, uint64_t from, struct outbox *out)
{
    (void)self;
    outbox_mail(out, COORDINATOR, FRAME_ASK, &(struct wire_ask){ .topic = topic, .from = from });
}

static void join(struct member *self, uint64_t now_ms, struct outbox *out)
{
    struct wire_join join = { .role = self->role,
                              .instance = self->instance,
                              .samples = self->samples,
                              .data = self->data,
                              .positions = self->positions };
    memcpy(join.name, self->name, sizeof join.name);
    memcpy(join.endpoint, self->endpoint, sizeof join.endpoint);
    outbox_mail(out, COORDINATOR, FRAME_JOIN, &join);
    self->join_ms = now_ms + MEMBER_RETRY_MS;
}

static void ask_for_missing(struct member *self, uint64_t now_ms, struct outbox *out)
{
    if (!self->has_config) ask(self, TOPIC_CONFIG, 0, out);
    if (!self->has_run) ask(self, TOPIC_RUN, 0, out);
    if (self->roster.version == 0) ask(self, TOPIC_ROSTER, 0, out);
    self->ask_ms = now_ms + MEMBER_RETRY_MS;
}

static void ping(struct member *self, uint64_t now_ms, struct outbox *out)
{
    outbox_mail(out, COORDINATOR, FRAME_PING,
                &(struct wire_ping){ .instance = self->instance,
                                     .round = self->round,
                                     .step = self->step_held,
                                     .tokens_per_s = self->tokens_per_s,
                                     .loss = self->loss });
    self->ping_ms = now_ms + (self->has_config ? self->config.heartbeat_ms : MEMBER_RETRY_MS);
}

static void leave(struct member *self, struct outbox *out)
{
    self->leaving = true;
    if (self->leaves_later) return;
    outbox_mail(out, COORDINATOR, FRAME_LEAVE, &(struct wire_leave){ .instance = self->instance });
}

// The operator ends the process. It ends at once if it is not in the run or the run is finished.
// Otherwise peers may need what it holds: it waits until the coordinator acknowledges LEAVE, or the
// shell's time limit ends it.
static void hear_quit(struct member *self, struct outbox *out)
{
    leave(self, out);
    if (!self->admitted || self->finished) outbox_quit(out, EX_OK, "stopped");
}

static unsigned tick(struct member *self, uint64_t now_ms, struct outbox *out)
{
    if (now_ms < self->tick_ms) {
        outbox_wake(out, self->tick_ms);
        return 0;
    }
    self->tick_ms = now_ms + MEMBER_TICK_MS;
    outbox_wake(out, self->tick_ms);
    member_address_tick(self, now_ms, out);
    if (!self->admitted) {
        if (now_ms >= self->join_ms && !self->leaving && !member_address_holds_back(self, now_ms))
            join(self, now_ms, out);
        return HEARD_TICK;
    }
    if (now_ms >= self->ping_ms && (!self->leaving || self->leaves_later)) ping(self, now_ms, out);
    if (self->leaving) leave(self, out); // Lost, or refused: only we hold the newest step
    if (now_ms >= self->ask_ms) ask_for_missing(self, now_ms, out);
    return HEARD_TICK;
}

// ---- what the coordinator says ------------------------------------------------------------------

bool member_is_coordinator(const struct member *self, const struct msg *in)
{
    return self->admitted && key_equal(&in->sender, &self->coordinator);
}

bool member_is_pending(const struct member *self)
{
    const uint32_t index = roster_find(&self->roster, &self->key);
    return index != NO_MEMBER && self->roster.members[index].state == MEMBER_PENDING;
}

static bool is_other_run(const struct member *self, uint64_t born_unix_ms)
{
    return self->born_unix_ms && born_unix_ms && born_unix_ms != self->born_unix_ms;
}

static void quit_for_other_run(struct outbox *out)
{
    outbox_quit(out, EX_TEMPFAIL, "a new run of this name has begun; restarting to join it");
}

static unsigned hear_admitted(struct member *self, const struct msg *in, struct outbox *out)
{
    const struct wire_admitted *admitted = in->body;
    if (admitted->instance != self->instance || strcmp(in->from, COORDINATOR) != 0) return 0;
    if (in->incarnation < self->incarnation) return 0; // A late frame, perhaps of another run
    // mutant: an impostor admits members
    if (!key_is_none(&self->coordinator) && !key_equal(&self->coordinator, &in->sender)) {
        char hex[KEY_HEX], owner[KEY_HEX];
        outbox_note(
            out,
            "coordinator.impostor key=%.16s is not the owner's, %.16s; ignored. Has the run "
            "a new owner? Then ask for a new ticket",
            key_to_hex(&in->sender, hex), key_to_hex(&self->coordinator, owner));
        return 0;
    }
    bool first = !self->admitted;
    self->coordinator = in->sender;
    if (!member_hear_coordinator(self, in, out)) return 0;
    member_forget_position(self, admitted->born_unix_ms); // The position of another run
    // mutant: another run of the name is taken for the same
    if (is_other_run(self, admitted->born_unix_ms)) {
        quit_for_other_run(out);
        return 0;
    }
    self->admitted = true;
    self->index = admitted->index;
    bool reborn = !first && in->incarnation > self->incarnation;
    if (in->incarnation > self->incarnation) self->incarnation = in->incarnation;
    self->born_unix_ms = admitted->born_unix_ms;
    // Promises made to another run do not bind in this one
    // mutant: what was promised to another run binds in this one
    if (self->journal.born_unix_ms != self->born_unix_ms)
        self->journal = (struct wire_journal){ .born_unix_ms = self->born_unix_ms };
    // A restart follows no other coordinator
    if (!key_equal(&self->journal.owner, &self->coordinator)) {
        self->journal.owner = self->coordinator;
        member_promise(self, out);
    }
    if (self->has_config && !hash_equal(&admitted->config, &self->config.config))
        self->has_config = false;
    ping(self, in->now_ms, out);
    self->has_run = false;
    ask_for_missing(self, in->now_ms, out);
    outbox_note(out, "member.admitted index=%u state=%s", self->index,
                wire_enum_name(&wire_enum_member_state, admitted->state));
    return HEARD_ADMITTED | (reborn ? HEARD_REBORN : 0);
}

static unsigned hear_config(struct member *self, const struct msg *in)
{
    const struct wire_config *config = in->body;
    ensure(config->model.count <= MODEL_JSON_MAX);
    self->config = *config;
    if (config->model.count) memcpy(self->model_json, config->model.data, config->model.count);
    self->config.model.data = self->model_json;
    self->config.strategy =
        wire_part_copy(&config->strategy, self->strategy, sizeof self->strategy);
    bool fresh = !self->has_config;
    self->has_config = true;
    return fresh ? HEARD_CONFIG : 0;
}

// Phases that make steps alternate too fast for the log, so together they count as one stage.
static bool is_same_stage(uint8_t phase, uint8_t other)
{
    return phase == other || (phase_makes_steps(phase) && phase_makes_steps(other));
}

static unsigned hear_run(struct member *self, const struct msg *in, struct outbox *out)
{
    const struct wire_run *run = in->body;
    if (self->has_run && run->log_seq < self->now.log_seq) return 0; // Older than the known one
    if (!self->has_run || !is_same_stage(run->phase, self->now.phase))
        outbox_note(out, "run.phase phase=%s epoch=%" PRIu64 " step=%" PRIu64,
                    wire_enum_name(&wire_enum_phase, run->phase), run->epoch, run->step);
    self->now = *run;
    self->has_run = true;
    if (run->roster_version > self->roster.version) ask(self, TOPIC_ROSTER, 0, out);
    return HEARD_RUN;
}

static unsigned hear_roster(struct member *self, const struct msg *in)
{
    const struct wire_roster *roster = in->body;
    if (roster->version <= self->roster.version && in->incarnation == self->roster_incarnation)
        return 0;
    if (!roster_load(&self->roster, roster->version, roster->members, roster->members_count))
        return 0;
    self->roster_incarnation = in->incarnation;
    return HEARD_ROSTER;
}

// The whole roster is asked for after a gap, and when MEMBERS is from another coordinator process
// than our ROSTER: a new process may have lost its ledger and then counts versions from the
// beginning again.
static unsigned hear_members(struct member *self, const struct msg *in, struct outbox *out)
{
    const struct wire_members *change = in->body;
    // mutant: roster: a change is of whatever run
    const bool is_its = in->incarnation == self->roster_incarnation;
    if (is_its && roster_change(&self->roster, change)) return HEARD_ROSTER;
    if (!is_its || change->version > self->roster.version) ask(self, TOPIC_ROSTER, 0, out);
    return 0;
}

// A BEAT names the newest RUN, round and roster. A member that lacks one of them asks for it. It also names the run: an
// ADMITTED of another one may have come, and have been ignored, before its coordinator had proved itself.
static unsigned hear_beat(struct member *self, const struct msg *in, struct outbox *out)
{
    const struct wire_beat *beat = in->body;
    // mutant: a member stays in a run whose ledger is lost, and takes part in the next
    if (is_other_run(self, beat->born_unix_ms)) {
        quit_for_other_run(out);
        return 0;
    }
    if (beat->log_seq > self->now.log_seq &&
        (beat->phase != self->now.phase || beat->round != self->round ||
         beat->step != self->now.step))
        ask(self, TOPIC_RUN, 0, out);
    else if (beat->round > self->round && phase_makes_steps(beat->phase))
        ask(self, TOPIC_RUN, 0, out); // RUN arrived, but a frame of the pace was lost
    if (beat->roster_version > self->roster.version) ask(self, TOPIC_ROSTER, 0, out);
    return 0;
}

static unsigned hear_refused(struct member *self, const struct msg *in, struct outbox *out)
{
    const struct wire_refused *refused = in->body;
    // Once the key is known, it decides: another actor may have taken the name meanwhile.
    // mutant: an impostor sends members away
    if (!key_is_none(&self->coordinator) && !key_equal(&in->sender, &self->coordinator)) return 0;
    // A late refusal that was meant for our previous process, which this one has replaced.
    // mutant: a late word of the old process ends the new one
    if (refused->reason == REFUSAL_REPLACED && refused->round != self->instance) return 0;
    if (refused->kind == FRAME_REACH && refused->reason != REFUSAL_WRONG_RUN) {
        member_address_hear_refusal(self, refused, in->now_ms, out);
        return 0;
    }
    switch (refused->reason) {
    case REFUSAL_NOT_MEMBER:
        if (self->admitted && !self->leaving) {
            outbox_note(out, "member.lapsed %s; joining again", refused->text);
            self->admitted = false;
            self->join_ms = 0;
            member_address_again(self, in->now_ms);
        }
        return 0;
    case REFUSAL_NOT_NOW:
        if (refused->kind == FRAME_JOIN && in->now_ms >= self->said_ms) {
            outbox_note(out, "member.waits %s", refused->text);
            self->said_ms = in->now_ms + MEMBER_SAYS_MS;
        }
        return HEARD_REFUSED;
    case REFUSAL_MALFORMED:
        if (refused->kind != FRAME_JOIN) return HEARD_REFUSED;
        // fallthrough
    case REFUSAL_WRONG_RUN:
    case REFUSAL_WRONG_ROLE:
    case REFUSAL_WRONG_DATA:
    case REFUSAL_REPLACED:
    case REFUSAL_EJECTED:
        outbox_quit(out,
                    refused->reason == REFUSAL_REPLACED || refused->reason == REFUSAL_EJECTED
                        ? EX_NOPERM
                        : EX_CONFIG,
                    "the coordinator refuses %s (%s): %s", wire_kind_name(refused->kind),
                    wire_enum_name(&wire_enum_refusal, refused->reason), refused->text);
        return 0;
    default: return HEARD_REFUSED;
    }
}

// Before the first admission the key is not known yet, but the name is the coordinator's.
static unsigned hear_reached(struct member *self, const struct msg *in, struct outbox *out)
{
    if (!key_is_none(&self->coordinator) && !key_equal(&in->sender, &self->coordinator)) return 0;
    if (strcmp(in->from, COORDINATOR) != 0 ||
        !member_address_hear_ack(self, in->body, in->now_ms, out))
        return 0;
    self->tick_ms = in->now_ms; // Join now
    return tick(self, in->now_ms, out);
}

// An ACK of a LEAVE that this process has not sent was for an earlier process of its key.
static unsigned hear_ack(const struct member *self, const struct msg *in, struct outbox *out)
{
    const struct wire_ack *ack = in->body;
    if (ack->kind == FRAME_LEAVE && self->leaving) outbox_quit(out, EX_OK, "left the run");
    return HEARD_ACK;
}

unsigned member_hear(struct member *self, const struct msg *in, struct outbox *out)
{
    switch (in->kind) {
    case FRAME_JOURNAL: member_recall(self, in->body); return 0;
    case FRAME_QUIT: hear_quit(self, out); return 0;
    case FRAME_START:
        self->instance = ((const struct wire_start *)in->body)->instance;
        self->tick_ms = in->now_ms;
        member_address_begin(self, in->now_ms);
        return tick(self, in->now_ms, out);
    case FRAME_WAKE: return tick(self, in->now_ms, out);
    case FRAME_WELCOME: // A new or restarted broker: send all again at once
        self->tick_ms = self->join_ms = self->ping_ms = self->ask_ms = in->now_ms;
        member_address_begin(self, in->now_ms);
        return tick(self, in->now_ms, out);
    case FRAME_ADMITTED: return hear_admitted(self, in, out);
    }
    if (in->kind == FRAME_REFUSED && strcmp(in->from, COORDINATOR) == 0)
        return hear_refused(self, in, out);
    if (in->kind == FRAME_ACK && ((const struct wire_ack *)in->body)->kind == FRAME_POSITION) {
        member_hear_proof(self, in);
        return 0;
    }
    if (in->kind == FRAME_ACK && ((const struct wire_ack *)in->body)->kind == FRAME_REACH)
        return hear_reached(self, in, out);
    if (!member_is_coordinator(self, in)) return 0;
    // mutant: an older incarnation of the coordinator is heard
    if (!member_hear_coordinator(self, in, out) || in->incarnation < self->incarnation) return 0;
    unsigned reborn = in->incarnation > self->incarnation ? HEARD_REBORN : 0;
    self->incarnation = in->incarnation;
    switch (in->kind) {
    case FRAME_CONFIG: return reborn | hear_config(self, in);
    case FRAME_RUN: return reborn | hear_run(self, in, out);
    case FRAME_ROSTER: return reborn | hear_roster(self, in);
    case FRAME_MEMBERS: return reborn | hear_members(self, in, out);
    case FRAME_BEAT: return reborn | hear_beat(self, in, out);
    case FRAME_EPOCH_END: return reborn | HEARD_EPOCH_END;
    case FRAME_ACK: return reborn | hear_ack(self, in, out);
    default: return reborn | HEARD_PACE;
    }
}

// ---- looking things up --------------------------------------------------------------------------

const struct wire_member *member_at(const struct member *self, uint32_t index)
{
    return index < self->roster.count ? &self->roster.members[index] : NULL;
}
