// A parameter server of leases: questions come from the trainers, one at a time is dealt with, and applied at once.
//
//     push ─▶ judged (async_server.h) ─▶ the gradient of our share ─▶ optimizer_step at its rate ─▶ settled ─▶ answer
//     pull ─▶ judged                  ─▶ the parameters of our share                                        ─▶ answer
//
// A trainer that has left is no break: the others go on. A server that is dead is.

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/learner/async_header.h"
#include "common/learner/learner_leases.h"
#include <inttypes.h>
#include <string.h>

void learner_lease_begin_server(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    struct async_member trainers[ASYNC_TRAINERS_MAX];
    const uint32_t count = learner_lease_trainers(self);
    for (uint32_t i = 0; i < count; i++)
        trainers[i] = (struct async_member){ i, work->members[i].instance };
    const uint32_t staleness = (uint32_t)(work->config.staleness * 1000 + 0.5);
    async_server_init(work->server, staleness);
    // mutant: saves: a server forgets which pushes its share has
    if (work->loaded) *work->server = work->loaded[work->said.place - count];
    work->server->staleness = staleness; // What was loaded is of another group
    async_server_begin(work->server, work->said.number, trainers, count);
}

static enum async_verdict push(struct learner *self, const struct async_push *push,
                               const struct group_letter *question)
{
    struct learner_lease_work *work = self->lease;
    const uint64_t floats = interval_length(work->part);
    float *gradient = compute_at(self->compute, COMPUTE_GRADIENT) + work->part.begin;
    if (question->floats_count != learner_lease_words(self, work->part)) return ASYNC_UNREADABLE;
    if (learner_lease_halves(self)) bf16_words_unpack(question->floats, floats, gradient);
    enum async_verdict verdict = async_server_judge(
        work->server, push, learner_lease_halves(self) ? gradient : question->floats, floats);
    if (verdict == ASYNC_APPLY) {
        failpoint("learner_apply");
        if (!learner_lease_halves(self)) memcpy(gradient, question->floats, floats * sizeof(float));
        // mutant: leases: a server steps at a rate of its own
        if (optimizer_step(self->optimizer, push->rate, NULL) < 0) verdict = ASYNC_NOT_FINITE;
        failpoint("learner_applied");
    }
    async_server_settle(work->server, push, verdict);
    return verdict;
}

// Adds the parameters to the answer.
static enum async_verdict pull(struct learner *self, const struct async_push *asked,
                               struct group_letter *letter)
{
    struct learner_lease_work *work = self->lease;
    const enum async_verdict verdict =
        async_server_judge_pull(work->server, asked->member, asked->instance, asked->place_number);
    if (verdict != ASYNC_TAKEN) return verdict;
    async_server_pulled(work->server, asked->member);
    letter->floats = self->params + work->part.begin;
    letter->floats_count = learner_lease_words(self, work->part);
    if (!learner_lease_halves(self)) return verdict;
    // mutant: leases: a server of a run in bf16 answers with what lay there before
    bf16_words_pack(letter->floats, interval_length(work->part), work->words);
    letter->floats = work->words;
    return verdict;
}

static void answer(struct learner *self, uint32_t from, const struct group_letter *question)
{
    struct learner_lease_work *work = self->lease;
    uint8_t header[ASYNC_ANSWER_BYTES];
    struct group_letter letter = { .header = header, .count = sizeof header };
    struct async_answer said = { .verdict = ASYNC_UNREADABLE };
    struct async_push asked;
    enum async_kind kind;
    const bool is_read =
        async_question_unpack(question->header, question->count, from, &kind, &asked);
    if (is_read && kind == ASYNC_PUSH) said.verdict = push(self, &asked, question);
    if (is_read && kind == ASYNC_PULL) said.verdict = pull(self, &asked, &letter);
    if (async_is_refusal(said.verdict))
        log_line(LOG_WARNING, "leases.refused place=%u reason=\"%s\"", from,
                 async_verdict_text(said.verdict));
    said.version = work->server->version;
    async_answer_pack(&said, header);
    group_answer(work->group, from, &letter);
}

// Its link has ended, for what came over it (FAULT_FORMAT) or with it; or it has gone to put the state together.
static void hear_left(struct learner *self, int fault, const struct group_blame *blame,
                      const struct why *why)
{
    struct learner_lease_work *work = self->lease;
    const uint32_t trainers = learner_lease_trainers(self);
    if (blame->member < trainers) {
        log_line(fault == FAULT_FORMAT ? LOG_WARNING : LOG_INFO,
                 "leases.left place=%u reason=\"%s\"; serving the others", blame->member,
                 why->text);
        return;
    }
    const uint64_t dead = group_dead(work->group) >> trainers << trainers;
    if (dead) learner_lease_broke(self, dead, 0, why);
}

void learner_lease_serve(struct learner *self)
{
    struct learner_lease_work *work = self->lease;
    struct group_letter question;
    struct group_blame blame;
    struct why why = { 0 };
    uint32_t from;
    const int rc = group_hear_question(work->group, learner_lease_words(self, work->part),
                                       UINT32_MAX, &why, &blame, &from, &question);
    if (rc == 0) answer(self, from, &question);
    else if ((rc == FAULT_UNREACHABLE || rc == FAULT_FORMAT) && blame.member != UINT32_MAX)
        hear_left(self, rc, &blame, &why);
    else if (rc != FAULT_INTERRUPTED && rc != FAULT_TIMEOUT) learner_lease_broke(self, 0, 0, &why);
}

void learner_lease_end_server(const struct learner *self)
{
    const struct learner_lease_work *work = self->lease;
    for (uint32_t i = 0; i < learner_lease_trainers(self); i++) {
        const struct async_line *line = async_server_line(work->server, i);
        log_line(LOG_INFO,
                 "leases.served place=%u pushes=%" PRIu64 " discarded=%" PRIu64 " refused=%" PRIu64
                 " pulls=%" PRIu64 " version=%" PRIu64,
                 i, line->pushes, line->discards, line->refusals, line->pulls,
                 work->server->version);
    }
}
