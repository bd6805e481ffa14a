// muster -- lists who may be in a group, says what is missing, counts whose links break, and says for whom the epoch ends
// and when.

#include "common/pace/leases/muster.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t servers_wanted(const struct turn *turn)
{
    return leases_config(turn->rules)->servers;
}

// ---- choosing -----------------------------------------------------------------------------------

static bool may_be_chosen(const struct lease_pace *self, const struct turn *turn, uint32_t member,
                          uint8_t role, uint8_t state)
{
    const struct wire_member *at = &turn->run->roster.members[member];
    const struct busy *busy = &self->busy[member];
    // mutant: leases: a group names a member whose links are not known
    return at->role == role && at->state == state && busy->instance == at->instance &&
           busy->links[0] && !busy->leaves && !leases_is_unwell(self, member, at->instance);
}

static void add(const struct lease_pace *self, const struct turn *turn, uint32_t member,
                struct wire_place *ret_place)
{
    *ret_place = (struct wire_place){ .member = member,
                                      .instance = turn->run->roster.members[member].instance };
    memcpy(ret_place->links, self->busy[member].links, sizeof ret_place->links);
}

uint64_t muster_cut_ms(const struct lease_pace *self, const struct turn *turn, uint32_t member)
{
    const struct cut_off *cut = &self->cut_off[member];
    // mutant: leases: a trainer whose links break in each group is in the next one
    return cut->instance == turn->run->roster.members[member].instance &&
                   turn->now_ms < cut->until_ms
               ? cut->until_ms - turn->now_ms
               : 0;
}

// Without those whose links broke in the groups before, unless too few would be left to begin.
static uint32_t choose_trainers(const struct lease_pace *self, const struct turn *turn,
                                struct wire_place group[LEASES_GROUP_MAX])
{
    uint32_t count = 0, linked = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        linked += may_be_chosen(self, turn, i, ACTOR_TRAINER, MEMBER_HEALTHY) &&
                  muster_cut_ms(self, turn, i) == 0;
    // mutant: leases: nobody trains as the links of all trainers broke
    const bool all = linked == 0 || linked < turn->rules->min_clients;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (count + servers_wanted(turn) < LEASES_GROUP_MAX &&
            may_be_chosen(self, turn, i, ACTOR_TRAINER, MEMBER_HEALTHY) &&
            (all || muster_cut_ms(self, turn, i) == 0))
            add(self, turn, i, &group[count++]);
    return count;
}

bool muster_is_in_group(const struct run *run, uint32_t member)
{
    return leases_group_place(&leases_run_of(run)->group, member,
                              run->roster.members[member].instance) != NO_MEMBER;
}

// Those of the newest group that are here, if they are at most so many.
static uint32_t count_old_servers(const struct lease_pace *self, const struct turn *turn)
{
    uint32_t old = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        old += may_be_chosen(self, turn, i, ACTOR_SERVER, MEMBER_HEALTHY) &&
               muster_is_in_group(turn->run, i);
    return old < servers_wanted(turn) ? old : servers_wanted(turn);
}

static uint32_t choose_servers(const struct lease_pace *self, const struct turn *turn,
                               struct wire_place group[LEASES_GROUP_MAX], uint32_t count)
{
    uint32_t old = count_old_servers(self, turn), others = servers_wanted(turn) - old;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        if (!may_be_chosen(self, turn, i, ACTOR_SERVER, MEMBER_HEALTHY)) continue;
        // mutant: leases: a server that stood by drives out one that has the state
        uint32_t *left = muster_is_in_group(turn->run, i) ? &old : &others;
        if (*left == 0) continue;
        (*left)--;
        add(self, turn, i, &group[count++]);
    }
    return count;
}

uint32_t muster_choose(const struct lease_pace *self, const struct turn *turn,
                       struct wire_place group[LEASES_GROUP_MAX])
{
    return choose_servers(self, turn, group, choose_trainers(self, turn, group));
}

static uint32_t servers_of(const struct run *run, const struct wire_place *group, uint32_t count)
{
    uint32_t servers = 0;
    for (uint32_t i = 0; i < count; i++)
        servers += run->roster.members[group[i].member].role == ACTOR_SERVER;
    return servers;
}

// All servers, and at least one trainer.
static bool are_enough(const struct turn *turn, const struct wire_place *group, uint32_t count)
{
    const uint32_t servers = servers_of(turn->run, group, count), trainers = count - servers;
    return trainers > 0 && trainers >= turn->rules->min_clients && servers == servers_wanted(turn);
}

static bool is_chosen(const struct wire_place *group, uint32_t count, uint32_t member)
{
    for (uint32_t i = 0; i < count; i++)
        if (group[i].member == member) return true;
    return false;
}

bool muster_stays_pending(const struct turn *turn, uint32_t member)
{
    struct wire_place group[LEASES_GROUP_MAX];
    const uint32_t count = muster_choose(turn->live, turn, group);
    const bool is_server = turn->run->roster.members[member].role == ACTOR_SERVER;
    const bool is_full = count == LEASES_GROUP_MAX;
    return (is_server || is_full) && are_enough(turn, group, count) &&
           !is_chosen(group, count, member);
}

// ---- what an epoch lacks ------------------------------------------------------------------------

static const char *lacks_members(struct lease_pace *self, const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    const uint32_t wanted = servers_wanted(turn);
    const uint32_t here = roster_count(roster, ACTOR_SERVER, MEMBER_PENDING) +
                          roster_count(roster, ACTOR_SERVER, MEMBER_HEALTHY);
    // mutant: leases: a run begins before its servers are here
    if (here < wanted) {
        snprintf(self->lacks, sizeof self->lacks,
                 "waiting for parameter servers: servers.waiting have=%u desired=%u", here, wanted);
        return self->lacks;
    }
    return turn->run->pass_samples ? NULL
                                   : "waiting for a data-provider: it says how many samples a "
                                     "pass has, of which tasks are parts";
}

// A healthy member that takes steps and has not said where its links end; NO_MEMBER: each has.
static uint32_t without_links(const struct lease_pace *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const struct wire_member *at = &run->roster.members[i];
        const bool leaves = self->busy[i].instance == at->instance && self->busy[i].leaves;
        const bool is_unwell = leases_is_unwell(self, i, at->instance); // No group takes it
        if (role_takes_steps(at->role) && at->state == MEMBER_HEALTHY && !leaves && !is_unwell &&
            !may_be_chosen(self, turn, i, at->role, MEMBER_HEALTHY))
            return i;
    }
    return NO_MEMBER;
}

// All healthy members are waited for; when the time is up, only as many as a group needs.
static const char *lacks_links(struct lease_pace *self, const struct turn *turn)
{
    struct wire_place group[LEASES_GROUP_MAX];
    const uint32_t count = muster_choose(self, turn, group);
    const uint32_t without = without_links(self, turn);
    const bool enough = are_enough(turn, group, count);
    const bool late = turn->now_ms >= turn->presence->deadline_ms;
    if (enough && (without == NO_MEMBER || late)) return NULL;
    const uint32_t servers = servers_of(turn->run, group, count);
    if (without != NO_MEMBER)
        snprintf(self->lacks, sizeof self->lacks, "waiting for the links of %s",
                 turn->run->roster.members[without].name);
    else if (servers < servers_wanted(turn))
        snprintf(self->lacks, sizeof self->lacks,
                 "waiting for parameter servers: servers.waiting have=%u desired=%u", servers,
                 servers_wanted(turn));
    else
        snprintf(self->lacks, sizeof self->lacks,
                 "waiting for trainers: %u of %u are here (min_clients)", count - servers,
                 turn->rules->min_clients);
    return self->lacks;
}

const char *muster_lacks(struct lease_pace *self, const struct turn *turn)
{
    switch (turn->run->phase) {
    case PHASE_WAITING: return lacks_members(self, turn);
    case PHASE_WARMUP: return lacks_links(self, turn);
    default: return NULL;
    }
}

// ---- joiners, and the barrier -------------------------------------------------------------------

uint64_t muster_wait_ms(const struct lease_pace *self, const struct turn *turn)
{
    const uint64_t lasted_ms = turn->now_ms - self->barrier_ended_ms;
    const uint64_t least_ms = LEASES_BARRIERS * self->barrier_ms;
    return lasted_ms < least_ms ? least_ms - lasted_ms : 0;
}

static void note_cut(struct lease_pace *self, const struct turn *turn, const struct wire_place *at,
                     bool is_cut)
{
    struct cut_off *cut = &self->cut_off[at->member];
    const uint64_t time_ms = LEASES_CUT_TIMES * (uint64_t)leases_config(turn->rules)->settle_ms;
    if (cut->instance != at->instance || !is_cut)
        *cut = (struct cut_off){ .instance = at->instance };
    if (!is_cut || ++cut->groups < LEASES_CUTS) return;
    cut->groups = LEASES_CUTS - 1; // Once more, when it has been in the next one in vain, too
    cut->until_ms = turn->now_ms + time_ms;
    outbox_note(
        turn->out,
        "trainer.cut_off name=%s; its links broke in two groups in a row, and if enough others are "
        "left they go on without it for %" PRIu64 " s, or until it is started again",
        turn->run->roster.members[at->member].name, time_ms / 1000);
}

// Places of trainers whose links broke, or did not form. If a server names trainers, it is those: the group does not form
// for the others either, so they say that theirs broke, too. Else each is believed of itself. *ret_known is false if a
// server is dead, or cannot go on for another reason: then nothing is known of the trainers' links.
static uint64_t find_cuts(const struct lease_pace *self, const struct turn *turn, bool *ret_known)
{
    const struct wire_group *group = &leases_run_of(turn->run)->group;
    const uint32_t first = leases_group_servers(group, leases_config(turn->rules));
    uint64_t named = 0, own = 0;
    *ret_known = true;
    for (uint32_t i = 0; i < group->group_count; i++) {
        const struct busy *busy = leases_busy(self, &group->group[i]);
        const bool is_intact = leases_is_intact(turn->run, &group->group[i]);
        const bool is_broken = busy && busy->number == group->number && busy->broken;
        const uint64_t trainers = is_broken ? busy->cut & (leases_bit(first) - 1) : 0;
        if (i < first) own |= is_intact && is_broken ? leases_bit(i) : 0;
        // mutant: leases: a trainer is left out as its servers die
        else if (!is_intact || (is_broken && !trainers)) *ret_known = false;
        else named |= trainers;
    }
    // mutant: leases: a trainer is left out as another one does not link with a server
    return named ? named : own;
}

void muster_note_cuts(struct lease_pace *self, const struct turn *turn)
{
    const struct wire_group *group = &leases_run_of(turn->run)->group;
    const uint32_t first = leases_group_servers(group, leases_config(turn->rules));
    bool known;
    const uint64_t cuts = find_cuts(self, turn, &known);
    for (uint32_t i = 0; known && i < first; i++)
        note_cut(self, turn, &group->group[i], cuts & leases_bit(i));
}

// A trainer whose links to the servers broke: it gets no task in this group, and new links in the next.
static bool is_cut_off(const struct lease_pace *self, const struct run *run, uint32_t member)
{
    const struct busy *busy = &self->busy[member];
    // mutant: leases: a trainer whose links broke waits for the epoch to end
    return muster_is_in_group(run, member) && busy->broken &&
           busy->number == leases_run_of(run)->group.number;
}

// Whether a further trainer would be in a group of those that are left of this one.
static bool has_room(const struct turn *turn)
{
    const struct wire_group *group = &leases_run_of(turn->run)->group;
    uint32_t left = 0;
    for (uint32_t i = 0; i < group->group_count; i++)
        left += leases_is_intact(turn->run, &group->group[i]);
    return left < LEASES_GROUP_MAX;
}

// A server that is not in the group waits for the death of another one: no epoch ends for it.
uint32_t muster_joiner(const struct lease_pace *self, const struct turn *turn, bool soon)
{
    const struct run *run = turn->run;
    // mutant: leases: a joiner ends a young epoch
    if (!soon && muster_wait_ms(self, turn) > 0) return NO_MEMBER;
    const bool may_join = has_room(turn);
    for (uint32_t i = 0; i < run->roster.count; i++) {
        if (muster_cut_ms(self, turn, i) > 0) continue;
        if (is_cut_off(self, run, i) && may_be_chosen(self, turn, i, ACTOR_TRAINER, MEMBER_HEALTHY))
            return i;
        // One that was dropped and has come back gets no task in this group
        if (!may_join || muster_is_in_group(run, i)) continue;
        if (may_be_chosen(self, turn, i, ACTOR_TRAINER, MEMBER_PENDING) ||
            may_be_chosen(self, turn, i, ACTOR_TRAINER, MEMBER_HEALTHY))
            return i;
    }
    return NO_MEMBER;
}

static void begin_barrier(struct lease_pace *self, const struct turn *turn, uint64_t epoch)
{
    self->barrier_began_ms = turn->now_ms;
    self->barrier_closing_ms = 0;
    self->barrier_epoch = epoch;
}

// Why the epoch is to end may go away, as a joiner leaves.
void muster_barrier_look(struct lease_pace *self, const struct turn *turn, bool closes)
{
    const uint64_t next = turn->run->epoch + 1;
    // mutant: leases: the time in which the state is put together is not counted
    if (!closes) self->barrier_epoch = 0;
    else if (self->barrier_epoch != next) begin_barrier(self, turn, next);
}

void muster_barrier_again(struct lease_pace *self, const struct turn *turn)
{
    // mutant: leases: each joiner waits for the time that one member did not come
    begin_barrier(self, turn, turn->run->epoch + 1);
}

void muster_barrier_over(struct lease_pace *self, const struct turn *turn)
{
    muster_barrier_look(self, turn, true);
    self->barrier_closing_ms = turn->now_ms - self->barrier_began_ms;
}

void muster_barrier_resume(struct lease_pace *self, const struct turn *turn)
{
    begin_barrier(self, turn, turn->run->epoch);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// How long the barrier took for those that the new group names: not what the run was paused or waited for members,
// and not what Warmup waited when all of its members held the state. The first one, or the one after the run has gone
// back: since members load a state.
void muster_barrier_end(struct lease_pace *self, const struct turn *turn)
{
    const struct presence *presence = turn->presence;
    const struct rules *rules = turn->rules;
    const uint64_t warmup_ms = turn->now_ms - presence->epoch_began_ms;
    const bool is_whole = self->barrier_began_ms && turn->run->epoch == self->barrier_epoch;
    const uint64_t all_ms = is_whole ? turn->now_ms - self->barrier_began_ms : warmup_ms;
    const uint64_t most_ms =
        self->barrier_closing_ms + rules->cooldown_ms + rules->waiting_ms + warmup_ms;
    const uint64_t in_vain_ms = presence->ready_ms ? turn->now_ms - presence->ready_ms : 0;
    self->barrier_ms = least(all_ms, most_ms) - least(in_vain_ms, least(all_ms, most_ms));
    self->barrier_ended_ms = turn->now_ms;
}
