// level -- who lives, who has answered, where the windows are closed, and who is left out of the next one.

#include "common/pace/windows/level.h"
#include "common/pace/windows/differ.h"
#include "common/pace/windows/standing.h"
#include "common/pace/windows/voided.h"
#include "common/run/holder.h"
#include <inttypes.h>
#include <stdio.h>

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

// A member that is frozen was asked by an earlier life of the coordinator.
static bool has_broken(const struct windows *self, const struct run *run,
                       const struct wire_place *place)
{
    const struct stands *stands = stands_of(self, place);
    if (!standing_is_intact(run, place)) return true;
    return stands && is_of_open(run, stands->window) && (stands->broken || stands->level);
}

bool level_is_due(const struct windows *self, const struct turn *turn)
{
    const struct wire_window *window = windows_first(turn->run);
    bool due = self->level || self->gone;
    for (uint32_t i = 0; i < window->group_count; i++)
        due |= has_broken(self, turn->run, &window->group[i]);
    return due;
}

void level_hear(struct windows *self, const struct turn *turn, uint32_t member,
                const struct wire_stands *said)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    if (!windows_run_of(run)->open || !said->broken || !is_of_open(run, said->window) ||
        said->missing == 0 || said->missing > window->group_count ||
        window_place(window, member, said->instance) == NO_MEMBER)
        return;
    const uint32_t place = said->missing - 1, blamed = window->group[place].member;
    if (blamed == member) return;
    if (!(self->blames & bit(place)))
        outbox_note(turn->out, "window.broke number=%" PRIu64 " by=%s missing=%s gone=%s",
                    said->window, run->roster.members[member].name,
                    run->roster.members[blamed].name, said->gone ? "yes" : "no");
    self->blames |= bit(place);
    if (said->gone) self->gone |= bit(place);
    if (said->overdue) self->overdue |= bit(place);
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
    return member->instance == place->instance &&
           (member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING);
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
    return has_answered(self, run, place) ||
           (stands && stands->broken && is_of_open(run, stands->window));
}

// The places whose answer is waited for. One that others call dead is not, unless it has spoken, or unless
// there is no other.
static uint64_t awaited(const struct windows *self, const struct run *run)
{
    const struct wire_window *window = windows_first(run);
    uint64_t all = 0, sure = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        if (!lives(run, &window->group[i])) continue;
        all |= bit(i);
        // mutant: windows: a member that answers is put out because another calls it dead
        if (!(self->gone & bit(i)) || has_spoken(self, run, &window->group[i])) sure |= bit(i);
    }
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
    snprintf(self->missed, sizeof self->missed, "trainer %s is left out until the next epoch: %s",
             member_of(turn->run, out)->name, why);
    outbox_note(turn->out, "member.left_out name=%s because=\"%s\"; until the next epoch",
                member_of(turn->run, out)->name, why);
}

// One that is called dead and has not answered, and one that does not hold the step at which the window ends and
// cannot make it. The first is dropped, so that no barrier waits for its lease to run out; should it live, it joins
// again. The other fetches the state.
static void leave_out_the_absent(struct windows *self, const struct turn *turn, uint64_t places,
                                 uint64_t end, uint64_t *left_out)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct wire_place *place = &window->group[i];
        uint64_t step = 0;
        if (!standing_is_intact(run, place)) continue;
        const bool counts = standing_step(self, run, i, &step);
        const bool has = counts && has_step(self, run, place);
        if (!(places & bit(i))) {
            leave_out(self, turn, i, "others call it dead", left_out);
            // mutant: windows: a barrier waits for the lease of a dead member
            turn_set_state(turn, place->member, MEMBER_DROPPED);
        } else if (!counts || (step != end && !(step + 1 == end && has)))
            leave_out(self, turn, i, "it does not hold the run's step", left_out);
    }
}

// One that lives, and whose part did not come within step_timeout. It is left out if others had said before that it is
// late, or if it is the second time in a row; until then it may have been held up once.
static void judge_overdue(struct windows *self, const struct turn *turn, uint64_t places,
                          uint64_t *left_out)
{
    const struct wire_window *window = windows_first(turn->run);
    uint32_t out = 0;
    while (out < window->group_count && !(self->overdue & places & bit(out))) out++;
    const uint32_t member = out < window->group_count ? window->group[out].member : NO_MEMBER;
    const bool late = member != NO_MEMBER && late_is_said(&self->late, member);
    // mutant: windows: a member that is overdue again and again is waited for
    if (member != NO_MEMBER && (late || member == self->last_overdue))
        leave_out(self, turn, out,
                  late ? "it was late, and then its part of a step took longer than step_timeout"
                       : "its part of a step took longer than step_timeout, twice in a row",
                  left_out);
    self->last_overdue = member;
}

// Two that cannot hear each other twice in a row, though both live: one of them is left out. Of the two, the
// one that is blamed; if both are, the later one.
static void judge_pair(struct windows *self, const struct turn *turn, uint64_t places,
                       uint64_t *left_out)
{
    const struct wire_window *window = windows_first(turn->run);
    const bool again = self->pair[0] != NO_MEMBER && self->pair[0] == self->last_pair[0] &&
                       self->pair[1] == self->last_pair[1];
    uint32_t out = NO_MEMBER, pair = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint32_t member = window->group[i].member;
        if (!(places & bit(i)) || (member != self->pair[0] && member != self->pair[1])) continue;
        pair++;
        if (self->blames & bit(i)) out = i;
    }
    // mutant: windows: a link that breaks again and again is tried for ever
    if (again && pair == 2 && out != NO_MEMBER && !(*left_out & bit(out)))
        leave_out(self, turn, out, "the link between the same two broke twice", left_out);
}

// A member that says "broken" three times in a row, and nobody else does and nobody dies, is left out.
static void count_strikes(struct windows *self, const struct turn *turn, uint64_t places,
                          uint64_t *left_out)
{
    const struct wire_window *window = windows_first(turn->run);
    uint32_t broken = 0, by = 0, whole = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const struct stands *stands = stands_of(self, &window->group[i]);
        whole += (places & bit(i)) != 0;
        if (!stands || !stands->broken || !is_of_open(turn->run, stands->window)) continue;
        broken++;
        by = i;
    }
    const uint32_t member = window->group[by].member;
    const uint32_t strikes = self->strikes[member];
    for (uint32_t i = 0; i < window->group_count; i++) self->strikes[window->group[i].member] = 0;
    if (broken != 1 || whole != window->group_count) return;
    self->strikes[member] = (uint8_t)(strikes + 1);
    // mutant: windows: a strike is not counted
    if (self->strikes[member] >= STRIKES_MAX)
        leave_out(self, turn, by, "it alone said three times that it cannot go on", left_out);
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

static void close_windows(struct windows *self, const struct turn *turn, uint64_t places)
{
    const struct run *run = turn->run;
    const uint64_t end = end_by_answers(self, run, places), began = run->step;
    struct windows_closing closing = { .voided = voided_find(self, turn, end),
                                       .differ = differ_find(self, run, end) };
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
    windows_close(self, turn, end, &closing);
    voided_settle(turn, &closing.voided);
    self->level = self->level_ms = self->lonely_ms = self->gone = self->blames = self->overdue = 0;
    for (int i = 0; i < 2; i++) {
        self->last_pair[i] = self->pair[i];
        self->pair[i] = NO_MEMBER;
    }
}

// Whether the run may go on without what the members of the windows hold. As long as nobody else is here, it is
// rather the coordinator that is cut off.
static bool is_lost(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const bool is_kept = !hash_is_none(&run->restore_point.digest) || run->pin_step == run->step;
    bool hope = false;
    for (uint32_t i = 0; i < window->group_count; i++)
        hope |= may_come_back(run, &window->group[i]);
    if (!hope) return true;
    if (!is_kept ||
        roster_count(&run->roster, ACTOR_TRAINER, MEMBER_PENDING) < turn->rules->init_min_clients) {
        self->lonely_ms = 0;
        return false;
    }
    if (!self->lonely_ms) self->lonely_ms = turn->now_ms;
    return turn->now_ms - self->lonely_ms >= PACE_SEARCH_LEASES * (uint64_t)turn->rules->lease_ms;
}

bool level_is_lonely(const struct windows *self, const struct run *run)
{
    return self->level && awaited(self, run) == 0;
}

// ---- asking -------------------------------------------------------------------------------------

static void ask(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    const struct wire_level level = { .window = windows_newest(run)->number, .level = self->level };
    self->level_ms = turn->now_ms + turn->rules->heartbeat_ms / 4 + 1;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (lives(run, &window->group[i]) && !has_answered(self, run, &window->group[i]))
            outbox_mail(turn->out, member_of(run, &window->group[i])->name, FRAME_LEVEL, &level);
}

void level_settle(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *window = windows_first(run);
    if (!self->level) self->level = run->log_seq;
    const uint64_t places = awaited(self, run);
    bool all = true;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (places & bit(i)) all &= has_answered(self, run, &window->group[i]);
    if (places) self->lonely_ms = 0;
    if (places ? all : is_lost(self, turn)) close_windows(self, turn, places);
    else if (turn->now_ms >= self->level_ms) ask(self, turn);
}

uint64_t level_due_ms(const struct windows *self) { return self->level ? self->level_ms : 0; }
