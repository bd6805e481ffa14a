// The strategies `allreduce`, `sharded` and `server`: the learner takes the steps of a window together with the
// window's group, and asks nobody. The core gives windows, freezes them, and says where they end.
//
//     TAKE_WINDOW ─▶ the group is formed ─▶ step, step, step ... ─▶ the next window, if it is here
//                                             │ a fault: BROKE
//     FREEZE  ─▶ FROZEN: where we stand       ▼
//     CLOSE_WINDOW ─▶ applies the last step from memory if it is missing, and answers where we are
//
// While a step waits for other members, the group lets us look for jobs: a window that follows and
// the wish to stop are noted and disturb nothing, any other job interrupts the step. After a break
// or a freeze nothing is done until the core closes the window: the gradient that is here stays, as
// it may still be applied.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/kernel/gradient.h"
#include "common/learner/learner_away.h"
#include "common/learner/learner_gather.h"
#include "common/learner/learner_links.h"
#include "common/learner/learner_windows.h"
#include "common/learner/windows_optimizer.h"
#include "common/model/batch.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    TELL_US = 200000, // STEPPED beside those of the middle and the end
};

static struct learner_window_work *work_of(const struct learner *self) { return self->window; }

// ---- BUILD --------------------------------------------------------------------------------------

static int read_part(struct learner *self, const void *part, struct why *why)
{
    const struct wire_windows_config *config = part;
    if (config->servers && config->parts != PARTS_MOMENTS)
        return why_set(why, FAULT_UNSUPPORTED,
                       "a run with %u servers shares out the moments (parts)", config->servers);
    self->same_bits = true;
    self->optimizer_kind = windows_optimizer(config, &self->settings);
    self->window = calloc(1, sizeof *self->window);
    if (!self->window) return why_set(why, FAULT_MEMORY, "windows");
    self->window->config = *config;
    learner_late_open(self->window);
    if (!self->options->trains || self->options->device.kind == COMPUTE_CPU) return 0;
    return why_set(why, FAULT_UNSUPPORTED,
                   "a run of allreduce, sharded or server computes on the CPU in this version; use "
                   "--device cpu");
}

// A member computes its lanes as few nodes: none has more lanes than it.
static void plan(struct learner *self, struct compute_config *config)
{
    const uint32_t least = learner_members_least(self);
    config->lanes = work_of(self)->config.lanes;
    config->node_lanes = (config->lanes + least - 1) / least;
    config->batch_max = work_of(self)->config.batch_end;
}

// True if a job waits for which the step in hand must stop; without a step, also if a save has ended.
static bool is_called(void *arg);

static uint64_t check_leaves_most(const struct learner *self)
{
    return state_cut_leaves(&self->cut) / STATE_CHECK_STEPS + 1;
}

static int open_windows(struct learner *self, struct why *why)
{
    struct learner_window_work *work = work_of(self);
    if (!self->options->trains) return 0;
    work->squares_count = gradient_piece_count(self->floats);
    work->squares = calloc(work->squares_count, sizeof *work->squares);
    work->check_leaves = calloc(check_leaves_most(self), sizeof *work->check_leaves);
    work->word = malloc(GROUP_WORD_MAX);
    work->told = malloc(GROUP_WORD_MAX);
    work->heard.max = wire_arena_max(FRAME_HAVE);
    work->heard.bytes = malloc(work->heard.max);
    if (!work->squares || !work->check_leaves || !work->word || !work->told || !work->heard.bytes)
        return why_set(why, FAULT_MEMORY, "%" PRIu64 " pieces of a norm", work->squares_count);
    const int rc = learner_pieces_check(self, why);
    const struct learner_links_options links = { work->config.link, work->config.connections,
                                                 is_called };
    return rc < 0 ? rc : learner_links_open(self, &links, why, &work->group);
}

// The pieces of the norm, and the moments of the smallest group. Later: the vectors for nodes after the first that some
// group needs, what the group takes for its links, and room for saves.
static uint64_t memory(struct learner *self, uint64_t *ret_later)
{
    const uint32_t least = learner_members_least(self);
    if (!self->options->trains) return 0;
    const struct learner_shares_memory of = learner_shares_memory(self, least);
    const uint64_t nodes = lane_nodes_most(work_of(self)->config.lanes, least) - 1;
    const uint64_t more = self->options->serves ? 0 : nodes;
    const uint64_t gathers = learner_shares_are_on(self) ? LEARNER_GATHER_MEMORY : 0;
    *ret_later = more * self->floats * sizeof(float) + GROUP_MEMORY + gathers + of.saves;
    return gradient_piece_count(self->floats) * sizeof(double) + of.moments;
}

static void drop_window(struct learner_window **window_p)
{
    free(*window_p);
    *window_p = NULL;
}

static void close_windows(struct learner *self)
{
    struct learner_window_work *work = work_of(self);
    if (!work) return;
    learner_pieces_close(self);
    learner_window_copies_close(self);
    group_destroy(&work->group);
    drop_window(&work->now);
    drop_window(&work->next);
    for (uint32_t i = 0; i < LANE_NODES_MAX; i++) free(work->more[i]);
    free(work->squares);
    free(work->check_leaves);
    free(work->word);
    free(work->told);
    free(work->heard.bytes);
    free(work);
    self->window = NULL;
}

static void built(struct learner *self)
{
    struct learner_window_work *work = work_of(self);
    if (work->group) learner_links_say(self, work->group, work->config.link, &work->links);
}

// ---- links with trainers that no window names yet -----------------------------------------------

static void hear_expect(struct learner *self, const struct wire_expect *said)
{
    struct learner_window_work *work = work_of(self);
    work->expect_number = said->number;
    work->expect_count = said->trainers_count;
    for (uint32_t i = 0; i < said->trainers_count; i++)
        learner_links_member(&work->expect[i], &said->trainers[i]);
}

// Tells the core which links stand, if that has changed.
static void tell_links(struct learner *self, uint64_t number)
{
    struct learner_window_work *work = work_of(self);
    const uint64_t linked = group_linked(work->group);
    if (number == work->links.linking && linked == work->links.linked) return;
    work->links.linking = number;
    work->links.linked = linked;
    worker_answer(self->worker, FRAME_LINKS, &work->links);
}

// Takes up the newest list, and moves what is under way: between two steps without waiting, and with nothing else
// to do until a job comes. False: a job waits.
static bool serve_links(struct learner *self)
{
    struct learner_window_work *work = work_of(self);
    struct why why = { 0 };
    uint64_t number = work->links.linking;
    if (work->expect_number) {
        number = work->expect_number;
        work->expect_number = 0;
        if (group_expect(work->group, work->expect, work->expect_count, &why) < 0)
            log_line(LOG_WARNING, "learner.not_linking reason=\"%s\"; linking with the others",
                     why.text);
    }
    tell_links(self, number);
    const int rc = group_serve(work->group, work->idle ? UINT32_MAX : 0, &why);
    tell_links(self, number);
    return rc != FAULT_INTERRUPTED;
}

// ---- the window in hand -------------------------------------------------------------------------

static void *copy(uint8_t **memory_p, const void *from, size_t bytes)
{
    void *to = *memory_p;
    if (bytes) memcpy(to, from, bytes);
    *memory_p += (bytes + 7) / 8 * 8;
    return to;
}

static struct learner_window *keep(const struct wire_take_window *said)
{
    const size_t intervals = said->samples_count * sizeof *said->samples;
    const size_t holders = said->providers_count * sizeof *said->providers;
    struct learner_window *window =
        calloc(1, sizeof *window + intervals + holders + said->lr_bits.count + 64);
    ensure(window);
    uint8_t *memory = (uint8_t *)(window + 1);
    window->said = *said;
    window->said.samples = copy(&memory, said->samples, intervals);
    window->said.providers = copy(&memory, said->providers, holders);
    window->said.lr_bits.data = copy(&memory, said->lr_bits.data, said->lr_bits.count);
    window->said.group = NULL;
    for (uint32_t i = 0; i < said->group_count; i++)
        learner_links_member(&window->members[i], &said->group[i]);
    return window;
}

static bool is_over(const struct learner *self)
{
    const struct learner_window *now = work_of(self)->now;
    return !now || self->step >= now->said.step + now->said.steps || work_of(self)->holder.stopped;
}

// The wish to stop goes over to a window that follows the one in hand. Where servers own the shares that may have more
// trainers.
static void begin_window(struct learner *self, struct learner_window *window)
{
    struct learner_window_work *work = work_of(self);
    const struct wire_take_window *said = &window->said;
    struct holder *holder = &work->holder;
    const bool stops = work->now && holder->asks_stop;
    // mutant: servers: a trainer that has come is taken for the one before it
    if (learner_same_group(work->now, window)) holder_follow(holder, said->number);
    else holder_begin(holder, said->number, self->step, said->place, said->group_count);
    if (stops) holder_stop(holder);
    learner_late_begin(work, window);
    learner_pieces_begin(self, said);
    learner_shares_begin(self, said);
    drop_window(&work->now);
    work->now = window;
    work->formed = work->placed = work->waits = false;
    learner_window_copies_begin(self, said);
    work->samples_done = said->samples_done;
    work->told_us = 0;
    memset(work->early_count, 0, sizeof work->early_count);
}

// Begins the next window if it is here and the one in hand is done. A group that has stopped begins none, also if
// it stopped at the last step of its window: the core closes both.
static void follow(struct learner *self)
{
    struct learner_window_work *work = work_of(self);
    const bool may = !work->now || (is_over(self) && !work->waits && !work->holder.stopped);
    if (!work->next || !may || !self->holding || work->next->said.step != self->step) return;
    begin_window(self, work->next);
    work->next = NULL;
}

// What is held counts no more. The moments are the servers', and the parameters come when the first step begins.
static void enter(struct learner *self, uint64_t step)
{
    learner_pin_wait(self);
    learner_away_drop(self);
    past_clear(&self->past);
    self->step = step;
    self->holding = self->share_only = true;
    self->has_share = false;
    work_of(self)->owners = 0;
}

// The newest of the core counts: one that does not begin where the one in hand ends replaces it.
static void hear_take(struct learner *self, const struct wire_take_window *said)
{
    struct learner_window_work *work = work_of(self);
    if (said->enters && !work->now) enter(self, said->step);
    drop_window(&work->next);
    work->next = keep(said);
    follow(self);
}

// `window` is the newest that was given; the one in hand may be the one before it.
static void hear_stop(struct learner *self, const struct wire_stop_window *said)
{
    struct learner_window_work *work = work_of(self);
    if (work->now && work->now->said.number <= said->window) holder_stop(&work->holder);
}

static bool is_called(void *arg)
{
    struct learner *self = arg;
    for (;;) {
        const enum worker_turn turn = learner_next(self, 0);
        if (turn == WORKER_QUIET)
            return work_of(self)->idle &&
                   (learner_save_has_ended(self) || learner_pieces_has_ended(self));
        if (turn == WORKER_END || work_of(self)->idle) return true;
        if (self->job.kind == FRAME_TAKE_WINDOW) hear_take(self, self->job.body);
        else if (self->job.kind == FRAME_STOP_WINDOW) hear_stop(self, self->job.body);
        else if (self->job.kind == FRAME_EXPECT) hear_expect(self, self->job.body);
        else if (self->job.kind == FRAME_KEPT) learner_window_copies_kept(self, self->job.body);
        else return true;
        self->has_job = false;
    }
}

// ---- FREEZE, CLOSE_WINDOW -----------------------------------------------------------------------

// Those of the window in hand. Without its group the places are those of the one before.
static uint64_t dead_places(const struct learner_window_work *work)
{
    // mutant: shares: a member that lives is called dead, as one of the group before is
    return work->placed ? group_dead(work->group) : 0;
}

static void hear_freeze(struct learner *self, const struct wire_level *said)
{
    struct learner_window_work *work = work_of(self);
    struct wire_frozen frozen = { .window = said->window,
                                  .level = said->level,
                                  .step = self->step,
                                  .taken = work->pieces.taken,
                                  .taken_window = work->pieces.taken_window,
                                  .copied = work->copies.copied,
                                  .copied_window = work->copies.copied_window,
                                  .share = self->share_only };
    if (work->now && work->now->said.number <= said->window) {
        frozen.dead = dead_places(work);
        work->waits = true;
        holder_freeze(&work->holder);
        frozen.has = holder_has(&work->holder) && learner_shares_has(self);
    }
    worker_answer(self->worker, FRAME_FROZEN, &frozen);
}

// The steps up to `end`, from memory: at most the one whose sum is here.
static int reach(struct learner *self, uint64_t end, struct why *why)
{
    struct learner_window_work *work = work_of(self);
    if (self->step == end) return 0;
    if (!work->now || holder_close(&work->holder, end) != HOLDER_MUST_APPLY)
        return why_set(why, FAULT_NOT_FOUND,
                       "step %" PRIu64 " is held, and not all of step %" PRIu64, self->step, end);
    // Some of the others' HAVE may be missing: the whole gradient is here, and has the same squares.
    if (!learner_shares_are_on(self))
        gradient_squares(self->pool, compute_at(self->compute, COMPUTE_GRADIENT), self->floats, 0,
                         work->squares_count, work->squares);
    const int rc = learner_shares_has(self) ? 0 : learner_step_hear_out(self, why);
    if (rc < 0)
        return why_wrap(why, rc,
                        "step %" PRIu64 " cannot be applied: not all members have said how long "
                        "their share of the gradient is",
                        self->step);
    return learner_step_apply(self, why);
}

static void hear_close(struct learner *self, const struct wire_close_window *job)
{
    const struct wire_close_window copy = *job, *said = &copy; // Another job may come meanwhile
    struct learner_window_work *work = work_of(self);
    struct why why = { 0 };
    struct wire_closed_window closed = { .window = said->window };
    int rc = !self->holding ? why_set(&why, FAULT_NOT_FOUND, "no step is held")
             : work->lost   ? why_set(&why, FAULT_NOT_FOUND, "%s", work->lost_why.text)
             : work->now && holder_is_outside(&work->holder)
                 ? why_set(&why, FAULT_DIGEST, "our state differs from that of the majority")
                 : reach(self, said->end, &why);
    learner_pin_wait(self);
    if (rc == 0 && said->digest) rc = learner_take_digest(self, &why);
    // Pinned at once: a member whose state turns out to differ then fetches only what differs.
    if (rc == 0 && said->digest) learner_offer(self);
    drop_window(&work->now);
    drop_window(&work->next);
    work->waits = work->lost = false;
    closed.ok = rc == 0;
    closed.step = self->step;
    closed.share = closed.ok && self->share_only;
    if (closed.ok && said->digest) closed.digest = self->digest;
    learner_put_reason(closed.reason, &why);
    worker_answer(self->worker, FRAME_CLOSED_WINDOW, &closed);
}

static bool hear(struct learner *self, const struct job *job)
{
    switch (job->kind) {
    case FRAME_TAKE_WINDOW: hear_take(self, job->body); return true;
    case FRAME_STOP_WINDOW: hear_stop(self, job->body); return true;
    case FRAME_EXPECT: hear_expect(self, job->body); return true;
    case FRAME_KEPT: // It may lie behind a BUILD that failed
        if (self->built) learner_window_copies_kept(self, job->body);
        return true;
    case FRAME_FREEZE: hear_freeze(self, job->body); return true;
    case FRAME_CLOSE_WINDOW: hear_close(self, job->body); return true;
    default: return false;
    }
}

// ---- work ---------------------------------------------------------------------------------------

static bool has_step(const struct learner *self)
{
    const struct learner_window_work *work = work_of(self);
    return self->holding && work->now && !work->waits && !is_over(self);
}

// Without a step to take it serves its links.
static bool busy(const struct learner *self)
{
    const struct learner_window_work *work = work_of(self);
    return work && work->group;
}

static void tell_broke(struct learner *self, int fault, const struct why *why,
                       const struct group_blame *blame)
{
    struct learner_window_work *work = work_of(self);
    struct wire_broke broke = {
        .window = work->now->said.number,
        .step = self->step,
        .has = holder_has(&work->holder) && learner_shares_has(self),
        .missing = blame->member == UINT32_MAX ? 0 : blame->member + 1,
        .dead = dead_places(work),
        .unsound = work->unsound,
        .overdue = fault == FAULT_TIMEOUT && blame->member != UINT32_MAX,
        .differ = holder_outsiders(&work->holder),
        .taken = work->pieces.taken,
        .taken_window = work->pieces.taken_window,
        .copied = work->copies.copied,
        .copied_window = work->copies.copied_window,
        .share = self->share_only,
    };
    work->waits = true;
    tell_links(self, work->links.linking); // Whom it waited for in vain is not taken for linked
    learner_put_reason(broke.reason, why);
    worker_answer(self->worker, FRAME_BROKE, &broke);
}

static uint32_t own_samples(const struct learner *self, uint32_t batch)
{
    const uint32_t lanes = work_of(self)->config.lanes;
    const struct lane_node own = learner_lanes(self, work_of(self)->now->said.place);
    return (uint32_t)interval_length(lane_samples(lanes, batch, own));
}

// The losses of the others are what they say: numbers, but their sum may be none that a float can hold.
static float mean_loss(const struct learner_window_work *work, uint32_t batch)
{
    const double mean = batch_lanes_loss(work->losses, work->config.lanes, batch);
    return (float)fmax(fmin(mean, FLT_MAX), -FLT_MAX);
}

// At the middle and at the end of a window, and now and then.
static void tell_stepped(struct learner *self, uint32_t batch)
{
    struct learner_window_work *work = work_of(self);
    const struct wire_take_window *window = &work->now->said;
    const uint64_t done = self->step - window->step, now_us = clock_us();
    if (done != (window->steps + 1) / 2 && !is_over(self) && now_us - work->told_us < TELL_US)
        return;
    const uint32_t samples = own_samples(self, batch);
    struct wire_stepped stepped = {
        .window = window->number,
        .step = self->step,
        .loss = mean_loss(work, batch),
        .tokens_per_s =
            (float)((double)samples * self->config.seq_len * 1e6 / (double)(work->computed_us + 1)),
        .samples = samples,
        .train_ms = samples ? (uint32_t)(work->computed_us / 1000) : 0,
        .apply_ms = (uint32_t)(work->applied_us / 1000),
        .stopped = work->holder.stopped,
        .late = work->late,
        .late_ms = work->late ? work->late_ms : 0,
        .usual_ms = work->late ? work->usual_ms : 0,
        .taken = work->pieces.taken,
        .taken_window = work->pieces.taken_window,
        .copied = work->copies.copied,
        .copied_window = work->copies.copied_window,
        .share = self->share_only,
    };
    memcpy(&stepped.lr_bits, window->lr_bits.data + (done - 1) * sizeof(float), sizeof(float));
    work->told_us = now_us;
    worker_answer(self->worker, FRAME_STEPPED, &stepped);
}

static int form(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = work_of(self);
    const struct wire_take_window *window = &work->now->said;
    if (work->formed) return 0;
    *ret_blame = (struct group_blame){ UINT32_MAX, false };
    if (work->lost) return why_set(why, FAULT_NOT_FOUND, "%s", work->lost_why.text);
    if (window->group_count <= work->config.servers ||
        learner_computers(self) < learner_members_least(self))
        return why_set(why, FAULT_RANGE,
                       "the window has %u members, %u of them servers, and this run plans for %u "
                       "trainers and more (min_clients)",
                       window->group_count, work->config.servers, learner_members_least(self));
    work->placed = true;
    // The others may still have the rest of the window before this one in hand
    const uint32_t before_ms = window->enters ? work->config.window_ms : 0;
    const int rc =
        group_form(work->group, window->number, work->now->members, window->group_count,
                   window->place, work->config.step_timeout_ms + before_ms, why, ret_blame);
    work->formed = rc == 0;
    work->sums = 0;
    return rc;
}

// The job that waits ends the step as the core wants it: nobody has to be told.
static bool is_ended_by_job(const struct learner *self)
{
    const uint16_t kind = self->job.kind;
    return self->has_ended ||
           (self->has_job && (kind == FRAME_FREEZE || kind == FRAME_CLOSE_WINDOW));
}

// One step. A job that interrupts it is done next. After FREEZE or CLOSE_WINDOW what is here may
// still be applied; any other job has broken the window.
static void work(struct learner *self)
{
    struct learner_window_work *work = work_of(self);
    struct why why = { 0 };
    struct group_blame blame;
    work->idle = !has_step(self);
    learner_pieces_look(self);
    learner_window_copies_look(self);
    if (!serve_links(self) || work->idle) return;
    work->unsound = UNSOUND_NONE;
    int rc = form(self, &why, &blame);
    if (rc == 0) rc = learner_step(self, &why, &blame);
    if (rc == 0) {
        tell_stepped(self, work->batch);
        follow(self);
    } else if (rc == FAULT_INTERRUPTED && is_ended_by_job(self)) {
        work->waits = true;
    } else {
        tell_broke(self, rc, &why, &blame);
    }
}

const struct learner_strategy learner_windows = {
    .config = FRAME_WINDOWS_CONFIG,
    .read = read_part,
    .plan = plan,
    .memory = memory,
    .pins_in_files = learner_shares_are_on,
    .shares_state = learner_shares_are_on,
    .open = open_windows,
    .close = close_windows,
    .built = built,
    .hear = hear,
    .busy = busy,
    .work = work,
};
