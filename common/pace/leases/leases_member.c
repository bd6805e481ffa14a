// leases_member -- first notes what the coordinator and the learner say; then does what is due.

#include "common/pace/leases/leases_member.h"
#include "common/run/older.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static uint32_t place_of(const struct leases_member *self, const struct member *member)
{
    return leases_group_place(&self->group, member->index, member->instance);
}

static bool is_server(const struct member *member) { return member->role == ACTOR_SERVER; }

// ---- what the coordinator says ------------------------------------------------------------------

static void hear_group(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_group *said = turn->in->body;
    struct member *member = turn->member;
    if (!leases_group_is_sound(said, leases_config_of(&member->config))) {
        outbox_note(turn->out, "group.unsound number=%" PRIu64 "; ignored", said->number);
        return;
    }
    if (!member->has_round && said->number <= self->group.number) { // An older ledger was put back
        self->group.number = 0;
        self->keeper.kept_step = self->keeper.kept_in = 0;
        if (!self->in_hand) self->over = 0;
    }
    if (!member->has_round || said->number > member->round) {
        member->has_round = true;
        member->round = said->number;
    }
    if (said->number <= self->group.number) return;
    self->group = *said;
    memcpy(self->places, said->group, said->group_count * sizeof *said->group);
    self->group.group = self->places;
}

static void train(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_task *task = turn->in->body;
    struct wire_holder providers[16];
    const struct wire_train_task job = {
        .lease = task->lease,
        .step = task->step,
        .lr_bits = task->lr_bits,
        .samples = task->samples,
        .samples_count = task->samples_count,
        .providers = providers,
        .providers_count = member_providers(turn->member, task->lease, providers, 16),
    };
    self->lease = self->newest = task->lease;
    self->say_ms = 0;
    memcpy(&turn->member->step_lr, &task->lr_bits, sizeof turn->member->step_lr);
    outbox_job(turn->out, PORT_LEARNER, FRAME_TRAIN_TASK, &job);
}

static void hear_task(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_task *task = turn->in->body;
    const bool is_free = self->in_hand && !self->lease && !self->end.lease &&
                         !self->closing.attempt && !self->busy.broken && !is_server(turn->member);
    // mutant: leases: a task that comes twice is trained twice
    const bool is_new = task->number == self->in_hand && task->lease > self->newest;
    if (is_free && is_new && interval_list_tidy(task->samples, task->samples_count))
        train(self, turn);
}

// The learner gives up a task that is still in its hands: its lease is over.
static void hear_close(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_close_group *said = turn->in->body;
    // mutant: leases: a member puts the state of an earlier group together
    if (!self->in_hand || said->number != self->in_hand) return;
    self->settle_ms = 0; // It waits for our answer
    if (said->attempt <= self->closing.attempt) return;
    self->closing = *said;
    self->settled = (struct wire_settled){ 0 };
    self->lease = 0;
    self->end.lease = 0;
    outbox_job(turn->out, PORT_LEARNER, FRAME_SETTLE_GROUP, said);
}

// The end of a task is on record, or its lease was over before.
static void hear_answer(struct leases_member *self, const struct member_turn *turn, uint64_t lease)
{
    if (lease != self->end.lease || !lease) return;
    self->end.lease = 0;
    // mutant: leases: a trainer that fails every task goes on
    if (self->failed >= LEASES_FAILURES)
        outbox_quit(turn->out, EX_TEMPFAIL,
                    "%u tasks in a row have failed, the last one because: %s; restarting",
                    self->failed, self->end.because);
}

// Of a server. A save that comes twice is made once.
static void save(struct leases_member *self, const struct member_turn *turn, uint64_t step)
{
    const struct member *member = turn->member;
    const struct wire_take_share job = {
        .number = self->in_hand,
        .step = step,
        .spare = older_saves_spare(&member->now.older, member->now.restore_point_step,
                                   leases_config_of(&member->config)->keep),
    };
    // mutant: saves: a save that comes twice is made twice
    if (!is_server(member) || step <= self->save_step) return;
    self->save_step = step;
    outbox_job(turn->out, PORT_LEARNER, FRAME_TAKE_SHARE, &job);
}

static void hear_save(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_save_share *said = turn->in->body;
    // mutant: saves: a server saves for an earlier group
    if (!self->in_hand || said->number != self->in_hand || self->closing.attempt) return;
    save(self, turn, said->step);
}

// Of a server. What comes twice is done once; that it is done is said again.
static void hear_copy(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_copy_share *said = turn->in->body;
    const struct wire_save_share job = { said->number, said->step };
    // mutant: copying: a server copies for an earlier group
    if (!self->in_hand || said->number != self->in_hand || self->closing.attempt ||
        !is_server(turn->member))
        return;
    self->say_ms = 0;
    if (said->step <= self->copy_step) return;
    self->copy_step = said->step;
    // mutant: copying: a copy that is on record makes room for the next before that is known
    if (said->kept_in) keeper_recorded(&self->keeper, turn, said->kept_in, said->kept_step);
    outbox_job(turn->out, PORT_LEARNER, FRAME_TAKE_COPY, &job);
}

static void hear_keep(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_keep_shares *said = turn->in->body;
    // mutant: copying: the shares of other copies than the newest are fetched
    if (!self->in_hand || said->number != self->in_hand || said->step != self->copy_step ||
        !is_server(turn->member))
        return;
    self->say_ms = 0;
    if (said->step <= self->list_step) return;
    self->list_step = said->step;
    outbox_job(turn->out, PORT_LEARNER, FRAME_GIVE_LISTS, said);
}

static void hear_refused(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_refused *said = turn->in->body;
    if (said->kind == FRAME_TASK_END && said->reason == REFUSAL_STALE &&
        said->round == self->end.lease && self->end.lease) {
        outbox_note(turn->out, "task.stale lease=%" PRIu64 " %s", said->round, said->text);
        hear_answer(self, turn, said->round);
    }
    if (said->kind ==
        FRAME_GET_TASK) // It is sent without our asking again, unless the mail is lost
        self->ask_ms = turn->in->now_ms + turn->member->config.heartbeat_ms;
}

// ---- what the learner says ----------------------------------------------------------------------

static void tell_progress(const struct leases_member *self, const struct member_turn *turn,
                          const struct wire_task_trained *said)
{
    struct member *member = turn->member;
    member->loss = said->loss;
    member->loss_step = member->now.step;
    member->tokens_per_s = said->tokens_per_s;
    outbox_news(
        turn->out, FRAME_PROGRESS,
        &(struct wire_progress){ .round = self->in_hand,
                                 .step = member->now.step,
                                 .loss = said->loss,
                                 .tokens_per_s = said->tokens_per_s,
                                 .samples = said->samples < 65535 ? (uint32_t)said->samples : 65535,
                                 .train_ms = said->train_ms });
}

static void hear_trained(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_task_trained *said = turn->in->body;
    if (said->done)
        self->failed = 0; // Also if its lease is over by now: this process can train (seed 7634)
    // mutant: leases: a task that was given up is said to be trained
    if (said->lease != self->lease || !self->lease) return;
    self->lease = 0;
    self->end = (struct wire_task_end){ .instance = turn->member->instance,
                                        .lease = said->lease,
                                        .done = said->done,
                                        .samples = said->samples,
                                        .no_data = said->no_data };
    memcpy(self->end.because, said->because, sizeof self->end.because);
    self->busy.pushes = said->pushes;
    self->busy.discarded = said->discarded;
    self->busy.lag = said->lag;
    self->busy.lags = said->lags;
    self->say_ms = 0;
    self->busy.tokens_per_s = said->tokens_per_s;
    self->end_ms = self->ask_ms = 0;
    // mutant: leases: a trainer that nobody gives samples ends
    if (!said->done && !said->no_data) self->failed++;
    if (said->done) {
        tell_progress(self, turn, said);
        outbox_note(turn->out,
                    "task.trained lease=%" PRIu64 " samples=%" PRIu64
                    " loss=%.4g tokens_per_s=%.0f pushes=%" PRIu64 " discarded=%" PRIu64,
                    said->lease, said->samples, (double)said->loss, (double)said->tokens_per_s,
                    said->pushes, said->discarded);
    } else
        outbox_note(turn->out, "task.failed lease=%" PRIu64 " because=\"%s\"", said->lease,
                    said->because);
}

static void hear_settled(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_settled *said = turn->in->body;
    // mutant: leases: the answer to an earlier attempt is said for a later one
    if (!self->in_hand || said->number != self->in_hand || said->attempt != self->closing.attempt)
        return;
    self->settled = *said;
    self->settled.instance = turn->member->instance;
    self->settled.step = self->closing.step;
    self->settle_ms = 0;
    if (!said->ok)
        outbox_note(turn->out,
                    "group.unsettled number=%" PRIu64 " attempt=%" PRIu64 " because=\"%s\"",
                    said->number, said->attempt, said->because);
    // mutant: saves: what a group puts together is not saved
    if (said->ok && self->closing.save) save(self, turn, self->closing.step);
}

static void hear_share(struct leases_member *self, const struct wire_share_saved *said)
{
    self->busy.saved = *said;
    self->say_ms = 0;
}

// Our newest copy was given up before the lists of all were asked for: nobody will ask for its list. `next`: that of a
// later copy, or none.
static void spare_list(const struct leases_member *self, const struct member_turn *turn,
                       const struct hash *next)
{
    const struct wire_share_copied *copied = &self->busy.copied;
    // mutant: copying: the lists of copies that are given up stay
    if (hash_is_none(&copied->list.hash) || hash_equal(&copied->list.hash, next) ||
        copied->step == self->list_step)
        return;
    blobs_spare(turn->blobs, &copied->list.hash, turn->out);
}

static void hear_copied(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_share_copied *said = turn->in->body;
    spare_list(self, turn, &said->list.hash);
    self->busy.copied = *said;
    self->say_ms = 0;
}

static void hear_listed(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_listed *said = turn->in->body;
    const struct wire_leases_config *config = leases_config_of(&turn->member->config);
    const uint32_t first = leases_group_servers(&self->group, config);
    struct keeper_group group = { .count = config->servers,
                                  .buddies = config->buddies,
                                  .apart = true };
    if (!self->in_hand || said->window != self->in_hand || self->group.number != self->in_hand ||
        said->lists_count != group.count)
        return;
    for (uint32_t i = 0; i < group.count; i++)
        group.members[i] = self->group.group[first + i].member;
    keeper_take(&self->keeper, turn, said, &group);
}

static void hear_fetched(struct leases_member *self, const struct member_turn *turn)
{
    struct hash digest;
    if (!keeper_hear(&self->keeper, turn, &digest)) return;
    self->busy.kept = (struct wire_share_saved){ self->keeper.in, self->keeper.step, digest };
    self->say_ms = 0;
}

static void hear_formed(struct leases_member *self, const struct wire_group_formed *said)
{
    // mutant: leases: the links of an earlier group will do
    if (said->number != self->in_hand) return;
    self->formed = true;
    self->ask_ms = 0;
}

static void hear_broke(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_group_broke *said = turn->in->body;
    if (!self->in_hand || said->number != self->in_hand) return;
    self->busy.broken = true;
    self->busy.dead |= said->dead;
    self->busy.cut |= said->cut;
    memcpy(self->busy.because, said->because, sizeof self->busy.because);
    self->lease = 0;
    self->say_ms = 0;
    outbox_note(turn->out, "group.broke number=%" PRIu64 " because=\"%s\"", said->number,
                said->because);
}

static void hear_links(struct leases_member *self, const struct wire_links *said)
{
    memcpy(self->busy.links, said->endpoint, sizeof self->busy.links);
    self->say_ms = 0;
}

static void hear_learner(struct leases_member *self, const struct member_turn *turn)
{
    switch (turn->in->kind) {
    case FRAME_LINKS: hear_links(self, turn->in->body); break;
    case FRAME_TASK_TRAINED: hear_trained(self, turn); break;
    case FRAME_GROUP_SETTLED: hear_settled(self, turn); break;
    case FRAME_GROUP_FORMED: hear_formed(self, turn->in->body); break;
    case FRAME_GROUP_BROKE: hear_broke(self, turn); break;
    case FRAME_SHARE_TAKEN: hear_share(self, turn->in->body); break;
    case FRAME_COPY_TAKEN: hear_copied(self, turn); break;
    case FRAME_LISTED: hear_listed(self, turn); break;
    case FRAME_FETCHED_SHARE: hear_fetched(self, turn); break;
    }
}

static void hear(void *state, const struct member_turn *turn)
{
    struct leases_member *self = state;
    struct replica *replica = turn->replica;
    const bool takes_steps = role_takes_steps(turn->member->role) && replica;
    if (replica) {
        replica->follows_pins = true;
        replica->can_replay = false;
        replica->waits_for_pin = takes_steps;
        if (turn->heard & HEARD_CONFIG && takes_steps)
            memcpy(replica->shared_dir, leases_config_of(&turn->member->config)->shared_dir,
                   sizeof replica->shared_dir);
    }
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_GROUP) hear_group(self, turn);
    if (!takes_steps) return;
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_TASK) hear_task(self, turn);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_CLOSE_GROUP) hear_close(self, turn);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_SAVE_SHARE) hear_save(self, turn);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_COPY_SHARE) hear_copy(self, turn);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_KEEP_SHARES) hear_keep(self, turn);
    if (turn->heard & HEARD_RUN && turn->member->now.memory_window)
        keeper_recorded(&self->keeper, turn, turn->member->now.memory_window,
                        turn->member->now.memory_step);
    if (turn->heard & HEARD_REFUSED) hear_refused(self, turn);
    if (turn->heard & HEARD_ACK &&
        ((const struct wire_ack *)turn->in->body)->kind == FRAME_TASK_END)
        hear_answer(self, turn, ((const struct wire_ack *)turn->in->body)->round);
    if (turn->heard & (HEARD_REBORN | HEARD_ADMITTED)) // It may have lost all that we said
        self->say_ms = self->ask_ms = self->end_ms = self->settle_ms = 0;
    hear_learner(self, turn);
}

// ---- taking a group, and ending it --------------------------------------------------------------

// With the keys of the roster. 0: it is behind.
static uint32_t list_linked(const struct member *member, const struct wire_group *group,
                            struct wire_linked ret_list[LEASES_GROUP_MAX])
{
    for (uint32_t i = 0; i < group->group_count; i++) {
        const struct wire_member *at = member_at(member, group->group[i].member);
        if (!at) return 0;
        ret_list[i] = (struct wire_linked){ .key = at->key, .instance = group->group[i].instance };
        memcpy(ret_list[i].endpoint, group->group[i].links, sizeof ret_list[i].endpoint);
    }
    return group->group_count;
}

static void take(struct leases_member *self, const struct member_turn *turn)
{
    const struct member *member = turn->member;
    struct wire_linked group[LEASES_GROUP_MAX];
    const struct wire_take_group job = {
        .number = self->group.number,
        .step = self->group.step,
        .samples_done = self->group.samples_done,
        .group = group,
        .group_count = list_linked(member, &self->group, group),
        .place = place_of(self, member),
        .servers = leases_config_of(&member->config)->servers,
        .data = member->now.data,
        .order = member->now.order,
        .born_unix_ms = member->born_unix_ms,
        .pass_samples = member->now.pass_samples,
        .kept_step = self->group.kept_step,
        .kept_in = self->group.kept_in,
    };
    if (job.group_count == 0) return;
    static const struct hash none;
    spare_list(self, turn, &none);
    // mutant: saves: that a save is whole is forgotten as the next group begins
    struct wire_busy busy = { .number = job.number, .saved = self->busy.saved };
    memcpy(busy.links, self->busy.links, sizeof busy.links);
    self->busy = busy;
    self->in_hand = job.number;
    self->epoch = self->group.epoch;
    self->formed = false;
    self->lease = self->newest = self->end.lease = 0;
    self->closing = (struct wire_close_group){ 0 };
    self->settled = (struct wire_settled){ 0 };
    self->save_step = self->copy_step = self->list_step = 0;
    keeper_drop(&self->keeper, turn); // Of another group: nobody waits for it any more
    self->say_ms = self->ask_ms = 0;
    turn->replica->applying = true;
    turn->replica->epoch = self->epoch;
    outbox_job(turn->out, PORT_LEARNER, FRAME_TAKE_GROUP, &job);
}

// The run makes no steps now, and no group is newer than this one; or one is.
static bool is_over(const struct leases_member *self, const struct member *member, uint64_t number)
{
    return (member->now.round == number && !phase_makes_steps(member->now.phase)) ||
           member->now.round > number || self->group.number > number;
}

static bool has_pinned(const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    return replica->pin_step == replica->step || turn->member->now.pin_step > replica->step;
}

// Each member of a group keeps the state that its epoch begins with for joiners.
static void begin(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_group *group = &self->group;
    const struct replica *replica = turn->replica;
    if (group->number > self->over && group->step == replica->step &&
        place_of(self, turn->member) != UINT32_MAX && !is_over(self, turn->member, group->number) &&
        (replica->epoch >= group->epoch || has_pinned(turn)))
        take(self, turn);
}

// What was put together is the run's, unless the run has gone back since, or ended elsewhere.
static bool may_keep(const struct leases_member *self, const struct member *member)
{
    // mutant: leases: a member keeps a state that was not put together
    return self->settled.ok && self->settled.step <= member->now.step &&
           !replica_is_given_up(&member->now, self->settled.step, self->epoch);
}

static void end_group(struct leases_member *self, const struct member_turn *turn)
{
    struct replica *replica = turn->replica;
    const bool keep = may_keep(self, turn->member);
    const struct wire_end_group job = { self->in_hand, keep, keep ? self->settled.step : 0 };
    self->over = self->in_hand;
    self->in_hand = self->lease = self->end.lease = 0;
    self->busy.number = self->busy.lease = self->busy.dead = self->busy.cut = 0;
    self->busy.broken = false;
    self->busy.because[0] = 0;
    self->say_ms = 0;
    replica->applying = false;
    keeper_drop(&self->keeper, turn);
    outbox_job(turn->out, PORT_LEARNER, FRAME_END_GROUP, &job);
    if (keep) replica_move(replica, turn->member, job.step, &self->settled.digest, self->epoch);
    else replica_drop(replica, "its group ended, and here is only a part of its state", turn->out);
}

// ---- what is due --------------------------------------------------------------------------------

static bool is_due(uint64_t *at_ms, const struct member_turn *turn)
{
    if (turn->in->now_ms < *at_ms) return false;
    *at_ms = turn->in->now_ms + turn->member->config.heartbeat_ms;
    return true;
}

static void say_end(struct leases_member *self, const struct member_turn *turn)
{
    // mutant: leases: an end that is lost is never said again
    if (self->end.lease && is_due(&self->end_ms, turn))
        outbox_mail(turn->out, "coordinator", FRAME_TASK_END, &self->end);
}

static void get_task(struct leases_member *self, const struct member_turn *turn)
{
    const struct member *member = turn->member;
    // mutant: leases: a task is asked for before the links stand
    const bool can_train = self->formed && !self->busy.broken && !self->closing.attempt;
    if (is_server(member) || !can_train || self->lease || self->end.lease || member->leaving ||
        !is_due(&self->ask_ms, turn))
        return;
    outbox_mail(turn->out, "coordinator", FRAME_GET_TASK,
                &(struct wire_get_task){ member->instance, self->in_hand, self->newest });
}

static void say_settled(struct leases_member *self, const struct member_turn *turn)
{
    if (self->settled.attempt && is_due(&self->settle_ms, turn))
        outbox_mail(turn->out, "coordinator", FRAME_SETTLED, &self->settled);
}

static void say_busy(struct leases_member *self, const struct member_turn *turn)
{
    const struct member *member = turn->member;
    if (!member->admitted || (member->leaving && !self->in_hand) || !self->busy.links[0] ||
        !is_due(&self->say_ms, turn))
        return;
    self->busy.instance = member->instance;
    self->busy.lease = self->lease;
    self->busy.leaves = member->leaving;
    outbox_mail(turn->out, "coordinator", FRAME_BUSY, &self->busy);
}

// A group that begins further on is open, and we are in it: its news was lost, or RUN came before.
static void ask_for_group(struct leases_member *self, const struct member_turn *turn)
{
    const struct wire_run *run = &turn->member->now;
    const struct wire_ask ask = { .topic = TOPIC_RUN };
    if (run->phase != PHASE_TRAIN || run->round <= self->group.number ||
        turn->in->now_ms < self->run_ms)
        return;
    self->run_ms = turn->in->now_ms + MEMBER_RETRY_MS;
    outbox_mail(turn->out, "coordinator", FRAME_ASK, &ask);
}

static void look_in_hand(struct leases_member *self, const struct member_turn *turn)
{
    if (is_over(self, turn->member, self->in_hand)) {
        end_group(self, turn);
        return;
    }
    say_end(self, turn);
    get_task(self, turn);
    say_settled(self, turn);
    keeper_look(&self->keeper, turn);
}

static void look(void *state, const struct member_turn *turn)
{
    struct leases_member *self = state;
    struct replica *replica = turn->replica;
    struct member *member = turn->member;
    if (!replica) return;
    if (role_takes_steps(member->role) && self->in_hand) look_in_hand(self, turn);
    else if (replica->ready) {
        replica_tell(replica, member, turn->in->now_ms, turn->out);
        if (role_takes_steps(member->role)) begin(self, turn);
    }
    if (!role_takes_steps(member->role)) return;
    ask_for_group(self, turn);
    // A server's share is of use to the others until the group is over; a trainer ends its task
    // mutant: leases: a member leaves with a task in its hands
    member->leaves_later = self->in_hand && (is_server(member) || self->lease || self->end.lease);
    say_busy(self, turn);
}

_Static_assert(sizeof(struct leases_member) <= PACE_PART_BYTES, "a role has room for its pace");

const struct member_pace member_pace_leases = { "leases", FRAME_LEASES_CONFIG, hear, look, NULL };
