// standing -- takes what members say (STANDS), and answers where the group stands by it.

#include "common/pace/windows/standing.h"
#include "common/pace/windows/keeping.h"
#include "common/pace/windows/level.h"
#include "common/pace/windows/linking.h"
#include "common/pace/windows/places.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool standing_is_intact(const struct run *run, const struct wire_place *place)
{
    const struct wire_member *member = &run->roster.members[place->member];
    // mutant: windows: the group is of keys, not of processes
    return member->instance == place->instance && member->state == MEMBER_HEALTHY;
}

bool standing_stays(const struct windows *self, const struct run *run,
                    const struct wire_place *place)
{
    return standing_is_intact(run, place) && !self->is_left_out[place->member];
}

bool standing_has_links(const struct windows *self, const struct run *run, uint32_t member)
{
    const struct stands *stands = &self->stands[member];
    return stands->links[0] && stands->instance == run->roster.members[member].instance;
}

// A member that has not begun the oldest window stands where the one before it ended.
bool standing_step(const struct windows *self, const struct run *run, uint32_t place,
                   uint64_t *ret_step)
{
    const struct wire_window *first = windows_first(run), *newest = windows_newest(run);
    const struct wire_place *at = &first->group[place];
    const struct stands *stands = &self->stands[at->member];
    // mutant: windows: the group is of keys, not of processes (2)
    if (stands->instance != at->instance) return false;
    // mutant: windows: what is held outside the open windows counts
    if (stands->window > newest->number || stands->step < first->step ||
        stands->step > window_end(newest) ||
        (stands->window < first->number && stands->step != first->step))
        return false;
    *ret_step = stands->step;
    return true;
}

uint64_t standing_slowest(const struct windows *self, const struct run *run)
{
    const struct wire_window *first = windows_first(run);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < first->group_count; i++) {
        uint64_t step = run->step;
        // mutant: windows: a member that has said nothing is not waited for
        if (!standing_step(self, run, i, &step)) step = run->step;
        // mutant: windows: the fastest says what is committed
        if (step < least) least = step;
    }
    return least < run->step ? run->step : least;
}

// It has stopped within the windows that are open.
static bool has_stopped(const struct windows *self, const struct run *run, uint32_t place)
{
    const struct stands *stands = &self->stands[windows_first(run)->group[place].member];
    // mutant: windows: a stop ends the next window as well
    const bool is_old = stands->window <= windows_run_of(run)->closing.closed;
    return stands->stopped && !is_old;
}

bool standing_has_stopped(const struct windows *self, const struct run *run, uint64_t *ret_step)
{
    const struct wire_window *first = windows_first(run);
    for (uint32_t i = 0; i < first->group_count; i++) {
        uint64_t step;
        if (!standing_step(self, run, i, &step) || !has_stopped(self, run, i) ||
            (i > 0 && step != *ret_step))
            return false;
        *ret_step = step;
    }
    return true;
}

uint64_t standing_behind(const struct windows *self, const struct run *run)
{
    const struct wire_window *first = windows_first(run);
    const uint64_t end = window_end(windows_newest(run));
    uint64_t behind = 0, there = 0;
    for (uint32_t i = 0; i < first->group_count; i++) {
        uint64_t step;
        const bool counts = standing_step(self, run, i, &step);
        const bool is_there = counts && (step == end || has_stopped(self, run, i));
        if (is_there) there |= (uint64_t)1 << i;
        else behind |= (uint64_t)1 << i;
    }
    return there ? behind : 0;
}

// Whether the process in this place says that it has lost its state.
static bool has_lost(const struct windows *self, const struct wire_place *place)
{
    const struct stands *stands = &self->stands[place->member];
    return stands->instance == place->instance && stands->lost;
}

// Its newest word is of a window that no restore has given up. Else it stood at that step in another past of the run.
// (A window that the run gave up because nobody of its group came back does count.)
static bool is_of_lineage(const struct stands *stands, const struct run *run)
{
    // mutant: windows: who stood at a step that was given up is waited for
    return stands->window > windows_run_of(run)->before_restore;
}

// Whether a process that was left out of the newest window has come to the run's step all the same, and holds all of
// its state (seed 24408).
static bool has_followed(const struct windows *self, const struct turn *turn, uint32_t member)
{
    const struct stands *stands = &self->stands[member];
    return stands->instance == turn->run->roster.members[member].instance &&
           is_of_lineage(stands, turn->run) && stands->step == turn->run->step && !stands->lost &&
           !stands->share;
}

bool standing_has_part(const struct windows *self, const struct turn *turn, uint32_t member)
{
    const struct stands *stands = &self->stands[member];
    return stands->instance == turn->run->roster.members[member].instance && stands->share;
}

bool standing_is_near(const struct windows *self, const struct turn *turn, uint32_t member)
{
    const struct stands *stands = &self->stands[member];
    return stands->instance == turn->run->roster.members[member].instance && turn->run->step > 0 &&
           is_of_lineage(stands, turn->run) && stands->can_make == turn->run->step;
}

bool standing_may_hold(const struct windows *self, const struct turn *turn, uint32_t member)
{
    const struct wire_window *newest = windows_newest(turn->run);
    const uint64_t instance = turn->run->roster.members[member].instance;
    const uint32_t place = window_place(newest, member, instance);
    if (place == NO_MEMBER) return has_followed(self, turn, member);
    bool lost = has_lost(self, &newest->group[place]);
    const struct stands *stands = &self->stands[member];
    const uint32_t owner = places_first_owner(turn, newest);
    // Where servers own the shares it has the parameters alone, unless it says that it has put all together
    // mutant: servers: a trainer without a state is waited for
    if (place < owner && stands->instance == instance) return has_followed(self, turn, member);
    // mutant: windows: who holds all of the state is not waited for
    for (uint32_t i = owner; stands->share && i < newest->group_count; i++)
        // mutant: windows: a share without the others is waited for
        lost |= has_lost(self, &newest->group[i]);
    return !lost;
}

// ---- hearing ------------------------------------------------------------------------------------

// Words of a member that end up on the owner's screen.
static void take_because(char *kept, const char *said)
{
    size_t i = 0;
    for (; said[i]; i++) kept[i] = said[i] < ' ' || said[i] > '~' ? '?' : said[i];
    kept[i] = 0;
}

// Places of the group of an open window, as bits, in that of the oldest one: a group loses those that leave.
static uint64_t in_first(const struct run *run, uint64_t number, uint64_t places)
{
    const struct wire_window *of =
        number == windows_newest(run)->number ? windows_newest(run) : windows_first(run);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < of->group_count; i++) {
        const uint32_t place =
            window_place(windows_first(run), of->group[i].member, of->group[i].instance);
        if (places >> i & 1 && place != NO_MEMBER) bits |= (uint64_t)1 << place;
    }
    return bits;
}

static void take_broken(struct stands *kept, const struct wire_stands *said, const struct run *run)
{
    const uint64_t missing = said->missing ? (uint64_t)1 << (said->missing - 1) : 0;
    kept->dead |= in_first(run, said->window, said->dead);
    if (!said->broken) return;
    kept->broken = true;
    kept->overdue |= said->overdue;
    kept->missing = in_first(run, said->window, missing);
    if (said->because[0]) take_because(kept->because, said->because);
}

// A word may come late or twice: the newest step of the newest window stays. But what was said after all others (`seq`)
// counts whatever window they named (seeds 200732, 300214). Of a window that this run has not opened, as after an older
// ledger was put back, only the links count.
static void take_stands(struct stands *kept, const struct wire_stands *said, const struct run *run,
                        uint64_t seq)
{
    if (said->instance != kept->instance) *kept = (struct stands){ .instance = said->instance };
    // mutant: windows: one false word about a window to come hides all that a member says
    const bool is_newest = seq > kept->seq, is_late = seq < kept->seq;
    if (is_newest) kept->seq = seq;
    // mutant: windows: who has said once that it can make a step is waited for
    if (!is_late) kept->can_make = said->has && !said->share ? said->step + 1 : 0;
    if (!is_late) kept->enters = said->enters;
    if (said->links[0]) memcpy(kept->links, said->links, sizeof kept->links);
    // Windows only go on, also when a restore takes the run back
    if (said->taken_window > kept->taken_window ||
        (said->taken_window == kept->taken_window && said->taken > kept->taken)) {
        kept->taken = said->taken;
        kept->taken_window = said->taken_window;
    }
    if (said->copied_window > kept->copied_window ||
        (said->copied_window == kept->copied_window && said->copied > kept->copied)) {
        kept->copied = said->copied;
        kept->copied_window = said->copied_window;
    }
    if (said->kept_window > kept->kept_window ||
        (said->kept_window == kept->kept_window && said->kept_step > kept->kept_step)) {
        kept->kept = said->kept;
        kept->kept_step = said->kept_step;
        kept->kept_window = said->kept_window;
    }
    if (said->saved_window >= kept->saved_window) {
        kept->saved_window = said->saved_window;
        kept->saved_step = said->saved_step;
        kept->saved = said->saved;
    }
    kept->leaves |= said->leaves;
    if (kept->leaves) kept->links[0] = 0; // No window names it, and nobody waits for it to join
    // mutant: windows: a window that never was hides those that are
    if (said->window > run->number) {
        kept->lost = said->lost, kept->share = said->share;
        return;
    }
    // mutant: windows: what was lost in an earlier window is lost
    if (said->window < kept->window ? !is_newest : said->window > kept->window && is_late) return;
    if (said->window != kept->window) {
        kept->lost = kept->share = false;
        kept->window = said->window;
        kept->step = 0;
        kept->level = kept->heard = kept->missing = kept->dead = 0;
        kept->has = kept->broken = kept->stopped = kept->overdue = false;
        kept->because[0] = 0;
        kept->unsound = UNSOUND_NONE;
        kept->differ = 0;
    }
    // mutant: windows: who has lost its state is waited for
    kept->lost |= said->lost;
    // From its first step on each has its share alone, until the group puts them together
    if (said->step > kept->step) kept->share = said->share;
    // mutant: windows: who has put the shares together is taken for one with its own alone
    if (said->step == kept->step) kept->share &= said->share;
    if (said->step > kept->step) kept->has = false;
    if (said->step >= kept->step) {
        kept->step = said->step;
        kept->has |= said->has;
    }
    if (said->level > kept->level) kept->level = said->level;
    if (said->heard > kept->heard) kept->heard = said->heard;
    take_broken(kept, said, run);
    kept->stopped |= said->stopped;
    if (said->unsound) kept->unsound = said->unsound;
    if (said->differ) kept->differ = said->differ;
}

// What was saved before a restore was taken in another window.
static bool is_wanted(const struct stands *said, const struct run *run)
{
    // mutant: saves: a save of another window is the run's
    return !hash_is_none(&said->saved) && said->saved_window == windows_run_of(run)->save_window &&
           said->saved_step == run->save_point.at.step;
}

void standing_register(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    if (run->save_point.at.step <= run->checkpoint.step)
        return; // Nothing that is new is being saved
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const struct stands *said = &self->stands[i];
        if (said->instance != run->roster.members[i].instance || !is_wanted(said, run)) continue;
        // mutant: saves: somebody who took no part says what was saved
        if (!windows_run_saves(run, i, said->instance)) continue;
        turn_put_saved(turn, &said->saved, windows_config(turn->rules)->keep);
        return;
    }
}

// It holds all of the state with which the newest windows ended. Its PING says so as well, and may be lost.
static bool stands_at_end(const struct wire_stands *said, const struct run *run)
{
    const struct wire_steps *closing = &windows_run_of(run)->closing;
    return closing->closed > 0 && said->window >= closing->number &&
           said->window <= closing->closed && said->step == closing->end &&
           closing->end == run->step && !said->lost && !said->share;
}

void standing_hear(struct windows *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_stands *said = in->body;
    const uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return;
    const struct wire_member *place = &turn->run->roster.members[member];
    if (said->instance < place->instance) {
        turn_refuse_older(turn, in, said->instance);
        return;
    }
    if (!role_takes_steps(place->role) || said->instance != place->instance) return;
    const struct stands *kept = &self->stands[member];
    const uint64_t saved_step = kept->saved_step;
    take_stands(&self->stands[member], said, turn->run, in->seq);
    // mutant: windows: who stands at the newest step is not among those that hold it
    if (stands_at_end(said, turn->run)) turn->presence->step_held[member] = said->step;
    // Its step is committed without waiting, before a later save takes its place
    if (kept->saved_step != saved_step) self->commit_ms = 0;
    late_hear(&self->late, turn, member, said);
    linking_hear(self, turn, in, member);
    level_hear(self, turn, member, said);
    standing_register(self, turn);
    keeping_hear(self, turn);
}
