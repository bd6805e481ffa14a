// One step of a window, in this order:
//
//   samples of our lanes ─▶ gradient of each of our nodes ─▶ sum over the group ─▶ HAVE to all
//     ─▶ HAVE of all ─▶ norm, clip, optimizer: the arithmetic of solo.c, on the same sum
//
// In a run of `sharded` only the owner of a share has its sum, and moves its parameters (learner_shares.c).
//
// HAVE has a check of the state before the step (learner_check.c). If two differ, nobody applies the step:
// it ends as FAULT_DIGEST, and the coordinator says how it goes on (common/pace/windows/differ.h).
// The sum begins while the last of our nodes is computed: its backward pass makes the gradient final
// from the end down, and what is final goes out between two layers.
//
// The owner of a share measures it while it sums: the squares of its pieces go out with its HAVE, so
// that nobody has to read the whole gradient again for its norm. The holder (common/run/holder.h)
// decides when the step may be applied; before that no number of the state changes.
//
// A step is void if a gradient, or the sum of all, is not finite, or a token is none of the
// vocabulary. Each number of the sum lies in somebody's share, and the owner of that says no HAVE:
// so nobody applies a void step, and of a step that all have the norm is good.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/kernel/gradient.h"
#include "common/learner/learner_windows.h"
#include "common/run/schedule.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SQUARES_WORD_MAX = 64000 / sizeof(double) }; // In one HAVE

static const struct wire_take_window *window_of(const struct learner *self)
{
    return &self->window->now->said;
}

struct lane_node learner_lanes(const struct learner *self, uint32_t place)
{
    const uint32_t computers = learner_computers(self);
    if (place >= computers) return (struct lane_node){ 0, 0 };
    return lanes_of_member(self->window->config.lanes, computers, place);
}

struct group_sum learner_sum(struct learner *self, enum group_way way, uint64_t floats)
{
    struct learner_window_work *work = self->window;
    const uint32_t servers = work->config.servers;
    return (struct group_sum){ .way = way,
                               .number = work->sums++,
                               .floats = floats,
                               .lanes = work->config.lanes,
                               .batch = work->config.batch_end,
                               .timeout_ms = work->config.step_timeout_ms,
                               .computers = servers ? learner_computers(self) : 0,
                               .owners = servers };
}

static struct lane_node own_lanes(const struct learner *self)
{
    return learner_lanes(self, window_of(self)->place);
}

static float rate_of(const struct learner *self)
{
    const struct wire_take_window *window = window_of(self);
    const size_t at = (size_t)(self->step - window->step) * sizeof(float);
    float rate;
    ensure(at + sizeof rate <= window->lr_bits.count);
    memcpy(&rate, window->lr_bits.data + at, sizeof rate);
    return rate;
}

// ---- our part of the gradient -------------------------------------------------------------------

// The samples of our lanes, in self->tokens.
static int read_samples(struct learner *self, struct interval at, struct why *why)
{
    const struct learner_window_work *work = self->window;
    const struct wire_take_window *window = window_of(self);
    const uint64_t begin = work->samples_done - window->samples_done;
    struct interval *list = malloc(window->samples_count * sizeof *list);
    uint64_t count;
    if (!list) return why_set(why, FAULT_MEMORY, "a list of samples");
    const struct learner_samples samples = {
        .list = list,
        .list_count = (uint32_t)interval_list_slice(window->samples, window->samples_count,
                                                    begin + at.begin, begin + at.end, NULL, list),
        .providers = window->providers,
        .providers_count = window->providers_count,
        .data = window->data,
        .order = window->order,
    };
    const int rc = learner_read_samples(self, &samples, why, &count);
    free(list);
    ensure(rc < 0 || count == interval_length(at));
    return rc;
}

// The vector of our node `number`. The first lies in the device's gradient, where the sum will be.
static int node_vector(struct learner *self, uint32_t number, struct why *why, float **ret_vector)
{
    struct learner_window_work *work = self->window;
    *ret_vector = compute_at(self->compute, COMPUTE_GRADIENT);
    if (number == 0) return 0;
    if (!work->more[number]) {
        const uint64_t bytes = (self->floats * sizeof(float) + 63) / 64 * 64;
        log_line(LOG_INFO,
                 "learner.memory more_mib=%" PRIu64 " because=\"in a group of this size it sums "
                 "another part of the gradient\"",
                 bytes >> 20);
        work->more[number] = aligned_alloc(64, bytes);
    }
    *ret_vector = work->more[number];
    return *ret_vector ? 0 : why_set(why, FAULT_MEMORY, "a part of the gradient");
}

// Our own part is void: say why, in work->unsound. A machine may have erred, so the step is tried again. At
// the second try we look at each number of our own part. So its member is named, not the owner of the sum.
static int judge_node(struct learner *self, const float *sum, int rc, struct why *why)
{
    struct learner_window_work *work = self->window;
    if (rc == 0 && work->again && !isfinite(gradient_norm(self->pool, sum, self->floats)))
        rc = why_set(why, FAULT_NAN, "our part of the gradient is not finite");
    if (rc == FAULT_NAN) work->unsound = UNSOUND_GRADIENT;
    if (rc == FAULT_RANGE) work->unsound = UNSOUND_TOKENS;
    return rc;
}

// Our nodes are final from there on. Nothing can become of the part after this but a sum: its loss
// and its tokens have been looked at. A fault of group_begin comes again from group_add.
static void part_is_final(void *arg, uint64_t from)
{
    struct learner_window_work *work = ((struct learner *)arg)->window;
    struct group_blame blame;
    struct why why;
    if (!work->adding) work->adding = group_begin(work->group, &work->sum, &why, &blame) == 0;
    if (work->adding) group_offer(work->group, from);
}

// The gradients of our nodes, in work->nodes.
static int compute_nodes(struct learner *self, struct why *why)
{
    struct learner_window_work *work = self->window;
    const uint32_t lanes = work->config.lanes;
    const struct lane_node own = own_lanes(self);
    const struct interval all = lane_samples(lanes, work->batch, own);
    struct lane_node nodes[LANE_NODES_MAX];
    const uint32_t count = lane_nodes(lanes, work->batch, own, nodes);
    int rc = interval_empty(all) ? 0 : read_samples(self, all, why);
    if (rc == FAULT_RANGE) work->unsound = UNSOUND_TOKENS;
    memset(work->losses, 0, sizeof work->losses);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const struct interval at = lane_samples(lanes, work->batch, nodes[i]);
        const uint32_t *tokens =
            self->tokens + (at.begin - all.begin) * ((uint64_t)self->config.seq_len + 1);
        struct compute_lanes part = { .tokens = tokens, .batch = work->batch, .node = nodes[i] };
        if (i + 1 == count && !work->again) part.final = part_is_final, part.final_arg = self;
        rc = node_vector(self, i, why, &part.sum);
        if (rc < 0) break;
        work->nodes[i] = part.sum;
        rc = compute_gradient_lanes(self->compute, &part, why, work->losses + nodes[i].first);
        rc = judge_node(self, part.sum, rc, why);
    }
    ensure(rc == 0 || !work->adding);
    return rc;
}

// ---- the sum, and HAVE --------------------------------------------------------------------------

static void take_squares(void *arg, struct interval at, const float *values)
{
    const struct learner *self = arg;
    const uint64_t count = interval_length(at);
    gradient_squares(NULL, values, count, 0, gradient_piece_count(count),
                     self->window->squares + at.begin / GRADIENT_PIECE);
}

static int add_up(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    work->adding = false;
    memset(work->waited_us, 0, sizeof work->waited_us);
    int rc = compute_nodes(self, why);
    work->computed_us = clock_us() - work->began_us;
    if (rc < 0) return rc;
    rc = work->adding ? group_end(work->group, why, ret_blame)
                      : group_add(work->group, &work->sum, why, ret_blame);
    if (rc == 0) learner_late_note(self, work->computed_us, work->waited_us);
    return rc;
}

// Whether these are the squares of a share that the norm of the whole can be made of. Without a clip that has a
// limit; it is at most sqrt(64) times the length of the longest share.
static bool is_a_length(const struct learner *self, double squares)
{
    const bool clips = self->window->config.clip_norm > 0;
    return sqrt(squares) < (clips ? sqrt(DBL_MAX) : GRADIENT_LIMIT) / 8;
}

// What is measured here of the sum.
static int judge_sum(struct learner *self, struct why *why)
{
    struct learner_window_work *work = self->window;
    const double squares = learner_squares_sum(self, window_of(self)->place);
    if (is_a_length(self, squares)) return 0;
    work->unsound = UNSOUND_SUM;
    return why_set(why, FAULT_NAN, "the sum of the gradients of step %" PRIu64 " has norm %g",
                   self->step, sqrt(squares));
}

// The step in hand is the last of its window, and no next one is here.
static bool knows_no_further(const struct learner *self)
{
    const struct wire_take_window *window = window_of(self);
    return self->step + 1 == window->step + window->steps && !self->window->next;
}

// Our lanes' losses and our share's squares, in as many words as they need.
static int tell_have(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    const uint32_t place = window_of(self)->place;
    const struct lane_node own = own_lanes(self);
    const bool is_saving = learner_pieces_is_busy(self);
    uint64_t first = 0, left = work->has_squares ? 0 : learner_squares_of(self, place);
    int rc = 0;
    work->pieces.somebody_writes |= is_saving;
    work->ends |= knows_no_further(self);
    bool told = false;
    while (rc == 0 && (!told || left > 0)) {
        const uint64_t count = left < SQUARES_WORD_MAX ? left : SQUARES_WORD_MAX;
        learner_squares_move(self, place, (struct interval){ first, first + count }, SQUARES_TELL,
                             work->told);
        struct wire_have have = {
            .window = window_of(self)->number,
            .step = self->step,
            .stop = work->holder.stop,
            .ends = knows_no_further(self),
            .saving = is_saving,
            .check = work->holder.check[place],
            .losses = { (uint8_t *)(work->losses + own.first),
                        told ? 0 : (uint32_t)((own.end - own.first) * sizeof(double)) },
            .first_piece = first,
            .squares = { work->told, (uint32_t)(count * sizeof(double)) },
        };
        learner_window_copies_tell(self, &have);
        const size_t bytes = wire_pack_body(FRAME_HAVE, &have, work->word, GROUP_WORD_MAX);
        ensure(bytes > 0);
        rc = group_tell(work->group, work->word, bytes, why, ret_blame);
        first += count, left -= count;
        told = true;
    }
    return rc;
}

static int refuse(const struct learner *self, uint32_t from, struct why *why,
                  struct group_blame *ret_blame)
{
    ret_blame->member = from;
    ret_blame->gone = false;
    return why_set(why, FAULT_FORMAT,
                   "member %u of the group told a HAVE that does not fit step %" PRIu64
                   " of window %" PRIu64,
                   from, self->step, window_of(self)->number);
}

// Of a vector so small that each owns all of it, nobody waits for a member without samples; nor is one waited for that
// has neither samples nor a share. The others may have the
// sum of the next step, and say so, before the last HAVE of this step has reached us. They cannot apply that
// step without us: so one such word of each is all that can come. We keep it as it is.
static bool keep_early(struct learner *self, uint32_t from, const struct wire_have *have,
                       const void *bytes, size_t count)
{
    struct learner_window_work *work = self->window;
    if (have->window != window_of(self)->number || have->step != self->step + 1 ||
        (!work->has_squares && !learner_shares_are_on(self)) || work->early_count[from] > 0 ||
        count > sizeof work->early[from])
        return false;
    memcpy(work->early[from], bytes, count);
    work->early_count[from] = (uint16_t)count;
    return true;
}

// A member that has a loss that is no number says no HAVE: its part is void.
static bool are_numbers(const struct wire_bytes *doubles)
{
    for (size_t at = 0; at + sizeof(double) <= doubles->count; at += sizeof(double)) {
        double number;
        memcpy(&number, doubles->data + at, sizeof number);
        if (!isfinite(number)) return false;
    }
    return true;
}

// A HAVE of another member: its losses and squares go to their places.
static int take_have(struct learner *self, uint32_t from, const void *bytes, size_t count,
                     struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    const struct wire_take_window *window = window_of(self);
    struct wire_refusal refusal;
    const void *body;
    work->heard.used = 0;
    if (!wire_unpack_body(bytes, count, FRAME_HAVE, &work->heard, &body, &refusal))
        return refuse(self, from, why, ret_blame);
    const struct wire_have *have = body;
    if (keep_early(self, from, have, bytes, count)) return 0;
    const struct lane_node lanes = learner_lanes(self, from);
    const uint64_t first = have->first_piece, told = have->squares.count / sizeof(double);
    const size_t losses = (lanes.end - lanes.first) * sizeof(double);
    if (have->window != window->number || have->step != self->step ||
        have->squares.count % sizeof(double) != 0 || told > work->squares_left[from] ||
        first != (told > 0 ? learner_squares_of(self, from) - work->squares_left[from] : 0) ||
        (have->losses.count != 0 && have->losses.count != losses) || !are_numbers(&have->losses))
        return refuse(self, from, why, ret_blame);
    // mutant: saves: a member that is still writing is not waited for
    work->pieces.somebody_writes |= have->saving;
    learner_window_copies_hear(self, from, have);
    work->ends |= have->ends;
    memcpy(work->losses + lanes.first, have->losses.data, have->losses.count);
    learner_squares_move(self, from, (struct interval){ first, first + told }, SQUARES_TAKE,
                         (uint8_t *)have->squares.data);
    const bool is_last = told > 0 && told == work->squares_left[from];
    if (is_last && !is_a_length(self, learner_squares_sum(self, from)))
        return refuse(self, from, why, ret_blame);
    work->squares_left[from] -= told;
    if (work->squares_left[from] == 0)
        holder_hear_have(&work->holder, from, window->number, self->step, have->stop, &have->check);
    return 0;
}

// A member whose HAVE has not come.
static uint32_t first_missing(const struct learner *self)
{
    const uint64_t have = self->window->holder.have;
    for (uint32_t i = 0; i < window_of(self)->group_count; i++)
        if (!(have >> i & 1)) return i;
    return UINT32_MAX;
}

static bool has_said(const struct learner *self, uint32_t member)
{
    return member < GROUP_MEMBERS_MAX && self->window->holder.have >> member & 1;
}

static int take_early(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    int rc = 0;
    for (uint32_t i = 0; i < window_of(self)->group_count && rc == 0; i++) {
        const size_t count = work->early_count[i];
        work->early_count[i] = 0;
        if (count > 0) rc = take_have(self, i, work->early[i], count, why, ret_blame);
    }
    return rc;
}

// All checks have come, and are not equal.
static int refuse_step(const struct learner *self, struct why *why)
{
    const struct holder *holder = &self->window->holder;
    const uint64_t outsiders = holder_outsiders(holder);
    if (!holder_is_minority(outsiders, holder->count))
        return why_set(why, FAULT_DIGEST,
                       "before step %" PRIu64
                       " the states of the %u members differ, and no majority is equal",
                       self->step, holder->count);
    return why_set(why, FAULT_DIGEST,
                   "before step %" PRIu64 " %s from that of the majority of the %u members",
                   self->step, holder_is_outside(holder) ? "our state differs" : "a state differs",
                   holder->count);
}

// Waits for the others up to step_timeout, as the sum before it did: what we took to compute is no fault of theirs.
static int hear_all(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    const uint64_t end_us = clock_us() + (uint64_t)work->config.step_timeout_ms * 1000;
    int rc = take_early(self, why, ret_blame);
    while (rc == 0 && !holder_may_apply(&work->holder)) {
        if (holder_outsiders(&work->holder)) return refuse_step(self, why);
        const uint64_t now_us = clock_us();
        const uint32_t left_ms = now_us < end_us ? (uint32_t)((end_us - now_us) / 1000) + 1 : 0;
        uint32_t from;
        const void *bytes;
        size_t count;
        rc = group_hear(work->group, left_ms, why, ret_blame, &from, &bytes, &count);
        // The end of a member that has said all of this step: it went on, and needs nothing of us.
        if (rc < 0 && left_ms > 0 && has_said(self, ret_blame->member)) {
            *ret_blame = (struct group_blame){ UINT32_MAX, false };
            rc = 0;
            continue;
        }
        if (rc == FAULT_TIMEOUT && ret_blame->member == UINT32_MAX)
            ret_blame->member = first_missing(self);
        if (rc == 0) rc = take_have(self, from, bytes, count, why, ret_blame);
    }
    return rc;
}

int learner_step_hear_out(struct learner *self, struct why *why)
{
    enum { HEAR_OUT_MS = 2000 }; // It was said before the window was closed, and is on its way
    struct learner_window_work *work = self->window;
    const uint64_t end_us = clock_us() + HEAR_OUT_MS * 1000;
    const uint64_t dead = group_dead(work->group);
    struct group_blame blame = { UINT32_MAX, false };
    int rc = take_early(self, why, &blame);
    for (uint32_t i = 0; i < window_of(self)->group_count && rc == 0; i++)
        if (dead >> i & 1 && work->squares_left[i] > 0)
            rc = why_set(why, FAULT_UNREACHABLE, "member %u of the group is dead", i);
    while (rc == 0 && !learner_shares_has(self)) {
        const uint64_t now_us = clock_us();
        const uint32_t left_ms = now_us < end_us ? (uint32_t)((end_us - now_us) / 1000) + 1 : 0;
        uint32_t from;
        const void *bytes;
        size_t count;
        rc = group_hear_out(work->group, left_ms, why, &from, &bytes, &count);
        if (rc == 0) rc = take_have(self, from, bytes, count, why, &blame);
    }
    return rc;
}

// ---- the step -----------------------------------------------------------------------------------

static void begin_step(struct learner *self)
{
    struct learner_window_work *work = self->window;
    const struct wire_windows_config *config = &work->config;
    work->began_us = clock_us();
    work->again = work->tried == self->step + 1;
    work->tried = self->step + 1;
    work->batch =
        schedule_batch_size(config->batch_start, config->batch_end, config->batch_warmup_tokens,
                            work->samples_done * self->config.seq_len);
    work->ends = false;
    work->sum =
        learner_sum(self, learner_shares_are_on(self) ? GROUP_SCATTER : GROUP_ALL, self->floats);
    work->sum.batch = work->batch;
    work->sum.nodes = work->nodes;
    work->sum.result = compute_at(self->compute, COMPUTE_GRADIENT);
    work->sum.waited_us = work->waited_us;
    work->sum.summed = take_squares;
    work->sum.arg = self;
    work->pieces.somebody_writes =
        window_of(self)->group_count == 1 && learner_pieces_is_busy(self);
    learner_window_copies_step(self);
    learner_squares_begin(self);
}

int learner_step_apply(struct learner *self, struct why *why)
{
    struct learner_window_work *work = self->window;
    const double limit = work->config.clip_norm > 0 ? work->config.clip_norm : INFINITY;
    float *gradient = compute_at(self->compute, COMPUTE_GRADIENT);
    double norm;
    int rc = gradient_clip_by(self->pool, gradient, learner_shares_part(self), work->squares,
                              work->squares_count, limit, why, &norm);
    if (rc == 0 && !(norm < GRADIENT_LIMIT) && limit == INFINITY)
        rc = why_set(why, FAULT_NAN, "gradient: its norm is %g, allowed up to 2^63", norm);
    if (rc == 0) rc = optimizer_step(self->optimizer, rate_of(self), why);
    if (rc < 0) return rc;
    holder_applied(&work->holder);
    learner_shares_applied(self);
    work->samples_done += work->batch;
    self->step++;
    return 0;
}

int learner_step(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    *ret_blame = (struct group_blame){ UINT32_MAX, false };
    int rc = learner_shares_gather(self, why, ret_blame);
    if (rc < 0) return rc;
    begin_step(self);
    failpoint("learner_train");
    rc = add_up(self, why, ret_blame);
    if (rc == 0) rc = judge_sum(self, why);
    if (rc < 0) return rc;
    failpoint("learner_trained"); // The sum is here, and nobody knows it
    struct hash check = { { 0 } };
    // With servers each step begins with their parameters, and nobody has all of the state to compare
    if (window_of(self)->group_count > 1 && !work->config.servers)
        rc = learner_step_check(self, why, &check);
    if (rc < 0) return rc;
    ensure(holder_complete(&work->holder, &check)); // A freeze would have ended the step
    if (window_of(self)->group_count > 1) rc = tell_have(self, why, ret_blame);
    if (rc == 0) rc = hear_all(self, why, ret_blame);
    if (rc < 0) return rc;
    failpoint("learner_apply");
    const uint64_t applies_us = clock_us();
    rc = learner_step_apply(self, why);
    work->applied_us = clock_us() - applies_us;
    failpoint("learner_applied");
    if (rc == 0) learner_pieces_stepped(self);
    if (rc == 0) learner_window_copies_stepped(self);
    if (rc == 0) rc = learner_shares_close(self, why, ret_blame);
    return rc;
}
