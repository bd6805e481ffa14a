// leases_learner -- a group that is not in step, as events. It forms: each member waits until all others have come to it
// and no link is cut, and says with whom none stood when the time was over. A trainer computes its task for a while, and then pushes it
// to one server after the other: each adds it to its share when it comes. Between any two pushes a process may die, and a
// link may be cut: then the trainer tries again for a while, and says that it cannot go on. A server that is told to settle
// applies no push any more. When all members of the attempt have come to it, what their servers have is the state, and each
// is told so at a time of its own.

#include "common/base/ensure.h"
#include "tests/sim/leases.h"
#include <stdio.h>
#include <string.h>

enum what { FORM, PUSH, LOOK, MEET, TOGETHER, WRITTEN, FAIL, COPIED_SHARE, STARVE };
enum { PUSH_MS = 4000, FAILS_OF_1000 = 20 };

static struct sim_group *group_of(struct sim *self, uint8_t id)
{
    return &self->nodes[id].learner.group;
}

static uint64_t bit(uint32_t place) { return (uint64_t)1 << place; }

static uint32_t first_server(const struct sim_group *group)
{
    return group->count - group->servers;
}

static void to_self(struct sim *self, uint8_t id, enum what what, uint64_t delay_ms)
{
    const struct sim_group *group = group_of(self, id);
    words_send(self, id, delay_ms,
               &(struct wire_sim_word){ .what = what,
                                        .window = group->number,
                                        .step = group->closing.attempt,
                                        .turn = group->turn });
}

static bool is_dead(const struct sim *self, const struct sim_group *group, uint32_t place)
{
    const struct node *node = &self->nodes[group->nodes[place]];
    return !node->up || node->instance != group->instances[place];
}

// The same group, in the hands of the process in that place; NULL: it has not taken it yet, or has ended it.
static struct sim_group *peer(struct sim *self, const struct sim_group *group, uint32_t place)
{
    struct sim_group *other = group_of(self, group->nodes[place]);
    return !is_dead(self, group, place) && other->number == group->number ? other : NULL;
}

static void say_broke(struct sim *self, uint8_t id, uint64_t dead, uint64_t cut, const char *why)
{
    struct sim_group *group = group_of(self, id);
    struct wire_group_broke broke = { .number = group->number, .dead = dead, .cut = cut };
    snprintf(broke.because, sizeof broke.because, "%s", why);
    group->broken = true;
    group->lease = 0;
    group->turn++;
    learner_says(self, id, FRAME_GROUP_BROKE, &broke);
}

// ---- a group begins, and ends -------------------------------------------------------------------

static uint8_t node_of(const struct sim *self, const struct key *key)
{
    for (uint8_t i = 0; i < self->nodes_count; i++)
        if (key_equal(&self->nodes[i].key, key)) return i;
    return NOBODY;
}

static void take(struct sim *self, uint8_t id, const struct wire_take_group *job)
{
    struct learner *learner = &self->nodes[id].learner;
    struct sim_group *group = &learner->group;
    check_group_taken(self, id, job);
    ensure(job->group_count < NODES_MAX && job->place < job->group_count);
    *group = (struct sim_group){ .number = job->number,
                                 .step = job->step,
                                 .place = job->place,
                                 .count = job->group_count,
                                 .servers = job->servers,
                                 .born_unix_ms = job->born_unix_ms,
                                 .forming_ms = self->now_ms,
                                 .turn = group->turn + 1 };
    for (uint32_t i = 0; i < job->group_count; i++) {
        group->nodes[i] = node_of(self, &job->group[i].key);
        group->instances[i] = job->group[i].instance;
        ensure(group->nodes[i] != NOBODY);
    }
    group->began = learner->digest;
    learner->holding = false;
    copies_begin_group(self, id, job);
    to_self(self, id, FORM, between(self, 1, chance(self, 30) ? 3000 : 50));
    to_self(self, id, LOOK, between(self, 500, 2000));
}

// There is a link to it, and it is in a later group already.
static bool is_further(struct sim *self, const struct sim_group *group, uint32_t place)
{
    return !is_dead(self, group, place) &&
           group_of(self, group->nodes[place])->number > group->number;
}

// The first place with which no link stands; NO_MEMBER: all do.
static uint32_t without_link(struct sim *self, uint8_t id)
{
    const struct sim_group *group = group_of(self, id);
    for (uint32_t i = 0; i < group->count; i++)
        if (i != group->place &&
            (!peer(self, group, i) || words_are_cut(self, id, group->nodes[i])))
            return i;
    return NO_MEMBER;
}

// A port that refuses is believed if that process was linked before, and else asked until the time is over.
static void form(struct sim *self, uint8_t id)
{
    struct sim_group *group = group_of(self, id);
    if (group->formed || group->broken || group->frozen) return;
    const uint32_t place = without_link(self, id);
    if (place == NO_MEMBER) {
        group->formed = true;
        learner_says(self, id, FRAME_GROUP_FORMED, &(struct wire_group_formed){ group->number });
        return;
    }
    const bool is_late = self->now_ms - group->forming_ms > leases_settle_ms(self);
    if (is_dead(self, group, place) && (is_late || chance(self, 200)))
        say_broke(self, id, bit(place), bit(place), "no link: connection refused");
    else if (is_late)
        say_broke(self, id, 0, is_further(self, group, place) ? 0 : bit(place), "no link");
    else to_self(self, id, FORM, between(self, 50, 300));
}

static void end(struct sim *self, uint8_t id, const struct wire_end_group *job)
{
    struct learner *learner = &self->nodes[id].learner;
    struct sim_group *group = &learner->group;
    if (group->number != job->number) return;
    *group = (struct sim_group){ .turn = group->turn + 1 };
    ensure(!job->keep || (learner->holding && learner->step == job->step));
    learner->holding = job->keep;
}

// A trainer finds that a server has died, also if it has nothing to push.
static void look(struct sim *self, uint8_t id)
{
    const struct sim_group *group = group_of(self, id);
    uint64_t dead = 0;
    if (group->broken || group->frozen || group->place >= first_server(group)) return;
    for (uint32_t i = first_server(group); i < group->count; i++)
        if (is_dead(self, group, i)) dead |= bit(i);
    if (dead) say_broke(self, id, dead, 0, "a parameter server is dead");
    else to_self(self, id, LOOK, between(self, 500, 2000));
}

// ---- tasks --------------------------------------------------------------------------------------

static void say_trained(struct sim *self, uint8_t id, bool done, bool no_data, const char *why)
{
    struct sim_group *group = group_of(self, id);
    struct wire_task_trained trained = { .lease = group->lease,
                                         .done = done,
                                         .samples = done ? group->samples : 0,
                                         .no_data = no_data,
                                         .loss = 1,
                                         .tokens_per_s = 10 };
    snprintf(trained.because, sizeof trained.because, "%s", why);
    uint32_t *failed = &self->nodes[id].learner.tasks_failed;
    *failed = done ? 0 : *failed + !no_data;
    group->lease = 0;
    group->turn++;
    learner_says(self, id, FRAME_TASK_TRAINED, &trained);
}

static void train(struct sim *self, uint8_t id, const struct wire_train_task *job)
{
    struct sim_group *group = group_of(self, id);
    const bool slow = self->plan.slow == id && faulty(self);
    if (!group->number || group->broken) return; // GROUP_BROKE says more
    ensure(group->formed);                       // A task's time runs from when it is dealt
    check_task_taken(self, id, job);
    group->lease = group->newest = job->lease;
    group->samples = interval_list_total(job->samples, job->samples_count);
    group->pushed = 0;
    group->since_ms = 0;
    group->turn++;
    const bool starves = !learner_has_data(self, id, job->providers, job->providers_count);
    if (starves || chance(self, FAILS_OF_1000)) {
        to_self(self, id, starves ? STARVE : FAIL, between(self, 50, 2000));
        return;
    }
    to_self(self, id, PUSH, between(self, 50, self->plan.train_ms) * (slow ? 10 : 1));
}

// To the next server.
static void push(struct sim *self, uint8_t id)
{
    struct sim_group *group = group_of(self, id);
    const uint32_t place = first_server(group) + group->pushed;
    struct sim_group *server = peer(self, group, place);
    if (group->since_ms == 0) group->since_ms = self->now_ms;
    if (is_dead(self, group, place)) {
        say_broke(self, id, bit(place), 0, "a parameter server is dead");
        return;
    }
    if (!server || !server->formed || server->frozen ||
        words_are_cut(self, id, group->nodes[place])) {
        if (self->now_ms - group->since_ms > PUSH_MS)
            say_broke(self, id, 0, 0, "a parameter server does not answer");
        else to_self(self, id, PUSH, between(self, 100, 600));
        return;
    }
    server->share = hash_of_two(&server->share, HASH_BYTES, &group->lease, sizeof group->lease);
    group->since_ms = 0;
    if (++group->pushed < group->servers) {
        to_self(self, id, PUSH, between(self, 1, chance(self, 30) ? 2000 : 40));
        return;
    }
    check_task_pushed(self, id, group->lease);
    say_trained(self, id, true, false, "");
}

// ---- saves --------------------------------------------------------------------------------------

static void say_taken(struct sim *self, uint8_t id, uint64_t number, uint64_t step,
                      const struct hash *digest)
{
    struct wire_share_saved saved = { .number = number, .step = step };
    if (digest) saved.digest = *digest;
    learner_says(self, id, FRAME_SHARE_TAKEN, &saved);
}

// What has been put together is held, and is the same for all. On the way the share is as far as pushes have come.
static void save(struct sim *self, uint8_t id, const struct wire_take_share *job)
{
    const struct learner *learner = &self->nodes[id].learner;
    const struct sim_group *group = &learner->group;
    if (group->number != job->number || (group->frozen && !learner->holding)) {
        say_taken(self, id, job->number, job->step, NULL);
        return;
    }
    const struct hash part = hash_of_two(&group->began, HASH_BYTES, &group->share, HASH_BYTES);
    if (learner->holding)
        saves_begin(self, group->born_unix_ms, job->step, job->number, group->servers,
                    &learner->digest);
    else saves_add(self, group->born_unix_ms, job->step, job->number, group->servers, &part);
    words_send(self, id, between(self, 10, chance(self, 50) ? 9000 : 900),
               &(struct wire_sim_word){ .what = WRITTEN,
                                        .window = job->number,
                                        .step = job->step,
                                        .from = group->place - first_server(group),
                                        .born_unix_ms = group->born_unix_ms,
                                        .spare = job->spare });
}

static void hear_written(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    const struct sim_save *whole =
        saves_written(self, word->born_unix_ms, word->step, word->window, word->from, word->spare);
    if (whole) check_saved_whole(self, word->window, word->step, &whole->digest);
    say_taken(self, id, word->window, word->step, whole ? &whole->digest : NULL);
}

// ---- copies in memory ---------------------------------------------------------------------------

static void copy(struct sim *self, uint8_t id, const struct wire_save_share *job)
{
    const struct sim_group *group = group_of(self, id);
    const bool has_share = group->number == job->number && !group->frozen && !group->broken;
    if (!has_share || chance(self, 20)) { // It has no room
        learner_says(self, id, FRAME_COPY_TAKEN,
                     &(struct wire_share_copied){ .number = job->number, .step = job->step });
        return;
    }
    const struct hash part = hash_of_two(&group->began, HASH_BYTES, &group->share, HASH_BYTES);
    copies_take_share(self, id, job, group->place - first_server(group), &part);
    words_send(
        self, id, between(self, 5, chance(self, 50) ? 3000 : 200),
        &(struct wire_sim_word){ .what = COPIED_SHARE, .window = job->number, .step = job->step });
}

static void hear_copied(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct wire_share_copied copied = { .number = word->window, .step = word->step };
    if (copies_hash_share(self, id, word->window, word->step, &copied.list))
        learner_says(self, id, FRAME_COPY_TAKEN, &copied);
}

// ---- putting the state together -----------------------------------------------------------------

static void say_settled(struct sim *self, uint8_t id, const struct hash *digest, const char *why)
{
    const struct wire_close_group *closing = &group_of(self, id)->closing;
    struct wire_settled settled = {
        .number = closing->number, .attempt = closing->attempt, .step = closing->step, .ok = digest
    };
    if (digest) settled.digest = *digest;
    snprintf(settled.because, sizeof settled.because, "%s", why);
    learner_says(self, id, FRAME_GROUP_SETTLED, &settled);
}

static void settle(struct sim *self, uint8_t id, const struct wire_close_group *job)
{
    struct learner *learner = &self->nodes[id].learner;
    struct sim_group *group = &learner->group;
    if (group->number != job->number) {
        const struct wire_settled settled = { .number = job->number,
                                              .attempt = job->attempt,
                                              .step = job->step,
                                              .because = "no part of its state is here" };
        learner_says(self, id, FRAME_GROUP_SETTLED, &settled);
        return;
    }
    group->closing = *job;
    group->closing_ms = self->now_ms;
    group->met = false;
    group->frozen = true;
    group->lease = 0;
    group->turn++;
    learner->holding = false;
    to_self(self, id, MEET, 1);
}

static bool have_come(struct sim *self, const struct sim_group *group)
{
    const uint64_t members = group->closing.members;
    for (uint32_t i = 0; i < group->count; i++) {
        if (!(members & bit(i))) continue;
        const struct sim_group *other = peer(self, group, i);
        if (!other || other->closing.attempt != group->closing.attempt) return false;
        for (uint32_t j = 0; j < i; j++)
            if (members & bit(j) && words_are_cut(self, group->nodes[i], group->nodes[j]))
                return false;
    }
    return true;
}

// All are there: each gets what the others have.
static void put_together(struct sim *self, struct sim_group *group)
{
    struct hash digest = group->began;
    for (uint32_t i = first_server(group); i < group->count; i++) {
        const struct hash *share = &peer(self, group, i)->share;
        if (!hash_is_none(share)) digest = hash_of_two(&digest, HASH_BYTES, share, HASH_BYTES);
    }
    check_together(self, &group->closing, &digest);
    for (uint32_t i = 0; i < group->count; i++) {
        if (!(group->closing.members & bit(i))) continue;
        peer(self, group, i)->met = true;
        words_send(self, group->nodes[i], between(self, 1, chance(self, 30) ? 3000 : 50),
                   &(struct wire_sim_word){ .what = TOGETHER,
                                            .window = group->number,
                                            .step = group->closing.attempt,
                                            .check = digest });
    }
}

static void meet(struct sim *self, uint8_t id)
{
    struct sim_group *group = group_of(self, id);
    if (group->met) return;
    for (uint32_t i = 0; i < group->count; i++)
        if (group->closing.members & bit(i) && is_dead(self, group, i)) {
            say_settled(self, id, NULL, "a member is dead");
            return;
        }
    if (have_come(self, group)) put_together(self, group);
    else if (self->now_ms - group->closing_ms > leases_settle_ms(self))
        say_settled(self, id, NULL, "the others did not come");
    else to_self(self, id, MEET, between(self, 50, 300));
}

static void be_together(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct learner *learner = &self->nodes[id].learner;
    if (learner->group.closing.attempt != word->step) return;
    learner->holding = true;
    learner->step = learner->group.closing.step;
    learner->digest = word->check;
    say_settled(self, id, &word->check, "");
}

// ---- jobs ---------------------------------------------------------------------------------------

static void hear_word(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    const struct sim_group *group = group_of(self, id);
    if (word->what == WRITTEN) hear_written(self, id, word); // Also behind its group
    else if (word->what == COPIED_SHARE) hear_copied(self, id, word);
    else if (word->window != group->number) return;
    else if (word->what == TOGETHER) be_together(self, id, word);
    else if (word->what == LOOK) look(self, id);
    else if (word->what == FORM) form(self, id);
    else if (word->turn != group->turn) return;
    else if (word->what == PUSH) push(self, id);
    else if (word->what == FAIL) say_trained(self, id, false, false, "it cannot");
    else if (word->what == STARVE) say_trained(self, id, false, true, "its samples did not come");
    else meet(self, id);
}

bool leases_learn(struct sim *self, uint8_t id, uint16_t kind, const void *job)
{
    switch (kind) {
    case FRAME_TAKE_GROUP: take(self, id, job); return true;
    case FRAME_TRAIN_TASK: train(self, id, job); return true;
    case FRAME_SETTLE_GROUP: settle(self, id, job); return true;
    case FRAME_END_GROUP: end(self, id, job); return true;
    case FRAME_TAKE_SHARE: save(self, id, job); return true;
    case FRAME_TAKE_COPY: copy(self, id, job); return true;
    case FRAME_GIVE_LISTS: copies_list(self, id, job); return true;
    case FRAME_KEPT: copies_kept(self, id, job); return true;
    case FRAME_SIM_WORD: hear_word(self, id, job); return true;
    default: return false;
    }
}
