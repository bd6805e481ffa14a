// dealing -- first how leases end, because a lease that ends makes a task of somebody else's; then how they are
// dealt.

#include "common/pace/leases/dealing.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct leases *leases_of(const struct turn *turn)
{
    return &leases_run_of(turn->run)->leases;
}

static const struct wire_group *group_of(const struct turn *turn)
{
    return &leases_run_of(turn->run)->group;
}

static const char *name_of(const struct turn *turn, uint32_t member)
{
    return turn->run->roster.members[member].name;
}

static uint32_t rate_bits(const struct turn *turn, uint64_t step)
{
    const float rate = schedule_rate(&turn->rules->lr, (uint32_t)step, NULL);
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    return bits;
}

// The samples that are pending under a lease; with 0, under all.
static uint64_t samples_out(const struct run *run, uint64_t number)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < run->table.count; i++) {
        const struct wire_table_entry *entry = &run->table.entries[i];
        if (entry->state == TABLE_PENDING && (number == 0 || entry->number == number))
            samples += entry->end - entry->begin;
    }
    return samples;
}

static struct leases_way way_on(const struct turn *turn, uint64_t samples, uint64_t last)
{
    const struct run *run = turn->run;
    const struct leases_way way = { run->step, run->samples_done, leases_run_of(run)->rest };
    return leases_way_on(way, samples, last, leases_config(turn->rules), turn->rules->seq_len);
}

// ---- how leases end -----------------------------------------------------------------------------

static const char *const causes[LEASE_CAUSE_COUNT] = {
    [LEASE_CAUSE_FINISHED] = "it is trained",          [LEASE_CAUSE_FAILED] = "it failed",
    [LEASE_CAUSE_LATE] = "its time is over",           [LEASE_CAUSE_DEAD] = "its trainer is gone",
    [LEASE_CAUSE_NO_DATA] = "nobody gave its samples",
};

static void note_end(const struct turn *turn, const struct wire_lease_ended *ended,
                     const struct lease *lease, const char *because)
{
    if (ended->fate == FATE_DONE) return;
    outbox_note(turn->out, "task.%s lease=%" PRIu64 " task=%" PRIu64 " by=%s because=\"%s\"; %s",
                ended->fate == FATE_RETURNED ? "returned" : "given_up", lease->number, lease->task,
                name_of(turn, lease->member), because,
                ended->fate == FATE_RETURNED ? "it is dealt again"
                                             : "not dealt again before the next pass");
}

// `lease` is gone when it returns.
static void end_lease(const struct turn *turn, const struct lease *out, uint8_t cause,
                      const char *because)
{
    const struct lease lease = *out;
    const struct lease_rules rules = leases_rules_of(leases_config(turn->rules));
    const bool done = cause == LEASE_CAUSE_FINISHED;
    const uint8_t fate = done ? FATE_DONE
                         : cause == LEASE_CAUSE_NO_DATA
                             ? FATE_RETURNED
                             : (uint8_t)leases_outcome(leases_of(turn), &rules, &lease);
    const uint64_t samples = done ? samples_out(turn->run, lease.number) : 0;
    const struct leases_way way = way_on(turn, samples, turn->rules->total_steps);
    struct wire_lease_ended ended = {
        .lease = lease.number,
        .fate = fate,
        .cause = cause,
        .samples = samples,
        .step = turn->run->step,
        .end = way.step,
        .rest = way.rest,
        .lr_bits = way.step > turn->run->step ? rate_bits(turn, way.step) : 0,
        .took_ms = turn->now_ms - lease.since_ms,
    };
    turn_put(turn, FRAME_RECORD_LEASE_END, &ended);
    note_end(turn, &ended, &lease, because);
}

void dealing_step(const struct turn *turn)
{
    const uint64_t step = turn->run->step;
    turn_put(turn, FRAME_RECORD_LEASE_END,
             &(struct wire_lease_ended){ .fate = FATE_DONE,
                                         .cause = LEASE_CAUSE_CLOSED,
                                         .step = step,
                                         .end = step + 1,
                                         .lr_bits = rate_bits(turn, step + 1) });
}

static bool holder_is_able(const struct lease_pace *self, const struct turn *turn,
                           const struct lease *lease)
{
    const uint32_t place = leases_group_place(group_of(turn), lease->member, lease->instance);
    return place != NO_MEMBER && leases_is_able(self, turn->run, place);
}

static const struct lease *first_dead(const struct lease_pace *self, const struct turn *turn)
{
    const struct leases *leases = leases_of(turn);
    for (uint32_t i = 0; i < leases->count; i++)
        if (!holder_is_able(self, turn, &leases->leases[i])) return &leases->leases[i];
    return NULL;
}

// A trainer that is there and cannot go on has said why.
static void end_dead(const struct lease_pace *self, const struct turn *turn,
                     const struct lease *lease)
{
    const struct wire_place at = { .member = lease->member, .instance = lease->instance };
    if (leases_is_intact(turn->run, &at))
        end_lease(turn, lease, LEASE_CAUSE_FAILED, leases_why_unable(self, &at));
    else end_lease(turn, lease, LEASE_CAUSE_DEAD, causes[LEASE_CAUSE_DEAD]);
}

void dealing_return(struct lease_pace *self, const struct turn *turn)
{
    const struct lease *lease;
    // mutant: leases: the task of a dead trainer is waited for until its time is over
    while ((lease = first_dead(self, turn))) end_dead(self, turn, lease);
    // mutant: leases: a task may take as long as it likes
    while ((lease = leases_late(leases_of(turn), turn->now_ms)))
        end_lease(turn, lease, LEASE_CAUSE_LATE, causes[LEASE_CAUSE_LATE]);
}

// What its own words say of how well it is.
static void count_failures(struct lease_pace *self, const struct turn *turn, uint32_t member,
                           bool done)
{
    const uint64_t instance = turn->run->roster.members[member].instance;
    if (done || self->failing[member] != instance) self->failures[member] = 0;
    self->failing[member] = instance;
    if (done || self->failures[member] == LEASES_FAILURES) return;
    if (++self->failures[member] == LEASES_FAILURES)
        outbox_note(turn->out,
                    "trainer.unwell name=%s failures=%d; it gets no task until it is started again",
                    name_of(turn, member), LEASES_FAILURES);
}

void dealing_hear_end(struct lease_pace *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_task_end *said = in->body;
    const uint32_t member = leases_sender(turn, in, said->instance);
    if (member == NO_MEMBER) return;
    const uint32_t place = leases_group_place(group_of(turn), member, said->instance);
    const struct lease *lease = leases_find(leases_of(turn), said->lease, member, said->instance);
    if (!lease) {
        const bool again = place != NO_MEMBER && self->ended[place] == said->lease;
        if (again) turn_ack(turn, in, said->lease, NULL); // Our answer was lost
        else
            turn_refuse(turn, in, REFUSAL_STALE, said->lease,
                        "lease %" PRIu64
                        " is over: how it ended is on record, and this changes nothing",
                        said->lease);
        return;
    }
    // mutant: leases: a task that is trained in part is done
    const bool done = said->done && said->samples == samples_out(turn->run, said->lease);
    char because[128];
    // mutant: leases: a task whose samples nobody gave has failed
    const uint8_t cause = done            ? LEASE_CAUSE_FINISHED
                          : said->no_data ? LEASE_CAUSE_NO_DATA
                                          : LEASE_CAUSE_FAILED;
    leases_take_words(because, said->because[0] ? said->because : causes[cause]);
    self->ended[place] = said->lease;
    if (cause != LEASE_CAUSE_NO_DATA) count_failures(self, turn, member, done);
    // It is to try again, but not at once, or each try would be two records
    // mutant: leases: who lacks samples gets task after task
    self->starved_ms[place] =
        cause == LEASE_CAUSE_NO_DATA ? turn->now_ms + turn->rules->heartbeat_ms : 0;
    // mutant: leases: an end is acknowledged before it is stored
    end_lease(turn, lease, cause, because);
    turn_ack(turn, in, said->lease, NULL);
}

// ---- how they are dealt -------------------------------------------------------------------------

// The step behind which this epoch has none.
static uint64_t last_step(const struct turn *turn)
{
    const uint64_t total = turn->rules->total_steps, rounds = turn->rules->epoch_rounds;
    const uint64_t end = turn->run->epoch_start_step + rounds;
    return rounds && end < total ? end : total;
}

// What is out has all samples of the steps that are left, unless it fails.
static bool is_enough_out(const struct turn *turn)
{
    const uint64_t last = last_step(turn);
    // mutant: leases: more is dealt than the steps need
    return way_on(turn, samples_out(turn->run, 0), last).step >= last;
}

static void tell_task(const struct turn *turn, const struct lease *lease)
{
    struct run *run = turn->run;
    struct wire_task task = {
        .lease = lease->number,
        .number = group_of(turn)->number,
        .step = run->step,
        .lr_bits = rate_bits(turn, run->step + 1),
        .samples = run->scratch,
        .left_ms = lease->deadline_ms > turn->now_ms ? lease->deadline_ms - turn->now_ms : 0,
    };
    ensure(table_list(&run->table, TABLE_PENDING, lease->number, run->scratch, TABLE_INTERVALS_MAX,
                      &task.samples_count) == TABLE_OK);
    outbox_mail(turn->out, name_of(turn, lease->member), FRAME_TASK, &task);
}

// The table is asked and put back: only the record, applied, changes it.
static bool has_room(struct run *run, const struct wire_lease *lease)
{
    if (table_deal_again(&run->table, lease->number, lease->samples, lease->samples_count) !=
        TABLE_OK)
        return false;
    ensure(table_return_rest(&run->table, lease->number) == TABLE_OK);
    return true;
}

// Whether a trainer of the group that can go on has not failed this task yet: it may do better.
static bool others_may_try(const struct lease_pace *self, const struct turn *turn,
                           const struct lease *lease)
{
    const struct wire_group *group = group_of(turn);
    const uint32_t servers = leases_group_servers(group, leases_config(turn->rules));
    for (uint32_t i = 0; i < servers; i++) {
        const struct lease other = { .member = group->group[i].member,
                                     .instance = group->group[i].instance,
                                     .task = lease->task };
        if (leases_is_able(self, turn->run, i) && !leases_has_struck(leases_of(turn), &other))
            return true;
    }
    return false;
}

static enum lease_answer deal(struct lease_pace *self, const struct turn *turn, uint32_t place)
{
    struct run *run = turn->run;
    const struct wire_place *at = &group_of(turn)->group[place];
    const struct lease_rules rules = leases_rules_of(leases_config(turn->rules));
    struct wire_lease lease = { .number = leases_of(turn)->newest + 1,
                                .member = at->member,
                                .instance = at->instance,
                                .samples = run->scratch };
    if (is_enough_out(turn)) return LEASE_NONE_NOW;
    struct lease next = { .member = at->member, .instance = at->instance };
    const enum lease_answer answer =
        leases_next(leases_of(turn), &run->table, &rules, &next, run->scratch, TABLE_INTERVALS_MAX,
                    &lease.samples_count);
    if (answer != LEASE_OK) return answer;
    if (leases_has_struck(leases_of(turn), &next) && others_may_try(self, turn, &next))
        return LEASE_NONE_NOW;
    lease.task = next.task;
    if (!has_room(run, &lease)) return LEASE_FULL;
    self->asked[place] = 0;
    turn_put(turn, FRAME_RECORD_LEASE, &lease);
    leases_run_arm(leases_run_times(run), &rules, turn->now_ms);
    tell_task(turn, &leases_of(turn)->leases[leases_of(turn)->count - 1]);
    return LEASE_OK;
}

// The place that asked first. NO_MEMBER: none waits.
static uint32_t first_of(const uint64_t asked[LEASES_GROUP_MAX])
{
    uint32_t first = NO_MEMBER;
    for (uint32_t i = 0; i < LEASES_GROUP_MAX; i++)
        if (asked[i] && (first == NO_MEMBER || asked[i] < asked[first])) first = i;
    return first;
}

// The lease that the process in this place has; NULL: none.
static const struct lease *lease_of(const struct turn *turn, uint32_t place)
{
    return leases_of_dead(leases_of(turn), group_of(turn)->group[place].member, 0);
}

void dealing_deal(struct lease_pace *self, const struct turn *turn)
{
    uint64_t asked[LEASES_GROUP_MAX];
    memcpy(asked, self->asked, sizeof asked);
    for (uint32_t place; (place = first_of(asked)) != NO_MEMBER; asked[place] = 0) {
        if (!leases_is_able(self, turn->run, place)) self->asked[place] = 0;
        // mutant: leases: a trainer gets a second task while it has one
        else if (lease_of(turn, place) || turn->now_ms < self->starved_ms[place]) continue;
        else self->none = deal(self, turn, place); // What one may not have, another one may
    }
}

uint64_t dealing_due_ms(const struct lease_pace *self, const struct turn *turn)
{
    uint64_t due_ms = 0;
    for (uint32_t i = 0; i < LEASES_GROUP_MAX; i++)
        if (self->asked[i] && self->starved_ms[i] > turn->now_ms)
            due_ms = leases_earlier(self->starved_ms[i], due_ms);
    return due_ms;
}

// Why the process in this place gets no task now.
static const char *why_none(const struct lease_pace *self, const struct turn *turn, uint32_t place)
{
    if (turn->now_ms < self->starved_ms[place]) return "nobody gave the samples of its newest one";
    if (self->none == LEASE_FULL) return "too many tasks are out, or have failed";
    return is_enough_out(turn) ? "what is out has all samples of the steps that are left"
                               : "all tasks that may be dealt now are out";
}

void dealing_answer(struct lease_pace *self, const struct turn *turn, const char *ends)
{
    char text[192];
    for (uint32_t i = 0; i < group_of(turn)->group_count; i++) {
        const bool is_due = self->asked[i] && !self->answered[i];
        self->answered[i] = true;
        if (!is_due) continue;
        if (ends) snprintf(text, sizeof text, "no task before the next epoch: %.120s", ends);
        else
            snprintf(text, sizeof text, "no task now, as %.100s; one is sent once there is one",
                     why_none(self, turn, i));
        turn_mail_refusal(turn, name_of(turn, group_of(turn)->group[i].member), FRAME_GET_TASK,
                          REFUSAL_NOT_NOW, group_of(turn)->number, text);
    }
}

// Whether it may have a task of the group that it names. Else it is refused.
static bool may_ask(const struct lease_pace *self, const struct turn *turn, const struct msg *in,
                    uint32_t place)
{
    const struct wire_get_task *said = in->body;
    const struct leases_run *own = leases_run_of(turn->run);
    const uint32_t servers = leases_group_servers(&own->group, leases_config(turn->rules));
    const bool is_its = own->is_open && said->number == own->group.number && place < servers;
    if (is_its && leases_is_able(self, turn->run, place)) return true;
    if (is_its)
        turn_refuse(turn, in, REFUSAL_NOT_NOW, said->number,
                    "this trainer gets no task of group %" PRIu64 ": %.90s", said->number,
                    leases_why_unable(self, &own->group.group[place]));
    else
        turn_refuse(turn, in, REFUSAL_STALE, said->number,
                    "group %" PRIu64 " is not open, or has no trainer with this process",
                    said->number);
    return false;
}

// Dealt or answered at the end of this turn.
void dealing_hear_get(struct lease_pace *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_get_task *said = in->body;
    const uint32_t member = leases_sender(turn, in, said->instance);
    if (member == NO_MEMBER) return;
    const uint32_t place = leases_group_place(group_of(turn), member, said->instance);
    if (!may_ask(self, turn, in, place)) return;
    const struct lease *lease = lease_of(turn, place);
    // mutant: leases: a trainer that has lost the mail with its task gets none any more
    if (lease && lease->number > said->after) {
        tell_task(turn, lease);
        return;
    }
    if (!self->asked[place]) self->asked[place] = ++self->asked_count;
    self->answered[place] = false;
}
