// coordinator -- passes each message to one part, then settles.
//
// 1. coordinator_step refuses a message for another run. START and WAKE are handled here.
// 2. The pace sees each other message first and takes those that are its own (hear). The rest goes
//    to members, epoch or news, by kind.
// 3. epoch_settle decides the next phase, and news_settle tells what has changed, until no phase
//    changes.
// 4. The alarm is set to the earliest instant at which something is due.

#include "actors/coordinator/coordinator.h"
#include "actors/coordinator/members.h"
#include "actors/coordinator/news.h"
#include "common/base/ensure.h"
#include "common/pace/turn.h"
#include <string.h>

void coordinator_init(struct coordinator *self, const struct rules *rules)
{
    self->rules = *rules;
    self->pace = pace_of(rules);
    ensure(self->pace && self->pace->live_bytes <= sizeof self->live);
    run_init(&self->run, &self->pace->run, rules->snapshot_rounds);
}

static void begin_run(const struct turn *turn)
{
    const struct rules *rules = turn->rules;
    struct wire_record_genesis genesis = {
        .config = rules->config,
        .seed = rules->run_seed,
        .digest = rules->genesis_digest,
        .epoch = rules->first_epoch,
        .step = rules->first_step,
        .cursor = rules->first_position,
    };
    memcpy(genesis.run, rules->run_id, sizeof genesis.run);
    turn_put(turn, FRAME_RECORD_GENESIS, &genesis);
    if (!rules->start_paused) return;
    struct wire_record_phase paused = { .phase = PHASE_PAUSED,
                                        .epoch = rules->first_epoch,
                                        .cold_start = true,
                                        .source = SOURCE_HUB,
                                        .epoch_start_step = rules->first_step,
                                        .cause = "run_state = \"Paused\"" };
    turn_put(turn, FRAME_RECORD_PHASE, &paused);
}

// The first message of a life: the ledger has been replayed. Deadlines are set again, because the
// old ones belong to another clock, and every member gets a full lease. If a crash stopped a
// transition half-way, epoch_settle finishes it at the end of this turn.
static void start(struct coordinator *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_start *start = in->body;
    if (self->run.log_seq == 0) begin_run(turn);
    turn_put(turn, FRAME_RECORD_START,
             &(struct wire_record_start){ .incarnation = start->incarnation,
                                          .unix_ms = start->unix_ms });
    self->started = true;
    for (uint32_t i = 0; i < self->run.roster.count; i++) self->presence.heard_ms[i] = turn->now_ms;
    self->presence.epoch_began_ms =
        turn->now_ms - self->run.epoch_elapsed_ms; // May be before this boot: modulo 2^64
    turn_arm(turn);
    self->beat_ms = turn->now_ms + self->rules.heartbeat_ms;
    if (self->pace->resume) self->pace->resume(self->live, turn);
}

// This process itself was held up: what members said meanwhile lies unread. A phase whose time ran out meanwhile
// goes on until the next beat, and no lease is checked before it.
static bool was_held_up(const struct coordinator *self, const struct turn *turn)
{
    return turn->now_ms > self->beat_ms + self->rules.heartbeat_ms;
}

static void wake(struct coordinator *self, const struct turn *turn)
{
    const struct presence *presence = &self->presence;
    self->news.roster_delay_over = presence->roster_changed && turn->now_ms >= presence->roster_ms;
    if (turn->now_ms < self->beat_ms) return;
    const bool held_up = was_held_up(self, turn);
    self->beat_ms = turn->now_ms + self->rules.heartbeat_ms;
    if (!held_up) members_check_leases(turn);
    self->news.beat_due = true;
}

// A joiner may be a new process, or may take the index of another member. So the other parts forget
// what they know of that index.
static void hear_join(struct coordinator *self, const struct turn *turn, const struct msg *in)
{
    uint32_t member;
    const enum arrival arrival = members_hear_join(turn, &self->epoch.holdings, in, &member);
    if (arrival == ARRIVAL_NONE) return;
    epoch_hear_arrival(&self->epoch, member, arrival == ARRIVAL_NEW_KEY);
    if (arrival != ARRIVAL_STAYS && self->pace->hear_arrival)
        self->pace->hear_arrival(self->live, member, arrival == ARRIVAL_NEW_KEY);
}

// disk_shell.c compares the position with the ledger, and ends the process if the ledger does not
// contain it. The acknowledgement stands later in the outbox: a member that receives it knows that
// the comparison succeeded.
static void hear_position(const struct turn *turn, const struct msg *in)
{
    const struct wire_position *said = in->body;
    if (turn_member(turn, in) == NO_MEMBER) return;
    // mutant: what members saw is not held against the ledger
    outbox_job(turn->out, PORT_DISK, FRAME_POSITION, said);
    // mutant: a position is not answered
    turn_ack(turn, in, said->log_seq, &said->chain);
}

// What everybody is told that the run lacks: what it waits for, or what the newest step has missed.
static const char *what_lacks(const struct coordinator *self, const struct turn *turn,
                              char text[EPOCH_LACKS_MAX])
{
    const uint8_t phase = turn->run->phase;
    const bool rests = phase == PHASE_PAUSED || phase == PHASE_FINISHED;
    epoch_lacks(&self->epoch, turn, text);
    const char *missed =
        text[0] || rests || !self->pace->missed ? NULL : self->pace->missed(self->live);
    return missed ? missed : text;
}

static void hear(struct coordinator *self, const struct turn *turn, const struct msg *in)
{
    if (self->pace->hear && self->pace->hear(self->live, turn, in)) return;
    char lacks[EPOCH_LACKS_MAX];
    switch (in->kind) {
    case FRAME_JOIN: hear_join(self, turn, in); break;
    case FRAME_PING: members_hear_ping(turn, in); break;
    case FRAME_LEAVE: members_hear_leave(turn, in); break;
    case FRAME_ASK: news_hear_ask(turn, in, what_lacks(self, turn, lacks)); break;
    case FRAME_HOLDS: epoch_hear_holds(&self->epoch, turn, in); break;
    case FRAME_UNREAD: unread_hear(&self->epoch.unread, turn, in); break;
    case FRAME_CHECKPOINT: epoch_hear_checkpoint(turn, in); break;
    case FRAME_POSITION: hear_position(turn, in); break;
    case FRAME_CONTROL: epoch_hear_control(&self->epoch, turn, in); break;
    case FRAME_WELCOME: self->news.told = false; break; // A broker that restarted has lost the news
    case FRAME_REFUSED:
    case FRAME_UNDELIVERABLE: break; // A refusal is never refused
    default:
        turn_refuse(turn, in, REFUSAL_NOT_ALLOWED, 0, "a coordinator does not accept %s; ignored",
                    wire_kind_name(in->kind));
    }
}

void coordinator_step(void *state, const struct msg *in, struct outbox *out)
{
    struct coordinator *self = state;
    struct presence *presence = &self->presence;
    const struct turn turn = { .run = &self->run,
                               .pace = self->pace,
                               .live = self->live,
                               .rules = &self->rules,
                               .presence = presence,
                               .lists = &self->lists,
                               .out = out,
                               .now_ms = in->now_ms };
    if (self->started && was_held_up(self, &turn) && presence->deadline_ms <= turn.now_ms)
        presence->deadline_ms = turn.now_ms + self->rules.heartbeat_ms;
    if (in->kind == FRAME_START) start(self, &turn, in);
    else if (!self->started) return;
    else if (in->kind == FRAME_WAKE) wake(self, &turn);
    else if (in->from[0] && in->run[0] && strcmp(in->run, self->rules.run_id) != 0) {
        turn_refuse(&turn, in, REFUSAL_WRONG_RUN, 0,
                    "this coordinator keeps run \"%s\", not \"%s\"; "
                    "check --run-id, or ask the run's owner for a ticket",
                    self->rules.run_id, in->run);
        return;
    } else hear(self, &turn, in);
    uint8_t phase;
    char lacks[EPOCH_LACKS_MAX];
    do { // One decision may allow the next, as a commit the next step. Each phase is told, except a RoundWitness
        // that is over at once: no member has work in it, and each message costs all members
        phase = self->run.phase;
        epoch_settle(&self->epoch, self->live, &turn);
        if (phase == self->run.phase || self->run.phase != PHASE_WITNESS)
            news_settle(&self->news, &turn, what_lacks(self, &turn, lacks));
    } while (phase != self->run.phase);
    uint64_t next_ms = self->beat_ms;
    // After a deadline that passed without effect, only a message can change something.
    // mutant: the clock is asked for a deadline that has passed
    if (presence->deadline_ms > turn.now_ms && presence->deadline_ms < next_ms)
        next_ms = presence->deadline_ms;
    const uint64_t due_ms = self->pace->due_ms ? self->pace->due_ms(self->live, &turn) : 0;
    if (due_ms > turn.now_ms && due_ms < next_ms) next_ms = due_ms;
    if (presence->roster_changed && presence->roster_ms < next_ms) next_ms = presence->roster_ms;
    outbox_wake(out, next_ms);
}
