// level -- who lives, who has answered, where the windows are closed, and who is left out of the next one.

#include "common/pace/windows/level.h"
#include "common/pace/windows/differ.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include "common/pace/windows/voided.h"
#include "common/run/holder.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STRIKES_MAX = 3 };

static uint64_t bit(uint32_t place) { return (uint64_t)1 << place; }

static const struct stands *stands_of(const struct windows *self, const struct wire_place *place)
{
    const struct stands *stands = &self->stands[place->member];
    return stands->instance == place->instance ? stands : NULL;
}

static bool is_of_open(const struct run *run, uint64_t window)
{
    return window >= windows_first(run)->number && window <= windows_newest(run)->number;
}

// ---- what has broken ----------------------------------------------------------------------------

static bool has_broken(const struct windows *self, const struct run *run,
                       const struct wire_place *place)
{
    const struct stands *stands = stands_of(self, place);
    if (!standing_is_intact(run, place)) return true;
    // One that is frozen was asked by an earlier life of the coordinator
    return stands && is_of_open(run, stands->window) && (stands->broken || stands->level);
}

static uint64_t behind_limit_ms(const struct turn *turn)
{
    return (uint64_t)windows_config(turn->rules)->step_timeout_ms + turn->rules->lease_ms;
}

void level_watch(struct windows *self, const struct turn *turn)
{
    if (!windows_are_open(turn->run) || !standing_behind(self, turn->run)) self->behind_ms = 0;
    else if (!self->behind_ms) self->behind_ms = turn->now_ms;
}

bool level_is_due(const struct windows *self, const struct turn *turn)
{
    const struct wire_window *window = windows_first(turn->run);
    // mutant: windows: a member that never says its later steps is waited for
    bool due =
        self->level || (self->behind_ms && turn->now_ms - self->behind_ms >= behind_limit_ms(turn));
    for (uint32_t i = 0; i < window->group_count; i++)
        due |= has_broken(self, turn->run, &window->group[i]);
    return due;
}

void level_hear(struct windows *self, const struct turn *turn, uint32_t member,
                const struct wire_stands *said)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const struct stands *stands = &self->stands[member];
    if (!windows_run_of(run)->open || !said->broken || !is_of_open(run, said->window) ||
        window_place(window, member, said->instance) == NO_MEMBER || !stands->missing)
        return;
    const uint32_t place = (uint32_t)__builtin_ctzll(stands->missing);
    const uint32_t blamed = window->group[place].member;
    if (blamed == member) return;
    if (!(self->blames & bit(place)))
        outbox_note(turn->out, "window.broke number=%" PRIu64 " by=%s missing=%s dead=%s",
                    said->window, run->roster.members[member].name,
                    run->roster.members[blamed].name, stands->dead & bit(place) ? "yes" : "no");
    self->blames |= bit(place);
    self->pair[0] = member < blamed ? member : blamed;
    self->pair[1] = member < blamed ? blamed : member;
}

// ---- who lives, and has answered ----------------------------------------------------------------

static const struct wire_member *member_of(const struct run *run, const struct wire_place *place)
{
    return &run->roster.members[place->member];
}

// It may have been dropped and have come back: then it waits for the next epoch, but is the same process.
static bool lives(const struct run *run, const struct wire_place *place)
{
    const struct wire_member *member = member_of(run, place);
    return member->instance == place->instance && roster_is_here(member);
}

static bool may_come_back(const struct run *run, const struct wire_place *place)
{
    const struct wire_member *member = member_of(run, place);
    return member->instance == place->instance && member->state == MEMBER_DROPPED;
}

static bool has_answered(const struct windows *self, const struct run *run,
                         const struct wire_place *place)
{
    const struct stands *stands = stands_of(self, place);
    return stands && stands->level &&
           (stands->level == self->level || is_of_open(run, stands->window));
}

// It has said so in this break: so it lives, whatever others say.
static bool has_spoken(const struct windows *self, const struct run *run,
                       const struct wire_place *place)
{
    const struct stands *stands = stands_of(self, place);
    return has_answered(self, run, place) || (stands && stands->heard == self->level);
}

static uint64_t all_places(const struct run *run)
{
    return (bit(windows_first(run)->group_count - 1) << 1) - 1;
}

static uint64_t places_that(const struct windows *self, const struct run *run,
                            bool (*test)(const struct windows *, const struct run *,
                                         const struct wire_place *))
{
    const struct wire_window *window = windows_first(run);
    uint64_t places = 0;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (lives(run, &window->group[i]) && test(self, run, &window->group[i])) places |= bit(i);
    return places;
}

static bool always(const struct windows *self, const struct run *run,
                   const struct wire_place *place)
{
    (void)self, (void)run, (void)place;
    return true;
}

static bool is_broken(const struct windows *self, const struct run *run,
                      const struct wire_place *place)
{
    const struct stands *stands = stands_of(self, place);
    return stands && stands->broken && is_of_open(run, stands->window);
}

// The places whose processes are dead, by what the others say.
static uint64_t called_dead(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const uint64_t answered = places_that(self, run, has_answered);
    const uint64_t spoken = places_that(self, run, has_spoken);
    const uint64_t say = answered | places_that(self, run, is_broken);
    uint64_t all = UINT64_MAX, any = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint64_t dead = say & bit(i) ? self->stands[window->group[i].member].dead : 0;
        if (answered & bit(i)) all &= dead;
        any |= dead;
    }
    // mutant: windows: a member that answers is put out because another calls it dead
    const uint64_t silent = places_that(self, run, always) & ~spoken;
    if (turn->now_ms - self->began_level_ms >= turn->rules->heartbeat_ms) return any & silent;
    if (!answered) return 0;
    all &= any & silent;
    // mutant: windows: one member's word puts out all others
    return __builtin_popcountll(all) <= __builtin_popcountll(answered) ? all : 0;
}

// The places whose learners hang: step_timeout has passed twice for them. Who broke for another reason names nobody that is
// overdue; then each has the time that is given to one that says no later steps, from when it was asked.
static uint64_t hanging(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const uint64_t answered = places_that(self, run, has_answered);
    const uint64_t broken = places_that(self, run, is_broken);
    uint64_t late = broken;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct stands *stands = &self->stands[window->group[i].member];
        if ((answered | broken) & bit(i) && stands->overdue) late |= stands->missing;
    }
    if (self->behind_ms && self->began_level_ms >= self->behind_ms + behind_limit_ms(turn))
        late |= standing_behind(self, run);
    const uint64_t limit_ms = windows_config(turn->rules)->step_timeout_ms;
    if (!answered || turn->now_ms - self->began_level_ms < limit_ms) return 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint64_t asked_ms = self->asked_ms[i];
        // mutant: windows: a learner that hangs, and whom nobody calls overdue, is waited for
        if (asked_ms && turn->now_ms - asked_ms >= limit_ms + behind_limit_ms(turn)) late |= bit(i);
    }
    // mutant: windows: a learner that hangs is waited for
    return late & ~answered;
}

// The places whose answer is waited for: all that live if nobody else is left.
static uint64_t awaited(const struct windows *self, const struct turn *turn)
{
    const uint64_t all = places_that(self, turn->run, always);
    const uint64_t sure = all & ~called_dead(self, turn) & ~hanging(self, turn);
    return sure ? sure : all;
}

// It has all that its step needs, of a window that is open: of an earlier one it had other samples.
static bool has_step(const struct windows *self, const struct run *run,
                     const struct wire_place *place)
{
    const struct stands *stands = stands_of(self, place);
    // mutant: windows: what is in memory of an earlier window counts
    return stands && stands->has && is_of_open(run, stands->window);
}

// ---- closing ------------------------------------------------------------------------------------

// Which answers can be true together: `at` stand at a step, `beyond` one step further. A member goes further when all
// have said HAVE (holder.h), so then all of `at` have what the step needs. If more of them than are beyond say that they
// have not, those beyond are wrong. So they are if as many say it, unless somebody at that step says that it has. With
// shares a member says that it has not until it has heard the HAVE of all. So there nobody is found wrong by that.
static uint64_t who_fit(const struct windows *self, const struct turn *turn, uint64_t at,
                        uint64_t beyond)
{
    const struct wire_window *window = windows_first(turn->run);
    uint64_t bare = 0;
    if (windows_config(turn->rules)->parts != PARTS_NONE) return at | beyond;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (at & bit(i) && !has_step(self, turn->run, &window->group[i])) bare |= bit(i);
    const int more = __builtin_popcountll(bare) - __builtin_popcountll(beyond);
    // mutant: windows: one member that says it is further takes the state from the others
    return bare && (more > 0 || (more == 0 && bare == at)) ? at : at | beyond;
}

// Nobody that lives is more than one step beyond the slowest. Of answers that say otherwise those count that
// most others fit; if as many fit two of them, the lower ones. Returns the places of the false ones.
static uint64_t false_answers(const struct windows *self, const struct turn *turn, uint64_t places)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    uint64_t steps[WINDOW_MEMBERS_MAX], counts = 0, fit = 0, best = 0;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (places & bit(i) && standing_step(self, run, i, &steps[i])) counts |= bit(i);
    for (uint32_t i = 0; i < window->group_count; i++) {
        uint64_t at = 0, beyond = 0;
        if (!(counts & bit(i))) continue;
        for (uint32_t j = 0; j < window->group_count; j++) {
            if (counts & bit(j) && steps[j] == steps[i]) at |= bit(j);
            if (counts & bit(j) && steps[j] == steps[i] + 1) beyond |= bit(j);
        }
        // A committed step stays committed, so an answer below it proves nobody wrong
        const uint64_t these = steps[i] < run->step ? at | beyond : who_fit(self, turn, at, beyond);
        const int more = __builtin_popcountll(these) - __builtin_popcountll(fit);
        if (more > 0 || (more == 0 && steps[i] < best)) {
            fit = these;
            best = steps[i];
        }
    }
    // mutant: windows: a step that nobody can have reached is committed
    return counts & ~fit;
}

static uint64_t end_by_answers(const struct windows *self, const struct run *run, uint64_t places)
{
    const struct wire_window *window = windows_first(run);
    struct holder_answer answers[WINDOW_MEMBERS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        struct holder_answer *answer = &answers[count];
        if (!(places & bit(i)) || !standing_step(self, run, i, &answer->step)) continue;
        answer->has = has_step(self, run, &window->group[i]);
        count++;
    }
    const uint64_t end = holder_window_end(answers, count, run->step);
    const uint64_t most = window_end(windows_newest(run));
    return end < most ? end : most;
}

static void leave_out(struct windows *self, const struct turn *turn, uint32_t place,
                      const char *why, uint64_t *left_out)
{
    const struct wire_place *out = &windows_first(turn->run)->group[place];
    self->is_left_out[out->member] = true;
    // It may be dead, and then waits for nothing. If it lives, it says where its links are within a
    // heartbeat, and waits to join from then on.
    self->stands[out->member].links[0] = 0;
    *left_out |= bit(place);
    self->missed_member = out->member;
    const struct wire_member *member = member_of(turn->run, out);
    const bool may_enter = places_servers_wanted(turn) > 0 && member->role == ACTOR_TRAINER;
    const char *sooner = may_enter ? ", or until too few trainers are left" : "";
    snprintf(self->missed, sizeof self->missed, "%s is left out until the next epoch%s: %s",
             member->name, sooner, why);
    outbox_note(turn->out, "member.left_out name=%s because=\"%s\"; until the next epoch%s",
                member->name, why, sooner);
}

// One that nobody waits for, and one that does not hold the step at which the window ends and cannot make it. The
// first is dropped, so that no barrier waits for its lease to run out; should it live, it joins again. The other
// fetches the state, unless it needs none.
static void leave_out_the_absent(struct windows *self, const struct turn *turn, uint64_t places,
                                 uint64_t end, uint64_t *left_out)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const uint64_t hang = hanging(self, turn);
    const uint32_t owner = places_first_owner(turn, window);
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct wire_place *place = &window->group[i];
        uint64_t step = 0;
        if (!standing_is_intact(run, place) || *left_out & bit(i)) continue;
        const bool counts = standing_step(self, run, i, &step);
        // With shares it may still hear how long those of the others are (learner_step_hear_out)
        const bool may = windows_config(turn->rules)->parts != PARTS_NONE;
        const bool has = counts && (may || has_step(self, run, place));
        // mutant: servers: a trainer without a state is left out
        const bool needs_state = i >= owner;
        if (!(places & bit(i))) {
            leave_out(self, turn, i,
                      hang & bit(i) ? "it did not say within step_timeout where it stands"
                                    : "others call it dead",
                      left_out);
            // mutant: windows: a barrier waits for the lease of a dead member
            turn_set_state(turn, place->member, MEMBER_DROPPED);
        } else if (needs_state && (!counts || (step != end && !(step + 1 == end && has))))
            leave_out(self, turn, i, "it does not hold the run's step", left_out);
    }
}

// One that lives, and whose part did not come within step_timeout. It is left out if others had said before that it is
// late, or if it is the second time in a row; until then it may have been held up once.
static void judge_overdue(struct windows *self, const struct turn *turn, uint64_t places,
                          uint64_t *left_out)
{
    const struct wire_window *window = windows_first(turn->run);
    uint64_t overdue = 0;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (is_broken(self, turn->run, &window->group[i]) &&
            self->stands[window->group[i].member].overdue)
            overdue |= self->stands[window->group[i].member].missing & places;
    const uint32_t out = overdue ? (uint32_t)__builtin_ctzll(overdue) : 0;
    const uint32_t member = overdue ? window->group[out].member : NO_MEMBER;
    const bool late = member != NO_MEMBER && late_is_said(&self->late, member);
    // mutant: windows: a member that is overdue again and again is waited for
    if (member != NO_MEMBER && (late || member == self->last_overdue))
        leave_out(self, turn, out,
                  late ? "it was late, and then its part of a step took longer than step_timeout"
                       : "its part of a step took longer than step_timeout, twice in a row",
                  left_out);
    self->last_overdue = member;
}

// Two that cannot hear each other twice in a row, though all live: one of them is left out. Of the two, the
// one that is blamed; if both are, the later one. Of a trainer and the owner of a share it is the trainer. Where one is
// dead, others stop because of it, and are blamed by those that hear them stop.
static void judge_pair(struct windows *self, const struct turn *turn, uint64_t places,
                       uint64_t *left_out)
{
    const struct wire_window *window = windows_first(turn->run);
    const bool again = self->pair[0] != NO_MEMBER && self->pair[0] == self->last_pair[0] &&
                       self->pair[1] == self->last_pair[1];
    uint32_t out = NO_MEMBER, pair = 0, trainer = NO_MEMBER, owners = 0;
    // mutant: windows: one that hears another stop because of a death is left out
    if (places != all_places(turn->run)) {
        self->pair[0] = self->pair[1] = NO_MEMBER;
        return;
    }
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint32_t member = window->group[i].member;
        if (!(places & bit(i)) || (member != self->pair[0] && member != self->pair[1])) continue;
        pair++;
        if (self->blames & bit(i)) out = i;
        if (!(places_that_own(turn) & bit(i))) trainer = i;
        else owners++;
    }
    if (trainer != NO_MEMBER && owners > 0) out = trainer;
    // mutant: windows: a link that breaks again and again is tried for ever
    if (again && pair == 2 && out != NO_MEMBER && !(*left_out & bit(out)))
        leave_out(self, turn, out, "the link between the same two broke twice", left_out);
}

// Whose fault a break is, if one member's: the only one that cannot go on, or the one whose bytes all others lack
// that cannot.
static uint32_t suspect(const struct windows *self, const struct run *run)
{
    const struct wire_window *window = windows_first(run);
    const uint64_t broken = places_that(self, run, is_broken);
    if (broken && !(broken & (broken - 1))) return (uint32_t)__builtin_ctzll(broken);
    for (uint32_t place = 0; broken && place < window->group_count; place++) {
        bool all = true;
        for (uint32_t i = 0; i < window->group_count; i++)
            if (i != place && broken & bit(i))
                all &= self->stands[window->group[i].member].missing == bit(place);
        if (all) return place;
    }
    return NO_MEMBER;
}

// A member whose fault three breaks in a row are, while nobody dies, is left out.
static void count_strikes(struct windows *self, const struct turn *turn, uint64_t places,
                          uint64_t *left_out)
{
    const struct wire_window *window = windows_first(turn->run);
    const uint32_t place = suspect(self, turn->run);
    const uint32_t member = place == NO_MEMBER ? 0 : window->group[place].member;
    const uint32_t strikes = self->strikes[member];
    for (uint32_t i = 0; i < window->group_count; i++) self->strikes[window->group[i].member] = 0;
    if (place == NO_MEMBER || places != all_places(turn->run)) return;
    self->strikes[member] = (uint8_t)(strikes + 1);
    // mutant: windows: a strike is not counted
    if (self->strikes[member] >= STRIKES_MAX && !(*left_out & bit(place)))
        leave_out(self, turn, place, "three breaks in a row were its fault", left_out);
}

// A minority whose state differs. They can fetch it when an epoch begins.
static void leave_out_the_different(struct windows *self, const struct turn *turn, uint64_t differ,
                                    uint64_t *left_out)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    if (!holder_is_minority(differ, window->group_count)) return;
    for (uint32_t i = 0; i < window->group_count; i++)
        // mutant: windows: a member whose state differs stays in the group
        if (differ & bit(i) && standing_is_intact(run, &window->group[i]) && !(*left_out & bit(i)))
            leave_out(self, turn, i, "its state differs from that of the majority", left_out);
}

static void leave_out_the_false(struct windows *self, const struct turn *turn, uint64_t false_ones,
                                uint64_t *left_out)
{
    for (uint32_t i = 0; i < windows_first(turn->run)->group_count; i++)
        if (false_ones & bit(i))
            leave_out(self, turn, i,
                      "the step that it says it holds does not fit those of the others", left_out);
}

// Two tries follow at once. Then the run waits, and says what the first member said that cannot go on. A step that
// is committed ends the row (windows.c).
static void count_fruitless(struct windows *self, const struct turn *turn, uint64_t end,
                            uint64_t left_out)
{
    enum { TRIES = 2, DOUBLINGS = 16 };
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    bool same = end == window->step && left_out == 0;
    snprintf(self->because, sizeof self->because, "waiting until the group can take a step");
    bool told = false;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct stands *stands = &self->stands[window->group[i].member];
        same &= standing_is_intact(run, &window->group[i]);
        if (told || !is_broken(self, run, &window->group[i]) || !stands->because[0]) continue;
        told = true;
        snprintf(self->because, sizeof self->because, "waiting until %s can go on: %s",
                 member_of(run, &window->group[i])->name, stands->because);
    }
    self->fruitless = same ? self->fruitless + 1 : 0;
    // mutant: windows: a group that cannot go on tries again at once
    if (self->fruitless <= TRIES) return;
    const uint32_t doublings = self->fruitless - TRIES - 1;
    const uint64_t wait_ms = (uint64_t)(turn->rules->heartbeat_ms / 4 + 1)
                             << (doublings < DOUBLINGS ? doublings : DOUBLINGS);
    self->open_ms =
        turn->now_ms + (wait_ms < turn->rules->lease_ms ? wait_ms : turn->rules->lease_ms);
}

static void close_windows(struct windows *self, const struct turn *turn, uint64_t places)
{
    const struct run *run = turn->run;
    const uint64_t lies = false_answers(self, turn, places), began = run->step;
    const uint64_t end = end_by_answers(self, run, places & ~lies);
    struct windows_closing closing = { .voided = voided_find(self, turn, end),
                                       .differ = differ_find(self, run, end) };
    leave_out_the_false(self, turn, lies, &closing.left_out);
    leave_out_the_absent(self, turn, places, end, &closing.left_out);
    differ_note(turn, end, closing.differ);
    leave_out_the_different(self, turn, closing.differ, &closing.left_out);
    // A step that is void or refused has been said by those that met it: nobody was silent
    if (closing.voided.times == 0 && closing.differ == 0) {
        judge_overdue(self, turn, places, &closing.left_out);
        judge_pair(self, turn, places, &closing.left_out);
        count_strikes(self, turn, places, &closing.left_out);
    }
    outbox_note(turn->out, "window.closed number=%" PRIu64 " step=%" PRIu64 " committed=%" PRIu64,
                windows_newest(run)->number, end, end - began);
    count_fruitless(self, turn, end, closing.left_out);
    windows_close(self, turn, end, &closing);
    // mutant: windows: an epoch ends and the shares of its state lie apart
    self->apart =
        windows_config(turn->rules)->parts != PARTS_NONE &&
        (closing.left_out & places_that_own(turn)) == 0 &&
        // Once, and again for each that goes: if the same group breaks again, nobody waits any longer
        // mutant: servers: of two trainers that die one after the other the second costs the state
        (!self->mends || closing.left_out != 0);
    voided_settle(turn, &closing.voided);
    if (self->lonely_ms) {
        self->given_up_ms = turn->now_ms;
        self->given_up_since_ms = self->lonely_ms;
    }
    self->behind_ms = 0;
    self->level = self->level_ms = self->began_level_ms = self->lonely_ms = self->blames = 0;
    for (int i = 0; i < 2; i++) {
        self->last_pair[i] = self->pair[i];
        self->pair[i] = NO_MEMBER;
    }
}

// Whether the newest committed step lives on without the members of the windows, who may be further: as a
// checkpoint, as the first parameters, or in the memory of a process that is here. That it was pinned is not
// enough: those that reported it may be these very members (seed 93284 of the simulator).
static bool is_kept(const struct turn *turn)
{
    const struct run *run = turn->run;
    // mutant: windows: a step that was pinned is taken for kept
    if (run_has_checkpoint(run) || run->step == turn->rules->first_step) return true;
    for (uint32_t i = 0; i < run->roster.count; i++)
        if (turn->presence->step_held[i] == run->step &&
            interval_length(pace_held_by(turn, i)) > 0 && !pace_is_doubted(turn, i))
            return true;
    return false;
}

static uint32_t trainers_here(const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    // mutant: windows: new processes of members that died are nobody else
    return roster_count(roster, ACTOR_TRAINER, MEMBER_PENDING) +
           roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY);
}

// Whether the run may go on without what the members of the windows hold. As long as nobody else is here, we
// assume that the coordinator is cut off. A new process of a member that died is somebody else, and healthy.
static bool is_lost(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    bool hope = false;
    for (uint32_t i = 0; i < window->group_count; i++)
        hope |= may_come_back(run, &window->group[i]);
    if (!hope) return true;
    if (!is_kept(turn) || trainers_here(turn) < turn->rules->init_min_clients) {
        self->lonely_ms = 0;
        return false;
    }
    if (!self->lonely_ms) self->lonely_ms = turn->now_ms;
    return turn->now_ms - self->lonely_ms >= PACE_SEARCH_LEASES * (uint64_t)turn->rules->lease_ms;
}

bool level_is_lonely(const struct windows *self, const struct run *run)
{
    return self->level && places_that(self, run, always) == 0;
}

const char *level_lonely_words(struct windows *self, const struct turn *turn)
{
    const uint32_t here = trainers_here(turn), wanted = turn->rules->init_min_clients;
    snprintf(self->lacks, sizeof self->lacks,
             "no member of window %" PRIu64 " is here, and they alone hold its newest steps",
             windows_newest(turn->run)->number);
    const size_t used = strlen(self->lacks);
    if (self->lonely_ms)
        snprintf(self->lacks + used, sizeof self->lacks - used,
                 ": waiting for them up to %" PRIu64 " s",
                 PACE_SEARCH_LEASES * (uint64_t)turn->rules->lease_ms / 1000);
    // mutant: windows: a run that needs more trainers to go back does not say so
    else if (here < wanted && is_kept(turn))
        snprintf(self->lacks + used, sizeof self->lacks - used,
                 ": without them it goes back once %u more trainer%s here (init_min_clients %u)",
                 wanted - here, wanted - here == 1 ? " is" : "s are", wanted);
    return self->lacks;
}

const char *level_waits(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    if (!self->level || turn->now_ms - self->began_level_ms < turn->rules->heartbeat_ms)
        return NULL;
    const uint64_t missing = awaited(self, turn) & ~places_that(self, run, has_answered);
    if (!missing) return NULL;
    snprintf(self->lacks, sizeof self->lacks, "waiting for %s to say where it stands",
             member_of(run, &window->group[__builtin_ctzll(missing)])->name);
    return self->lacks;
}

// ---- asking -------------------------------------------------------------------------------------

static void ask(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const struct wire_level level = { .window = windows_newest(run)->number, .level = self->level };
    self->level_ms = turn->now_ms + turn->rules->heartbeat_ms / 4 + 1;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct wire_place *place = &window->group[i];
        const bool asks = lives(run, place) && !has_answered(self, run, place);
        if (!asks) self->asked_ms[i] = 0;
        else if (!self->asked_ms[i]) self->asked_ms[i] = turn->now_ms;
        if (asks) outbox_mail(turn->out, member_of(run, place)->name, FRAME_LEVEL, &level);
    }
}

void level_settle(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    if (!self->level) {
        self->level = run->log_seq;
        self->began_level_ms = turn->now_ms;
        memset(self->asked_ms, 0, sizeof self->asked_ms);
    }
    const uint64_t places = awaited(self, turn);
    bool all = true;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (places & bit(i)) all &= has_answered(self, run, &window->group[i]);
    if (places) self->lonely_ms = 0;
    if (places ? all : is_lost(self, turn)) close_windows(self, turn, places);
    else if (turn->now_ms >= self->level_ms) ask(self, turn);
}

uint64_t level_due_ms(const struct windows *self, const struct turn *turn)
{
    if (self->level) return self->level_ms;
    return self->behind_ms ? self->behind_ms + behind_limit_ms(turn) : 0;
}
