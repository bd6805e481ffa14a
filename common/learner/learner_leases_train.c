// A trainer of leases: what it does next follows from the cadence (async_trainer.h) and the task in hand.
//
//     batch ─▶ gradient ─▶ the sum ─┬─ a push is due ─▶ all servers ─▶ their answers ─┐
//       ▲                           ├─ no batch is left ─▶ TASK_TRAINED               │
//       └───────────────────────────┴─ a pull is due ─▶ all servers ─▶ parameters ────┘
//
// It takes one of these steps a call, so that jobs are looked at between them; a wait for answers that a job has
// ended goes on later.
//
// While answers are awaited the next batch of the task is read. While a push is on its way and no pull is due behind it,
// the gradient of that batch is computed, too: at the parameters that it would be computed at anyhow, so it has the same
// bits. Between two micro-batches the links are moved. It is added to the sum once all have answered; if the push was
// stale it is dropped, and computed again at what is pulled then.
// A task whose batch cannot be computed, or of which a server refuses a push, fails; the group
// goes on. A link brings each byte or ends, and is made again with the next group only: so a push is said once, and
// what became of the last one before a server left is not known here. The group is over then.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/kernel/gradient.h"
#include "common/learner/async_header.h"
#include "common/learner/learner_leases.h"
#include "common/run/schedule.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUSPECT_MS = 2000 }; // For a word of the core, after a server has left

void learner_lease_begin_trainer(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    async_trainer_init(&work->cadence, work->config.push_every, work->config.pull_every);
    // mutant: leases: a trainer that goes on from a save numbers its pushes from 1
    work->cadence.sequence = self->pushes;
    work->has_pulled = false;
    work->asking = (struct learner_asking){ 0 };
    work->ahead = (struct learner_ahead){ 0 };
}

// ---- tasks --------------------------------------------------------------------------------------

void learner_lease_drop_task(struct learner *self)
{
    free(self->lease->task);
    self->lease->task = NULL;
    self->lease->ahead = (struct learner_ahead){ 0 };
}

// Batches of the steps from the group's beginning on have sizes that follow from each other.
static uint32_t batch_at(const struct learner *self, uint64_t step)
{
    const struct wire_leases_config *config = &self->lease->config;
    uint64_t samples = self->lease->said.samples_done;
    uint32_t batch = 0;
    for (uint64_t at = self->lease->said.step;; at++) {
        batch = schedule_batch_size(config->batch_start, config->batch_end,
                                    config->batch_warmup_tokens, samples * self->config.seq_len);
        samples += batch;
        if (at >= step || batch == config->batch_end) return batch;
    }
}

static struct learner_task *keep(const struct learner *self, const struct wire_train_task *said)
{
    const size_t intervals = said->samples_count * sizeof *said->samples;
    const size_t holders = said->providers_count * sizeof *said->providers;
    struct learner_task *task = calloc(1, sizeof *task + intervals + holders);
    ensure(task);
    uint8_t *memory = (uint8_t *)(task + 1);
    task->said = *said;
    if (intervals) memcpy(memory, said->samples, intervals);
    task->said.samples = (void *)memory;
    memory += intervals;
    if (holders) memcpy(memory, said->providers, holders);
    task->said.providers = (void *)memory;
    task->total = interval_list_total(task->said.samples, task->said.samples_count);
    // mutant: leases: all batches are as large as that of the first step
    task->batch = batch_at(self, said->step);
    task->began_us = clock_us();
    return task;
}

static float rate_of(const struct wire_train_task *said)
{
    float rate;
    memcpy(&rate, &said->lr_bits, sizeof rate);
    return rate;
}

static void tell_trained(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    const struct learner_task *task = work->task;
    const uint64_t took_us = clock_us() - task->began_us + 1, took_ms = took_us / 1000;
    struct wire_task_trained trained = {
        .lease = task->said.lease,
        .done = !task->failed[0],
        .no_data = task->failed[0] && task->no_data,
        .samples = task->pushed,
        .loss = task->trained ? (float)(task->losses / (double)task->trained) : 0,
        .tokens_per_s =
            (float)((double)task->trained * self->config.seq_len * 1e6 / (double)took_us),
        .train_ms = took_ms < UINT32_MAX ? (uint32_t)took_ms : UINT32_MAX,
        .pushes = work->pushes,
        .discarded = work->discarded,
        .lag = work->lag,
        .lags = work->lags,
    };
    memcpy(trained.because, task->failed, sizeof trained.because);
    learner_lease_drop_task(self);
    worker_answer(self->worker, FRAME_TASK_TRAINED, &trained);
}

// What it has in the sum is of no use any more.
static void fail(struct learner *self, bool no_data, const struct why *why)
{
    self->lease->task->no_data = no_data;
    learner_lease_because(self->lease->task->failed, why);
    // mutant: leases: a batch of a task that failed is pushed with the next one
    async_trainer_drop(&self->lease->cadence);
    tell_trained(self);
}

void learner_lease_task(struct learner *self, const struct wire_train_task *said)
{
    struct learner_lease_work *work = self->lease;
    struct why why;
    if (work->said.number && work->broken) return; // GROUP_BROKE says more
    learner_lease_drop_task(self);
    const bool trains = work->said.number && !learner_lease_serves(self);
    if (!trains || said->samples_count == 0 || !async_is_rate(rate_of(said)) ||
        said->step < work->said.step) {
        struct wire_task_trained trained = { .lease = said->lease };
        why_set(&why, FAULT_RANGE, "this task is none of a trainer's group");
        learner_lease_because(trained.because, &why);
        worker_answer(self->worker, FRAME_TASK_TRAINED, &trained);
        return;
    }
    work->task = keep(self, said);
}

// ---- a batch ------------------------------------------------------------------------------------

// The batch behind what is trained, in self->tokens.
static int read_batch(struct learner *self, struct why *why, uint64_t *ret_count)
{
    const struct learner_task *task = self->lease->task;
    const struct wire_train_task *said = &task->said;
    struct interval *list = malloc(said->samples_count * sizeof *list);
    if (!list) return why_set(why, FAULT_MEMORY, "a list of samples");
    const struct learner_samples samples = {
        .list = list,
        .list_count =
            (uint32_t)interval_list_slice(said->samples, said->samples_count, task->trained,
                                          task->trained + task->batch, NULL, list),
        .providers = said->providers,
        .providers_count = said->providers_count,
        .data = self->lease->said.data,
        .order = self->lease->said.order,
    };
    const int rc = learner_read_samples(self, &samples, why, ret_count);
    free(list);
    return rc;
}

// Where batches are summed.
static int sum_vector(struct learner *self, struct why *why, float **ret_sum)
{
    struct learner_lease_work *work = self->lease;
    *ret_sum = compute_at(self->compute, COMPUTE_GRADIENT);
    if (!learner_lease_sums(self)) return 0;
    if (!work->sum) work->sum = aligned_alloc(64, (self->floats * sizeof(float) + 63) / 64 * 64);
    *ret_sum = work->sum;
    return work->sum ? 0 : why_set(why, FAULT_MEMORY, "the sum of the batches of a push");
}

// The gradient of the batch behind what is trained.
static int compute_batch(struct learner *self, struct why *why)
{
    struct learner_ahead *ahead = &self->lease->ahead;
    failpoint("learner_train");
    int rc = ahead->read ? 0 : read_batch(self, why, &ahead->read);
    if (rc == 0)
        rc =
            compute_gradient(self->compute, self->tokens, (uint32_t)ahead->read, why, &ahead->loss);
    ahead->done = rc == 0;
    return rc;
}

static void train_batch(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    struct learner_ahead *ahead = &work->ahead;
    struct why why = { 0 };
    float *sum;
    int rc = sum_vector(self, &why, &sum);
    if (rc == 0 && !ahead->done) rc = compute_batch(self, &why);
    if (rc < 0) {
        fail(self, rc == FAULT_UNREACHABLE || rc == FAULT_TIMEOUT, &why);
        return;
    }
    async_trainer_add(&work->cadence, self->pool, sum, compute_at(self->compute, COMPUTE_GRADIENT),
                      self->floats, ahead->read);
    failpoint("learner_trained"); // The gradient is here, and nobody knows it
    work->task->trained += ahead->read;
    work->task->losses += ahead->loss * (double)ahead->read;
    *ahead = (struct learner_ahead){ 0 };
}

// ---- questions to all servers -------------------------------------------------------------------

// A server has left. Its death breaks the group; else the core is about to say what there is.
static void hear_left(struct learner *self, const struct why *why)
{
    struct learner_lease_work *work = self->lease;
    const uint32_t trainers = learner_lease_trainers(self);
    const uint64_t dead = group_dead(work->group) >> trainers << trainers;
    // mutant: leases: a server that puts the state together is taken for one that is dead
    if (dead) {
        learner_lease_broke(self, dead, 0, why);
        return;
    }
    work->suspect_us = clock_us() + SUSPECT_MS * 1000;
    work->suspect_why = *why;
}

static int ask_one(struct learner *self, uint32_t server, const float *sum, struct why *why,
                   struct group_blame *ret_blame)
{
    struct learner_lease_work *work = self->lease;
    const struct interval share = learner_lease_share(self, server);
    const bool pulls = work->asking.pulls;
    uint8_t header[ASYNC_QUESTION_BYTES];
    const struct async_push push = { .instance = self->options->instance,
                                     .sequence = work->cadence.sequence,
                                     .lease = pulls ? 0 : work->task->said.lease,
                                     .place_number = work->said.number,
                                     .version = work->versions[server],
                                     .rate = pulls ? 0 : rate_of(&work->task->said) };
    struct group_question question = { .to = learner_lease_trainers(self) + server,
                                       .said = { .header = header, .count = sizeof header } };
    async_question_pack(pulls ? ASYNC_PULL : ASYNC_PUSH, &push, header);
    const bool halves = learner_lease_halves(self);
    float *words = halves ? work->words + learner_lease_words_at(share.begin) : NULL;
    if (!pulls && halves) bf16_words_pack(sum + share.begin, interval_length(share), words);
    if (pulls) {
        question.ret_floats = halves ? words : self->params + share.begin;
        question.answer_floats = learner_lease_words(self, share);
    } else {
        question.said.floats = halves ? words : sum + share.begin;
        question.said.floats_count = learner_lease_words(self, share);
    }
    return group_ask(work->group, &question, why, ret_blame);
}

// All at once. `sum` stays as it is until all have answered.
static void ask_all(struct learner *self, bool pulls, const float *sum)
{
    struct learner_lease_work *work = self->lease;
    struct group_blame blame;
    struct why why = { 0 };
    work->asking = (struct learner_asking){ .is_open = true, .pulls = pulls };
    for (uint32_t s = 0; s < work->said.servers; s++) {
        const int rc = ask_one(self, s, sum, &why, &blame);
        if (rc < 0) {
            hear_left(self, &why);
            return;
        }
        work->asking.of |= (uint64_t)1 << (learner_lease_trainers(self) + s);
    }
}

static void push(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    struct why why = { 0 };
    float *sum;
    double norm;
    int rc = sum_vector(self, &why, &sum);
    if (rc == 0)
        rc = async_trainer_mean(&work->cadence, self->pool, sum, self->floats,
                                work->config.clip_norm, &why, &norm);
    self->pushes = work->cadence.sequence;
    if (rc == 0 && !(work->config.clip_norm > 0) && !(norm < GRADIENT_LIMIT))
        rc = why_set(&why, FAULT_NAN, "gradient: its norm is %g, allowed up to 2^63", norm);
    if (rc < 0) fail(self, false, &why);
    else ask_all(self, false, sum);
}

// The answer of a server to what was asked of it.
static void take_answer(struct learner *self, uint32_t from, const struct group_letter *letter)
{
    struct learner_lease_work *work = self->lease;
    struct learner_asking *asking = &work->asking;
    const uint32_t server = from - learner_lease_trainers(self);
    struct async_answer said = { .verdict = ASYNC_UNREADABLE };
    const bool is_read = async_answer_unpack(letter->header, letter->count, &said);
    const bool is_good =
        asking->pulls ? said.verdict == ASYNC_TAKEN &&
                            letter->floats_count ==
                                learner_lease_words(self, learner_lease_share(self, server))
                      : said.verdict == ASYNC_APPLY || said.verdict == ASYNC_APPLIED_BEFORE ||
                            said.verdict == ASYNC_STALE;
    if (!is_read || !is_good) {
        asking->refused = true;
        snprintf(asking->because, sizeof asking->because, "server %u refuses our %s: %s", server,
                 asking->pulls ? "pull" : "push", async_verdict_text(said.verdict));
        return;
    }
    if (asking->pulls) {
        const struct interval share = learner_lease_share(self, server);
        work->versions[server] = said.version;
        if (learner_lease_halves(self))
            bf16_words_unpack(letter->floats, interval_length(share), self->params + share.begin);
        return;
    }
    asking->stale |= said.verdict == ASYNC_STALE;
    const uint64_t pulled = work->versions[server];
    uint64_t lag = said.version > pulled ? said.version - pulled : 0;
    if (lag > 0 && said.verdict != ASYNC_STALE) lag--; // It has moved the version itself
    if (lag > asking->lag) asking->lag = lag;
}

static void end_pull(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    struct why why = { 0 };
    if (work->asking.refused) {
        why_set(&why, FAULT_DENIED, "%s", work->asking.because);
        learner_lease_broke(self, 0, 0, &why);
        return;
    }
    ensure(compute_push(self->compute, &why) == 0); // On a CPU
    async_trainer_pulled(&work->cadence);
    work->has_pulled = true;
}

static void end_push(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    struct why why = { 0 };
    if (work->asking.refused) {
        why_set(&why, FAULT_DENIED, "%s", work->asking.because);
        fail(self, false, &why);
        return;
    }
    async_trainer_pushed(&work->cadence, work->asking.stale);
    if (work->asking.stale) work->discarded++;
    else work->pushes++;
    work->lag = work->asking.lag;
    lags_count(&work->lags, work->lag);
    work->task->pushed = work->task->trained;
}

// The next answer is taken. A fault, as of group_hear_answer: none was.
static int hear_one(struct learner *self, uint32_t timeout_ms, struct why *why)
{
    struct learner_lease_work *work = self->lease;
    struct group_letter letter;
    struct group_blame blame;
    uint32_t from;
    const int rc = group_hear_answer(work->group, timeout_ms, why, &blame, &from, &letter);
    if (rc < 0) return rc;
    take_answer(self, from, &letter);
    work->asking.of &= ~((uint64_t)1 << from);
    return 0;
}

// Waits until all have answered, or a job comes.
static void hear_answers(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    if (work->asking.has_left) {
        const struct why left = work->asking.left_why;
        hear_left(self, &left);
        return;
    }
    // mutant: leases: a job that ends a wait for answers breaks the group
    while (work->asking.of) {
        struct why why = { 0 };
        const int rc = hear_one(self, work->config.settle_ms, &why);
        if (rc == FAULT_INTERRUPTED) return;
        if (rc == FAULT_TIMEOUT) learner_lease_broke(self, group_dead(work->group), 0, &why);
        else if (rc < 0) hear_left(self, &why);
        if (rc < 0) return;
    }
    work->asking.is_open = false;
    if (work->asking.pulls) end_pull(self);
    else end_push(self);
}

// ---- while answers are awaited ------------------------------------------------------------------

// Between two micro-batches: what has come is taken, what can go goes. A job waits until the gradient is there.
static void move_links(void *arg)
{
    struct learner *self = arg;
    struct learner_asking *asking = &self->lease->asking;
    struct why why = { 0 };
    int rc = 0;
    while (rc == 0 && asking->of && !asking->has_left && !self->has_job)
        rc = hear_one(self, 0, &why);
    if (rc == 0 || rc == FAULT_TIMEOUT || rc == FAULT_INTERRUPTED) return;
    asking->has_left = true;
    asking->left_why = why;
}

// A batch that is computed at what is held now, unless the servers say that the push was stale. One behind a pull would be
// computed twice.
static bool may_compute_ahead(const struct learner *self)
{
    const struct learner_lease_work *work = self->lease;
    const struct async_trainer *cadence = &work->cadence;
    const bool pulls = work->asking.pulls || cadence->must_pull || work->asking.stale ||
                       cadence->since_pull >= cadence->pull_every;
    return learner_lease_sums(self) && !pulls && !work->asking.refused && !work->ahead.done &&
           !work->ahead.failed && work->task && work->task->trained < work->task->total;
}

// A fault is met again when it is its turn.
static void compute_ahead(struct learner *self)
{
    struct learner_ahead *ahead = &self->lease->ahead;
    struct why why = { 0 };
    compute_between(self->compute, move_links, self);
    ahead->failed = compute_batch(self, &why) < 0;
    compute_between(self->compute, NULL, NULL);
}

static bool may_read_ahead(const struct learner *self)
{
    const struct learner_task *task = self->lease->task;
    const struct learner_ahead *ahead = &self->lease->ahead;
    return task && task->trained < task->total && !ahead->read && !ahead->failed;
}

static void read_ahead(struct learner *self)
{
    struct learner_ahead *ahead = &self->lease->ahead;
    struct why why = { 0 };
    ahead->failed = read_batch(self, &why, &ahead->read) < 0;
    if (ahead->failed) ahead->read = 0;
}

static void await(struct learner *self)
{
    if (may_compute_ahead(self)) compute_ahead(self);
    else if (may_read_ahead(self)) read_ahead(self);
    else hear_answers(self);
}

// ---- what is next -------------------------------------------------------------------------------

// What was computed at the parameters before is of no use; its samples are here.
static void pull(struct learner *self)
{
    // mutant: leases: a batch that was computed before a pull is pushed behind it
    self->lease->ahead.done = false;
    ask_all(self, true, NULL);
}

bool learner_lease_train(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    const struct learner_task *task = work->task;
    const bool ends = task && task->trained == task->total;
    const unsigned due = async_trainer_due(&work->cadence, ends);
    // mutant: leases: a trainer pushes before it has pulled
    if (work->asking.is_open) await(self);
    else if (!work->has_pulled) pull(self);
    else if (due & ASYNC_PUSH_DUE) push(self);
    else if (ends) tell_trained(self);
    else if (due & ASYNC_PULL_DUE) pull(self);
    else if (task) train_batch(self);
    else return false;
    return true;
}
