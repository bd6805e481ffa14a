// leases_pace -- what the coordinator asks of its pace. settle looks at the open group in this order: is a server
// lost, which leases are over, does the epoch end, and if so does the group put its state together; else tasks are
// dealt.

#include "common/pace/leases/leases_pace.h"
#include "common/pace/evidence.h"
#include "common/pace/leases/closing.h"
#include "common/pace/leases/copying.h"
#include "common/pace/leases/dealing.h"
#include "common/pace/leases/muster.h"
#include "common/pace/leases/saving.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct leases_run *own(const struct turn *turn) { return leases_run_of(turn->run); }

// ---- members ------------------------------------------------------------------------------------

bool leases_is_intact(const struct run *run, const struct wire_place *place)
{
    const struct wire_member *member = &run->roster.members[place->member];
    return member->instance == place->instance && member->state == MEMBER_HEALTHY;
}

const struct busy *leases_busy(const struct lease_pace *self, const struct wire_place *place)
{
    const struct busy *busy = &self->busy[place->member];
    return busy->instance == place->instance ? busy : NULL;
}

bool leases_is_unwell(const struct lease_pace *self, uint32_t member, uint64_t instance)
{
    // mutant: leases: a process that fails every task is dealt the next one
    return self->failing[member] == instance && self->failures[member] >= LEASES_FAILURES;
}

const char *leases_why_unable(const struct lease_pace *self, const struct wire_place *place)
{
    const struct busy *busy = leases_busy(self, place);
    if (leases_is_unwell(self, place->member, place->instance))
        return "it has failed three tasks in a row";
    return busy ? busy->because : "it cannot go on";
}

bool leases_is_able(const struct lease_pace *self, const struct run *run, uint32_t place)
{
    const struct wire_group *group = &leases_run_of(run)->group;
    const struct busy *busy = leases_busy(self, &group->group[place]);
    // mutant: leases: a trainer that cannot go on gets tasks
    const bool broken = busy && busy->broken && busy->number == group->number;
    return leases_is_intact(run, &group->group[place]) && !broken &&
           !leases_is_unwell(self, group->group[place].member, group->group[place].instance);
}

uint64_t leases_able(const struct lease_pace *self, const struct run *run)
{
    uint64_t able = 0;
    for (uint32_t i = 0; i < leases_run_of(run)->group.group_count; i++)
        if (leases_is_able(self, run, i)) able |= leases_bit(i);
    return able;
}

void leases_mail(const struct turn *turn, uint64_t places, uint16_t kind, const void *body)
{
    const struct wire_group *group = &own(turn)->group;
    for (uint32_t i = 0; i < group->group_count; i++)
        if (places & leases_bit(i))
            outbox_mail(turn->out, turn->run->roster.members[group->group[i].member].name, kind,
                        body);
}

uint32_t leases_sender(const struct turn *turn, const struct msg *in, uint64_t instance)
{
    const uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return NO_MEMBER;
    const uint64_t known = turn->run->roster.members[member].instance;
    if (instance < known) turn_refuse_older(turn, in, instance);
    return instance == known ? member : NO_MEMBER;
}

void leases_take_words(char *kept, const char *said)
{
    size_t i = 0;
    for (; said[i]; i++) kept[i] = said[i] < ' ' || said[i] > '~' || said[i] == '"' ? '?' : said[i];
    kept[i] = 0;
}

static void hear_busy(struct lease_pace *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_busy *said = in->body;
    const uint32_t member = leases_sender(turn, in, said->instance);
    if (member == NO_MEMBER || !role_takes_steps(turn->run->roster.members[member].role)) return;
    struct busy *kept = &self->busy[member];
    // mutant: leases: an earlier word of a member takes the place of a later one
    if (said->instance == kept->instance && in->seq < kept->seq) return;
    *kept = (struct busy){ .instance = said->instance,
                           .seq = in->seq,
                           .number = said->number,
                           .lease = said->lease,
                           .pushes = said->pushes,
                           .discarded = said->discarded,
                           .lag = said->lag,
                           .tokens_per_s = said->tokens_per_s,
                           .broken = said->broken,
                           .leaves = said->leaves,
                           .dead = said->dead,
                           .cut = said->cut,
                           .saved = said->saved,
                           .copied = said->copied,
                           .kept = said->kept };
    leases_take_words(kept->links, said->links);
    leases_take_words(kept->because, said->because[0] ? said->because : "cannot go on");
    const uint32_t place = leases_group_place(&own(turn)->group, member, said->instance);
    if (place != NO_MEMBER) self->lags[place] = said->lags;
    saving_hear(self, turn, member);
}

// What a trainer of the open group said last of its pushes; NULL: nothing, or it is a server, or gone.
static const struct busy *pusher(const struct lease_pace *self, const struct turn *turn,
                                 uint32_t place)
{
    const struct wire_group *group = &own(turn)->group;
    const struct wire_place *at = &group->group[place];
    const struct busy *busy = leases_busy(self, at);
    const bool trains = place < leases_group_servers(group, leases_config(turn->rules));
    // mutant: leases: pushes of another group are counted
    return trains && busy && busy->number == group->number && leases_is_intact(turn->run, at)
               ? busy
               : NULL;
}

static uint32_t list_pushes(const struct lease_pace *self, const struct turn *turn,
                            struct wire_push_line ret_list[LEASES_GROUP_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < own(turn)->group.group_count; i++) {
        const struct busy *busy = pusher(self, turn, i);
        if (!busy) continue;
        ret_list[count++] = (struct wire_push_line){
            .member = own(turn)->group.group[i].member,
            .pushes = busy->pushes,
            .discarded = busy->discarded,
            .samples_per_s = busy->tokens_per_s / (float)turn->rules->seq_len,
            .lags = self->lags[i],
        };
    }
    return count;
}

static void tell_pushes(struct lease_pace *self, const struct turn *turn)
{
    struct wire_push_line list[LEASES_GROUP_MAX];
    struct wire_pushes pushes = { .number = own(turn)->group.number, .trainers = list };
    uint64_t all = 0;
    // mutant: leases: pushes are told with each message
    if (turn->now_ms < self->pushes_ms) return;
    pushes.trainers_count = list_pushes(self, turn, list);
    for (uint32_t i = 0; i < pushes.trainers_count; i++) all += list[i].pushes + list[i].discarded;
    if (all == self->pushes_told) return;
    self->pushes_told = all;
    self->pushes_ms = turn->now_ms + turn->rules->heartbeat_ms;
    outbox_news(turn->out, FRAME_PUSHES, &pushes);
}

static bool hear(void *state, const struct turn *turn, const struct msg *in)
{
    switch (in->kind) {
    case FRAME_BUSY: hear_busy(state, turn, in); return true;
    case FRAME_GET_TASK: dealing_hear_get(state, turn, in); return true;
    case FRAME_TASK_END: dealing_hear_end(state, turn, in); return true;
    case FRAME_SETTLED: closing_hear(state, turn, in); return true;
    default: return false;
    }
}

// ---- the end of an epoch ------------------------------------------------------------------------

static uint32_t trainers_left(const struct lease_pace *self, const struct turn *turn)
{
    const uint64_t owners = leases_group_owners(&own(turn)->group, leases_config(turn->rules));
    return (uint32_t)__builtin_popcountll(leases_able(self, turn->run) & ~owners);
}

static bool a_server_leaves(const struct lease_pace *self, const struct turn *turn)
{
    const struct wire_group *group = &own(turn)->group;
    const uint32_t first = leases_group_servers(group, leases_config(turn->rules));
    for (uint32_t i = first; i < group->group_count; i++) {
        const struct busy *busy = leases_busy(self, &group->group[i]);
        if (busy && busy->leaves) return true;
    }
    return false;
}

// Why no task is dealt any more in this epoch; NULL: they are.
static const char *why_over(struct lease_pace *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct rules *rules = turn->rules;
    if (run->step >= rules->total_steps) return "all steps are done";
    if (rules->epoch_rounds && run->step >= run->epoch_start_step + rules->epoch_rounds)
        return "the epoch's steps are done";
    if (rules->epoch_ms && turn->now_ms - turn->presence->epoch_began_ms >= rules->epoch_ms)
        return "the epoch's time is up";
    if (run->pausing) return "a pause was asked for";
    if (turn->presence->wants_end) return "a checkpoint was asked for";
    if (!saving_is_in_pieces(turn) && saving_is_due(turn)) return "a checkpoint is due";
    if (a_server_leaves(self, turn)) return "a parameter server leaves";
    // mutant: leases: the death of a trainer ends the epoch of the others
    if (trainers_left(self, turn) == 0) return "no trainer of the group is left";
    const uint32_t joiner = muster_joiner(self, turn, false);
    if (joiner != NO_MEMBER)
        return muster_is_in_group(run, joiner) ? "the links of a trainer broke"
                                               : "a trainer waits to join";
    return own(turn)->closing.attempt ? "the group was told to end" : NULL;
}

static const char *end_epoch(struct lease_pace *self, const struct turn *turn, const char *cause)
{
    muster_barrier_over(self, turn);
    muster_note_cuts(self, turn);
    self->missed[0] = 0;
    self->pushes_ms = 0; // The last ones of this group
    tell_pushes(self, turn);
    return cause;
}

// ---- the phase that makes steps -----------------------------------------------------------------

// Who waits to join, and how long, in steps of ten seconds: each is news, and a line of the log. Or who has no part
// in this group any more.
static void look_for_missed(struct lease_pace *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const uint32_t joiner = muster_joiner(self, turn, true);
    const uint64_t left_s = (muster_wait_ms(self, turn) + 9999) / 10000 * 10;
    self->missed[0] = 0;
    for (uint32_t i = 0; i < own(turn)->group.group_count; i++) {
        const struct wire_place *at = &own(turn)->group.group[i];
        if (!leases_is_intact(run, at) || leases_is_able(self, run, i)) continue;
        const bool is_unwell = leases_is_unwell(self, at->member, at->instance);
        snprintf(self->missed, sizeof self->missed, "%s gets no task until %s: %.120s",
                 run->roster.members[at->member].name,
                 is_unwell ? "it is started again" : "the next epoch", leases_why_unable(self, at));
    }
    for (uint32_t i = 0; i < run->roster.count && !self->missed[0]; i++) {
        const uint64_t minutes = (muster_cut_ms(self, turn, i) + 59999) / 60000;
        if (minutes > 0 && run->roster.members[i].state == MEMBER_HEALTHY &&
            !muster_is_in_group(run, i))
            snprintf(self->missed, sizeof self->missed,
                     "%s is in no group for %" PRIu64
                     " min more, or until it is started again: its links broke in "
                     "two groups in a row",
                     run->roster.members[i].name, minutes);
    }
    if (!self->missed[0] && joiner != NO_MEMBER && left_s > 0)
        snprintf(self->missed, sizeof self->missed,
                 "%s waits to join: this epoch lasts at least %" PRIu64 " s more",
                 run->roster.members[joiner].name, left_s);
}

// This process itself was held up: what members said meanwhile lies unread. So nothing is late before it is heard.
static void look_at_clock(struct lease_pace *self, const struct turn *turn)
{
    const uint64_t away_ms = turn->now_ms - self->looked_ms;
    const bool held_up = self->looked_ms && away_ms > 2 * (uint64_t)turn->rules->heartbeat_ms;
    const struct lease_rules rules = leases_rules_of(leases_config(turn->rules));
    self->looked_ms = turn->now_ms;
    if (!held_up) return;
    leases_rearm(&leases_run_times(turn->run)->leases, &rules, turn->now_ms);
    if (self->settle_by_ms) self->settle_by_ms += away_ms;
    for (uint32_t i = 0; i < LEASES_GROUP_MAX; i++)
        if (self->blamed_ms[i]) self->blamed_ms[i] = turn->now_ms;
}

static const char *why_settled(const struct turn *turn, const char *cause)
{
    return own(turn)->differ ? "the states of the members differ" : cause;
}

// A crash may have come between the record that all have settled and that of the phase.
static const char *settle(void *state, const struct turn *turn)
{
    struct lease_pace *self = state;
    const char *cause;
    ensure(own(turn)->is_open);
    // mutant: leases: a group settles once more after a crash
    if (own(turn)->settled) return end_epoch(self, turn, why_settled(turn, "the group has ended"));
    look_at_clock(self, turn);
    closing_watch(self, turn);
    if ((cause = closing_lost(self, turn))) return end_epoch(self, turn, cause);
    dealing_return(self, turn);
    cause = why_over(self, turn);
    const bool closes = cause && own(turn)->leases.count == 0;
    saving_look(self, turn, !cause);
    copying_look(self, turn, !cause);
    if (closes && leases_run_must_step(own(turn), turn->run->step)) dealing_step(turn);
    muster_barrier_look(self, turn, closes);
    if (closes && closing_settle(self, turn))
        return end_epoch(self, turn, why_settled(turn, cause));
    if (!cause) dealing_deal(self, turn);
    dealing_answer(self, turn, cause);
    look_for_missed(self, turn);
    tell_pushes(self, turn);
    return NULL;
}

static void forget_group(struct lease_pace *self)
{
    memset(self->asked, 0, sizeof self->asked);
    memset(self->ended, 0, sizeof self->ended);
    memset(self->starved_ms, 0, sizeof self->starved_ms);
    memset(self->blamed_ms, 0, sizeof self->blamed_ms);
    memset(self->lags, 0, sizeof self->lags);
    self->pushes_ms = self->pushes_told = 0;
    self->asked_count = self->attempt = self->looked_ms = self->settle_by_ms = 0;
    self->save_tell_ms = self->copy_tell_ms = 0;
    self->copy_keeps = false;
}

// A trainer has one task at a time.
static void note_few_tasks(const struct turn *turn, uint32_t trainers)
{
    const uint64_t size = leases_config(turn->rules)->task_samples;
    const uint64_t tasks = (turn->run->pass_samples + size - 1) / size;
    // mutant: leases: nobody is told that trainers have nothing to do
    if (tasks >= trainers) return;
    outbox_note(turn->out,
                "tasks.few tasks=%" PRIu64
                " trainers=%u; only so many of them have work at a time: "
                "a new run with task_samples %" PRIu64 " or fewer gives each one some",
                tasks, trainers,
                turn->run->pass_samples / trainers ? turn->run->pass_samples / trainers : 1);
}

static void note_death_costs(const struct turn *turn)
{
    const struct wire_leases_config *config = leases_config(turn->rules);
    const char *save = saving_is_in_pieces(turn) ? "save" : "checkpoint";
    char memory[128] = "";
    if (config->memory_every > 0 && config->servers > 1)
        snprintf(memory, sizeof memory,
                 "about %" PRIu32 " steps; if one dies together with its %" PRIu32 " buddies, ",
                 config->memory_every,
                 config->buddies < config->servers ? config->buddies : config->servers - 1);
    outbox_note(turn->out,
                "run.death_costs \"of a trainer the task in its hands; of a parameter server "
                "%sthe steps since the newest %s\"",
                memory, save);
}

static void begin(void *state, const struct turn *turn)
{
    struct lease_pace *self = state;
    struct run *run = turn->run;
    struct wire_place places[LEASES_GROUP_MAX];
    if (run->number == 0) note_death_costs(turn);
    muster_barrier_end(self, turn);
    forget_group(self);
    const struct wire_group group = {
        .number = run->number + 1,
        .epoch = run->epoch,
        .step = run->step,
        .samples_done = run->samples_done,
        .group = places,
        .group_count = muster_choose(self, turn, places),
        .epoch_elapsed_ms = turn->now_ms - turn->presence->epoch_began_ms,
        .barrier_ms = self->barrier_ms,
        .kept_step = own(turn)->memory.kept.at.step,
        .kept_in = own(turn)->memory.kept_in,
    };
    ensure(leases_group_is_sound(&group, leases_config(turn->rules)));
    note_few_tasks(turn, leases_group_servers(&group, leases_config(turn->rules)));
    turn_put(turn, FRAME_RECORD_GROUP, &group);
    turn_arm(turn);
}

static void resume(void *state, const struct turn *turn)
{
    struct lease_pace *self = state;
    const struct lease_rules rules = leases_rules_of(leases_config(turn->rules));
    // When this Warmup began is not known any more
    if (turn->run->phase == PHASE_WARMUP) muster_barrier_resume(self, turn);
    self->barrier_ended_ms = turn->presence->epoch_began_ms;
    // mutant: leases: after a restart a joiner ends the epoch at once
    self->barrier_ms = own(turn)->group.barrier_ms;
    // mutant: leases: after a restart the tasks that are out are late
    leases_rearm(&leases_run_times(turn->run)->leases, &rules, turn->now_ms);
}

static uint64_t due_ms(const void *state, const struct turn *turn)
{
    const struct lease_pace *self = state;
    const uint64_t late_ms = leases_due_ms(&own(turn)->leases);
    if (!own(turn)->is_open) return 0;
    const uint64_t saves_ms = leases_earlier(saving_due_ms(self, turn), copying_due_ms(self, turn));
    const uint64_t due_ms = leases_earlier(
        leases_earlier(closing_due_ms(self, turn), dealing_due_ms(self, turn)), saves_ms);
    return leases_earlier(late_ms != UINT64_MAX ? late_ms : 0, due_ms);
}

// ---- what is said of it -------------------------------------------------------------------------

static const char *lacks(const struct turn *turn)
{
    struct lease_pace *self = turn->live;
    if (turn->run->phase != PHASE_TRAIN) return muster_lacks(self, turn);
    const uint32_t out = own(turn)->leases.count;
    const char *cause = own(turn)->is_open && out > 0 ? why_over(self, turn) : NULL;
    if (!cause) return closing_lacks(self, turn);
    snprintf(self->lacks, sizeof self->lacks,
             "waiting for %u task%s that %s out, as the epoch ends: %.120s", out,
             out == 1 ? "" : "s", out == 1 ? "is" : "are", cause);
    return self->lacks;
}

static const char *why_paused(const struct turn *turn)
{
    struct lease_pace *self = turn->live;
    const uint64_t differ = own(turn)->differ;
    char some[80], others[80];
    if (!differ) return NULL;
    closing_list(turn->run, differ, some, sizeof some);
    closing_list(turn->run, own(turn)->closing.members & ~differ, others, sizeof others);
    snprintf(self->lacks, sizeof self->lacks, "the states of step %" PRIu64 " differ: %s | %s",
             own(turn)->closing.step, some, others);
    return self->lacks;
}

static const char *missed(const void *state)
{
    const struct lease_pace *self = state;
    return self->missed[0] ? self->missed : NULL;
}

static uint64_t open_number(const struct run *run)
{
    return leases_run_of(run)->is_open ? run->number : 0;
}

static void tell(const struct turn *turn, const char *to)
{
    const struct wire_group *group = &own(turn)->group;
    if (to) outbox_mail(turn->out, to, FRAME_GROUP, group);
    else outbox_news(turn->out, FRAME_GROUP, group);
    if (to) closing_tell(turn, to);
}

static struct interval commits(uint16_t kind, const void *record)
{
    const struct wire_lease_ended *ended = record;
    if (kind != FRAME_RECORD_LEASE_END) return (struct interval){ 0, 0 };
    return (struct interval){ ended->step, ended->end };
}

static struct commit_facts facts(const void *record)
{
    struct commit_facts facts = { 0 };
    memcpy(&facts.lr, &((const struct wire_lease_ended *)record)->lr_bits, sizeof facts.lr);
    return facts;
}

// What trainers said last of their pushes in this group.
static void count_pushes(const struct turn *turn, struct wire_task_counts *counts)
{
    for (uint32_t i = 0; i < own(turn)->group.group_count; i++) {
        const struct busy *busy = pusher(turn->live, turn, i);
        if (!busy) continue;
        counts->pushes += busy->pushes;
        counts->discarded += busy->discarded;
    }
}

static struct wire_task_counts count_tasks(const struct turn *turn)
{
    const struct lease_rules rules = leases_rules_of(leases_config(turn->rules));
    if (!turn->run->pass_samples) return (struct wire_task_counts){ 0 };
    const struct lease_counts counted = leases_count(&turn->run->table, &rules);
    struct wire_task_counts counts = { .pass = counted.pass,
                                       .todo = counted.todo,
                                       .pending = counted.pending,
                                       .done = counted.done,
                                       .failed = counted.failed };
    count_pushes(turn, &counts);
    return counts;
}

// ---- members, as the coordinator sees them ------------------------------------------------------

static bool peer_waits(const struct run *run)
{
    const struct wire_group *group = &leases_run_of(run)->group;
    for (uint32_t i = 0; i < group->group_count; i++) {
        const struct wire_member *member = &run->roster.members[group->group[i].member];
        if (member->instance == group->group[i].instance && member->state == MEMBER_PENDING)
            return true;
    }
    return false;
}

// While a group is open its servers have the state, all of them together: a trainer may go at any time, a server once
// the state is put together. Else it counts who holds all of it.
static bool needs(const struct turn *turn, uint32_t member)
{
    const struct leases_run *run = own(turn);
    const uint32_t place =
        leases_group_place(&run->group, member, turn->run->roster.members[member].instance);
    if (!run->is_open) return pace_alone_is_as_far(turn, member);
    // mutant: leases: a trainer is kept until the epoch ends
    return place != NO_MEMBER &&
           place >= leases_group_servers(&run->group, leases_config(turn->rules));
}

static uint32_t servers(const struct rules *rules) { return leases_config(rules)->servers; }

// The newest group was lost before its first step, or the run has gone back to that step. Each process of the group keeps
// the state that it began with for others, who fetch it from there. By its PINGs it holds nothing itself (seed 304535).
static bool keeps_first(const struct turn *turn, uint32_t member, uint64_t instance)
{
    const struct leases_run *run = own(turn);
    return !run->is_open && !run->settled && run->group.step == turn->run->step &&
           leases_group_place(&run->group, member, instance) != NO_MEMBER;
}

// In a group its members hold parts of a state that is no step's, until they have put it together. One that has, holds
// all of it, also if the group was lost before all had. If the run went back to a memory save, its keepers have it (seed
// 16701).
static bool took_part(const struct turn *turn, uint32_t member)
{
    const uint64_t instance = turn->run->roster.members[member].instance;
    // mutant: leases: who keeps what the lost group began with is not waited for
    if (keeps_first(turn, member, instance)) return true;
    // mutant: leases: who has its share alone is waited for
    return leases_run_has_settled(own(turn), member, instance) ||
           closing_has_settled(turn->live, turn, member, instance) ||
           memory_save_may_keep(&own(turn)->memory, turn->run, leases_config(turn->rules)->buddies,
                                member);
}

_Static_assert(sizeof(struct lease_pace) <= PACE_LIVE_BYTES,
               "a coordinator has room for struct lease_pace");
_Static_assert(sizeof(struct leases_witness) <= PACE_EVIDENCE_BYTES,
               "a verifier has room for struct leases_witness");

const struct pace pace_leases = {
    .name = "leases",
    .config = FRAME_LEASES_CONFIG,
    .live_bytes = sizeof(struct lease_pace),
    .run = { .bytes = sizeof(struct leases_run),
             .apply = leases_run_apply,
             .store = leases_run_store,
             .load = leases_run_load,
             .refers_to = leases_run_refers_to },
    .trusted = true,
    .lacks = lacks,
    .missed = missed,
    .why_paused = why_paused,
    .begin = begin,
    .resume = resume,
    .hear = hear,
    .settle = settle,
    .due_ms = due_ms,
    .open_number = open_number,
    .tell = tell,
    .commits = commits,
    .facts = facts,
    .commit_frame = FRAME_LEASE_ENDED,
    .count_tasks = count_tasks,
    .took_part = took_part,
    .way_back = copying_point,
    .peer_waits = peer_waits,
    .needs = needs,
    .stays_pending = muster_stays_pending,
    .servers = servers,
    .evidence_counts = { "groups", "tasks", "committed steps", NULL },
    .evidence_bytes = sizeof(struct leases_witness),
    .verifies = leases_verifies,
};
