// opening -- says whether another window is opened, chooses its group, steps, samples and rates, and says what an
// epoch lacks to begin.

#include "common/pace/windows/opening.h"
#include "common/base/ensure.h"
#include "common/pace/windows/differ.h"
#include "common/pace/windows/linking.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include "common/pace/windows/voided.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool takes_steps(const struct run *run, uint32_t member, uint8_t state)
{
    const struct wire_member *place = &run->roster.members[member];
    return role_takes_steps(place->role) && place->state == state;
}

// ---- the end of an epoch ------------------------------------------------------------------------

// Those of the newest group that go on. Returns how many.
static uint32_t group_left(const struct windows *self, const struct run *run,
                           struct wire_place group[WINDOW_MEMBERS_MAX])
{
    const struct wire_window *last = windows_newest(run);
    uint32_t left = 0;
    for (uint32_t i = 0; i < last->group_count; i++)
        // mutant: windows: a member that is left out stays in the group
        if (standing_stays(self, run, &last->group[i])) group[left++] = last->group[i];
    return left;
}

// Whether this trainer is in the next window though it was not in the newest: where servers have the state it needs
// none. `forgives`: also if it was left out.
static bool may_enter(const struct windows *self, const struct turn *turn, uint32_t member,
                      bool forgives)
{
    const struct run *run = turn->run;
    const struct wire_member *at = &run->roster.members[member];
    const struct stands *stands = &self->stands[member];
    return places_servers_wanted(turn) > 0 && at->role == ACTOR_TRAINER && roster_is_here(at) &&
           // mutant: servers: a trainer that loads a state is in the next window
           stands->instance == at->instance && stands->enters && !stands->leaves &&
           (self->is_left_out[member]
                ? forgives
                // One of that group that was dropped and has come back is in it no more (seed 7534)
                : at->state == MEMBER_PENDING ||
                      window_place(windows_newest(run), member, at->instance) == NO_MEMBER);
}

// Those of the newest group that go on, and the trainers that enter: each part in the order of the roster.
static uint32_t group_with(const struct windows *self, const struct turn *turn, bool forgives,
                           struct wire_place group[WINDOW_MEMBERS_MAX])
{
    const struct run *run = turn->run;
    uint32_t count = group_left(self, run, group);
    for (uint32_t i = 0; i < run->roster.count && count < WINDOW_MEMBERS_MAX; i++) {
        struct wire_place place = { .member = i, .instance = run->roster.members[i].instance };
        // mutant: servers: a trainer enters without its links
        if (!may_enter(self, turn, i, forgives) || !linking_stands(self, &place, group, count))
            continue;
        const uint32_t trainers = count - places_servers(run, group, count);
        uint32_t at = 0;
        while (at < trainers && group[at].member < i) at++;
        memmove(&group[at + 1], &group[at], (count - at) * sizeof *group);
        memcpy(place.links, self->stands[i].links, sizeof place.links);
        group[at] = place;
        count++;
    }
    return count;
}

// While each server holds its share alone, no epoch ends. A trainer that is left out until the next epoch would never
// come back then. So it is let in again, if there are too few trainers without it.
static uint32_t group_next(const struct windows *self, const struct turn *turn,
                           struct wire_place group[WINDOW_MEMBERS_MAX])
{
    const uint32_t count = group_with(self, turn, false, group);
    // mutant: servers: the run waits for good for trainers that it has left out
    const bool forgives = self->apart && !windows_are_open(turn->run);
    if (!forgives || places_are_enough(turn, group, count)) return count;
    return group_with(self, turn, true, group);
}

// A trainer that is linked with the group, is not in it and cannot enter it: it waits for the next epoch. A server too
// many waits for the death of another one.
static bool somebody_waits(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *last = windows_newest(run);
    if (linking_wait_ms(self, turn) > 0) return false;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const bool trains = run->roster.members[i].role == ACTOR_TRAINER;
        const bool here =
            takes_steps(run, i, MEMBER_PENDING) || takes_steps(run, i, MEMBER_HEALTHY);
        // mutant: servers: an epoch ends for a server that has no place
        // mutant: servers: an epoch ends for a trainer that can enter
        if (trains && here && linking_has_joined(self, run, i) &&
            !may_enter(self, turn, i, false) &&
            (self->is_left_out[i] ||
             window_place(last, i, run->roster.members[i].instance) == NO_MEMBER))
            return true;
    }
    return false;
}

// The step that ends the epoch: rounds_per_epoch counts steps here. UINT64_MAX: time ends it.
static uint64_t epoch_end(const struct turn *turn)
{
    const uint32_t steps = turn->rules->epoch_rounds;
    return steps ? turn->run->epoch_start_step + steps : UINT64_MAX;
}

// The servers are there, each with its share alone, and there are too few trainers for a window. With the next one that
// comes the run goes on; if the epoch ended, the shares would be lost.
static bool keeps_shares(const struct windows *self, const struct turn *turn,
                         const struct wire_place *group, uint32_t count)
{
    const uint32_t servers = places_servers_wanted(turn);
    // mutant: servers: without trainers the shares of the servers are lost
    return servers > 0 && self->apart && !places_are_enough(turn, group, count) &&
           places_servers(turn->run, group, count) >= servers;
}

bool opening_waits(const struct windows *self, const struct turn *turn)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    return keeps_shares(self, turn, group, group_next(self, turn, group));
}

const char *opening_why_not(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct rules *rules = turn->rules;
    const uint64_t next = windows_are_open(run) ? window_end(windows_newest(run)) : run->step;
    const bool may_end = !self->apart; // By what can wait for a window
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t left = group_next(self, turn, group);
    const bool waits = keeps_shares(self, turn, group, left);
    if (next >= rules->total_steps) return "all steps are done";
    if (next >= epoch_end(turn)) return "the epoch's steps are done";
    if (may_end && rules->epoch_ms &&
        turn->now_ms - turn->presence->epoch_began_ms >= rules->epoch_ms)
        return "the epoch's time is up";
    if (run->pausing && voided_pauses(run)) return "a step was void twice";
    if ((may_end || waits) && run->pausing) return "a pause was asked for";
    // mutant: windows: a checkpoint that the owner wants waits for the end of the epoch
    if (may_end && turn->presence->wants_end) return "a checkpoint was asked for";
    if (differ_ends_epoch(run)) return "the states of the members differ";
    if (places_servers(run, group, left) < places_servers_wanted(turn))
        return "a parameter server is missing";
    if (!waits && !places_are_enough(turn, group, left)) return "too few members";
    return may_end && somebody_waits(self, turn) ? "a trainer waits to join" : NULL;
}

// ---- the next window -----------------------------------------------------------------------------

static uint32_t list_role(const struct windows *self, const struct turn *turn, uint8_t role,
                          uint8_t state, struct wire_place group[WINDOW_MEMBERS_MAX],
                          uint32_t count)
{
    const struct run *run = turn->run;
    const uint32_t room = role == ACTOR_TRAINER ? places_servers_wanted(turn) : 0; // For servers
    for (uint32_t i = 0; i < run->roster.count && count + room < WINDOW_MEMBERS_MAX; i++) {
        const struct wire_member *member = &run->roster.members[i];
        if (member->role != role || member->state != state || !standing_has_links(self, run, i))
            continue;
        struct wire_place *place = &group[count++];
        *place = (struct wire_place){ .member = i, .instance = member->instance };
        memcpy(place->links, self->stands[i].links, sizeof place->links);
    }
    return count;
}

// The trainers of this state whose links are known, then the servers, behind those that are in `group`. Returns how
// many there are.
static uint32_t list_linkable(const struct windows *self, const struct turn *turn, uint8_t state,
                              struct wire_place group[WINDOW_MEMBERS_MAX], uint32_t count)
{
    count = list_role(self, turn, ACTOR_TRAINER, state, group, count);
    return list_role(self, turn, ACTOR_SERVER, state, group, count);
}

// Those that hold the run's step and are linked: when an epoch begins all healthy trainers and as many servers as
// there are places, later those of the group that are left, and trainers that need no state. In the order of places.h.
// Returns how many.
static uint32_t choose_group(const struct windows *self, const struct turn *turn,
                             struct wire_place group[WINDOW_MEMBERS_MAX])
{
    const struct run *run = turn->run;
    if (run->phase == PHASE_TRAIN) return group_next(self, turn, group);
    const uint32_t count = list_linkable(self, turn, MEMBER_HEALTHY, group, 0);
    // mutant: windows: a window names trainers that have no link
    return linking_choose(self, turn, group, count);
}

static uint32_t choose_steps(const struct windows *self, const struct turn *turn, uint64_t first)
{
    const uint64_t total = turn->rules->total_steps, end = epoch_end(turn);
    const uint64_t left = (end < total ? end : total) - first;
    const uint64_t window_us = (uint64_t)windows_config(turn->rules)->window_ms * 1000;
    uint64_t steps = self->step_us ? window_us / self->step_us : WINDOW_FIRST_STEPS;
    if (self->step_us && steps > self->steps_max) steps = self->steps_max;
    if (steps > WINDOW_STEPS_MAX) steps = WINDOW_STEPS_MAX;
    if (steps > left) steps = left;
    return steps ? (uint32_t)steps : 1;
}

static void put_rates(const struct turn *turn, struct wire_window *window, uint8_t *lr_bits)
{
    for (uint32_t k = 0; k < window->steps; k++) {
        const float rate = schedule_rate(&turn->rules->lr, (uint32_t)(window->step + k + 1), NULL);
        uint32_t bits;
        memcpy(&bits, &rate, sizeof bits);
        for (uint32_t i = 0; i < 4; i++) lr_bits[4 * k + i] = (uint8_t)(bits >> 8 * i);
    }
    window->lr_bits = (struct wire_bytes){ lr_bits, 4 * window->steps };
}

static uint64_t samples_after(const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *newest = windows_newest(run);
    if (!windows_are_open(run)) return run->samples_done;
    return newest->samples_done + interval_list_total(newest->samples, newest->samples_count);
}

// Those that enter were pending, or left out, until now.
static void admit(struct windows *self, const struct turn *turn, const struct wire_place *group,
                  uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        self->is_left_out[group[i].member] = false;
        if (self->missed_member == group[i].member) self->missed[0] = 0;
        // mutant: servers: a pending member is in a group
        if (turn->run->roster.members[group[i].member].state == MEMBER_PENDING)
            turn_set_state(turn, group[i].member, MEMBER_HEALTHY);
    }
}

void opening_open(struct windows *self, const struct turn *turn)
{
    struct run *run = turn->run;
    const uint64_t step = windows_are_open(run) ? window_end(windows_newest(run)) : run->step;
    const struct wire_steps *closing = &windows_run_of(run)->closing;
    struct wire_place group[WINDOW_MEMBERS_MAX];
    uint8_t lr_bits[4 * WINDOW_STEPS_MAX];
    struct wire_window window = {
        .number = run->number + 1,
        .epoch = run->epoch,
        .step = step,
        .steps = choose_steps(self, turn, step),
        .samples_done = samples_after(turn),
        .samples = run->scratch,
        .group = group,
        .group_count = choose_group(self, turn, group),
        .epoch_elapsed_ms = turn->now_ms - turn->presence->epoch_began_ms,
        .barrier_ms = self->barrier_ms,
        .previous = windows_run_of(run)->last_steps,
        .closed_from = closing->number,
        .closed = closing->closed,
        .closed_at = closing->end,
        .kept_step = windows_run_of(run)->memory.kept.at.step,
        .kept_window = windows_run_of(run)->memory.kept_in,
        .drops = !windows_are_open(run),
    };
    ensure(window.group_count > 0);
    admit(self, turn, group, window.group_count);
    self->open_ms = 0;
    self->mends = self->apart;
    self->apart = false;
    put_rates(turn, &window, lr_bits);
    const uint64_t count = window_count(&window, windows_config(turn->rules), turn->rules->seq_len,
                                        step, window_end(&window));
    // The table is asked and put back: only the record, applied, changes it.
    ensure(table_deal(&run->table, window.number, count, run->scratch, TABLE_INTERVALS_MAX,
                      &window.samples_count) == TABLE_OK);
    ensure(table_return_rest(&run->table, window.number) == TABLE_OK);
    if (!windows_are_open(run)) self->began_ms = turn->now_ms;
    turn_put(turn, FRAME_RECORD_WINDOW, &window);
    turn_arm(turn);
}

// ---- what an epoch lacks to begin ----------------------------------------------------------------

// Which trainers would begin if they all held the model, and since when they have been the same.
static void note_linked(struct windows *self, const struct turn *turn)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t healthy = list_linkable(self, turn, MEMBER_HEALTHY, group, 0);
    const uint32_t count = linking_choose(self, turn, group, healthy);
    bool same = count == self->linked_count;
    for (uint32_t i = 0; i < count; i++) {
        same = same && self->linked[i] == group[i].member;
        self->linked[i] = group[i].member;
    }
    self->linked_count = count;
    if (!same) self->linked_ms = turn->now_ms;
}

// All healthy members are waited for; when the time is up, only as many as an epoch needs.
static const char *lacks_links(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const bool late = turn->now_ms >= turn->presence->deadline_ms;
    uint32_t without = NO_MEMBER;
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t count = list_linkable(self, turn, MEMBER_HEALTHY, group, 0);
    const bool has_servers = places_servers(run, group, count) >= places_servers_wanted(turn);
    note_linked(self, turn);
    for (uint32_t i = 0; i < run->roster.count; i++) {
        if (!takes_steps(run, i, MEMBER_HEALTHY) || self->stands[i].leaves) continue;
        const bool is_spare = run->roster.members[i].role == ACTOR_SERVER && has_servers;
        if (!standing_has_links(self, run, i) && !is_spare) without = i;
    }
    if (without == NO_MEMBER || (late && places_are_enough(turn, group, count))) {
        const char *pair = linking_lacks(self, turn, group, count, late);
        self->linking.has_failed |= late && pair;
        return pair;
    }
    snprintf(self->lacks, sizeof self->lacks, "waiting for the links of %s",
             run->roster.members[without].name);
    return self->lacks;
}

bool opening_stays_pending(const struct turn *turn, uint32_t member)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t count = list_linkable(turn->live, turn, MEMBER_HEALTHY, group, 0);
    return linking_stays_pending(turn->live, turn, member, group, count);
}

// A Warmup that could not begin is not tried again before it can.
static const char *still_lacks_links(struct windows *self, const struct turn *turn)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    if (!self->linking.has_failed) return NULL;
    const uint32_t healthy = list_linkable(self, turn, MEMBER_HEALTHY, group, 0);
    const uint32_t count = list_linkable(self, turn, MEMBER_PENDING, group, healthy);
    return linking_lacks(self, turn, group, count, true);
}

// The servers that are here, before there is an epoch.
static const char *lacks_servers(struct windows *self, const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    const uint32_t wanted = places_servers_wanted(turn);
    const uint32_t here = roster_count(roster, ACTOR_SERVER, MEMBER_PENDING) +
                          roster_count(roster, ACTOR_SERVER, MEMBER_HEALTHY);
    // mutant: servers: a run begins before its servers are here
    if (here >= wanted) return NULL;
    snprintf(self->lacks, sizeof self->lacks,
             "waiting for parameter servers: servers.waiting have=%u desired=%u", here, wanted);
    return self->lacks;
}

// Each server keeps its share of the newest step meanwhile.
static const char *lacks_trainers(struct windows *self, const struct turn *turn)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t count = group_next(self, turn, group);
    if (windows_are_open(turn->run) || !keeps_shares(self, turn, group, count)) return NULL;
    snprintf(
        self->lacks, sizeof self->lacks,
        "waiting for trainers: %u of %u are here (min_clients); the parameter servers keep step "
        "%" PRIu64,
        count - places_servers(turn->run, group, count), turn->rules->min_clients, turn->run->step);
    return self->lacks;
}

const char *opening_lacks(struct windows *self, const struct turn *turn)
{
    switch (turn->run->phase) {
    case PHASE_TRAIN: return lacks_trainers(self, turn);
    case PHASE_WAITING: {
        const char *servers = lacks_servers(self, turn);
        return servers ? servers : still_lacks_links(self, turn);
    }
    case PHASE_WARMUP: return lacks_links(self, turn);
    default: return NULL;
    }
}
