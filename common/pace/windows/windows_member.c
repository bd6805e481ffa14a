// windows_member -- the member's half. A trainer or a parameter server gives its windows to the learner, one after the other, tells the
// coordinator where it stands, and ends a window as STEPS, the next WINDOW or RUN says. A checkpointer takes no
// step: it goes from one pinned state to the next.
//
//     nothing in hand ──WINDOW, its step is held──▶ in hand ──the next WINDOW follows──▶ in hand
//            ▲                                         │ FREEZE ─▶ FROZEN ─▶ STANDS
//            └──CLOSED_WINDOW◀── CLOSE_WINDOW ◀── STEPS closed, a WINDOW that does not follow, RUN
//
// While a window is in hand the learner is busy: nothing is loaded, pinned or told (replica.applying). The
// digest of the state is not known then. It is asked for when the run's epoch is over.
//
// All that is said by mail may be lost, and is said again: STANDS once a heartbeat, and four times as often as
// long as the coordinator seems to wait for it. What the coordinator says is news; the windows that are open
// come again with an ASK.
#include "common/pace/windows/windows_member.h"
#include "common/run/older.h"
#include "common/run/phase.h"
#include <stdio.h>
#include <string.h>

static void hear(void *state, const struct member_turn *turn)
{
    struct windows_member *self = state;
    struct replica *replica = turn->replica;
    if (replica) {
        replica->follows_pins = true;
        replica->can_replay = false;
        replica->waits_for_pin = role_takes_steps(turn->member->role);
        if (turn->heard & HEARD_CONFIG && role_takes_steps(turn->member->role)) {
            const struct wire_windows_config *config = windows_config_of(&turn->member->config);
            memcpy(replica->shared_dir, config->shared_dir, sizeof replica->shared_dir);
            replica->needs_no_state = config->servers > 0 && turn->member->role == ACTOR_TRAINER;
        }
    }
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_WINDOW)
        windows_member_hear_window(self, turn);
    if (role_takes_steps(turn->member->role) && replica) windows_member_hear(self, turn);
}

// ---- ending a window ----------------------------------------------------------------------------

static void close_window(struct windows_member *self, const struct member_turn *turn, uint64_t end,
                         bool digest)
{
    self->closing = turn->replica->applying = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_CLOSE_WINDOW,
               &(struct wire_close_window){ windows_member_in_hand(self) ? self->stands.window : 0,
                                            end, digest });
}

// The run makes no steps now, and no window is newer than this one: so it is over.
static bool is_over_by_run(const struct member *member, uint64_t window)
{
    return member->now.round == window && !phase_makes_steps(member->now.phase);
}

enum outlook {
    GOES_ON,
    IS_OVER,    // At a step that is known exactly: the last one may be applied from memory
    IS_PAST,    // Somewhere: the commits say whether the step in memory counts
    IS_UNKNOWN, // The coordinator is asked how it ended
};

// Whether the windows in hand are over. A step in memory is the run's only if it is certain that the window did not end
// before it: by a closing of this window, by the window right behind it, or by RUN if that knows no later window.
static enum outlook outlook(const struct windows_member *self, const struct member_turn *turn,
                            uint64_t *ret_end)
{
    const struct wire_run *run = &turn->member->now;
    const struct wire_window *next = windows_member_kept(self, self->newest + 1);
    *ret_end = self->closed_at;
    // mutant: windows: a later closing is taken for that of this window
    if (self->closed >= self->newest && self->closed_from <= self->newest) return IS_OVER;
    if (next) {
        const bool leads_on = self->closed <= self->newest && next->step == self->newest_end &&
                              windows_member_place(next, turn->member) != UINT32_MAX;
        *ret_end = next->step;
        return leads_on ? GOES_ON : IS_OVER;
    }
    *ret_end = run->step;
    if (is_over_by_run(turn->member, self->newest)) return IS_OVER;
    if (self->closed > self->newest || windows_member_newest(self)->number > self->newest)
        return IS_PAST;
    if (run->round <= self->newest || phase_makes_steps(run->phase)) return GOES_ON;
    *ret_end = self->newest_end; // Nothing says that it was closed
    return self->stands.step == self->newest_end ? IS_OVER : IS_UNKNOWN;
}

static void ask(struct windows_member *self, const struct member_turn *turn, uint8_t topic,
                uint64_t from)
{
    if (turn->in->now_ms < self->ask_ms) return;
    self->ask_ms = turn->in->now_ms + MEMBER_RETRY_MS;
    outbox_mail(turn->out, "coordinator", FRAME_ASK, &(struct wire_ask){ topic, from });
}

// The newest step that the run is known to have reached: RUN may come later than what the pace says.
static uint64_t run_step(const struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_run *run = &turn->member->now;
    uint64_t step = run->step;
    if (replica_is_given_up(run, self->stands.step + 1, turn->replica->epoch)) return step;
    if (self->closed > self->newest && self->closed_at > step) step = self->closed_at;
    if (windows_member_newest(self)->number > self->newest &&
        windows_member_newest(self)->step > step)
        step = windows_member_newest(self)->step;
    return step;
}

// The windows in hand ended at this step or before it: a later one begins or ended there. UINT64_MAX: no later one is
// known.
static uint64_t latest_end(const struct windows_member *self)
{
    const struct wire_window *newest = windows_member_newest(self);
    uint64_t end = self->closed > self->newest ? self->closed_at : UINT64_MAX;
    if (newest->number > self->newest && newest->step < end) end = newest->step;
    return end;
}

// Whether the step that was applied last is the run's. It is, if no step of the windows in hand was applied.
static uint8_t applied(const struct windows_member *self, const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    if (replica_is_given_up(&turn->member->now, self->stands.step, replica->epoch))
        return IS_NOT_THE_RUNS;
    return self->stands.step == self->first_step ? IS_THE_RUNS : self->applied;
}

// The run has gone on, and where the windows in hand ended is not known. The run may have given up what was applied
// here, as none of those who had it came back in time (level.h; found by seed 403625). It has, if a later window begins or ends
// before our step, or if another window made that step (windows_member_test). Else what is applied is the run's, and one
// step more may be in memory: all others that had it may have died.
static void leave_window(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_stands *stands = &self->stands;
    if (!self->is_frozen) { // It says where exactly it stands
        windows_member_freeze(self, turn);
        return;
    }
    const uint64_t end = latest_end(self);
    // mutant: windows: who comes back to a run that has given its window up keeps its steps
    if (end < stands->step) {
        close_window(self, turn, end, false);
        return;
    }
    switch (applied(self, turn)) {
    case IS_OPEN: ask(self, turn, TOPIC_COMMITS, stands->step - 1); return;
    // mutant: windows: who comes back to a run whose later windows have passed its step keeps its steps
    case IS_NOT_THE_RUNS: close_window(self, turn, self->first_step, false); return;
    }
    if (!stands->has || run_step(self, turn) <= stands->step) self->memory = IS_NOT_THE_RUNS;
    if (self->memory == IS_OPEN) {
        ask(self, turn, TOPIC_COMMITS, stands->step);
        return;
    }
    const uint64_t step = stands->step + (self->memory == IS_THE_RUNS);
    // The newest window may name us: nobody shall wait for the run's step from here
    // mutant: windows: who is left behind is taken for one that holds the newest step
    if (step < run_step(self, turn)) self->lost = true;
    close_window(self, turn, step, false);
}

// ---- taking a window ----------------------------------------------------------------------------

// With the keys of the roster. 0: it is behind.
static uint32_t list_linked(const struct member *member, const struct wire_place *places,
                            uint32_t count, struct wire_linked *ret_list)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_member *at = member_at(member, places[i].member);
        if (!at) return 0;
        ret_list[i] = (struct wire_linked){ .key = at->key, .instance = places[i].instance };
        memcpy(ret_list[i].endpoint, places[i].links, sizeof ret_list[i].endpoint);
    }
    return count;
}

// From now on it counts as holding `step`: the servers send it the parameters when the first step begins.
static void enter(struct replica *replica, struct member *member, uint64_t step)
{
    replica->holding = true;
    replica->failures = 0;
    replica->step = member->step_held = step;
    replica->digest = (struct hash){ { 0 } };
    replica->beginnings++;
}

static void take(struct windows_member *self, const struct member_turn *turn,
                 const struct wire_window *window, bool enters)
{
    const struct member *member = turn->member;
    struct wire_linked group[WINDOW_MEMBERS_MAX];
    struct wire_holder providers[16];
    struct wire_take_window job = {
        .number = window->number,
        .step = window->step,
        .steps = window->steps,
        .samples_done = window->samples_done,
        .lr_bits = window->lr_bits,
        .samples = window->samples,
        .samples_count = window->samples_count,
        .group = group,
        .group_count = list_linked(member, window->group, window->group_count, group),
        .place = windows_member_place(window, member),
        .providers = providers,
        .providers_count = member_providers(member, window->number, providers, 16),
        .data = member->now.data,
        .order = member->now.order,
        .born_unix_ms = member->born_unix_ms,
        .pass_samples = member->now.pass_samples,
        // mutant: saves: the save that a restore needs is removed
        .spare = older_saves_spare(&member->now.older, member->now.restore_point_step,
                                   windows_config_of(&member->config)->keep),
        .kept_step = window->kept_step,
        .kept_window = window->kept_window,
        .drops = window->drops,
        .enters = enters,
    };
    if (job.group_count == 0) return;
    if (!windows_member_in_hand(self)) {
        self->first = window->number;
        self->first_step = window->step;
        self->stands.window = window->number;
        self->stands.step = window->step;
        self->stands.has = self->stands.broken = self->stands.stopped = false;
        // mutant: windows: who held a share holds one for ever
        self->stands.share = enters;
        self->stands.overdue = false;
        self->stands.missing = 0;
        self->stands.dead = self->stands.heard = 0;
        self->stands.because[0] = 0;
        self->stands.unsound = UNSOUND_NONE;
        self->stands.differ = 0;
        self->stands.level = 0;
        self->level = 0;
        self->lost = false;
        turn->replica->applying = true;
        turn->replica->epoch = window->epoch;
    }
    if (enters) enter(turn->replica, turn->member, window->step);
    if (window->drops) keeper_drop(&self->keeper, turn);
    self->newest = window->number;
    self->newest_end = window_end(window);
    self->epoch = window->epoch;
    outbox_job(turn->out, PORT_LEARNER, FRAME_TAKE_WINDOW, &job);
}

// Whether it keeps what the epoch begins with for joiners, or the run already pins a later state.
static bool has_pinned(const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    return replica->pin_step == replica->step || turn->member->now.pin_step > replica->step;
}

// The oldest open window that begins with the step that is held. NULL: none does.
static const struct wire_window *next_window(const struct windows_member *self,
                                             const struct member_turn *turn)
{
    const struct wire_window *oldest = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const struct wire_window *window = &self->kept[i].frame;
        // mutant: windows: a frozen window is begun all the same
        if (window->number <= self->frozen) continue;
        if (window->number <= self->closed || window->number <= self->done) continue;
        if (window->step != turn->replica->step ||
            windows_member_place(window, turn->member) == UINT32_MAX ||
            is_over_by_run(turn->member, window->number))
            continue;
        if (!oldest || window->number < oldest->number) oldest = window;
    }
    return oldest;
}

// Each member of a group has told the digest of the state that its epoch begins with (HOLDS), or took part in the
// window before.
static void begin(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *window = next_window(self, turn);
    if (window && (turn->replica->epoch >= window->epoch || has_pinned(turn)))
        take(self, turn, window, false);
}

// A trainer of a run with servers that has nothing else to do now.
static bool may_enter(const struct windows_member *self, const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    return replica->needs_no_state && replica->built && turn->member->admitted &&
           turn->member->has_run && phase_makes_steps(turn->member->now.phase) &&
           !turn->member->leaving && !replica->loading && !replica->fetching &&
           !windows_member_in_hand(self) && !self->closing;
}

// The newest window names us, so it is taken whatever is held. A trainer that holds the state at its first step begins
// it as all others do, and pins that state before.
static void enter_window(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *window = windows_member_newest(self);
    const struct replica *replica = turn->replica;
    // mutant: servers: who holds the state enters without it
    if (replica->holding && replica->step == window->step) return;
    // mutant: servers: a trainer enters a window that is over
    if (may_enter(self, turn) && window->number > self->frozen && window->number > self->closed &&
        window->number > self->done && windows_member_place(window, turn->member) != UINT32_MAX &&
        !is_over_by_run(turn->member, window->number))
        take(self, turn, window, true);
}

// The next window follows without a break. It is given before the present one is done.
static void follow(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *window = windows_member_kept(self, self->newest + 1);
    const struct wire_stands *stands = &self->stands;
    if (!window || stands->level || stands->broken || stands->stopped || self->freezing ||
        self->is_frozen)
        return;
    if (window->number <= self->frozen) return;
    if (windows_member_place(window, turn->member) != UINT32_MAX) take(self, turn, window, false);
}

// ---- what is due --------------------------------------------------------------------------------

// The coordinator waits for an answer, or cannot open or commit the rest without it.
static bool is_urgent(const struct windows_member *self)
{
    const struct wire_stands *stands = &self->stands;
    return stands->level || stands->heard || stands->broken || stands->stopped ||
           (windows_member_in_hand(self) && stands->step == self->newest_end);
}

static void say(struct windows_member *self, const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const uint32_t every_ms = member->config.heartbeat_ms;
    if (!member->admitted || (member->leaving && !windows_member_in_hand(self)) ||
        !self->stands.links[0] || turn->in->now_ms < self->say_ms)
        return;
    self->stands.instance = member->instance;
    self->stands.leaves = member->leaving;
    self->stands.lost = self->lost;
    self->stands.enters = may_enter(self, turn);
    self->say_ms = turn->in->now_ms + (is_urgent(self) ? every_ms / 4 : every_ms);
    outbox_mail(turn->out, "coordinator", FRAME_STANDS, &self->stands);
}

// An epoch is over: the digest of its last step is wanted.
static bool is_digest_due(const struct member_turn *turn)
{
    const struct wire_run *run = &turn->member->now;
    return hash_is_none(&turn->replica->digest) && !phase_makes_steps(run->phase) &&
           run->step == turn->replica->step;
}

// The learner links with the newest list once its model is built, so that it has links.
static void expect(struct windows_member *self, const struct member_turn *turn)
{
    struct wire_linked list[WINDOW_MEMBERS_MAX];
    if (self->linking == self->expecting || !self->stands.links[0]) return;
    for (uint32_t i = 0; i < self->trainers_count; i++) {
        const struct wire_member *at = member_at(turn->member, self->trainers[i].member);
        if (!at || at->instance != self->trainers[i].instance) return; // The roster is behind
    }
    const struct wire_expect job = {
        .number = self->linking,
        .trainers = list,
        .trainers_count = list_linked(turn->member, self->trainers, self->trainers_count, list),
    };
    self->expecting = self->linking;
    outbox_job(turn->out, PORT_LEARNER, FRAME_EXPECT, &job);
}

// A window that begins further on is open, and we are in its group: the news of one before it was lost.
static void ask_for_window(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *newest = windows_member_newest(self);
    if (turn->member->now.phase == PHASE_TRAIN && newest->number > self->closed &&
        newest->step > turn->replica->step &&
        windows_member_place(newest, turn->member) != UINT32_MAX)
        ask(self, turn, TOPIC_RUN, 0);
}

// What was answered without a window in hand is old once that window is over.
static void forget_answer(struct windows_member *self, const struct member_turn *turn)
{
    const uint64_t window = self->stands.window;
    if (windows_member_in_hand(self) || !self->stands.level) return;
    if (self->closed >= window || windows_member_newest(self)->number > window ||
        is_over_by_run(turn->member, window))
        self->stands.level = 0;
}

// The owner pauses the run, or this member leaves it: the group need not run out.
static void stop(struct windows_member *self, const struct member_turn *turn)
{
    const bool wished = turn->member->now.pausing || turn->member->leaving;
    if (!wished || self->is_stopping || self->closing) return;
    self->is_stopping = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_STOP_WINDOW,
               &(struct wire_stop_window){ self->newest });
}

static void look_in_hand(struct windows_member *self, const struct member_turn *turn)
{
    uint64_t end = 0;
    if (self->closing) return;
    switch (outlook(self, turn, &end)) {
    case GOES_ON:
        follow(self, turn);
        stop(self, turn);
        break;
    case IS_UNKNOWN: ask(self, turn, TOPIC_RUN, 0); break;
    case IS_OVER: close_window(self, turn, end, is_over_by_run(turn->member, self->newest)); break;
    case IS_PAST: leave_window(self, turn); break;
    }
}

// A window that is open names us, and we have lost the state that it begins with: its group cannot take a step. Nobody
// shall wait until that shows.
static void say_missed(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *newest = windows_member_newest(self);
    struct wire_stands *stands = &self->stands;
    const struct replica *replica = turn->replica;
    // mutant: servers: a trainer without a state keeps its group from a step
    if (replica->needs_no_state || turn->member->now.phase != PHASE_TRAIN ||
        newest->number <= self->closed || (replica->holding && replica->step == newest->step) ||
        newest->number <= self->done || newest->number <= stands->window ||
        windows_member_place(newest, turn->member) == UINT32_MAX)
        return;
    stands->window = newest->number;
    stands->step = 0;
    stands->has = stands->stopped = false;
    // mutant: windows: a member that holds nothing is waited for
    stands->broken = true;
    snprintf(stands->because, sizeof stands->because, "it has lost the state of the run");
    self->say_ms = 0;
}

static void look(void *state, const struct member_turn *turn)
{
    struct windows_member *self = state;
    struct replica *replica = turn->replica;
    if (!replica) return;
    if (!role_takes_steps(turn->member->role)) {
        if (replica->ready) replica_tell(replica, turn->member, turn->in->now_ms, turn->out);
        return;
    }
    forget_answer(self, turn);
    expect(self, turn);
    if (windows_member_in_hand(self)) {
        keeper_look(&self->keeper, turn);
        look_in_hand(self, turn);
    } else if (replica->ready) {
        replica_tell(replica, turn->member, turn->in->now_ms, turn->out);
        if (is_digest_due(turn)) close_window(self, turn, replica->step, true);
        else begin(self, turn);
        if (!windows_member_in_hand(self) && !self->closing) ask_for_window(self, turn);
    }
    if (!windows_member_in_hand(self) && !self->closing && self->lost) say_missed(self, turn);
    enter_window(self, turn);
    // Said at once: the coordinator has a window for it
    if (may_enter(self, turn) && !self->stands.enters) self->say_ms = 0;
    // mutant: windows: a member leaves in the middle of a step
    turn->member->leaves_later = windows_member_in_hand(self);
    say(self, turn);
}

_Static_assert(sizeof(struct windows_member) <= PACE_PART_BYTES, "a role has room for its pace");

const struct member_pace member_pace_windows = { "windows", FRAME_WINDOWS_CONFIG, hear, look,
                                                 NULL };
