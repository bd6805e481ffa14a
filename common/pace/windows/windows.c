// windows -- commits as far as the slowest has come, opens the next window before this one ends (opening.c), and
// answers what the coordinator asks of its pace. A window that broke is closed by level.c.

#include "common/pace/windows/windows.h"
#include "common/base/ensure.h"
#include "common/pace/evidence.h"
#include "common/pace/windows/differ.h"
#include "common/pace/windows/keeping.h"
#include "common/pace/windows/level.h"
#include "common/pace/windows/linking.h"
#include "common/pace/windows/opening.h"
#include "common/pace/windows/places.h"
#include "common/pace/windows/standing.h"
#include "common/pace/windows/voided.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- committing ---------------------------------------------------------------------------------

// The speed of the group, by a window that is over; so the next one is as long as window_ms says. Nothing is known of
// one that began before this life, or whose end was heard together with that of the one before it.
static void measure(struct windows *self, const struct turn *turn, uint32_t steps)
{
    const uint64_t took_ms = turn->now_ms - self->began_ms;
    const bool is_known = self->began_ms && took_ms > 0;
    self->began_ms = turn->now_ms;
    self->last_pair[0] = self->last_pair[1] = self->last_overdue = NO_MEMBER;
    if (!is_known) return;
    self->step_us = took_ms * 1000 / steps + 1;
    self->steps_max = steps * WINDOW_GROWTH;
}

// The two steps that a record must end at: of which the members have taken their parts of a save, or copies in memory.
enum mark { TAKEN, COPIED };

static uint64_t marked(const struct stands *stands, enum mark mark, uint64_t window)
{
    const uint64_t in = mark == TAKEN ? stands->taken_window : stands->copied_window;
    // mutant: saves: what was taken before a restore is taken again
    if (in != window) return 0;
    return mark == TAKEN ? stands->taken : stands->copied;
}

// Only those that own a share copy it.
static uint32_t first_that_marks(const struct turn *turn, enum mark mark)
{
    return mark == COPIED ? places_first_owner(turn, windows_first(turn->run)) : 0;
}

// Most of the members of the group that have said this step, or a later one, have marked it, or a later one since. Else
// it is the word of one that is wrong: all mark a step, or nobody does.
static bool most_have_marked(const struct windows *self, const struct turn *turn, enum mark mark,
                             uint64_t step)
{
    const struct wire_window *window = windows_first(turn->run);
    uint32_t beyond = 0, have = 0;
    for (uint32_t i = first_that_marks(turn, mark); i < window->group_count; i++) {
        const struct stands *stands = &self->stands[window->group[i].member];
        if (stands->instance != window->group[i].instance || stands->window < window->number ||
            stands->step < step)
            continue;
        beyond++;
        have += marked(stands, mark, window->number) >= step;
    }
    return 2 * have > beyond;
}

// The oldest step in (from, end] that the members of the group have marked; 0: none.
static uint64_t first_marked(const struct windows *self, const struct turn *turn, enum mark mark,
                             uint64_t from, uint64_t end)
{
    const struct wire_window *window = windows_first(turn->run);
    uint64_t first = 0;
    for (uint32_t i = first_that_marks(turn, mark); i < window->group_count; i++) {
        const struct stands *stands = &self->stands[window->group[i].member];
        const uint64_t step = marked(stands, mark, window->number);
        // mutant: saves: one member says for all what is saved
        if (stands->instance == window->group[i].instance && step > from && step <= end &&
            (first == 0 || step < first) && most_have_marked(self, turn, mark, step))
            first = step;
    }
    return first;
}

// Steps up to `end` of the oldest open window are committed. `closing`: and no more of any that is open.
static void put_record(struct windows *self, const struct turn *turn, uint64_t end,
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
        .saved = first_marked(self, turn, TAKEN, run->step, end) == end && end > 0,
        .copied = first_marked(self, turn, COPIED, run->step, end) == end && end > 0,
        .kept_step = windows_run_of(run)->memory.kept.at.step,
        .kept_window = windows_run_of(run)->memory.kept_in,
    };
    if (end == window_end(first)) measure(self, turn, first->steps);
    if (end > run->step) self->fruitless = 0;
    self->commit_ms = turn->now_ms + turn->rules->heartbeat_ms;
    // mutant: windows: a commit is told before it is stored
    turn_put(turn, FRAME_RECORD_STEPS, &steps);
    outbox_news(turn->out, FRAME_STEPS, &steps);
}

// A record ends at a step that is marked, so that the data position of that step is known.
static void put_steps(struct windows *self, const struct turn *turn, uint64_t end,
                      const struct windows_closing *closing)
{
    for (;;) {
        const uint64_t from = turn->run->step;
        // mutant: saves: the data position of a save is that of a later step
        const uint64_t taken = first_marked(self, turn, TAKEN, from, end);
        // mutant: keeping: the data position of a memory save is that of a later step
        const uint64_t copied = first_marked(self, turn, COPIED, from, end);
        const uint64_t first = !taken || (copied && copied < taken) ? copied : taken;
        if (first == 0 || first >= end) break;
        put_record(self, turn, first, NULL);
    }
    put_record(self, turn, end, closing);
    keeping_register(self, turn);
}

// The places of those that leave, as bits.
static uint64_t leavers(struct windows *self, const struct turn *turn)
{
    const struct wire_window *window = windows_first(turn->run);
    uint64_t places = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        const uint32_t member = window->group[i].member;
        // mutant: windows: a member that leaves is in the next window
        if (!standing_is_intact(turn->run, &window->group[i]) || !self->stands[member].leaves)
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

// Once a heartbeat, and at the end of each window.
static void commit(struct windows *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const uint64_t held = standing_slowest(self, run);
    while (windows_are_open(run) && held >= window_end(windows_first(run)))
        put_steps(self, turn, window_end(windows_first(run)), NULL);
    uint64_t end = 0;
    // mutant: windows: a group that has stopped is waited for
    if (windows_are_open(run) && standing_has_stopped(self, run, &end))
        windows_close(self, turn, end, &(struct windows_closing){ 0 });
    else if (windows_are_open(run) && held > run->step && turn->now_ms >= self->commit_ms)
        put_steps(self, turn, held, NULL);
}

// The slowest has passed the middle of the newest window, so all have begun it: while the group takes the other
// half, the next one becomes durable and is told.
static bool is_past_middle(const struct windows *self, const struct run *run)
{
    return standing_slowest(self, run) >= window_middle(windows_newest(run));
}

// ---- what the coordinator asks of a pace --------------------------------------------------------

static const char *settle(void *state, const struct turn *turn)
{
    struct windows *self = state;
    const struct run *run = turn->run;
    voided_pause(turn);
    level_watch(self, turn);
    if (windows_are_open(run) && level_is_due(self, turn)) level_settle(self, turn);
    else if (windows_are_open(run)) commit(self, turn);
    standing_register(self, turn);
    if (windows_are_open(run) && windows_run_of(run)->open < WINDOWS_OPEN_MAX &&
        !level_is_due(self, turn) && is_past_middle(self, run) && !opening_why_not(self, turn))
        opening_open(self, turn); // Nothing lies apart behind an open window, so none is waited for
    if (windows_are_open(run)) return NULL;
    const char *cause = opening_why_not(self, turn);
    if (cause) {
        self->barrier_began_ms = turn->now_ms;
        self->barrier_epoch = run->epoch + 1;
    } else if (turn->now_ms >= self->open_ms && !opening_waits(self, turn))
        opening_open(self, turn);
    return cause;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// How long the barrier took that ends now, for those that the new window names. What Warmup waited when all of its
// trainers held the model, and those had their links, it waited for others: that does not count, nor what the run was
// paused or waited for members. One that did not come to hold the model counts whole, or it could stop the run
// again and again.
static uint64_t barrier_took(const struct windows *self, const struct turn *turn)
{
    const struct presence *presence = turn->presence;
    const uint64_t now_ms = turn->now_ms, warmup_ms = now_ms - presence->epoch_began_ms;
    // The first one: since members load their first state. So it is if the run has gone back meanwhile: it searched for a
    // state that nobody held
    // mutant: windows: a search for a lost state counts as a barrier
    const bool is_whole = self->barrier_began_ms && turn->run->epoch == self->barrier_epoch;
    const uint64_t all_ms = is_whole ? now_ms - self->barrier_began_ms : warmup_ms;
    const uint64_t in_vain_ms =
        presence->ready_ms ? least(now_ms - presence->ready_ms, now_ms - self->linked_ms) : 0;
    const uint64_t most_ms =
        (uint64_t)turn->rules->cooldown_ms + turn->rules->waiting_ms + warmup_ms;
    return least(all_ms, most_ms) - in_vain_ms;
}

// Once in a run, before its first step.
static void say_what_a_death_costs(const struct turn *turn)
{
    const struct wire_windows_config *config = windows_config(turn->rules);
    if (config->parts == PARTS_NONE)
        outbox_note(turn->out, "run.death_costs no step: each trainer holds all of the state");
    else if (config->servers > 0 && (config->memory_every == 0 || config->servers < 2))
        outbox_note(turn->out, "run.death_costs \"of a trainer mostly no step; "
                               "of a parameter server the steps since the newest save\"");
    else if (config->servers > 0)
        outbox_note(turn->out,
                    "run.death_costs \"of a trainer mostly no step; of a "
                    "parameter server about %u steps, or those of a second or two if these are "
                    "more; if one dies together with its %u buddies, the steps since the newest "
                    "save\"",
                    config->memory_every,
                    config->buddies < config->servers ? config->buddies : config->servers - 1);
    else if (config->memory_every == 0)
        outbox_note(turn->out, "run.death_costs \"the steps since the newest save: each trainer "
                               "alone has its share of the state (see strategy.memory_every)\"");
    else
        outbox_note(turn->out,
                    "run.death_costs \"about %u steps, or those of a second or two if these "
                    "are more; if a trainer dies together with its %u buddies, the steps since the "
                    "newest save\"",
                    config->memory_every, config->buddies);
}

static void begin(void *state, const struct turn *turn)
{
    struct windows *self = state;
    if (turn->run->number == 0) say_what_a_death_costs(turn);
    self->barrier_ms = barrier_took(self, turn);
    self->barrier_ended_ms = turn->now_ms;
    memset(self->is_left_out, 0, sizeof self->is_left_out);
    self->missed[0] = 0;
    self->fruitless = 0;
    self->open_ms = 0;
    self->apart = false;
    late_forget(&self->late);
    self->last_overdue = NO_MEMBER;
    self->linking.has_failed = false;
    memset(self->strikes, 0, sizeof self->strikes);
    for (int i = 0; i < 2; i++) self->pair[i] = self->last_pair[i] = NO_MEMBER;
    opening_open(self, turn);
}

// Whom the newest closing left out, if the crash came before the record of the window behind it, whose group lacks
// them anyway.
static void leave_out_again(struct windows *self, const struct run *run)
{
    const struct wire_steps *closing = &windows_run_of(run)->closing;
    const struct wire_window *window = windows_first(run);
    if (windows_are_open(run) || run->phase != PHASE_TRAIN || closing->number != window->number)
        return;
    for (uint32_t i = 0; i < window->group_count && i / 8 < closing->left_out.count; i++)
        self->is_left_out[window->group[i].member] |= closing->left_out.data[i / 8] >> i % 8 & 1;
}

// Servers may keep their shares without a window (opening_waits). That they did is not on record; if they have put
// them together, the epoch merely ends a window later.
static bool may_be_apart(const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct wire_steps *closing = &windows_run_of(run)->closing;
    return windows_config(turn->rules)->servers > 0 && run->phase == PHASE_TRAIN &&
           !windows_are_open(run) &&
           closing->closed == run->number; // Also if it had two (apply_steps)
}

static void resume(void *state, const struct turn *turn)
{
    struct windows *self = state;
    // mutant: servers: a restart of the coordinator loses the shares that servers keep
    self->apart = may_be_apart(turn);
    // When this Warmup began is not known any more
    if (turn->run->phase == PHASE_WARMUP) {
        self->barrier_began_ms = turn->now_ms;
        self->barrier_epoch = turn->run->epoch;
    }
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
    standing_hear(state, turn, in);
    return true;
}

static const char *lacks(const struct turn *turn)
{
    struct windows *self = turn->live;
    if (turn->run->phase != PHASE_TRAIN) return opening_lacks(self, turn);
    if (!windows_are_open(turn->run) && turn->now_ms < self->open_ms) return self->because;
    const char *trainers = opening_lacks(self, turn);
    if (trainers) return trainers;
    return level_is_lonely(self, turn->run) ? level_lonely_words(self, turn)
                                            : level_waits(self, turn);
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
    if (!windows_are_open(run)) // It is over if trainers are waited for
        return run->phase == PHASE_TRAIN && turn->now_ms < self->open_ms ? self->open_ms : 0;
    const uint64_t level_ms = level_due_ms(self, turn);
    if (self->level || standing_slowest(self, run) <= run->step) return level_ms;
    return level_ms ? least(level_ms, self->commit_ms) : self->commit_ms;
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
    struct windows *self = state;
    (void)is_new_member;
    if (self->missed_member == member) self->missed[0] = 0; // It is back, and waits to join
    self->is_left_out[member] = false;
}

static uint64_t ahead(const struct run *run)
{
    return windows_are_open(run) ? window_end(windows_newest(run)) - run->step : 0;
}

static uint32_t servers(const struct rules *rules) { return windows_config(rules)->servers; }

static bool has_part(const struct turn *turn, uint32_t member)
{
    return standing_has_part(turn->live, turn, member);
}

static bool is_near(const struct turn *turn, uint32_t member)
{
    return standing_is_near(turn->live, turn, member);
}

// Or it keeps the memory save that the run went back to.
static bool took_part(const struct turn *turn, uint32_t member)
{
    // mutant: windows: who keeps what the run went back to is not waited for
    return standing_may_hold(turn->live, turn, member) ||
           memory_save_may_keep(&windows_run_of(turn->run)->memory, turn->run,
                                windows_config(turn->rules)->buddies, member);
}

static uint64_t waited_since(const struct turn *turn)
{
    const struct windows *self = turn->live;
    const bool just_now = turn->now_ms - self->given_up_ms <= turn->rules->heartbeat_ms;
    return self->given_up_ms && just_now ? self->given_up_since_ms : 0;
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
    .has_part = has_part,
    .is_near = is_near,
    .way_back = keeping_point,
    .waited_since = waited_since,
    .is_doubted = windows_run_names,
    .peer_waits = peer_waits,
    .needs = pace_alone_is_as_far,
    .stays_pending = opening_stays_pending,
    .servers = servers,
    .hear_arrival = hear_arrival,
    .ahead = ahead,
    .evidence_counts = { "windows", "committed steps", NULL },
    .evidence_bytes = sizeof(struct windows_run),
    .verifies = windows_verifies,
};
