// async_run: trainers push gradients to parameter servers and pull parameters over real links, each in a thread of
// its own: a small model with AdamW on shares. There is no coordinator; a lease is a task of a trainer.

#include "common/base/ensure.h"
#include "common/crypto/identity.h"
#include "common/group/group.h"
#include "common/learner/async_header.h"
#include "common/learner/async_trainer.h"
#include "tests/unit/replica_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    SERVERS = 2,
    TRAINERS_MAX = 2,
    MEMBERS = SERVERS + TRAINERS_MAX,
    WAIT_MS = 30000,
    PLACE = 9
};

static const float rate = 0.01f;
static const double clip_norm = 1.0;

// ---- a run ----------------------------------------------------------------------------------

static struct run {
    uint32_t trainers, tasks, batches; // Batches in each task of a trainer
    uint32_t push_every, pull_every, staleness;
    uint32_t repeats; // Every so many pushes one is said twice; 0: none
    enum group_link link;
    pthread_barrier_t barrier;
    struct group_member members[MEMBERS]; // The trainers first, as in a window of servers
    struct async_server servers[SERVERS]; // As they end
    double losses[TRAINERS_MAX];
    float *parameters[TRAINERS_MAX];
} course;

static uint32_t world_size(void) { return course.trainers + SERVERS; }
static uint64_t floats(void) { return model_parameter_count(&shape); }
static struct interval share_of(uint32_t server)
{
    return group_interval(floats(), server, SERVERS);
}

// As many different batches as a task has.
static void fill_batch(uint32_t tokens[BATCH * (SEQ + 1)], uint32_t trainer, uint32_t batch)
{
    for (uint32_t i = 0; i < BATCH * (SEQ + 1); i++)
        tokens[i] = (i * i + i / 5 + 17 * trainer + 31 * batch) % shape.vocab;
}

// ---- links ----------------------------------------------------------------------------------

struct linked {
    uint32_t place;
    struct identity *identity;
    group_t *group;
    struct world *world;
};

static void open_links(struct linked *self)
{
    uint8_t secret[SECRET_BYTES];
    struct why why;
    struct group_blame blame;
    memset(secret, 3 + (int)self->place, sizeof secret);
    ensure(identity_from_secret(secret, &why, &self->identity) == 0);
    const struct group_options options = { .identity = self->identity,
                                           .run = "a run",
                                           .instance = 100 + self->place,
                                           .bind = "127.0.0.1:0",
                                           .link = course.link,
                                           .connections = 1,
                                           .called_fd = -1 };
    ensure(group_new(&options, &why, &self->group) == 0);
    struct group_member *own = &course.members[self->place];
    *own =
        (struct group_member){ .key = *identity_key(self->identity), .instance = options.instance };
    snprintf(own->endpoint, sizeof own->endpoint, "tcp://127.0.0.1:%u", group_port(self->group));
    pthread_barrier_wait(&course.barrier);
    ensure(group_form(self->group, 1, course.members, world_size(), self->place, WAIT_MS, &why,
                      &blame) == 0);
    pthread_barrier_wait(&course.barrier);
    self->world = world_of(&optimizer_adamw, all(), true);
}

static void close_links(struct linked *self)
{
    group_destroy(&self->group);
    identity_destroy(&self->identity);
    world_free(self->world);
}

// ---- a server -------------------------------------------------------------------------------

static enum async_verdict take_push(struct linked *self, struct async_server *server,
                                    struct interval share, const struct async_push *push,
                                    const float *gradient)
{
    struct world *world = self->world;
    enum async_verdict verdict = async_server_judge(server, push, gradient, interval_length(share));
    if (verdict == ASYNC_APPLY) {
        memcpy(compute_at(world->compute, COMPUTE_GRADIENT) + share.begin, gradient,
               interval_length(share) * sizeof *gradient);
        if (optimizer_step(world->optimizer, rate, NULL) < 0) verdict = ASYNC_NOT_FINITE;
    }
    async_server_settle(server, push, verdict);
    return verdict;
}

static void answer(struct linked *self, struct async_server *server, struct interval share,
                   uint32_t from, const struct group_letter *question)
{
    uint8_t header[ASYNC_ANSWER_BYTES];
    enum async_kind kind;
    struct async_push push;
    struct async_answer said;
    struct group_letter letter = { header, sizeof header, NULL, 0 };
    ensure(async_question_unpack(question->header, question->count, from, &kind, &push));
    if (kind == ASYNC_PUSH) {
        ensure(question->floats_count == interval_length(share));
        said.verdict = take_push(self, server, share, &push, question->floats);
    } else {
        said.verdict = async_server_judge_pull(server, from, push.instance, push.place_number);
        ensure(said.verdict == ASYNC_TAKEN);
        async_server_pulled(server, from);
        letter.floats = compute_at(self->world->compute, COMPUTE_PARAMETERS) + share.begin;
        letter.floats_count = interval_length(share);
    }
    said.version = server->version;
    async_answer_pack(&said, header);
    group_answer(self->group, from, &letter);
}

// Until all trainers have left.
static void *serve(void *arg)
{
    const uint32_t number = *(const uint32_t *)arg;
    const struct interval share = share_of(number);
    struct linked self = { .place = course.trainers + number };
    struct async_server *server = &course.servers[number];
    struct async_member trainers[TRAINERS_MAX];
    struct why why;
    open_links(&self);
    optimizer_own(self.world->optimizer, share);
    for (uint32_t i = 0; i < course.trainers; i++)
        trainers[i] = (struct async_member){ i, 100 + i };
    async_server_init(server, course.staleness);
    async_server_begin(server, PLACE + number, trainers, course.trainers);
    for (uint32_t left = 0; left < course.trainers;) {
        struct group_letter question;
        struct group_blame blame;
        uint32_t from;
        const int rc = group_hear_question(self.group, interval_length(share), WAIT_MS, &why,
                                           &blame, &from, &question);
        ensure(rc == 0 || rc == FAULT_UNREACHABLE);
        if (rc == 0) answer(&self, server, share, from, &question);
        else left += blame.member < course.trainers;
    }
    close_links(&self);
    return NULL;
}

// ---- a trainer ------------------------------------------------------------------------------

struct pusher {
    struct linked links;
    struct async_trainer cadence;
    uint64_t versions[SERVERS];
    float *sum;
};

// Asks all servers at once. Returns whether one of them has found the push stale.
static bool ask_all(struct pusher *self, enum async_kind kind, uint64_t lease,
                    enum async_verdict expected)
{
    struct why why;
    struct group_blame blame;
    bool stale = false;
    for (uint32_t s = 0; s < SERVERS; s++) {
        const struct interval share = share_of(s);
        const struct async_push push = { .instance = 100 + self->links.place,
                                         .sequence = self->cadence.sequence,
                                         .lease = lease,
                                         .place_number = PLACE + s,
                                         .version = self->versions[s] };
        uint8_t header[ASYNC_QUESTION_BYTES];
        async_question_pack(kind, &push, header);
        struct group_question question = { .to = course.trainers + s,
                                           .said = { .header = header, .count = sizeof header } };
        if (kind == ASYNC_PUSH) {
            question.said.floats = self->sum + share.begin;
            question.said.floats_count = interval_length(share);
        } else {
            question.ret_floats =
                compute_at(self->links.world->compute, COMPUTE_PARAMETERS) + share.begin;
            question.answer_floats = interval_length(share);
        }
        ensure(group_ask(self->links.group, &question, &why, &blame) == 0);
    }
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct group_letter letter;
        struct async_answer answer;
        uint32_t from;
        ensure(group_hear_answer(self->links.group, WAIT_MS, &why, &blame, &from, &letter) == 0);
        ensure(async_answer_unpack(letter.header, letter.count, &answer));
        ensure(answer.verdict == expected || answer.verdict == ASYNC_STALE);
        if (kind == ASYNC_PULL) self->versions[from - course.trainers] = answer.version;
        stale |= answer.verdict == ASYNC_STALE;
    }
    return stale;
}

static void pull(struct pusher *self)
{
    ask_all(self, ASYNC_PULL, 0, ASYNC_TAKEN);
    ensure(compute_push(self->links.world->compute, NULL) == 0);
    async_trainer_pulled(&self->cadence);
}

static void push(struct pusher *self, uint64_t lease)
{
    double norm;
    ensure(async_trainer_mean(&self->cadence, NULL, self->sum, floats(), clip_norm, NULL, &norm) ==
           0);
    const bool stale = ask_all(self, ASYNC_PUSH, lease, ASYNC_APPLY);
    // As if the answers had been lost
    if (course.repeats && self->cadence.sequence % course.repeats == 0)
        ensure(ask_all(self, ASYNC_PUSH, lease, ASYNC_APPLIED_BEFORE) == stale);
    async_trainer_pushed(&self->cadence, stale);
}

static void train_task(struct pusher *self, uint64_t lease)
{
    compute_t *compute = self->links.world->compute;
    uint32_t tokens[BATCH * (SEQ + 1)];
    double loss;
    for (uint32_t batch = 0; batch < course.batches; batch++) {
        fill_batch(tokens, self->links.place, batch);
        ensure(compute_gradient(compute, tokens, BATCH, NULL, &loss) == 0);
        async_trainer_add(&self->cadence, NULL, self->sum, compute_at(compute, COMPUTE_GRADIENT),
                          floats(), BATCH);
        const bool ends = batch + 1 == course.batches;
        if (async_trainer_due(&self->cadence, ends) & ASYNC_PUSH_DUE) push(self, lease);
        if (async_trainer_due(&self->cadence, ends) & ASYNC_PULL_DUE) pull(self);
    }
}

static double loss_of(struct pusher *self)
{
    uint32_t tokens[BATCH * (SEQ + 1)];
    double loss, sum = 0;
    for (uint32_t batch = 0; batch < course.batches; batch++) {
        fill_batch(tokens, self->links.place, batch);
        ensure(compute_loss(self->links.world->compute, tokens, BATCH, NULL, &loss) == 0);
        sum += loss;
    }
    return sum / course.batches;
}

static void *train(void *arg)
{
    struct pusher self = { .links.place = *(const uint32_t *)arg };
    self.sum = malloc(floats() * sizeof *self.sum);
    ensure(self.sum);
    open_links(&self.links);
    async_trainer_init(&self.cadence, course.push_every, course.pull_every);
    pull(&self);
    for (uint32_t task = 0; task < course.tasks; task++)
        train_task(&self, 1 + task * course.trainers + self.links.place);
    const float *parameters = compute_at(self.links.world->compute, COMPUTE_PARAMETERS);
    memcpy(course.parameters[self.links.place], parameters, floats() * sizeof *parameters);
    course.losses[self.links.place] = loss_of(&self);
    close_links(&self.links);
    free(self.sum);
    return NULL;
}

static void run_course(void)
{
    pthread_t threads[MEMBERS];
    uint32_t numbers[MEMBERS];
    for (uint32_t i = 0; i < TRAINERS_MAX; i++)
        course.parameters[i] = malloc(floats() * sizeof(float));
    pthread_barrier_init(&course.barrier, NULL, world_size());
    for (uint32_t i = 0; i < world_size(); i++) {
        const bool trains = i < course.trainers;
        numbers[i] = trains ? i : i - course.trainers;
        assert_int_equal(pthread_create(&threads[i], NULL, trains ? train : serve, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < world_size(); i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&course.barrier);
}

static void end_course(void)
{
    for (uint32_t i = 0; i < TRAINERS_MAX; i++) free(course.parameters[i]);
}

// ---- the tests ------------------------------------------------------------------------------

// A trainer alone that pushes and pulls after each batch takes the steps of a plain loop.
static void one_trainer_ends_in_the_bits_of_a_plain_loop(void **state)
{
    (void)state;
    struct world *plain = world_of(&optimizer_adamw, all(), true);
    uint32_t tokens[BATCH * (SEQ + 1)];
    double loss, norm;
    for (int link = GROUP_PLAIN; link <= GROUP_SEALED; link++) {
        course = (struct run){ .trainers = 1, .tasks = 3, .batches = 5, .link = link };
        course.push_every = course.pull_every = 1, course.staleness = ASYNC_STALENESS;
        course.repeats = 4;
        run_course();
        for (uint32_t i = 0; link == GROUP_PLAIN && i < course.tasks * course.batches; i++) {
            fill_batch(tokens, 0, i % course.batches);
            assert_int_equal(compute_gradient(plain->compute, tokens, BATCH, NULL, &loss), 0);
            assert_int_equal(compute_clip(plain->compute, clip_norm, NULL, &norm), 0);
            assert_int_equal(optimizer_step(plain->optimizer, rate, NULL), 0);
        }
        assert_memory_equal(course.parameters[0], compute_at(plain->compute, COMPUTE_PARAMETERS),
                            floats() * sizeof(float));
        for (int s = 0; s < SERVERS; s++) {
            assert_true(interval_length(share_of((uint32_t)s)) > 0);
            assert_int_equal(course.servers[s].version, 15);
        }
        end_course();
    }
    world_free(plain);
}

static const struct async_line *line(int server, uint32_t trainer)
{
    return async_server_line(&course.servers[server], trainer);
}

// "Each trainer uploads its accumulated gradient every n mini-batches; every m it downloads."
static void two_trainers_push_and_pull_as_they_like(void **state)
{
    (void)state;
    course = (struct run){ .trainers = 2, .tasks = 10, .batches = 6, .repeats = 7 };
    course.push_every = 2, course.pull_every = 3;
    course.staleness = 50000; // All that they push is fewer
    run_course();
    for (int s = 0; s < SERVERS; s++) {
        for (uint32_t t = 0; t < 2; t++) {
            assert_int_equal(line(s, t)->pushes, 30);
            assert_int_equal(line(s, t)->pulls, 20);
            assert_int_equal(line(s, t)->discards + line(s, t)->refusals, 0);
        }
        assert_int_equal(course.servers[s].version, 60);
    }
    print_message("# losses %.3f %.3f\n", course.losses[0], course.losses[1]);
    assert_true(course.losses[0] < 2.5 && course.losses[1] < 2.5); // From 5.7
    end_course();
}

// With the usual staleness some are discarded; what is applied and what is discarded is all that was pushed.
static void what_is_stale_is_counted(void **state)
{
    (void)state;
    course = (struct run){ .trainers = 2, .tasks = 20, .batches = 6, .repeats = 3 };
    course.push_every = 1, course.pull_every = 6, course.staleness = ASYNC_STALENESS;
    run_course();
    for (int s = 0; s < SERVERS; s++) {
        uint64_t applied = 0, lags = 0;
        for (uint32_t t = 0; t < 2; t++) {
            assert_int_equal(line(s, t)->pushes, 120);
            applied += line(s, t)->pushes - line(s, t)->discards;
            for (int lag = 0; lag < 3; lag++) lags += line(s, t)->lags[lag];
        }
        assert_int_equal(course.servers[s].version, applied);
        assert_int_equal(lags, applied); // The limit is 3
        assert_true(applied > 60 && applied < 240);
    }
    end_course();
}

TESTS(TEST(one_trainer_ends_in_the_bits_of_a_plain_loop),
      TEST(two_trainers_push_and_pull_as_they_like), TEST(what_is_stale_is_counted))
