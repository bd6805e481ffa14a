// closing -- first who is dead, then the attempts, then what is said of it.

#include "common/pace/leases/closing.h"
#include "common/pace/leases/muster.h"
#include "common/pace/leases/saving.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct leases_run *own(const struct turn *turn) { return leases_run_of(turn->run); }

static const struct wire_group *group_of(const struct turn *turn) { return &own(turn)->group; }

static const char *name_of(const struct turn *turn, uint32_t place)
{
    return turn->run->roster.members[group_of(turn)->group[place].member].name;
}

static uint64_t owners(const struct turn *turn)
{
    return leases_group_owners(group_of(turn), leases_config(turn->rules));
}

void closing_list(const struct run *run, uint64_t places, char *text, size_t max)
{
    const struct wire_group *group = &leases_run_of(run)->group;
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < group->group_count && used < max; i++) {
        if (!(places & leases_bit(i))) continue;
        const int more = snprintf(text + used, max - used, "%s%s", used ? ", " : "",
                                  run->roster.members[group->group[i].member].name);
        used += more > 0 ? (size_t)more : 0;
    }
}

// ---- who lives ----------------------------------------------------------------------------------

// Places of the open group that a member of it calls dead, as bits.
static uint64_t called_dead(const struct lease_pace *self, const struct turn *turn)
{
    const struct wire_group *group = group_of(turn);
    uint64_t dead = 0;
    for (uint32_t i = 0; i < group->group_count; i++) {
        const struct busy *busy = leases_busy(self, &group->group[i]);
        if (busy && busy->number == group->number && leases_is_intact(turn->run, &group->group[i]))
            dead |= busy->dead & ~leases_bit(i);
    }
    return dead & leases_group_all(group);
}

// It has been silent since others said so. Else it lives, and has as long again.
static bool has_been_silent(struct lease_pace *self, const struct turn *turn, uint32_t place)
{
    const uint64_t since_ms = self->blamed_ms[place];
    const uint64_t time_ms = LEASES_BLAME_BEATS * (uint64_t)turn->rules->heartbeat_ms;
    if (turn->now_ms - since_ms < time_ms) return false;
    self->blamed_ms[place] = turn->now_ms;
    // mutant: leases: who is called dead and lives is dropped
    return turn->presence->heard_ms[group_of(turn)->group[place].member] <= since_ms;
}

void closing_watch(struct lease_pace *self, const struct turn *turn)
{
    const uint64_t dead = called_dead(self, turn);
    for (uint32_t i = 0; i < group_of(turn)->group_count; i++) {
        const struct wire_place *at = &group_of(turn)->group[i];
        if (!(dead & leases_bit(i)) || !leases_is_intact(turn->run, at)) self->blamed_ms[i] = 0;
        else if (!self->blamed_ms[i]) self->blamed_ms[i] = turn->now_ms;
        else if (has_been_silent(self, turn, i)) {
            outbox_note(turn->out, "member.left_out name=%s because=\"others call it dead\"",
                        name_of(turn, i));
            turn_set_state(turn, at->member, MEMBER_DROPPED);
        }
    }
}

// Members of the newest attempt that have not answered it, or could not finish it.
static uint64_t unsettled(const struct lease_pace *self, const struct turn *turn)
{
    uint64_t places = own(turn)->closing.members;
    for (uint32_t i = 0; i < group_of(turn)->group_count; i++)
        if (self->settling[i].known && self->settling[i].ok) places &= ~leases_bit(i);
    return places;
}

static bool is_time_over(const struct lease_pace *self, const struct turn *turn)
{
    return self->attempt > 0 && self->attempt == own(turn)->closing.attempt &&
           turn->now_ms >= self->settle_by_ms;
}

// What is wrong with the server in this place; NULL: nothing.
static const char *fault_of(const struct lease_pace *self, const struct turn *turn, uint32_t place)
{
    const struct wire_place *at = &group_of(turn)->group[place];
    // mutant: leases: a group goes on without one of its servers
    if (!leases_is_intact(turn->run, at)) return "is gone with its share of the state";
    if (!leases_is_able(self, turn->run, place)) return leases_why_unable(self, at);
    // A server cannot finish it as long as a trainer has not come to it: that one is left out first (leave_out)
    const bool lacks_trainer = unsettled(self, turn) & ~owners(turn);
    // mutant: leases: a server is blamed for a trainer that does not come
    if (is_time_over(self, turn) && !lacks_trainer && unsettled(self, turn) & leases_bit(place))
        return self->settling[place].known ? self->settling[place].because
                                           : "did not put the state together in time";
    return NULL;
}

const char *closing_lost(struct lease_pace *self, const struct turn *turn)
{
    const uint32_t servers = leases_config(turn->rules)->servers;
    const uint32_t first = leases_group_servers(group_of(turn), leases_config(turn->rules));
    for (uint32_t i = first; i < group_of(turn)->group_count; i++) {
        const char *fault = fault_of(self, turn, i);
        if (!fault) continue;
        snprintf(self->cause, sizeof self->cause, "parameter server %u of %u, %s, %.45s",
                 i - first + 1, servers, name_of(turn, i), fault);
        return self->cause;
    }
    return NULL;
}

// ---- the attempts -------------------------------------------------------------------------------

void closing_hear(struct lease_pace *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_settled *said = in->body;
    const struct wire_close_group *closing = &own(turn)->closing;
    const uint32_t member = leases_sender(turn, in, said->instance);
    if (member == NO_MEMBER) return;
    const uint32_t place = leases_group_place(group_of(turn), member, said->instance);
    // mutant: leases: an answer to an earlier attempt counts
    if (!own(turn)->is_open || place == NO_MEMBER || said->number != closing->number ||
        said->attempt != closing->attempt || said->step != closing->step)
        return;
    struct settling *settling = &self->settling[place];
    *settling = (struct settling){ .known = true,
                                   .ok = said->ok && !hash_is_none(&said->digest),
                                   .digest = said->digest };
    leases_take_words(settling->because,
                      said->because[0] ? said->because : "could not put the state together");
}

static void tell_attempt(struct lease_pace *self, const struct turn *turn, uint64_t places)
{
    self->tell_ms = turn->now_ms + turn->rules->heartbeat_ms;
    leases_mail(turn, places, FRAME_CLOSE_GROUP, &own(turn)->closing);
}

// An attempt that is on record is told, for the first time in this life.
static void begin_attempt(struct lease_pace *self, const struct turn *turn)
{
    const struct wire_close_group *closing = &own(turn)->closing;
    self->attempt = closing->attempt;
    self->attempt_ms = turn->now_ms;
    memset(self->settling, 0, sizeof self->settling);
    tell_attempt(self, turn, closing->members);
}

// What the group puts together; also in a later attempt.
static bool is_saved(const struct turn *turn)
{
    const struct wire_close_group *before = &own(turn)->closing;
    // mutant: saves: the last state of a run is not saved
    return before->attempt > 0 ? before->save : saving_is_in_pieces(turn) && saving_is_due(turn);
}

static void put_attempt(struct lease_pace *self, const struct turn *turn, uint64_t members)
{
    const struct leases_run *run = own(turn);
    const struct wire_close_group closing = { .number = run->group.number,
                                              .attempt = run->closing.attempt + 1,
                                              .step = turn->run->step,
                                              .members = members,
                                              .save = is_saved(turn) };
    // mutant: leases: a group is closed before that is stored
    turn_put(turn, FRAME_RECORD_CLOSE, &closing);
    begin_attempt(self, turn);
}

static void renew_time(struct lease_pace *self, const struct turn *turn)
{
    self->settle_by_ms = turn->now_ms + leases_config(turn->rules)->settle_ms;
}

// The places whose digest is not that of most; of two as large, the first one stays.
static uint64_t outsiders(const struct lease_pace *self, uint64_t members)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < LEASES_GROUP_MAX; i++) {
        uint64_t same = 0;
        for (uint32_t j = 0; j < LEASES_GROUP_MAX && members & leases_bit(i); j++)
            if (members & leases_bit(j) &&
                hash_equal(&self->settling[i].digest, &self->settling[j].digest))
                same |= leases_bit(j);
        if (__builtin_popcountll(same) > __builtin_popcountll(most)) most = same;
    }
    return members & ~most;
}

// The digests of all are known. If they differ, nobody can tell who is right: the owner decides.
static void put_settled(const struct lease_pace *self, const struct turn *turn)
{
    const struct wire_close_group *closing = &own(turn)->closing;
    const uint64_t differ = outsiders(self, closing->members);
    char some[128], others[128];
    // mutant: leases: a run whose members hold different states goes on
    if (differ && !turn->run->pausing)
        turn_put(turn, FRAME_RECORD_PAUSE, &(struct wire_record_pause){ true });
    turn_put(turn, FRAME_RECORD_SETTLED,
             &(struct wire_group_settled){ closing->number, closing->attempt, differ });
    if (!differ) return;
    closing_list(turn->run, differ, some, sizeof some);
    closing_list(turn->run, closing->members & ~differ, others, sizeof others);
    outbox_note(turn->out, "state.differs step=%" PRIu64 " of=\"%s\" from=\"%s\"; the run pauses",
                closing->step, some, others);
}

static bool all_have_answered(const struct lease_pace *self, const struct turn *turn)
{
    for (uint32_t i = 0; i < group_of(turn)->group_count; i++)
        if (own(turn)->closing.members & leases_bit(i) && !self->settling[i].known) return false;
    return true;
}

// Those that had their time and did not come to it. Servers among them are lost (closing_lost).
static void leave_out(struct lease_pace *self, const struct turn *turn, uint64_t places)
{
    char text[128];
    closing_list(turn->run, places, text, sizeof text);
    outbox_note(turn->out,
                "group.left_out names=\"%s\" because=\"the state was not put together in time\"; "
                "the next epoch begins with them",
                text);
    renew_time(self, turn);
    muster_barrier_again(self, turn);
    put_attempt(self, turn, own(turn)->closing.members & ~places);
}

bool closing_settle(struct lease_pace *self, const struct turn *turn)
{
    const struct wire_close_group *closing = &own(turn)->closing;
    const uint64_t able = leases_able(self, turn->run);
    if (closing->attempt == 0) {
        renew_time(self, turn);
        put_attempt(self, turn, able);
        return false;
    }
    if (self->attempt != closing->attempt) { // The coordinator has restarted
        renew_time(self, turn);
        begin_attempt(self, turn);
    }
    const uint64_t waits = unsettled(self, turn);
    if (!waits) { // One that has died since has done its part
        put_settled(self, turn);
        return true;
    }
    // mutant: leases: a trainer that died is waited for when the group is closed
    if (waits & ~able) {
        renew_time(self, turn);
        put_attempt(self, turn, closing->members & able);
    } else if (is_time_over(self, turn)) leave_out(self, turn, waits & ~owners(turn));
    else if (all_have_answered(self, turn) &&
             turn->now_ms - self->attempt_ms >= turn->rules->heartbeat_ms)
        put_attempt(self, turn, closing->members);
    else if (turn->now_ms >= self->tell_ms) tell_attempt(self, turn, waits);
    return false;
}

bool closing_has_settled(const struct lease_pace *self, const struct turn *turn, uint32_t member,
                         uint64_t instance)
{
    const struct wire_close_group *closing = &own(turn)->closing;
    const uint32_t place = leases_group_place(group_of(turn), member, instance);
    return closing->attempt > 0 && self->attempt == closing->attempt &&
           closing->step == turn->run->step && place != NO_MEMBER && self->settling[place].ok;
}

// ---- what is said -------------------------------------------------------------------------------

void closing_tell(const struct turn *turn, const char *to)
{
    const struct wire_close_group *closing = &own(turn)->closing;
    if (!own(turn)->is_open || closing->attempt == 0) return;
    for (uint32_t i = 0; i < group_of(turn)->group_count; i++)
        if (closing->members & leases_bit(i) && actor_name_is_same(name_of(turn, i), to))
            outbox_mail(turn->out, to, FRAME_CLOSE_GROUP, closing);
}

const char *closing_lacks(struct lease_pace *self, const struct turn *turn)
{
    char names[128];
    if (!own(turn)->is_open || own(turn)->closing.attempt == 0 || own(turn)->settled) return NULL;
    closing_list(turn->run, unsettled(self, turn), names, sizeof names);
    snprintf(self->lacks, sizeof self->lacks,
             "waiting for %s to put the state of step %" PRIu64 " together", names,
             turn->run->step);
    return self->lacks;
}

uint64_t closing_due_ms(const struct lease_pace *self, const struct turn *turn)
{
    const uint64_t time_ms = LEASES_BLAME_BEATS * (uint64_t)turn->rules->heartbeat_ms;
    uint64_t due_ms = 0;
    for (uint32_t i = 0; i < group_of(turn)->group_count; i++)
        if (self->blamed_ms[i]) due_ms = leases_earlier(self->blamed_ms[i] + time_ms, due_ms);
    if (!own(turn)->is_open || own(turn)->closing.attempt == 0) return due_ms;
    due_ms = leases_earlier(self->tell_ms, due_ms);
    return leases_earlier(self->settle_by_ms, due_ms);
}
