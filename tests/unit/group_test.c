// group: sums among processes on a loopback, their bits, deaths in their middle, and who is let in.
//
// Each member is a process of its own. They meet at a barrier in shared memory, and each ends with 0
// if all that it saw was right; else it prints what was not.

#include "common/crypto/identity.h"
#include "common/group/group_inside.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { MAX = 9, FORM_MS = 5000, SUM_MS = 20000 };

// ---- members --------------------------------------------------------------------------------

static struct shared {
    pthread_barrier_t barrier;
    struct group_member members[MAX];
    uint64_t numbers[MAX];
    double times[MAX];
} * shared;

static uint32_t me, world;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "# member %u of %u, line %d: %s: %s\n", me, world, __LINE__, #what,    \
                    why.text);                                                                     \
            fflush(stderr);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static struct why why;
static struct group_blame blame;

static struct identity *identity_of(uint32_t member)
{
    uint8_t secret[SECRET_BYTES];
    struct identity *identity;
    memset(secret, 7 + (int)member, sizeof secret);
    CHECK(identity_from_secret(secret, &why, &identity) == 0);
    return identity;
}

static struct group_options options_of(uint32_t member)
{
    return (struct group_options){ .identity = identity_of(member),
                                   .run = "a run",
                                   .instance = 100 + member,
                                   .bind = "127.0.0.1:0",
                                   .link = GROUP_PLAIN,
                                   .connections = 1,
                                   .called_fd = -1 };
}

static void enter(uint32_t member, const group_t *group, const struct group_options *options)
{
    struct group_member *own = &shared->members[member];
    own->key = *identity_key(options->identity);
    own->instance = options->instance;
    snprintf(own->endpoint, sizeof own->endpoint, "tcp://127.0.0.1:%u", group_port(group));
    pthread_barrier_wait(&shared->barrier);
}

static group_t *group_of(const struct group_options *options)
{
    group_t *group;
    CHECK(group_new(options, &why, &group) == 0);
    enter(me, group, options);
    return group;
}

typedef void body(void *arg);

// Runs `count` members; dead: those that must die of their timer.
static void run(uint32_t count, body *member, void *arg, uint32_t dead)
{
    pid_t pids[MAX];
    pthread_barrierattr_t attr;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, count);
    world = count;
    fflush(NULL);
    for (uint32_t m = 0; m < count; m++) {
        pids[m] = fork();
        assert_true(pids[m] >= 0);
        if (pids[m] == 0) {
            me = m;
            alarm(40);
            member(arg);
            _exit(0);
        }
    }
    uint32_t bad = 0;
    for (uint32_t m = 0; m < count; m++) {
        int status;
        assert_int_equal(waitpid(pids[m], &status, 0), pids[m]);
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        if (dead >> m & 1 ? killed : status == 0) continue;
        fprintf(stderr, "# member %u of %u ended with status %#x\n", m, count, (unsigned)status);
        bad |= 1u << m;
    }
    munmap(shared, sizeof *shared);
    assert_int_equal(bad, 0);
}

// ---- vectors --------------------------------------------------------------------------------

static float value(uint32_t lane, uint64_t i, uint64_t salt)
{
    uint64_t x = (i + 1 + salt * 77777) * 0x9E3779B97F4A7C15u + lane * 0xD1B54A32D192ED03u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    return (float)(int32_t)x * (1.0f / 65536) * (x >> 40 & 7 ? 1 : 1e-4f);
}

// The definition of lanes.h, float by float. False: no sample.
static bool sum_of(uint32_t lanes, uint32_t batch, struct lane_node node, uint64_t i, uint64_t salt,
                   float *ret_sum)
{
    float left, right;
    if (interval_empty(lane_samples(lanes, batch, node))) return false;
    if (node.end - node.first == 1) {
        *ret_sum = value(node.first, i, salt);
        return true;
    }
    const uint32_t middle = lane_middle(node);
    const bool l = sum_of(lanes, batch, (struct lane_node){ node.first, middle }, i, salt, &left);
    const bool r = sum_of(lanes, batch, (struct lane_node){ middle, node.end }, i, salt, &right);
    *ret_sum = l && r ? left + right : l ? left : right;
    return true;
}

struct vectors {
    uint32_t count;
    float *nodes[LANE_NODES_MAX], *result;
};

static struct vectors vectors_new(uint32_t lanes, uint32_t batch, uint32_t members, uint32_t place,
                                  uint64_t floats, uint64_t salt)
{
    struct lane_node nodes[LANE_NODES_MAX];
    struct vectors self = { .result = malloc(floats * sizeof(float)) };
    self.count = lane_nodes(lanes, batch, lanes_of_member(lanes, members, place), nodes);
    for (uint32_t k = 0; k < self.count; k++) {
        self.nodes[k] = malloc(floats * sizeof(float));
        for (uint64_t i = 0; i < floats; i++)
            sum_of(lanes, batch, nodes[k], i, salt, &self.nodes[k][i]);
    }
    return self;
}

static void vectors_free(struct vectors *self)
{
    for (uint32_t k = 0; k < self->count; k++) free(self->nodes[k]);
    free(self->result);
}

struct leaves {
    group_t *group;
    const struct group_sum *sum;
    uint32_t place;
    uint64_t told;
};

static void leaf_is_told(void *arg, struct interval at, const float *values)
{
    struct leaves *leaves = arg;
    const uint64_t buckets = group_buckets(leaves->group, leaves->sum);
    bool ours = false;
    for (uint64_t b = 0; b < buckets; b++) {
        const struct interval share = group_share(leaves->group, leaves->sum, b, leaves->place);
        ours |= at.begin >= share.begin && at.end <= share.end;
    }
    CHECK(ours && at.end > at.begin && at.begin % GROUP_LEAF_FLOATS == 0);
    CHECK(at.end % GROUP_LEAF_FLOATS == 0 || at.end == leaves->sum->floats);
    CHECK(values != NULL);
    leaves->told += interval_length(at);
}

static uint64_t owned(group_t *group, const struct group_sum *sum, uint32_t place)
{
    uint64_t floats = 0;
    for (uint64_t b = 0; b < group_buckets(group, sum); b++)
        floats += interval_length(group_share(group, sum, b, place));
    return floats;
}

// The nodes become final from their ends down, while the sum is under way.
static int add_in_parts(group_t *group, const struct group_sum *sum, const struct vectors *vectors)
{
    const uint64_t step = sum->floats / (3 + (sum->number + me) % 4) + 1;
    float *final[LANE_NODES_MAX];
    for (uint32_t k = 0; k < vectors->count; k++) {
        final[k] = malloc(sum->floats * sizeof(float));
        memcpy(final[k], vectors->nodes[k], sum->floats * sizeof(float));
        memset(vectors->nodes[k], 0x7f, sum->floats * sizeof(float));
    }
    CHECK(group_begin(group, sum, &why, &blame) == 0);
    for (uint64_t from = sum->floats; from > 0;) {
        const uint64_t less = from < step ? from : step;
        from -= less;
        for (uint32_t k = 0; k < vectors->count; k++)
            memcpy(vectors->nodes[k] + from, final[k] + from, less * sizeof(float));
        if (from > 0) group_offer(group, from);
    }
    for (uint32_t k = 0; k < vectors->count; k++) free(final[k]);
    return group_end(group, &why, &blame);
}

// One sum of a window's members; checks the bits.
static void add(group_t *group, uint64_t number, uint32_t members, uint32_t place, uint32_t lanes,
                uint32_t batch, uint64_t floats, bool in_place)
{
    struct vectors vectors = vectors_new(lanes, batch, members, place, floats, number);
    struct leaves leaves = { .group = group, .place = place };
    float *result = in_place && vectors.count ? vectors.nodes[0] : vectors.result;
    const struct group_sum sum = { .number = number,
                                   .floats = floats,
                                   .lanes = lanes,
                                   .batch = batch,
                                   .nodes = (const float *const *)vectors.nodes,
                                   .result = result,
                                   .timeout_ms = SUM_MS,
                                   .summed = leaf_is_told,
                                   .arg = &leaves };
    leaves.sum = &sum;
    if ((number + place) % 2) CHECK(group_add(group, &sum, &why, &blame) == 0);
    else CHECK(add_in_parts(group, &sum, &vectors) == 0);
    CHECK(leaves.told == owned(group, &sum, place));
    const bool is_long = floats > 20000; // Then each member checks its part of all
    for (uint64_t i = is_long ? place : 0; i < floats; i += is_long ? members : 1) {
        float right;
        sum_of(lanes, batch, (struct lane_node){ 0, lanes }, i, number, &right);
        CHECK(memcmp(&result[i], &right, sizeof right) == 0);
    }
    vectors_free(&vectors);
}

// ---- sums -----------------------------------------------------------------------------------

struct kind {
    enum group_link link;
    uint32_t connections;
};

static void sums(void *arg)
{
    static const uint64_t sizes[] = { 1, 3, 1000, 10032, 16384, 16385, 70001, 150000 };
    const struct kind *kind = arg;
    struct group_options options = options_of(me);
    options.link = kind->link;
    options.connections = kind->connections;
    group_t *group = group_of(&options);
    uint64_t number = 0;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        add(group, number++, world, me, 8, 64, sizes[s], s & 1);
        if (sizes[s] <= 20000) add(group, number++, world, me, 8, 5, sizes[s], !(s & 1));
    }
    CHECK(group_form(group, 3, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, world, me, 16, 3, 1000, true);
    add(group, 1, world, me, 8, 8, world == 3 ? 1 << 20 : 40000, true);
    group_destroy(&group);
    CHECK(group == NULL);
}

// Of two members one has no sample. The other one is done with its own share, and sends it, before the first
// has offered anything.
static void offer_nothing(void *arg)
{
    enum { FLOATS = 2 * GROUP_LEAF_FLOATS + 1, PATIENCE_MS = 10000 };
    const uint64_t until_ms = clock_ms() + PATIENCE_MS;
    struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    struct vectors vectors = vectors_new(8, 1, world, me, FLOATS, 0);
    const struct group_sum sum = { .floats = FLOATS,
                                   .lanes = 8,
                                   .batch = 1,
                                   .nodes = (const float *const *)vectors.nodes,
                                   .result = vectors.result,
                                   .timeout_ms = SUM_MS };
    struct lane_node nodes[LANE_NODES_MAX];
    const uint32_t own = lane_nodes(8, 1, lanes_of_member(8, world, 0), nodes) ? 0 : 1;
    (void)arg;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    if (me == own) {
        CHECK(group_add(group, &sum, &why, &blame) == 0);
    } else {
        const struct interval theirs = group_share(group, &sum, 0, own);
        float right;
        CHECK(vectors.count == 0 && !interval_empty(theirs));
        sum_of(8, 1, (struct lane_node){ 0, 8 }, theirs.end - 1, 0, &right);
        vectors.result[theirs.end - 1] = right + 1;
        CHECK(group_begin(group, &sum, &why, &blame) == 0);
        while (memcmp(&vectors.result[theirs.end - 1], &right, sizeof right) != 0) {
            CHECK(clock_ms() < until_ms);
            group_offer(group, FLOATS - 1);
        }
        CHECK(group_end(group, &why, &blame) == 0);
    }
    vectors_free(&vectors);
    group_destroy(&group);
}

static void a_member_without_samples_takes_results_before_it_offers(void **state)
{
    (void)state;
    run(2, offer_nothing, NULL, 0);
}

static void the_bits_are_those_of_the_tree(void **state)
{
    struct kind kind = { GROUP_PLAIN, 1 };
    (void)state;
    for (uint32_t members = 1; members <= 8; members++) run(members, sums, &kind, 0);
}

static void sealed_links_and_many_connections_give_the_same_bits(void **state)
{
    struct kind kinds[] = { { GROUP_SEALED, 1 }, { GROUP_PLAIN, 3 }, { GROUP_SEALED, 4 } };
    (void)state;
    for (int i = 0; i < 3; i++) run(3, sums, &kinds[i], 0);
}

static int sum_zeros(group_t *group, uint64_t number, uint64_t floats, uint32_t timeout_ms)
{
    static float values[1 << 20];
    const float *nodes[LANE_NODES_MAX];
    for (uint32_t k = 0; k < LANE_NODES_MAX; k++) nodes[k] = values;
    const struct group_sum sum = { .number = number,
                                   .floats = floats,
                                   .lanes = 8,
                                   .batch = 8,
                                   .nodes = nodes,
                                   .result = values,
                                   .timeout_ms = timeout_ms };
    return group_add(group, &sum, &why, &blame);
}

// ---- words ----------------------------------------------------------------------------------

static size_t word_size(uint32_t turn, uint32_t member)
{
    return turn == 7 ? GROUP_WORD_MAX : turn == 9 ? 0 : 100 * turn + member;
}

// Hears one word. Each member's come in order; one that has heard all of a turn begins the next.
static void hear(group_t *group, uint32_t turns[MAX])
{
    uint32_t member;
    const void *bytes;
    size_t count;
    CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) == 0);
    const uint8_t *text = bytes;
    const uint32_t turn = turns[member]++;
    CHECK(count == word_size(turn, member));
    CHECK(count == 0 || (text[0] == (uint8_t)(turn + member) && text[count - 1] == text[0]));
}

static void words(void *arg)
{
    struct group_options options = options_of(me);
    uint8_t *word = malloc(GROUP_WORD_MAX);
    uint32_t turns[MAX] = { 0 }, member;
    const void *bytes;
    size_t count;
    options.link = *(enum group_link *)arg;
    group_t *group = group_of(&options);
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    for (uint32_t turn = 0; turn < 40; turn++) {
        memset(word, (int)(turn + me), GROUP_WORD_MAX);
        if (turn % 10 == 3) add(group, turn / 10, world, me, 8, 8, 1000, false);
        CHECK(group_tell(group, word, word_size(turn, me), &why, &blame) == 0);
        turns[me]++;
        for (uint32_t m = 0; m < world; m++)
            while (turns[m] <= turn) hear(group, turns);
    }
    CHECK(group_hear(group, 1, &why, &blame, &member, &bytes, &count) == FAULT_TIMEOUT);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
    free(word);
}

static void each_member_hears_the_words_of_all_others(void **state)
{
    enum group_link links[] = { GROUP_PLAIN, GROUP_SEALED };
    (void)state;
    for (int i = 0; i < 2; i++) run(3, words, &links[i], 0);
}

// ---- deaths ---------------------------------------------------------------------------------

struct death {
    uint64_t floats;
    suseconds_t after_us;
    enum group_link link;
};

// The last member dies in the middle of a sum. The others get the fault and the blame, and sum right
// in the next window.
static void death(void *arg)
{
    const struct death *how = arg;
    struct group_options options = options_of(me);
    options.link = how->link;
    group_t *group = group_of(&options);
    const bool dies = me == world - 1;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    struct vectors vectors = vectors_new(8, 8, world, me, 16384, 0);
    float *big[LANE_NODES_MAX], *result = calloc(how->floats, sizeof *result);
    for (uint32_t k = 0; k < vectors.count; k++) big[k] = calloc(how->floats, sizeof **big);
    pthread_barrier_wait(&shared->barrier);
    if (dies) {
        const struct itimerval timer = { .it_value = { .tv_usec = how->after_us } };
        setitimer(ITIMER_REAL, &timer, NULL);
    }
    int rc = 0;
    for (uint64_t number = 0; rc == 0; number++) {
        const struct group_sum sum = { .number = number,
                                       .floats = how->floats,
                                       .lanes = 8,
                                       .batch = 8,
                                       .nodes = (const float *const *)big,
                                       .result = result,
                                       .timeout_ms = SUM_MS };
        rc = group_add(group, &sum, &why, &blame);
    }
    const uint64_t known_us = clock_us();
    CHECK(!dies && rc == FAULT_UNREACHABLE);
    CHECK(blame.member == world - 1 && blame.gone);
    struct group_blame again;
    CHECK(group_tell(group, "x", 1, &why, &again) == FAULT_UNREACHABLE);
    CHECK(again.member == blame.member && again.gone == blame.gone);
    shared->numbers[me] = blame.member;
    CHECK(group_form(group, 2, shared->members, world - 1, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, world - 1, me, 8, 8, 40000, true);
    shared->times[me] = (double)(clock_us() - known_us) / 1000;
    group_destroy(&group);
}

static void a_death_is_known_and_the_others_go_on(void **state)
{
    static const struct death deaths[] = { { 1000, 3000, GROUP_PLAIN },
                                           { 1 << 20, 8000, GROUP_PLAIN },
                                           { 1 << 21, 20000, GROUP_PLAIN },
                                           { 1 << 19, 9000, GROUP_SEALED } };
    (void)state;
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        for (uint32_t members = 2; members <= 4; members++)
            run(members, death, (void *)(uintptr_t)&deaths[i], 1u << (members - 1));
}

// DEATHS=1000: so many more, at moments that follow from the number alone.
static void deaths_at_any_moment_leave_a_group_that_sums(void **state)
{
    const int count = getenv("DEATHS") ? atoi(getenv("DEATHS")) : 3;
    (void)state;
    for (int i = 0; i < count; i++) {
        const uint32_t members = 2 + (uint32_t)i % 4, draw = (uint32_t)i * 2654435761u;
        struct death how = { .floats = 1 + (draw >> 7) % (1u << (i % 22)),
                             .after_us = 1000 + (draw >> 3) % 30000,
                             .link = i % 3 ? GROUP_PLAIN : GROUP_SEALED };
        run(members, death, &how, 1u << (members - 1));
    }
}

// Of four members two die at once; each of the others names both. None is dead before.
static void die_together(void *arg)
{
    const struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    (void)arg;
    CHECK(group_dead(group) == 0);
    CHECK(group_form(group, 1, shared->members, 4, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 4, me, 8, 8, 1000, false);
    CHECK(group_dead(group) == 0);
    pthread_barrier_wait(&shared->barrier);
    if (me == 1 || me == 3) raise(SIGALRM);
    CHECK(sum_zeros(group, 1, 1000, SUM_MS) == FAULT_UNREACHABLE);
    const uint64_t until_ms = clock_ms() + FORM_MS;
    uint64_t dead;
    do dead = group_dead(group);
    while (dead != 10 && clock_ms() < until_ms);
    CHECK(dead == 10);
    CHECK(group_dead(group) == 10); // Again
    const struct group_member left[] = { shared->members[0], shared->members[2] };
    CHECK(group_form(group, 2, left, 2, me / 2, FORM_MS, &why, &blame) == 0);
    add(group, 0, 2, me / 2, 8, 8, 1000, false);
    group_destroy(&group);
}

static void all_that_died_at_once_are_named(void **state)
{
    (void)state;
    run(4, die_together, NULL, 10);
}

// Of three whose links have ended two listen and do not answer, as if they were stopped: they are not dead, and
// are waited for no longer than one is.
static void a_process_that_listens_is_not_dead(void **state)
{
    enum { COUNT = 4, DEAD = 2 };
    struct group_options options = options_of(0);
    struct group_member members[COUNT];
    group_t *group;
    int listeners[COUNT];
    (void)state;
    assert_int_equal(group_new(&options, &why, &group), 0);
    for (uint32_t m = 0; m < COUNT; m++) {
        uint16_t port;
        members[m] = (struct group_member){ *identity_key(identity_of(m)), 100 + m, "" };
        assert_int_equal(tcp_listen("127.0.0.1:0", &why, &listeners[m], &port), 0);
        snprintf(members[m].endpoint, sizeof members[m].endpoint, "tcp://127.0.0.1:%u", port);
    }
    close(listeners[DEAD]);
    assert_true(group_form(group, 1, members, COUNT, 0, 1, &why, &blame) < 0);
    assert_int_equal(group_dead(group), 0); // None was linked
    for (uint32_t m = 1; m < COUNT; m++) group->members[m]->was_linked = true;
    const uint64_t start_ms = clock_ms();
    assert_int_equal(group_dead(group), 1 << DEAD);
    assert_true(clock_ms() - start_ms < 2 * PROBE_MS);
    for (int m = 0; m < COUNT; m++)
        if (m != DEAD) close(listeners[m]);
    group_destroy(&group);
}

static void cut(int number)
{
    const int error = errno;
    struct sockaddr_storage at;
    for (int fd = 3; fd < 40; fd++) {
        socklen_t size = sizeof at;
        if (getpeername(fd, (struct sockaddr *)&at, &size) == 0) shutdown(fd, SHUT_RDWR);
    }
    errno = error;
    (void)number;
}

// The links of member 0 are cut in the middle of a sum; nobody is dead, and all go on.
static void be_cut(void *arg)
{
    const struct death *how = arg;
    struct group_options options = options_of(me);
    options.link = how->link;
    group_t *group = group_of(&options);
    float *values = calloc(how->floats, sizeof *values);
    const float *nodes[LANE_NODES_MAX];
    for (uint32_t k = 0; k < LANE_NODES_MAX; k++) nodes[k] = values;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    pthread_barrier_wait(&shared->barrier); // Nobody begins the next window before all are in this
    if (me == 0) {
        const struct itimerval timer = { .it_value = { .tv_usec = how->after_us } };
        signal(SIGALRM, cut);
        setitimer(ITIMER_REAL, &timer, NULL);
    }
    int rc = 0;
    for (uint64_t number = 0; rc == 0; number++) {
        const struct group_sum sum = { .number = number,
                                       .floats = how->floats,
                                       .lanes = 8,
                                       .batch = 8,
                                       .nodes = nodes,
                                       .result = values,
                                       .timeout_ms = SUM_MS };
        rc = group_add(group, &sum, &why, &blame);
    }
    CHECK(rc == FAULT_UNREACHABLE && !blame.gone);
    CHECK(blame.member == UINT32_MAX || blame.member == 0 || me == 0);
    CHECK(group_dead(group) == 0);
    CHECK(group_form(group, 2, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, world, me, 8, 8, 40000, true);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
    free(values);
}

static void links_that_are_cut_are_connected_again(void **state)
{
    static const struct death cuts[] = { { 1000, 3000, GROUP_PLAIN },
                                         { 1 << 21, 20000, GROUP_PLAIN },
                                         { 1 << 19, 9000, GROUP_SEALED } };
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (uint32_t members = 2; members <= 3; members++)
            run(members, be_cut, (void *)(uintptr_t)&cuts[i], 0);
}

// ---- who is let in --------------------------------------------------------------------------

struct stranger {
    const char *run;
    uint64_t instance; // 0: the right one
    bool other_key;
    enum group_link link;
    int fault; // Of the stranger, if it connects
    const char *says;
};

// Member 1 is not quite what member 0 expects. Whoever connects is told why; nobody forms a window.
static void be_strange(void *arg)
{
    const struct stranger *how = arg;
    struct group_options options = options_of(me);
    if (me == 1) {
        options.run = how->run;
        options.link = how->link;
        if (how->other_key) options.identity = identity_of(5);
    }
    group_t *group = group_of(&options);
    struct group_member members[2] = { shared->members[0], shared->members[1] };
    if (me == 0 && how->other_key) members[1].key = *identity_key(identity_of(1));
    if (how->instance) members[1].instance = me == 0 ? how->instance : members[1].instance;
    const bool connects = key_compare(&members[me].key, &members[1 - me].key) < 0;
    const int rc = group_form(group, 1, members, 2, me, 300, &why, &blame);
    CHECK(rc < 0 && blame.member == 1 - me && !blame.gone);
    CHECK(rc == (connects ? how->fault : FAULT_TIMEOUT) || rc == FAULT_UNREACHABLE);
    if (connects && rc == FAULT_DENIED) CHECK(strstr(why.text, how->says));
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void strangers_are_refused(void **state)
{
    static const struct stranger strangers[] = {
        { "another run", 0, false, GROUP_PLAIN, FAULT_DENIED, "another run" },
        { "a run", 77, false, GROUP_PLAIN, FAULT_DENIED, "process" },
        { "a run", 0, true, GROUP_PLAIN, FAULT_DENIED, "key" },
        { "a run", 0, false, GROUP_SEALED, FAULT_DENIED, "of another kind" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        run(2, be_strange, (void *)(uintptr_t)&strangers[i], 0);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct group_options options = options_of(0);
    group_t *group = NULL, *other = NULL;
    char bind[64];
    options.connections = 65;
    assert_int_equal(group_new(&options, &why, &group), FAULT_RANGE);
    options.connections = 1;
    options.bind = "203.0.113.7:0";
    assert_int_equal(group_new(&options, &why, &group), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "203.0.113.7:0 is a public address"));
    options.bind = "nowhere";
    assert_int_equal(group_new(&options, &why, &group), FAULT_CONFIG);
    options.bind = "127.0.0.1:abc";
    assert_int_equal(group_new(&options, &why, &group), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "127.0.0.1:abc: no address to listen on"));
    options.bind = "127.0.0.1:0";
    assert_int_equal(group_new(&options, &why, &group), 0);
    snprintf(bind, sizeof bind, "127.0.0.1:%u", group_port(group));
    options.bind = bind;
    assert_int_equal(group_new(&options, &why, &other), FAULT_BUSY);
    assert_null(other);
    struct group_member members[2] = { { .key = *identity_key(options.identity), .instance = 100 },
                                       { .instance = 1, .endpoint = "tcp://203.0.113.9:7001" } };
    assert_int_equal(group_form(group, 1, members, 2, 0, 100, &why, &blame), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "203.0.113.9"));
    assert_int_equal(blame.member, 1);
    assert_int_equal(group_tell(group, "x", 1, &why, &blame), FAULT_CONFIG);
    strcpy(members[1].endpoint, "tcp://127.0.0.1:abc");
    assert_int_equal(group_expect(group, members, 2, &why), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "tcp://127.0.0.1:abc is no endpoint of a member"));
    // Nobody listens at port 1
    strcpy(members[1].endpoint, "tcp://127.0.0.1:1");
    assert_int_equal(group_form(group, 2, members, 2, 0, 200, &why, &blame), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "tcp://127.0.0.1:1: Connection refused"));
    assert_int_equal(blame.member, 1);
    assert_false(blame.gone);
    group_destroy(&group);
}

// Connects as `who`, which asks for nothing else, while the group serves its links. 1: the connection stands.
static int connect_by_hand(group_t *group, const struct group_options *who, uint32_t channel,
                           int *ret_fd)
{
    const struct handshake_self own = { .identity = who->identity,
                                        .run = hash_of(who->run, strlen(who->run)),
                                        .instance = who->instance };
    const struct handshake_party party = { group->key, group->options.instance };
    const struct handshake_purpose purpose = { .channel = channel, .channels = 1, .number = 1 };
    const uint64_t until_ms = clock_ms() + FORM_MS;
    struct handshake handshake;
    char endpoint[64];
    int rc = 0;
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", group_port(group));
    assert_int_equal(tcp_connect(endpoint, &why, ret_fd), 0);
    handshake_connect(&handshake, &own, &party, &purpose);
    while (rc == 0) {
        assert_true(clock_ms() < until_ms);
        group_serve(group, 0, &why);
        if (tcp_connected(*ret_fd) == 0) rc = handshake_move(&handshake, *ret_fd, &why);
    }
    handshake_wipe(&handshake);
    return rc;
}

// One that is expected has a control connection, and no channel: nobody would read it.
static void one_that_is_expected_gets_no_channel(void **state)
{
    struct group_options options[2] = { options_of(0), options_of(1) };
    struct group_member members[2];
    group_t *group;
    int control, channel;
    (void)state;
    const bool first =
        key_compare(identity_key(options[0].identity), identity_key(options[1].identity)) > 0;
    const struct group_options *own = &options[!first], *other = &options[first];
    for (int i = 0; i < 2; i++)
        members[i] =
            (struct group_member){ .key = *identity_key(i ? other->identity : own->identity),
                                   .instance = i ? other->instance : own->instance,
                                   .endpoint = "tcp://127.0.0.1:1" };
    assert_int_equal(group_new(own, &why, &group), 0);
    assert_int_equal(group_expect(group, members, 2, &why), 0);
    assert_int_equal(group_form(group, 1, members, 1, 0, FORM_MS, &why, &blame), 0);
    assert_int_equal(connect_by_hand(group, other, 0, &control), 1);
    assert_int_equal(connect_by_hand(group, other, 1, &channel), FAULT_DENIED);
    assert_non_null(strstr(why.text, "not come to this window"));
    assert_int_equal(group_linked(group), 3);
    close(control);
    close(channel);
    group_destroy(&group);
}

// A member whose vector, lanes or number is another one.
static void be_of_another_size(void *arg)
{
    const uint64_t *sizes = arg;
    struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    float *values = calloc(1 << 20, sizeof *values);
    const float *nodes[LANE_NODES_MAX];
    for (uint32_t k = 0; k < LANE_NODES_MAX; k++) nodes[k] = values;
    const struct group_sum sum = { .floats = sizes[me == 1],
                                   .lanes = 8,
                                   .batch = 8,
                                   .nodes = nodes,
                                   .result = values,
                                   .timeout_ms = SUM_MS };
    const int rc = group_add(group, &sum, &why, &blame);
    CHECK(rc == FAULT_FORMAT || (rc == FAULT_UNREACHABLE && !blame.gone));
    CHECK(rc != FAULT_FORMAT || me == 1 || blame.member == 1 || world > 2);
    shared->numbers[me] = (uint64_t)rc;
    pthread_barrier_wait(&shared->barrier);
    bool told = false;
    for (uint32_t m = 0; m < world; m++) told |= (int)shared->numbers[m] == FAULT_FORMAT;
    CHECK(told);
    CHECK(group_form(group, 2, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, world, me, 8, 8, 1000, false);
    group_destroy(&group);
}

static void a_member_that_sends_another_size_is_named(void **state)
{
    static const uint64_t sizes[][2] = { { 1000, 1001 }, { 100000, 99999 }, { 40000, 1000 } };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t members = 2; members <= 3; members++)
            run(members, be_of_another_size, (void *)(uintptr_t)sizes[i], 0);
}

// ---- waiting --------------------------------------------------------------------------------

// Member 1 does not come: the others say so, and go on with it later.
static void be_late(void *arg)
{
    struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    (void)arg;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    if (me != 1) {
        CHECK(sum_zeros(group, 0, me == 0 ? 1 << 20 : 1 << 20, 50 + 100 * me) < 0);
        CHECK(me == 2 || (blame.member == 1 && strstr(why.text, "within 50 ms")));
        CHECK(me == 0 || blame.member == UINT32_MAX || blame.member == 1);
    }
    pthread_barrier_wait(&shared->barrier);
    if (me == 1) CHECK(sum_zeros(group, 0, 1 << 20, 1000) == FAULT_UNREACHABLE && !blame.gone);
    CHECK(group_form(group, 2, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, world, me, 8, 8, 70000, true);
    group_destroy(&group);
}

static void a_member_that_is_late_is_named_and_may_come_back(void **state)
{
    (void)state;
    run(3, be_late, NULL, 0);
}

static sem_t about_to_sleep; // Posted by a group that found nobody calling

static bool is_called(void *arg)
{
    char byte;
    const bool called = read(*(int *)arg, &byte, 1) == 1;
    if (!called) sem_post(&about_to_sleep);
    return called;
}

static void *abort_the_sleeper(void *arg)
{
    while (sem_wait(&about_to_sleep) != 0) {
    }
    group_abort(arg);
    return NULL;
}

// Aborts the wait that the caller begins next.
static void abort_next_wait(pthread_t *thread, group_t *group)
{
    while (sem_trywait(&about_to_sleep) == 0) {
    }
    pthread_create(thread, NULL, abort_the_sleeper, group);
}

// Member 0 is called away twice, by another thread and by a descriptor; the other waits in vain.
static void be_called(void *arg)
{
    struct group_options options = options_of(me);
    int ends[2];
    pthread_t thread;
    uint32_t member;
    const void *bytes;
    size_t count;
    (void)arg;
    CHECK(pipe2(ends, O_NONBLOCK) == 0 && sem_init(&about_to_sleep, 0, 0) == 0);
    options.called_fd = ends[0];
    options.called = is_called;
    options.called_arg = &ends[0];
    group_t *group = group_of(&options);
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    if (me == 0) {
        CHECK(write(ends[1], "", 1) == 1);
        CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) ==
              FAULT_INTERRUPTED);
        abort_next_wait(&thread, group);
        CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) ==
              FAULT_INTERRUPTED);
        pthread_join(thread, NULL);
    } else {
        CHECK(sum_zeros(group, 0, 100000, SUM_MS) == FAULT_UNREACHABLE);
        CHECK(blame.member == UINT32_MAX || blame.member == 0);
    }
    CHECK(group_form(group, 2, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    if (me == 0) {
        abort_next_wait(&thread, group);
        CHECK(sum_zeros(group, 0, 100000, SUM_MS) == FAULT_INTERRUPTED);
        CHECK(blame.member == UINT32_MAX);
        pthread_join(thread, NULL);
    } else {
        CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) ==
              FAULT_UNREACHABLE);
    }
    CHECK(group_form(group, 3, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, world, me, 8, 8, 70000, true);
    group_destroy(&group);
}

static void a_wait_ends_when_the_caller_is_called(void **state)
{
    (void)state;
    run(2, be_called, NULL, 0);
}

// Serves its links until these stand, and no others.
static void serve(group_t *group, uint64_t linked)
{
    const uint64_t until_ms = clock_ms() + FORM_MS;
    while (group_linked(group) != linked && clock_ms() < until_ms)
        group_serve(group, FORM_MS, &why);
    CHECK(group_linked(group) == linked);
}

// Member 2 is expected while the others sum; its links stand before a window names it.
static void join(void *arg)
{
    const struct group_options options = options_of(me);
    (void)arg;
    group_t *group = group_of(&options);
    const struct group_member *all = shared->members;
    if (me == 2) {
        CHECK(group_expect(group, all, 3, &why) == 0);
        CHECK(group_linked(group) == 4); // Its own bit
    } else {
        CHECK(group_form(group, 1, all, 2, me, FORM_MS, &why, &blame) == 0);
        CHECK(group_expect(group, all, 3, &why) == 0);
        for (uint64_t number = 0; number < 3; number++) {
            add(group, number, 2, me, 8, 8, 20000, false);
            group_serve(group, 0, &why); // As between two steps: never waits
        }
    }
    serve(group, 7);
    CHECK(group_form(group, 2, all, 3, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 3, me, 8, 8, 70000, true);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static double cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

// Window 1 breaks, as member 2 does not come; the others form the next one without it, and expect it.
// What is left unread on its channels does not keep them busy; and it comes back.
static void stay_expected(void *arg)
{
    const struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    (void)arg;
    CHECK(group_form(group, 1, shared->members, 3, me, FORM_MS, &why, &blame) == 0);
    CHECK(group_expect(group, shared->members, 3, &why) == 0);
    if (me < 2) CHECK(sum_zeros(group, 0, 200000, 50) < 0);
    pthread_barrier_wait(&shared->barrier);
    if (me == 2) CHECK(sum_zeros(group, 0, 200000, SUM_MS) == FAULT_UNREACHABLE);
    else CHECK(group_form(group, 2, shared->members, 2, me, FORM_MS, &why, &blame) == 0);
    pthread_barrier_wait(&shared->barrier);
    if (me == 0) {
        const double before_ms = cpu_ms();
        CHECK(sum_zeros(group, 0, 1000, 300) == FAULT_TIMEOUT);
        CHECK(cpu_ms() - before_ms < 100);
    }
    pthread_barrier_wait(&shared->barrier);
    CHECK(group_form(group, 3, shared->members, 3, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 3, me, 8, 8, 70000, true);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void one_that_left_and_is_expected_costs_no_work(void **state)
{
    (void)state;
    run(3, stay_expected, NULL, 0);
}

// Member 2 cannot be reached at the address that it announces, and one more is at a public one: the others link
// and sum. It comes again as another process, and its links stand.
static void be_unreachable(void *arg)
{
    struct group_options options = options_of(me);
    struct group_member all[4];
    (void)arg;
    group_t *group = group_of(&options);
    memcpy(all, shared->members, sizeof all);
    snprintf(all[2].endpoint, sizeof all[2].endpoint, "tcp://127.0.0.1:1");
    all[3] = (struct group_member){ .instance = 7, .endpoint = "tcp://8.8.8.8:7001" };
    if (me < 2) {
        CHECK(group_expect(group, all, 4, &why) == FAULT_CONFIG);
        CHECK(strstr(why.text, "public"));
        serve(group, 3);
        CHECK(group_form(group, 1, all, 2, me, FORM_MS, &why, &blame) == 0);
        add(group, 0, 2, me, 8, 8, 20000, false);
        CHECK(group_linked(group) == 3);
    } else {
        group_destroy(&group);
        options.instance = 999;
        CHECK(group_new(&options, &why, &group) == 0);
        struct group_member *own = &shared->members[2];
        own->instance = options.instance;
        snprintf(own->endpoint, sizeof own->endpoint, "tcp://127.0.0.1:%u", group_port(group));
    }
    pthread_barrier_wait(&shared->barrier);
    CHECK(group_expect(group, shared->members, 3, &why) == 0);
    serve(group, 7);
    pthread_barrier_wait(&shared->barrier);
    if (me == 2) group_destroy(&group);
    else serve(group, 3); // It has gone
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void one_that_cannot_be_reached_disturbs_nobody(void **state)
{
    (void)state;
    run(3, be_unreachable, NULL, 0);
}

// Member 1 does not come to the window: its link does not count until another connection has taken its place.
static void be_silent(void *arg)
{
    const struct group_options options = options_of(me);
    (void)arg;
    group_t *group = group_of(&options);
    CHECK(group_expect(group, shared->members, 2, &why) == 0);
    serve(group, 3);
    if (me == 0) {
        CHECK(group_form(group, 1, shared->members, 2, 0, 100, &why, &blame) == FAULT_TIMEOUT);
        CHECK(group_linked(group) == 1);
    }
    pthread_barrier_wait(&shared->barrier);
    if (me == 1) CHECK(group_serve(group, FORM_MS, &why) == 0); // Its end
    serve(group, 3);
    CHECK(group_form(group, 2, shared->members, 2, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 2, me, 8, 8, 2000, false);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void a_link_over_which_nothing_comes_is_replaced(void **state)
{
    (void)state;
    run(2, be_silent, NULL, 0);
}

static void one_that_is_expected_joins(void **state)
{
    (void)state;
    run(3, join, NULL, 0);
}

// A connection that waits while no descriptor is left for it costs no work, and is accepted later.
static void without_a_descriptor_it_sleeps(void **state)
{
    struct group_options options = options_of(0);
    struct rlimit before, none;
    group_t *group;
    char endpoint[64];
    int fd;
    (void)state;
    assert_int_equal(group_new(&options, &why, &group), 0);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", group_port(group));
    assert_int_equal(tcp_connect(endpoint, &why, &fd), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const double before_ms = cpu_ms();
    const int rc = group_serve(group, 300, &why);
    const double used_ms = cpu_ms() - before_ms;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, FAULT_TIMEOUT);
    assert_true(used_ms < 100);
    const uint64_t until_ms = clock_ms() + FORM_MS;
    while (!group->attempts && clock_ms() < until_ms) group_serve(group, 100, &why);
    assert_non_null(group->attempts);
    close(fd);
    group_destroy(&group);
}

static bool is_connected_twice(void *arg)
{
    static int times;
    const int fd = tcp_accept(*(int *)arg);
    if (fd >= 0) times++; // Stays open, and nobody answers
    return times == 2;
}

// A process that is there, and does not answer the handshake: once that is over, it is connected again.
static void one_that_does_not_answer_is_connected_again(void **state)
{
    enum { HANDSHAKE_MS = 5000 };
    struct group_options options[2] = { options_of(0), options_of(1) };
    struct group_member members[2] = { { .instance = 100 }, { .instance = 101 } };
    group_t *group;
    int dumb;
    uint16_t port;
    (void)state;
    for (int i = 0; i < 2; i++) members[i].key = *identity_key(options[i].identity);
    const uint32_t own = key_compare(&members[0].key, &members[1].key) > 0; // It connects
    options[own].called = is_connected_twice;
    options[own].called_arg = &dumb;
    assert_int_equal(group_new(&options[own], &why, &group), 0);
    assert_int_equal(tcp_listen("127.0.0.1:0", &why, &dumb, &port), 0);
    snprintf(members[!own].endpoint, sizeof members[0].endpoint, "tcp://127.0.0.1:%u", port);
    assert_int_equal(group_form(group, 1, members, 2, own, HANDSHAKE_MS + 2000, &why, &blame),
                     FAULT_INTERRUPTED);
    close(dumb);
    group_destroy(&group);
}

// ---- one that floods ------------------------------------------------------------------------

// Sends DONE, each time of a further sum, over both control connections until these have ended.
static void flood_both(const group_t *group, uint64_t window)
{
    enum { HEADS = 1024 };
    static uint8_t bytes[2][HEADS][HEAD_BYTES];
    size_t at[2] = { 0 };
    uint64_t number[2] = { 0 };
    struct pollfd polls[2];
    for (int i = 0; i < 2; i++)
        polls[i] = (struct pollfd){ .fd = group->peers[i]->control.fd, .events = POLLOUT };
    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        CHECK(poll(polls, 2, FORM_MS) > 0);
        for (int i = 0; i < 2; i++) {
            if (polls[i].fd < 0 || !polls[i].revents) continue;
            for (int h = 0; h < HEADS && at[i] == 0; h++) {
                const struct message done = { .kind = MESSAGE_DONE,
                                              .window = window,
                                              .number = number[i]++ };
                message_pack(&done, bytes[i][h]);
            }
            const ssize_t n = send(polls[i].fd, &bytes[i][0][0] + at[i], sizeof bytes[i] - at[i],
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0) at[i] = (at[i] + (size_t)n) % sizeof bytes[i];
            if (n < 0 && errno != EAGAIN) polls[i].fd = -1;
        }
    }
}

// Member 2 sends messages without end, to the two others. These still see that their time is over, and go on
// without it.
static void flood(void *arg)
{
    const bool has_place = *(const bool *)arg;
    const struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    const struct group_member *all = shared->members;
    uint32_t member;
    const void *bytes;
    size_t count;
    CHECK(group_expect(group, all, 3, &why) == 0);
    if (has_place || me < 2)
        CHECK(group_form(group, 1, all, has_place ? 3 : 2, me, FORM_MS, &why, &blame) == 0);
    serve(group, 7);
    pthread_barrier_wait(&shared->barrier);
    if (me == 2) {
        flood_both(group, has_place);
        pthread_barrier_wait(&shared->barrier);
        group_destroy(&group);
        return;
    }
    const uint64_t start_ms = clock_ms();
    if (me == 0) CHECK(sum_zeros(group, 0, 1000, 300) == FAULT_TIMEOUT);
    else
        CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) ==
              FAULT_UNREACHABLE);
    CHECK(clock_ms() - start_ms < 2000);
    if (!has_place) // Its link is refused after a while
        while (group_linked(group) & 4) CHECK(group_serve(group, 1000, &why) == 0);
    CHECK(group_expect(group, all, 2, &why) == 0);
    CHECK(group_form(group, 2, all, 2, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 2, me, 8, 8, 20000, false);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void one_that_floods_does_not_stop_the_others(void **state)
{
    bool has_place[] = { false, true };
    (void)state;
    for (int i = 0; i < 2; i++) run(3, flood, &has_place[i], 0);
}

// ---- a sum that one never began -----------------------------------------------------------------

// Of a batch of 3 the first of three members has no sample: the others are done without it.
static void skip_a_sum(void *arg)
{
    (void)arg;
    const struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    CHECK(group_form(group, 1, shared->members, 3, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 3, me, 8, 3, 2000, false);
    if (me > 0) add(group, 1, 3, me, 8, 3, 2000, false);
    pthread_barrier_wait(&shared->barrier);
    CHECK(group_form(group, 2, shared->members, 3, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 3, me, 8, 8, 2000, false);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void what_a_member_never_read_is_not_taken_for_the_next_window(void **state)
{
    (void)state;
    run(3, skip_a_sum, NULL, 0);
}

TESTS(TEST(the_bits_are_those_of_the_tree), TEST(each_member_hears_the_words_of_all_others),
      TEST(a_member_without_samples_takes_results_before_it_offers),
      TEST(sealed_links_and_many_connections_give_the_same_bits),
      TEST(a_death_is_known_and_the_others_go_on),
      TEST(what_a_member_never_read_is_not_taken_for_the_next_window),
      TEST(all_that_died_at_once_are_named), TEST(a_process_that_listens_is_not_dead),
      TEST(deaths_at_any_moment_leave_a_group_that_sums),
      TEST(links_that_are_cut_are_connected_again), TEST(options_are_checked),
      TEST(strangers_are_refused), TEST(one_that_is_expected_gets_no_channel),
      TEST(a_member_that_sends_another_size_is_named),
      TEST(a_member_that_is_late_is_named_and_may_come_back),
      TEST(a_wait_ends_when_the_caller_is_called), TEST(one_that_is_expected_joins),
      TEST(one_that_left_and_is_expected_costs_no_work),
      TEST(one_that_cannot_be_reached_disturbs_nobody),
      TEST(a_link_over_which_nothing_comes_is_replaced), TEST(without_a_descriptor_it_sleeps),
      TEST(one_that_does_not_answer_is_connected_again),
      TEST(one_that_floods_does_not_stop_the_others))
