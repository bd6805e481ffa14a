// windows -- opens a window, commits as far as the slowest has come, opens the next one before this one ends,
// and says why the epoch is over. A window that broke is closed by level.c.

#include "common/pace/windows/windows.h"
#include "common/base/ensure.h"
#include "common/pace/evidence.h"
#include "common/pace/windows/differ.h"
#include "common/pace/windows/level.h"
#include "common/pace/windows/linking.h"
#include "common/pace/windows/voided.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_open(const struct run *run) { return windows_run_of(run)->open > 0; }

static bool is_trainer(const struct run *run, uint32_t member, uint8_t state)
{
    const struct wire_member *place = &run->roster.members[member];
    return place->role == ACTOR_TRAINER && place->state == state;
}

static bool has_links(const struct windows *self, const struct run *run, uint32_t member)
{
    const struct stands *stands = &self->stands[member];
    return stands->links[0] && stands->instance == run->roster.members[member].instance;
}

// ---- where members stand ------------------------------------------------------------------------

bool windows_is_intact(const struct run *run, const struct wire_place *place)
{
    const struct wire_member *member = &run->roster.members[place->member];
    // mutant: windows: the group is of keys, not of processes
    return member->instance == place->instance && member->state == MEMBER_HEALTHY;
}

// A member that has not begun the oldest window stands where the one before it ended.
bool windows_step_of(const struct windows *self, const struct run *run, uint32_t place,
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

// How far all of the group have come. One that has said nothing yet has come nowhere.
static uint64_t slowest(const struct windows *self, const struct run *run)
{
    const struct wire_window *first = windows_first(run);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < first->group_count; i++) {
        uint64_t step = run->step;
        // mutant: windows: a member that has said nothing is not waited for
        if (!windows_step_of(self, run, i, &step)) step = run->step;
        // mutant: windows: the fastest says what is committed
        if (step < least) least = step;
    }
    return least < run->step ? run->step : least;
}

// A word may come late or twice: the newest step of the newest window stays. Of a window that this run has not
// opened, as after an older ledger was put back, only the links count.
static void take_stands(struct stands *kept, const struct wire_stands *said, uint64_t newest)
{
    if (said->instance != kept->instance) *kept = (struct stands){ .instance = said->instance };
    if (said->links[0]) memcpy(kept->links, said->links, sizeof kept->links);
    kept->leaves |= said->leaves;
    if (kept->leaves) kept->links[0] = 0; // No window names it, and nobody waits for it to join
    // mutant: windows: a window that never was hides those that are
    if (said->window > newest) return;
    if (said->window < kept->window) return;
    if (said->window > kept->window) {
        kept->window = said->window;
        kept->step = 0;
        kept->level = 0;
        kept->has = kept->broken = kept->stopped = false;
        kept->unsound = UNSOUND_NONE;
        kept->differ = 0;
    }
    if (said->step > kept->step) kept->has = false;
    if (said->step >= kept->step) {
        kept->step = said->step;
        kept->has |= said->has;
    }
    if (said->level > kept->level) kept->level = said->level;
    kept->broken |= said->broken;
    kept->stopped |= said->stopped;
    if (said->unsound) kept->unsound = said->unsound;
    if (said->differ) kept->differ = said->differ;
}

static void hear_stands(struct windows *self, const struct turn *turn, const struct msg *in)
{
    const struct wire_stands *said = in->body;
    const uint32_t member = turn_member(turn, in);
    if (member == NO_MEMBER) return;
    const struct wire_member *place = &turn->run->roster.members[member];
    if (said->instance < place->instance) {
        turn_refuse_older(turn, in, said->instance);
        return;
    }
    if (place->role != ACTOR_TRAINER || said->instance != place->instance) return;
    take_stands(&self->stands[member], said, turn->run->number);
    late_hear(&self->late, turn, member, said);
    linking_hear(self, turn, in, member);
    level_hear(self, turn, member, said);
}

// ---- committing ---------------------------------------------------------------------------------

// The speed of the group, by a window that is over; so the next one is as long as window_ms says.
static void measure(struct windows *self, const struct turn *turn, uint32_t steps)
{
    const uint64_t took_ms = turn->now_ms - self->began_ms;
    self->step_us = took_ms * 1000 / steps + 1;
    self->steps_max = steps * WINDOW_GROWTH;
    self->began_ms = turn->now_ms;
    self->last_pair[0] = self->last_pair[1] = self->last_overdue = NO_MEMBER;
}

// Steps up to `end` of the oldest open window are committed. `closing`: and no more of any that is open.
static void put_steps(struct windows *self, const struct turn *turn, uint64_t end,
                      const struct windows_closing *closing)
{
    const struct run *run = turn->run;
    const struct wire_window *first = windows_first(run);
    const uint64_t left_out = closing ? closing->left_out : 0;
    uint8_t bytes[8];
    for (uint32_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(left_out >> 8 * i);
    const struct wire_steps steps = {
        .number = first->number,
        .epoch = run->epoch,
        .step = run->step,
        .end = end,
        .samples =
            window_count(first, windows_config(turn->rules), turn->rules->seq_len, run->step, end),
        .lr_bits = end > run->step ? window_lr_bits(first, end - 1) : 0,
        .closed = closing ? windows_newest(run)->number : 0,
        .left_out = { bytes, left_out ? sizeof bytes : 0 },
        .previous = windows_run_of(run)->last_steps,
        .voided = closing ? closing->voided : (struct wire_voided){ 0 },
        .differ = closing ? closing->differ : 0,
    };
    if (end == window_end(first)) measure(self, turn, first->steps);
    self->commit_ms = turn->now_ms + turn->rules->heartbeat_ms;
    // mutant: windows: a commit is told before it is stored
    turn_put(turn, FRAME_RECORD_STEPS, &steps);
    outbox_news(turn->out, FRAME_STEPS, &steps);
}

// The places of those that leave, as bits.
static uint64_t leavers(struct windows *self, const struct turn *turn)
{
    const struct wire_window *window = windows_first(turn->run);
    uint64_t places = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint32_t member = window->group[i].member;
        // mutant: windows: a member that leaves is in the next window
        if (!windows_is_intact(turn->run, &window->group[i]) || !self->stands[member].leaves)
            continue;
        self->is_left_out[member] = true;
        places |= (uint64_t)1 << i;
    }
    return places;
}

void windows_close(struct windows *self, const struct turn *turn, uint64_t end,
                   const struct windows_closing *closing)
{
    struct windows_closing all = *closing;
    late_forget(&self->late);
    if (end > window_end(windows_first(turn->run)))
        put_steps(self, turn, window_end(windows_first(turn->run)), NULL);
    all.left_out |= leavers(self, turn);
    put_steps(self, turn, end, &all);
}

// All have ended at the same step, because one of them asked for it. Who stopped in a window that is closed
// since, and has not been heard in the next one yet, goes on.
static bool has_stopped(const struct windows *self, const struct run *run, uint64_t *ret_step)
{
    const struct wire_window *first = windows_first(run);
    for (uint32_t i = 0; i < first->group_count; i++) {
        const struct stands *stands = &self->stands[first->group[i].member];
        uint64_t step;
        // mutant: windows: a stop ends the next window as well
        const bool is_old = stands->window <= windows_run_of(run)->closing.closed;
        if (!windows_step_of(self, run, i, &step) || !stands->stopped || is_old ||
            (i > 0 && step != *ret_step))
            return false;
        *ret_step = step;
    }
    return true;
}

// Once a heartbeat, and at the end of each window.
static void commit(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const uint64_t held = slowest(self, run);
    while (is_open(run) && held >= window_end(windows_first(run)))
        put_steps(self, turn, window_end(windows_first(run)), NULL);
    uint64_t end = 0;
    // mutant: windows: a group that has stopped is waited for
    if (is_open(run) && has_stopped(self, run, &end))
        windows_close(self, turn, end, &(struct windows_closing){ 0 });
    else if (is_open(run) && held > run->step && turn->now_ms >= self->commit_ms)
        put_steps(self, turn, held, NULL);
}

// ---- the end of an epoch ------------------------------------------------------------------------

static uint32_t group_left(const struct windows *self, const struct run *run)
{
    const struct wire_window *last = windows_newest(run);
    uint32_t left = 0;
    for (uint32_t i = 0; i < last->group_count; i++)
        left +=
            windows_is_intact(run, &last->group[i]) && !self->is_left_out[last->group[i].member];
    return left;
}

// A trainer that is linked with the group, and is not in it: it enters when the next epoch begins.
static bool somebody_waits(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_window *last = windows_newest(run);
    if (turn->now_ms - self->barrier_ended_ms < WINDOW_BARRIERS * self->barrier_ms) return false;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const bool here = is_trainer(run, i, MEMBER_PENDING) || is_trainer(run, i, MEMBER_HEALTHY);
        if (here && linking_has_joined(self, run, i) &&
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

// Why no further window is opened, though members go on to the end of those that are. NULL: one is.
static const char *why_end(const struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct rules *rules = turn->rules;
    const uint64_t next = is_open(run) ? window_end(windows_newest(run)) : run->step;
    if (next >= rules->total_steps) return "all steps are done";
    if (next >= epoch_end(turn)) return "the epoch's steps are done";
    if (rules->epoch_ms && turn->now_ms - turn->presence->epoch_began_ms >= rules->epoch_ms)
        return "the epoch's time is up";
    if (run->pausing && voided_pauses(run)) return "a step was void twice";
    if (run->pausing) return "a pause was asked for";
    // mutant: windows: a checkpoint that the owner wants waits for the end of the epoch
    if (turn->presence->wants_end) return "a checkpoint was asked for";
    if (differ_ends_epoch(run)) return "the states of the members differ";
    if (group_left(self, run) < rules->min_clients || group_left(self, run) == 0)
        return "too few members";
    return somebody_waits(self, turn) ? "a trainer waits to join" : NULL;
}

// ---- opening ------------------------------------------------------------------------------------

// The trainers of this state whose links are known, behind those that are in `group`. Returns how many there are.
static uint32_t list_linkable(const struct windows *self, const struct run *run, uint8_t state,
                              struct wire_place group[WINDOW_MEMBERS_MAX], uint32_t count)
{
    for (uint32_t i = 0; i < run->roster.count && count < WINDOW_MEMBERS_MAX; i++) {
        if (!is_trainer(run, i, state) || !has_links(self, run, i)) continue;
        struct wire_place *place = &group[count++];
        *place = (struct wire_place){ .member = i, .instance = run->roster.members[i].instance };
        memcpy(place->links, self->stands[i].links, sizeof place->links);
    }
    return count;
}

// Those that hold the run's step and are linked: when an epoch begins all healthy trainers, later those of
// the group that are left. In the order of the roster. Returns how many.
static uint32_t choose_group(const struct windows *self, const struct run *run,
                             struct wire_place group[WINDOW_MEMBERS_MAX])
{
    const struct wire_window *last = windows_newest(run);
    const bool begins = run->phase != PHASE_TRAIN;
    uint32_t count = 0;
    for (uint32_t i = 0; !begins && i < last->group_count; i++)
        // mutant: windows: a member that is left out stays in the group
        if (windows_is_intact(run, &last->group[i]) && !self->is_left_out[last->group[i].member])
            group[count++] = last->group[i];
    if (begins) count = list_linkable(self, run, MEMBER_HEALTHY, group, 0);
    // mutant: windows: a window names trainers that have no link
    return begins ? linking_choose(self, run, group, count) : count;
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
    if (!is_open(run)) return run->samples_done;
    return newest->samples_done + interval_list_total(newest->samples, newest->samples_count);
}

static void open_window(struct windows *self, const struct turn *turn)
{
    struct run *run = turn->run;
    const uint64_t step = is_open(run) ? window_end(windows_newest(run)) : run->step;
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
        .group_count = choose_group(self, run, group),
        .epoch_elapsed_ms = turn->now_ms - turn->presence->epoch_began_ms,
        .barrier_ms = self->barrier_ms,
        .previous = windows_run_of(run)->last_steps,
        .closed_from = closing->number,
        .closed = closing->closed,
        .closed_at = closing->end,
    };
    ensure(window.group_count > 0);
    put_rates(turn, &window, lr_bits);
    const uint64_t count = window_count(&window, windows_config(turn->rules), turn->rules->seq_len,
                                        step, window_end(&window));
    // The table is asked and put back: only the record, applied, changes it.
    ensure(table_deal(&run->table, window.number, count, run->scratch, TABLE_INTERVALS_MAX,
                      &window.samples_count) == TABLE_OK);
    ensure(table_return_rest(&run->table, window.number) == TABLE_OK);
    if (!is_open(run)) self->began_ms = turn->now_ms;
    turn_put(turn, FRAME_RECORD_WINDOW, &window);
    turn_arm(turn);
}

// The slowest has passed the middle of the newest window, so all have begun it: while the group takes the other
// half, the next one becomes durable and is told.
static bool is_past_middle(const struct windows *self, const struct run *run)
{
    return slowest(self, run) >= window_middle(windows_newest(run));
}

// ---- what the coordinator asks of a pace --------------------------------------------------------

static const char *settle(void *state, const struct turn *turn)
{
    struct windows *self = state;
    const struct run *run = turn->run;
    voided_pause(turn);
    if (is_open(run) && level_is_due(self, turn)) level_settle(self, turn);
    else if (is_open(run)) commit(self, turn);
    if (is_open(run) && windows_run_of(run)->open < WINDOWS_OPEN_MAX && !level_is_due(self, turn) &&
        is_past_middle(self, run) && !why_end(self, turn))
        open_window(self, turn);
    if (is_open(run)) return NULL;
    const char *cause = why_end(self, turn);
    if (cause) self->barrier_began_ms = turn->now_ms;
    else open_window(self, turn);
    return cause;
}

static void begin(void *state, const struct turn *turn)
{
    struct windows *self = state;
    const uint64_t began_ms = // The first one: since members load their first state
        self->barrier_began_ms ? self->barrier_began_ms : turn->presence->epoch_began_ms;
    self->barrier_ms = turn->now_ms - began_ms;
    self->barrier_ended_ms = turn->now_ms;
    memset(self->is_left_out, 0, sizeof self->is_left_out);
    self->missed[0] = 0;
    late_forget(&self->late);
    self->last_overdue = NO_MEMBER;
    self->linking.has_failed = false;
    memset(self->strikes, 0, sizeof self->strikes);
    for (int i = 0; i < 2; i++) self->pair[i] = self->last_pair[i] = NO_MEMBER;
    open_window(self, turn);
}

// Whom the newest closing left out, if the crash came before the record of the window behind it, whose group lacks
// them anyway.
static void leave_out_again(struct windows *self, const struct run *run)
{
    const struct wire_steps *closing = &windows_run_of(run)->closing;
    const struct wire_window *window = windows_first(run);
    if (is_open(run) || run->phase != PHASE_TRAIN || closing->number != window->number) return;
    for (uint32_t i = 0; i < window->group_count && i / 8 < closing->left_out.count; i++)
        self->is_left_out[window->group[i].member] |= closing->left_out.data[i / 8] >> i % 8 & 1;
}

static void resume(void *state, const struct turn *turn)
{
    struct windows *self = state;
    self->began_ms = turn->now_ms;
    self->barrier_ended_ms = turn->presence->epoch_began_ms;
    // mutant: windows: after a restart a joiner ends the epoch at once
    self->barrier_ms = windows_newest(turn->run)->barrier_ms;
    self->last_overdue = NO_MEMBER;
    leave_out_again(self, turn->run);
    for (int i = 0; i < 2; i++) self->pair[i] = self->last_pair[i] = NO_MEMBER;
}

static bool hear(void *state, const struct turn *turn, const struct msg *in)
{
    if (in->kind != FRAME_STANDS) return false;
    hear_stands(state, turn, in);
    return true;
}

// All healthy trainers are waited for; when the time is up, only as many as an epoch needs.
static const char *lacks_links(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const bool late = turn->now_ms >= turn->presence->deadline_ms;
    uint32_t linked = 0, without = NO_MEMBER;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        if (!is_trainer(run, i, MEMBER_HEALTHY) || self->stands[i].leaves) continue;
        if (has_links(self, run, i)) linked++;
        else without = i;
    }
    if (without == NO_MEMBER || (late && linked > 0 && linked >= turn->rules->min_clients)) {
        struct wire_place group[WINDOW_MEMBERS_MAX];
        const uint32_t count = list_linkable(self, run, MEMBER_HEALTHY, group, 0);
        const char *pair = linking_lacks(self, turn, group, count, late);
        self->linking.has_failed |= late && pair;
        return pair;
    }
    snprintf(self->lacks, sizeof self->lacks, "waiting for the links of trainer %s",
             run->roster.members[without].name);
    return self->lacks;
}

static bool stays_pending(const struct turn *turn, uint32_t member)
{
    struct wire_place group[WINDOW_MEMBERS_MAX];
    const uint32_t count = list_linkable(turn->live, turn->run, MEMBER_HEALTHY, group, 0);
    return linking_stays_pending(turn->live, turn, member, group, count);
}

// A Warmup that could not begin is not tried again before it can.
static const char *still_lacks_links(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    struct wire_place group[WINDOW_MEMBERS_MAX];
    if (!self->linking.has_failed) return NULL;
    const uint32_t healthy = list_linkable(self, run, MEMBER_HEALTHY, group, 0);
    const uint32_t count = list_linkable(self, run, MEMBER_PENDING, group, healthy);
    return linking_lacks(self, turn, group, count, true);
}

static const char *lacks(const struct turn *turn)
{
    struct windows *self = turn->live;
    const uint8_t phase = turn->run->phase;
    if (phase == PHASE_WAITING) return still_lacks_links(self, turn);
    if (phase == PHASE_WARMUP) return lacks_links(self, turn);
    if (phase != PHASE_TRAIN || !level_is_lonely(self, turn->run)) return NULL;
    snprintf(self->lacks, sizeof self->lacks,
             "no member of window %" PRIu64 " is here, and they alone hold its newest steps",
             windows_newest(turn->run)->number);
    return self->lacks;
}

static const char *why_paused(const struct turn *turn)
{
    struct windows *self = turn->live;
    if (!voided_pauses(turn->run)) return NULL;
    snprintf(self->lacks, sizeof self->lacks,
             "step %" PRIu64 " was void twice: ", windows_run_of(turn->run)->voided.step);
    const size_t used = strlen(self->lacks);
    voided_words(turn->run, &windows_run_of(turn->run)->voided, self->lacks + used,
                 sizeof self->lacks - used);
    return self->lacks;
}

// Who waits to join or is left out, and why, or who is late: nothing waits for it.
static const char *missed(const void *state)
{
    const struct windows *self = state;
    if (self->linking.words[0]) return self->linking.words;
    return self->missed[0] ? self->missed : late_words(&self->late);
}

static uint64_t due_ms(const void *state, const struct turn *turn)
{
    const struct windows *self = state;
    const struct run *run = turn->run;
    if (!is_open(run)) return 0;
    if (self->level) return level_due_ms(self);
    return slowest(self, run) > run->step ? self->commit_ms : 0;
}

// Of the newest window, also when it is over: then members must know where it was closed.
static uint64_t open_number(const struct run *run) { return run->number; }

static void tell_one(const struct turn *turn, const char *to, uint16_t kind, const void *body)
{
    if (to) outbox_mail(turn->out, to, kind, body);
    else outbox_news(turn->out, kind, body);
}

static void tell(const struct turn *turn, const char *to)
{
    const struct windows_run *self = windows_run_of(turn->run);
    for (uint32_t i = 0; i < self->open; i++)
        tell_one(turn, to, FRAME_WINDOW, &self->window[i].frame);
    if (self->open == 0 && self->closing.closed) tell_one(turn, to, FRAME_STEPS, &self->closing);
}

static struct interval commits(uint16_t kind, const void *record)
{
    const struct wire_steps *steps = record;
    if (kind != FRAME_RECORD_STEPS) return (struct interval){ 0, 0 };
    return (struct interval){ steps->step, steps->end };
}

static struct commit_facts facts(const void *record)
{
    struct commit_facts facts = { 0 };
    memcpy(&facts.lr, &((const struct wire_steps *)record)->lr_bits, sizeof facts.lr);
    return facts;
}

static bool peer_waits(const struct run *run)
{
    const struct wire_window *last = windows_newest(run);
    for (uint32_t i = 0; i < last->group_count; i++) {
        const struct wire_member *member = &run->roster.members[last->group[i].member];
        if (member->instance == last->group[i].instance && member->state == MEMBER_PENDING)
            return true;
    }
    return false;
}

static void hear_arrival(void *state, uint32_t member, bool is_new_member)
{
    (void)is_new_member;
    ((struct windows *)state)->is_left_out[member] = false;
}

static uint64_t ahead(const struct run *run)
{
    return is_open(run) ? window_end(windows_newest(run)) - run->step : 0;
}

static bool took_part(const struct run *run, uint32_t member)
{
    return window_place(windows_newest(run), member, run->roster.members[member].instance) !=
           NO_MEMBER;
}

_Static_assert(sizeof(struct windows) <= PACE_LIVE_BYTES,
               "a coordinator has room for struct windows");

const struct pace pace_windows = {
    .name = "windows",
    .config = FRAME_WINDOWS_CONFIG,
    .live_bytes = sizeof(struct windows),
    .run = { .bytes = sizeof(struct windows_run),
             .apply = windows_run_apply,
             .store = windows_run_store,
             .load = windows_run_load,
             .refers_to = windows_run_refers_to },
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
    .commit_frame = FRAME_STEPS,
    .took_part = took_part,
    .is_doubted = differ_is_doubted,
    .peer_waits = peer_waits,
    .needs = pace_alone_is_as_far,
    .stays_pending = stays_pending,
    .hear_arrival = hear_arrival,
    .ahead = ahead,
    .evidence_counts = { "windows", "committed steps", NULL },
    .evidence_bytes = sizeof(struct windows_run),
    .verifies = windows_verifies,
};
