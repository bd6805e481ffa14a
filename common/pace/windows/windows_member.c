// windows_member -- the member's half. A trainer gives its windows to the learner, one after the other, tells the
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

#include "common/base/ensure.h"
#include "common/member/pace_part.h"
#include "common/member/replica.h"
#include "common/pace/windows/window.h"
#include "common/run/phase.h"
#include <inttypes.h>
#include <string.h>

struct windows_member {
    struct window kept[2]; // The newest that were told, by number modulo
    // The newest closing: windows `closed_from` to `closed` ended at `closed_at`. 0: none is known.
    uint64_t closed_from, closed, closed_at;
    uint64_t frozen, done; // Windows up to these are not begun (again)

    // The trainers to link with, as the newest LINKING has them, and the list that the learner was given. 0: none.
    uint64_t linking, expecting;
    uint32_t trainers_count;
    struct wire_place trainers[WINDOW_MEMBERS_MAX];

    // In hand at the learner, number 0: nothing.
    uint64_t first, newest; // The windows that it has been given
    uint64_t newest_end;    // Where the last of them ends
    uint64_t epoch;         // The epoch of that window
    bool closing;           // CLOSE_WINDOW is under way
    bool is_frozen;         // The learner applies nothing more
    uint8_t memory;         // enum memory: the step that it has, and has not applied

    struct wire_stands stands; // As it is told; `links` too
    uint64_t level;            // The newest LEVEL; 0: none
    bool freezing;             // FREEZE is under way
    bool is_stopping;          // The learner was told that the group is to end
    uint64_t say_ms, ask_ms;
};

enum memory { IS_OPEN, IS_THE_RUNS, IS_NOT_THE_RUNS };

static const struct wire_window *kept(const struct windows_member *self, uint64_t number)
{
    const struct wire_window *window = &self->kept[number % 2].frame;
    return number && window->number == number ? window : NULL;
}

static const struct wire_window *newest_kept(const struct windows_member *self)
{
    const struct wire_window *a = &self->kept[0].frame, *b = &self->kept[1].frame;
    return a->number > b->number ? a : b;
}

static bool in_hand(const struct windows_member *self) { return self->first > 0; }

static uint32_t own_place(const struct wire_window *window, const struct member *member)
{
    return window_place(window, member->index, member->instance);
}

// ---- what the coordinator says ------------------------------------------------------------------

static void hear_closing(struct windows_member *self, uint64_t from, uint64_t to, uint64_t at)
{
    if (to <= self->closed) return;
    self->closed_from = from;
    self->closed = to;
    self->closed_at = at;
}

static void hear_window(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *said = turn->in->body;
    struct member *member = turn->member;
    if (said->number > 0 &&
        !window_is_sound(said, windows_config_of(&member->config), member->config.seq_len)) {
        outbox_note(turn->out, "window.unsound number=%" PRIu64 "; ignored", said->number);
        return;
    }
    if (!member->has_round && said->number <= newest_kept(self)->number) {
        self->kept[0].frame.number = self->kept[1].frame.number = 0; // An older ledger was put back
        if (!in_hand(self)) self->closed = self->frozen = self->done = 0;
    }
    if (!member->has_round || said->number > member->round) {
        member->has_round = true;
        member->round = said->number;
    }
    if (member->role != ACTOR_TRAINER || !turn->replica || said->number == 0) return;
    hear_closing(self, said->closed_from, said->closed, said->closed_at);
    if (said->number > self->kept[said->number % 2].frame.number)
        window_keep(&self->kept[said->number % 2], said);
}

static void freeze(struct windows_member *self, const struct member_turn *turn)
{
    if (self->freezing) return;
    self->freezing = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_FREEZE,
               &(struct wire_level){ self->newest, self->level ? self->level : 1 });
}

// The newest is taken, whatever its number: if an older one came late, STANDS shows that, and is answered.
static void hear_linking(struct windows_member *self, const struct wire_linking *said)
{
    self->linking = said->number;
    self->trainers_count = said->trainers_count;
    memcpy(self->trainers, said->trainers, said->trainers_count * sizeof *said->trainers);
}

// Steps that are committed: is the one that we have in memory among them, as the step of our window?
static void hear_steps(struct windows_member *self, const struct wire_steps *steps)
{
    const uint64_t step = self->stands.step;
    if (steps->closed) hear_closing(self, steps->number, steps->closed, steps->end);
    if (self->is_frozen && steps->step <= step && step < steps->end)
        // mutant: windows: a step of another window is applied from memory
        self->memory = steps->number == self->stands.window ? IS_THE_RUNS : IS_NOT_THE_RUNS;
}

// The answer of a member that has begun no window that counts.
static void answer_without_window(struct windows_member *self, const struct member_turn *turn,
                                  const struct wire_level *level)
{
    const struct replica *replica = turn->replica;
    self->frozen = level->window;
    self->stands.window = level->window;
    self->stands.step = replica->holding && !replica->loading ? replica->step : 0;
    self->stands.has = self->stands.broken = false;
    self->stands.unsound = UNSOUND_NONE;
    self->stands.differ = 0;
    self->stands.level = level->level;
}

static void hear_level(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_level *level = turn->in->body;
    if (level->window <= self->closed || level->window <= self->done || self->closing) return;
    if (level->window > self->frozen) self->frozen = level->window;
    if (level->level > self->level) self->level = level->level;
    if (in_hand(self) && !self->is_frozen) {
        freeze(self, turn);
        return;
    }
    self->say_ms = 0;
    if (in_hand(self)) self->stands.level = self->level;
    else answer_without_window(self, turn, level);
}

// ---- what the learner says ----------------------------------------------------------------------

static void stand(struct windows_member *self, const struct member_turn *turn, uint64_t window,
                  uint64_t step)
{
    struct replica *replica = turn->replica;
    const struct wire_window *of = kept(self, window);
    if (step > replica->step)
        replica_move(replica, turn->member, step, &(struct hash){ { 0 } },
                     of ? of->epoch : self->epoch);
    if (step > self->stands.step || window > self->stands.window) self->stands.has = false;
    self->stands.window = window;
    self->stands.step = step;
}

static void hear_stepped(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_stepped *said = turn->in->body;
    struct member *member = turn->member;
    const struct wire_window *window = kept(self, said->window);
    if (!in_hand(self) || said->window < self->first || said->step < turn->replica->step) return;
    const uint64_t before = self->stands.step;
    stand(self, turn, said->window, said->step);
    self->stands.stopped |= said->stopped;
    if (said->late != self->stands.late) self->say_ms = 0;
    self->stands.late = said->late;
    self->stands.late_ms = said->late_ms;
    self->stands.usual_ms = said->usual_ms;
    member->loss = said->loss;
    member->loss_step = said->step;
    member->tokens_per_s = said->tokens_per_s;
    memcpy(&member->step_lr, &said->lr_bits, sizeof member->step_lr);
    outbox_news(turn->out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = said->window,
                                         .step = said->step,
                                         .loss = said->loss,
                                         .tokens_per_s = said->tokens_per_s });
    const bool is_due = !window || said->step == window_end(window) ||
                        (before < window_middle(window) && said->step >= window_middle(window));
    if (is_due || said->stopped) self->say_ms = 0;
}

static void hear_broke(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_broke *said = turn->in->body;
    if (!in_hand(self) || said->window < self->first) return;
    stand(self, turn, said->window, said->step);
    self->stands.has = said->has;
    self->stands.broken = true;
    self->stands.missing = said->missing;
    self->stands.gone = said->gone;
    self->stands.overdue = said->overdue;
    self->stands.unsound = said->unsound;
    self->stands.differ = said->differ;
    self->say_ms = 0;
    outbox_note(turn->out, "window.broke number=%" PRIu64 " step=%" PRIu64 " because=\"%s\"",
                said->window, said->step, said->reason);
}

static void hear_frozen(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_frozen *said = turn->in->body;
    self->freezing = false;
    if (!in_hand(self) || said->window < self->first) return;
    stand(self, turn, said->window, said->step);
    self->is_frozen = true;
    self->stands.has = said->has;
    self->stands.level = self->level;
    self->say_ms = 0;
}

static void hear_closed(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_closed_window *said = turn->in->body;
    struct replica *replica = turn->replica;
    ensure(self->closing);
    if (in_hand(self)) self->done = self->newest;
    self->closing = self->freezing = self->is_frozen = self->is_stopping = false;
    self->memory = IS_OPEN;
    replica->applying = false;
    self->first = self->newest = 0;
    const uint64_t window = self->stands.window;
    struct wire_stands stands = { .instance = turn->member->instance };
    memcpy(stands.links, self->stands.links, sizeof stands.links);
    stands.linking = self->stands.linking;
    stands.linked = self->stands.linked;
    self->stands = stands;
    self->say_ms = 0;
    // mutant: windows: a member that cannot reach the end goes on from where it stands
    if (!said->ok) {
        replica_drop(replica, said->reason, turn->out);
        return;
    }
    self->stands.window = window;
    self->stands.step = said->step;
    if (said->step != replica->step || !hash_is_none(&said->digest))
        replica_move(replica, turn->member, said->step, &said->digest, replica->epoch);
}

static void hear_links(struct windows_member *self, const struct wire_links *said)
{
    memcpy(self->stands.links, said->endpoint, sizeof self->stands.links);
    self->stands.linking = said->linking;
    self->stands.linked = said->linked;
    if (said->linking == 0) self->expecting = 0; // Its model is new, and its links
    self->say_ms = 0;
}

static void hear_learner(struct windows_member *self, const struct member_turn *turn)
{
    switch (turn->in->kind) {
    case FRAME_LINKS: hear_links(self, turn->in->body); break;
    case FRAME_STEPPED: hear_stepped(self, turn); break;
    case FRAME_BROKE: hear_broke(self, turn); break;
    case FRAME_FROZEN: hear_frozen(self, turn); break;
    case FRAME_CLOSED_WINDOW: hear_closed(self, turn); break;
    }
}

static void hear(void *state, const struct member_turn *turn)
{
    struct windows_member *self = state;
    struct replica *replica = turn->replica;
    if (replica) {
        replica->follows_pins = true;
        replica->can_replay = false;
        replica->waits_for_pin = turn->member->role == ACTOR_TRAINER;
    }
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_WINDOW) hear_window(self, turn);
    if (turn->member->role != ACTOR_TRAINER || !replica) return;
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_STEPS) hear_steps(self, turn->in->body);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_LEVEL) hear_level(self, turn);
    if (turn->heard & HEARD_PACE && turn->in->kind == FRAME_LINKING)
        hear_linking(self, turn->in->body);
    if (turn->heard & (HEARD_REBORN | HEARD_ADMITTED)) self->say_ms = 0;
    hear_learner(self, turn);
}

// ---- ending a window ----------------------------------------------------------------------------

static void close_window(struct windows_member *self, const struct member_turn *turn, uint64_t end,
                         bool digest)
{
    self->closing = turn->replica->applying = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_CLOSE_WINDOW,
               &(struct wire_close_window){ in_hand(self) ? self->stands.window : 0, end, digest });
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

// Whether the windows in hand are over. What is applied is the run's for ever, as all others had it, too. But a step
// in memory is the run's only if it is certain that the window did not end before it: by a closing of this window,
// by the window right behind it, or by RUN if that knows no later window.
static enum outlook outlook(const struct windows_member *self, const struct member_turn *turn,
                            uint64_t *ret_end)
{
    const struct wire_run *run = &turn->member->now;
    const struct wire_window *next = kept(self, self->newest + 1);
    *ret_end = self->closed_at;
    // mutant: windows: a later closing is taken for that of this window
    if (self->closed >= self->newest && self->closed_from <= self->newest) return IS_OVER;
    if (next) {
        const bool leads_on = self->closed <= self->newest && next->step == self->newest_end &&
                              own_place(next, turn->member) != UINT32_MAX;
        *ret_end = next->step;
        return leads_on ? GOES_ON : IS_OVER;
    }
    *ret_end = run->step;
    if (is_over_by_run(turn->member, self->newest)) return IS_OVER;
    if (self->closed > self->newest || newest_kept(self)->number > self->newest) return IS_PAST;
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
    if (newest_kept(self)->number > self->newest && newest_kept(self)->step > step)
        step = newest_kept(self)->step;
    return step;
}

// The run has gone on, and where the windows in hand ended is not known. What is applied is the run's; one step more
// may be in memory, and all others that had it may have died.
static void leave_window(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_stands *stands = &self->stands;
    if (!self->is_frozen) { // It says where exactly it stands
        freeze(self, turn);
        return;
    }
    if (!stands->has || run_step(self, turn) <= stands->step) self->memory = IS_NOT_THE_RUNS;
    if (self->memory == IS_OPEN) ask(self, turn, TOPIC_COMMITS, stands->step);
    else close_window(self, turn, stands->step + (self->memory == IS_THE_RUNS), false);
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

static void take(struct windows_member *self, const struct member_turn *turn,
                 const struct wire_window *window)
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
        .place = own_place(window, member),
        .providers = providers,
        .providers_count = member_providers(member, window->number, providers, 16),
        .data = member->now.data,
        .order = member->now.order,
    };
    if (job.group_count == 0) return;
    if (!in_hand(self)) {
        self->first = window->number;
        self->stands.window = window->number;
        self->stands.step = window->step;
        self->stands.has = self->stands.broken = self->stands.stopped = self->stands.gone = false;
        self->stands.overdue = false;
        self->stands.missing = 0;
        self->stands.unsound = UNSOUND_NONE;
        self->stands.differ = 0;
        self->stands.level = 0;
        self->level = 0;
        turn->replica->applying = true;
        turn->replica->epoch = window->epoch;
    }
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
    const struct wire_window *way = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const struct wire_window *window = &self->kept[i].frame;
        // mutant: windows: a frozen window is begun all the same
        if (window->number <= self->frozen) continue;
        if (window->number <= self->closed || window->number <= self->done) continue;
        if (window->step != turn->replica->step || own_place(window, turn->member) == UINT32_MAX ||
            is_over_by_run(turn->member, window->number))
            continue;
        if (!way || window->number < way->number) way = window;
    }
    return way;
}

// Each member of a group has told the digest of the state that its epoch begins with (HOLDS), or took part in the
// window before.
static void begin(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *window = next_window(self, turn);
    if (window && (turn->replica->epoch >= window->epoch || has_pinned(turn)))
        take(self, turn, window);
}

// The next window follows without a break. It is given before the present one is done.
static void follow(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *window = kept(self, self->newest + 1);
    const struct wire_stands *stands = &self->stands;
    if (!window || stands->level || stands->broken || stands->stopped || self->freezing ||
        self->is_frozen)
        return;
    if (window->number <= self->frozen) return;
    if (own_place(window, turn->member) != UINT32_MAX) take(self, turn, window);
}

// ---- what is due --------------------------------------------------------------------------------

// The coordinator waits for an answer, or cannot open or commit the rest without it.
static bool is_urgent(const struct windows_member *self)
{
    const struct wire_stands *stands = &self->stands;
    return stands->level || stands->broken || stands->stopped ||
           (in_hand(self) && stands->step == self->newest_end);
}

static void say(struct windows_member *self, const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const uint32_t every_ms = member->config.heartbeat_ms;
    if (!member->admitted || (member->leaving && !in_hand(self)) || !self->stands.links[0] ||
        turn->in->now_ms < self->say_ms)
        return;
    self->stands.instance = member->instance;
    self->stands.leaves = member->leaving;
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
    const struct wire_window *newest = newest_kept(self);
    if (turn->member->now.phase == PHASE_TRAIN && newest->number > self->closed &&
        newest->step > turn->replica->step && own_place(newest, turn->member) != UINT32_MAX)
        ask(self, turn, TOPIC_RUN, 0);
}

// What was answered without a window in hand is old once that window is over.
static void forget_answer(struct windows_member *self, const struct member_turn *turn)
{
    const uint64_t window = self->stands.window;
    if (in_hand(self) || !self->stands.level) return;
    if (self->closed >= window || newest_kept(self)->number > window ||
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

static void look(void *state, const struct member_turn *turn)
{
    struct windows_member *self = state;
    struct replica *replica = turn->replica;
    if (!replica) return;
    if (turn->member->role != ACTOR_TRAINER) {
        if (replica->ready) replica_tell(replica, turn->member, turn->in->now_ms, turn->out);
        return;
    }
    forget_answer(self, turn);
    expect(self, turn);
    if (in_hand(self)) look_in_hand(self, turn);
    else if (replica->ready) {
        replica_tell(replica, turn->member, turn->in->now_ms, turn->out);
        if (is_digest_due(turn)) close_window(self, turn, replica->step, true);
        else begin(self, turn);
        if (!in_hand(self) && !self->closing) ask_for_window(self, turn);
    }
    // mutant: windows: a member leaves in the middle of a step
    turn->member->leaves_later = in_hand(self);
    say(self, turn);
}

_Static_assert(sizeof(struct windows_member) <= PACE_PART_BYTES, "a role has room for its pace");

const struct member_pace member_pace_windows = { "windows", FRAME_WINDOWS_CONFIG, hear, look,
                                                 NULL };
