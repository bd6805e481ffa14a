// The strategy of leases: a group of trainers and parameter servers, fixed for an epoch, in which each trainer
// works at its own speed (common/pace/leases/leases_pace.h says who trains which samples). The core gives a group,
// tasks to a trainer, and the order to put the state together.
//
//     TAKE_GROUP ─▶ a server: its share of the state   ─▶ the group is formed ─▶ questions are answered
//                   a trainer                          ─▶ GROUP_FORMED        ─▶ pull, tasks, TASK_TRAINED of each
//     SETTLE_GROUP ─▶ each member holds all of the state again ─▶ GROUP_SETTLED
//     TAKE_SHARE   ─▶ a server saves its share of it, in the midst of the group or behind SETTLE_GROUP ─▶ SHARE_TAKEN
//     END_GROUP
//
// While a group is in hand nothing is held: a server has its share alone, and the parameters of a
// trainer are as old as its last pull. All of it is held again when the state has been put together.
//
// Each wait of a trainer or a server ends when a job waits, and goes on behind that job: nothing is lost by it. Only
// where all members act together (the group is formed, the state is gathered) a job that ends the wait ends the act,
// too; so there a job that means no end of it is done within the wait.

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/learner/learner_away.h"
#include "common/learner/learner_leases.h"
#include "common/learner/windows_optimizer.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THOUSAND = 1000 };

static struct learner_lease_work *work_of(const struct learner *self) { return self->lease; }

void learner_lease_because(char because[128], const struct why *why)
{
    struct why cut = { 0 };
    char reason[REASON_MAX + 1];
    snprintf(cut.text, sizeof cut.text, "%.127s", why->text);
    learner_put_reason(reason, &cut);
    memcpy(because, reason, 128);
}

// ---- BUILD --------------------------------------------------------------------------------------

static int read_part(struct learner *self, const void *part, struct why *why)
{
    const struct wire_leases_config *config = part;
    self->same_bits = false; // No trainer computes what another one does
    self->optimizer_kind = leases_optimizer(config, &self->settings);
    self->lease = calloc(1, sizeof *self->lease);
    if (!self->lease) return why_set(why, FAULT_MEMORY, "leases");
    self->lease->config = *config;
    if (!(config->staleness >= 0 && config->staleness <= UINT32_MAX / THOUSAND))
        return why_set(why, FAULT_RANGE, "staleness %g, allowed 0..%u", config->staleness,
                       UINT32_MAX / THOUSAND);
    if (!self->options->trains || self->options->device.kind == COMPUTE_CPU) return 0;
    return why_set(why, FAULT_UNSUPPORTED,
                   "a run of leases computes on the CPU in this version; use --device cpu");
}

static void plan(struct learner *self, struct compute_config *config)
{
    config->batch_max = work_of(self)->config.batch_end;
}

static bool shares_state(const struct learner *self)
{
    (void)self;
    return true;
}

static struct interval longest_share(const struct learner *self, uint32_t servers)
{
    struct interval share = { 0, 0 };
    for (uint32_t i = 0; i < servers; i++) { // They may differ by a leaf
        const struct interval other = group_interval(self->floats, i, servers);
        if (interval_length(other) > interval_length(share)) share = other;
    }
    return share;
}

// What a server keeps for each trainer: the gradient that comes, and the parameters that go. In bf16 it is half of that,
// and the same once more for the parameters that go to one.
static uint64_t rooms(const struct learner *self, struct interval share, uint32_t trainers)
{
    return (trainers + learner_lease_halves(self)) * learner_lease_words(self, share) *
           sizeof(float);
}

int learner_lease_take_words(struct learner *self, uint64_t floats, struct why *why)
{
    struct learner_lease_work *work = work_of(self);
    const uint64_t count = learner_lease_halves(self) ? bf16_words_count(floats) : 0;
    if (count == work->words_count) return 0;
    free(work->words);
    work->words = malloc((count + 1) * sizeof *work->words);
    work->words_count = work->words ? count : 0;
    return work->words ? 0 : why_set(why, FAULT_MEMORY, "%" PRIu64 " words of bf16", count);
}

// What a trainer sums batches in, if a push has several, or is on its way while the next batch is computed; and what
// travels as bf16.
static uint64_t sum_bytes(const struct learner *self)
{
    const uint64_t words =
        learner_lease_halves(self) ? bf16_words_count(self->floats) * sizeof(float) : 0;
    return words + (learner_lease_sums(self) ? (self->floats * sizeof(float) + 63) / 64 * 64 : 0);
}

// The moments of a share. Later: links, and a server's rooms for as many trainers as the run plans for, or a
// trainer's sum; and a server's copy of its share while it is saved.
static uint64_t memory(struct learner *self, uint64_t *ret_later)
{
    const struct wire_leases_config *config = &work_of(self)->config;
    if (!self->options->trains) return 0;
    const struct interval share = longest_share(self, config->servers);
    const uint32_t least = config->members_least ? config->members_least : 1; // Trainers
    const uint64_t serves = rooms(self, share, least) + learner_lease_saves_memory(self, share) +
                            learner_lease_copies_memory(self);
    const uint64_t trains = sum_bytes(self);
    *ret_later = GROUP_MEMORY + LEARNER_GATHER_MEMORY + (self->options->serves ? serves : trains);
    return learner_away_bytes(self, share) + sizeof(struct async_server);
}

static bool is_called(void *arg);

static int open_leases(struct learner *self, struct why *why)
{
    struct learner_lease_work *work = work_of(self);
    const struct learner_links_options links = { work->config.link, work->config.connections,
                                                 is_called };
    if (!self->options->trains) return 0;
    work->server = calloc(1, sizeof *work->server);
    work->versions = calloc(GROUP_MEMBERS_MAX, sizeof *work->versions);
    if (!work->server || !work->versions) return why_set(why, FAULT_MEMORY, "leases");
    const int rc = learner_lease_saves_check(self, why);
    return rc < 0 ? rc : learner_links_open(self, &links, why, &work->group);
}

static void close_leases(struct learner *self)
{
    struct learner_lease_work *work = work_of(self);
    if (!work) return;
    learner_lease_drop_task(self);
    learner_lease_saves_close(self);
    learner_lease_copies_close(self);
    group_destroy(&work->group);
    free(work->server);
    free(work->versions);
    free(work->sum);
    free(work->words);
    free(work);
    self->lease = NULL;
}

static void built(struct learner *self)
{
    struct learner_lease_work *work = work_of(self);
    if (work->group) learner_links_say(self, work->group, work->config.link, &work->links);
}

// ---- TAKE_GROUP, END_GROUP ----------------------------------------------------------------------

static uint64_t memory_of_group(struct learner *self)
{
    struct learner_lease_work *work = work_of(self);
    const struct interval longest = longest_share(self, work->config.servers);
    const uint64_t planned = learner_away_bytes(self, longest);
    const uint64_t beside = learner_lease_serves(self)
                                ? learner_away_bytes(self, work->part) +
                                      rooms(self, work->part, learner_lease_trainers(self)) +
                                      learner_lease_saves_memory(self, work->part) +
                                      learner_lease_copies_memory(self)
                                : sum_bytes(self);
    return self->memory_bytes - planned + beside + GROUP_MEMORY + LEARNER_GATHER_MEMORY;
}

static void say_taken(struct learner *self)
{
    const struct learner_lease_work *work = work_of(self);
    const uint32_t trainers = learner_lease_trainers(self), servers = work->said.servers;
    if (learner_lease_serves(self))
        log_line(LOG_INFO,
                 "shares.taken share=%u of=%u from=%" PRIu64 " to=%" PRIu64
                 " trainers=%u memory_mib=%" PRIu64,
                 work->said.place - trainers, servers, work->part.begin, work->part.end, trainers,
                 memory_of_group(self) >> 20);
    else
        log_line(LOG_INFO, "shares.none servers=%u memory_mib=%" PRIu64, servers,
                 memory_of_group(self) >> 20);
}

static int check_group(const struct learner *self, const struct wire_take_group *said,
                       struct why *why)
{
    const struct learner_lease_work *work = work_of(self);
    // mutant: leases: a group begins with a state that is not held
    if (!self->holding || self->step != said->step)
        return why_set(why, FAULT_NOT_FOUND, "step %" PRIu64 " is not held", said->step);
    if (said->servers != work->config.servers || said->group_count <= said->servers ||
        said->place >= said->group_count)
        return why_set(why, FAULT_RANGE,
                       "a group of %u members, %u of them servers, in which we are in place %u, is "
                       "none of this run",
                       said->group_count, said->servers, said->place);
    return 0;
}

// From now on this member holds no step, until the state is put together. The moments are away, or, of a model that
// was just made and of a checkpoint, in memory.
static int take_share(struct learner *self, struct why *why)
{
    struct learner_lease_work *work = work_of(self);
    const uint32_t trainers = learner_lease_trainers(self);
    learner_pin_wait(self); // Its thread reads what changes from now on
    work->part = (struct interval){ 0, 0 };
    if (learner_lease_serves(self))
        work->part = learner_lease_share(self, work->said.place - trainers);
    // mutant: leases: a server goes on with the moments of another share
    if (self->away) {
        const int rc = learner_away_read(self, work->part, why);
        if (rc < 0) return rc;
    }
    learner_away_release(self, work->part); // Of an earlier step with the first push
    optimizer_own(self->optimizer, work->part);
    learner_away_drop(self); // Of an earlier step with the first push
    self->holding = false;
    self->share_only = true;
    return 0;
}

static void hear_take(struct learner *self, const struct wire_take_group *said)
{
    struct learner_lease_work *work = work_of(self);
    struct why why = { 0 };
    learner_lease_drop_task(self);
    work->said = *said;
    work->said.group = NULL;
    for (uint32_t i = 0; i < said->group_count; i++)
        learner_links_member(&work->members[i], &said->group[i]);
    work->formed = work->broken = false;
    work->suspect_us = 0;
    work->pushes = work->discarded = work->lag = 0;
    work->lags = (struct wire_lags){ 0 };
    int rc = check_group(self, said, &why);
    if (rc == 0) rc = take_share(self, &why);
    if (rc == 0)
        rc = learner_lease_take_words(
            self, learner_lease_serves(self) ? interval_length(work->part) : self->floats, &why);
    work->lost = rc < 0;
    if (rc < 0) {
        learner_lease_broke(self, 0, 0, &why);
        return;
    }
    if (learner_lease_serves(self)) learner_lease_begin_server(self);
    else learner_lease_begin_trainer(self);
    learner_lease_saves_begin(self);
    learner_lease_copies_begin(self);
    learner_lease_forget_loaded(self); // Of an earlier step with the first push
    say_taken(self);
}

static void hear_end(struct learner *self, const struct wire_end_group *said)
{
    struct learner_lease_work *work = work_of(self);
    if (said->number != work->said.number) return;
    learner_lease_drop_task(self);
    if (work->formed && learner_lease_serves(self)) learner_lease_end_server(self);
    work->said.number = 0;
    work->formed = work->broken = false;
    work->suspect_us = 0;
    if (said->keep && self->holding && self->step == said->step) return;
    if (said->keep)
        log_line(LOG_WARNING, "leases.not_held step=%" PRIu64 "; it is loaded again", said->step);
    self->holding = false;
    learner_away_drop(self);
}

void learner_lease_broke(struct learner *self, uint64_t dead, uint64_t cut, const struct why *why)
{
    struct learner_lease_work *work = work_of(self);
    struct wire_group_broke broke = { .number = work->said.number, .dead = dead, .cut = cut };
    if (work->broken) return;
    work->broken = true;
    work->suspect_us = 0;
    learner_lease_drop_task(self);
    learner_lease_because(broke.because, why);
    worker_answer(self->worker, FRAME_GROUP_BROKE, &broke);
}

// ---- jobs ---------------------------------------------------------------------------------------

// A job that is done, although a group is formed or adds. False: it ends that.
static bool hear_beside(struct learner *self)
{
    switch (self->job.kind) {
    case FRAME_TRAIN_TASK: learner_lease_task(self, self->job.body); return true;
    case FRAME_PIN: return true; // Nothing is held
    case FRAME_SAVE: learner_save(self, self->job.body); return true;
    // mutant: leases: a save that is ordered while a group is formed ends that
    case FRAME_TAKE_SHARE: learner_lease_save(self, self->job.body); return true;
    case FRAME_TAKE_COPY: learner_lease_copy(self, self->job.body); return true;
    case FRAME_GIVE_LISTS: learner_lease_list(self, self->job.body); return true;
    case FRAME_KEPT: learner_lease_copies_kept(self, self->job.body); return true;
    default: return false;
    }
}

static bool is_called(void *arg)
{
    struct learner *self = arg;
    for (;;) {
        const enum worker_turn turn = learner_next(self, 0);
        if (turn == WORKER_QUIET)
            return !work_of(self)->adds &&
                   (learner_save_has_ended(self) || learner_lease_saves_have_ended(self) ||
                    learner_lease_copies_have_ended(self));
        if (turn == WORKER_END || !work_of(self)->adds || !hear_beside(self)) return true;
        self->has_job = false;
    }
}

// A job that lies behind a BUILD that failed. Behind the answer to a TAKE_GROUP no task of it is waited for.
static void refuse(struct learner *self, const struct job *job)
{
    struct why why;
    why_set(&why, FAULT_CONFIG, "no model has been built");
    if (job->kind == FRAME_TAKE_GROUP) {
        struct wire_group_broke broke = { .number =
                                              ((const struct wire_take_group *)job->body)->number };
        learner_lease_because(broke.because, &why);
        worker_answer(self->worker, FRAME_GROUP_BROKE, &broke);
    } else if (job->kind == FRAME_SETTLE_GROUP) {
        const struct wire_close_group *said = job->body;
        struct wire_settled settled = { .number = said->number,
                                        .attempt = said->attempt,
                                        .step = said->step };
        learner_lease_because(settled.because, &why);
        worker_answer(self->worker, FRAME_GROUP_SETTLED, &settled);
    }
    if (job->kind == FRAME_TAKE_SHARE) {
        const struct wire_take_share *said = job->body;
        worker_answer(self->worker, FRAME_SHARE_TAKEN,
                      &(struct wire_share_saved){ .number = said->number, .step = said->step });
    }
    if (job->kind == FRAME_TAKE_COPY) {
        const struct wire_save_share *said = job->body;
        worker_answer(self->worker, FRAME_COPY_TAKEN,
                      &(struct wire_share_copied){ .number = said->number, .step = said->step });
    }
}

static bool hear(struct learner *self, const struct job *job)
{
    const bool is_ours = job->kind == FRAME_TAKE_GROUP || job->kind == FRAME_TRAIN_TASK ||
                         job->kind == FRAME_SETTLE_GROUP || job->kind == FRAME_END_GROUP ||
                         job->kind == FRAME_TAKE_SHARE || job->kind == FRAME_TAKE_COPY ||
                         job->kind == FRAME_GIVE_LISTS || job->kind == FRAME_KEPT;
    if (!is_ours) return false;
    if (!self->built) {
        refuse(self, job);
        return true;
    }
    switch (job->kind) {
    case FRAME_TAKE_GROUP: hear_take(self, job->body); break;
    case FRAME_TRAIN_TASK: learner_lease_task(self, job->body); break;
    case FRAME_SETTLE_GROUP: learner_lease_settle(self, job->body); break;
    case FRAME_TAKE_SHARE: learner_lease_save(self, job->body); break;
    case FRAME_TAKE_COPY: learner_lease_copy(self, job->body); break;
    case FRAME_GIVE_LISTS: learner_lease_list(self, job->body); break;
    case FRAME_KEPT: learner_lease_copies_kept(self, job->body); break;
    default: hear_end(self, job->body); break;
    }
    return true;
}

// ---- work ---------------------------------------------------------------------------------------

static bool busy(const struct learner *self) { return work_of(self) && work_of(self)->group; }

// Windows of links: that of a group, and behind it one for each attempt to put its state together.
static void form(struct learner *self)
{
    struct learner_lease_work *work = work_of(self);
    struct group_blame blame = { UINT32_MAX, false };
    struct why why = { 0 };
    work->adds = true;
    const int rc =
        group_form(work->group, work->said.number * LEARNER_LEASE_WINDOWS, work->members,
                   work->said.group_count, work->said.place, work->config.settle_ms, &why, &blame);
    work->adds = false;
    work->formed = rc == 0;
    if (work->formed)
        worker_answer(self->worker, FRAME_GROUP_FORMED,
                      &(struct wire_group_formed){ work->said.number });
    // FAULT_NOT_NOW: there is a link to it, and it is in a later group already
    const bool cut = blame.member < GROUP_MEMBERS_MAX && rc != FAULT_NOT_NOW;
    if (rc < 0 && rc != FAULT_INTERRUPTED)
        learner_lease_broke(self, group_dead(work->group), cut ? UINT64_C(1) << blame.member : 0,
                            &why);
    if (rc == FAULT_INTERRUPTED)
        work->broken = true; // The job ends the group, or puts its state together
}

// A server has left us without a word. It may have gone to put the state together, of which the core will tell us, or
// have died so lately that its port does not show it yet.
static void wait_for_the_core(struct learner *self)
{
    struct learner_lease_work *work = work_of(self);
    struct why why;
    const uint64_t now_us = clock_us();
    if (now_us >= work->suspect_us) {
        learner_lease_broke(self, group_dead(work->group), 0, &work->suspect_why);
        return;
    }
    group_serve(work->group, (uint32_t)((work->suspect_us - now_us) / 1000) + 1, &why);
}

static void work(struct learner *self)
{
    struct learner_lease_work *work = work_of(self);
    struct why why;
    const bool goes_on = work->said.number && !work->broken;
    learner_lease_saves_look(self);
    learner_lease_copies_look(self);
    if (goes_on && !work->formed) form(self);
    else if (goes_on && work->suspect_us) wait_for_the_core(self);
    else if (goes_on && learner_lease_serves(self)) learner_lease_serve(self);
    else if (!goes_on || !learner_lease_train(self)) group_serve(work->group, UINT32_MAX, &why);
}

const struct learner_strategy learner_leases = {
    .config = FRAME_LEASES_CONFIG,
    .read = read_part,
    .plan = plan,
    .memory = memory,
    .pins_in_files = shares_state,
    .shares_state = shares_state,
    .open = open_leases,
    .close = close_leases,
    .built = built,
    .hear = hear,
    .loaded = learner_lease_loaded,
    .busy = busy,
    .work = work,
};
