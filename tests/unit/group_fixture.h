#pragma once
// group_fixture: members of a group, each a process of its own, and one sum of theirs whose bits are checked.
//
// They meet at a barrier in shared memory. Each ends with 0 if all that it saw was right; else it prints what was not.

#include "common/base/clock.h"
#include "common/crypto/identity.h"
#include "common/group/group_inside.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

enum { SUMS_MAX = 1024 };

// The definition of lanes.h, for each float from `from` on; at most SUMS_MAX. False: no sample.
static bool sums_of(uint32_t lanes, uint32_t batch, struct lane_node node, uint64_t from,
                    size_t count, uint64_t salt, float *ret_sums)
{
    if (interval_empty(lane_samples(lanes, batch, node))) return false;
    if (node.end - node.first == 1) {
        for (size_t i = 0; i < count; i++) ret_sums[i] = value(node.first, from + i, salt);
        return true;
    }
    float right[SUMS_MAX];
    const uint32_t middle = lane_middle(node);
    const struct lane_node halves[] = { { node.first, middle }, { middle, node.end } };
    const bool l = sums_of(lanes, batch, halves[0], from, count, salt, ret_sums);
    const bool r = sums_of(lanes, batch, halves[1], from, count, salt, l ? right : ret_sums);
    for (size_t i = 0; l && r && i < count; i++) ret_sums[i] += right[i];
    return true;
}

// The next floats of `all`, from `at` on, that are computed at once.
static size_t sums_count(struct interval all, uint64_t at)
{
    return all.end - at < SUMS_MAX ? all.end - at : SUMS_MAX;
}

// Whether these floats of the vector are the batch's sum plus `more`, to the bit.
static bool is_sum(const float *vector, struct interval at, uint32_t lanes, uint32_t batch,
                   uint64_t salt, float more)
{
    float right[SUMS_MAX];
    for (uint64_t i = at.begin, count; i < at.end; i += count) {
        count = sums_count(at, i);
        if (!sums_of(lanes, batch, (struct lane_node){ 0, lanes }, i, count, salt, right))
            return false;
        for (size_t k = 0; more != 0 && k < count; k++) right[k] += more;
        if (memcmp(vector + i, right, count * sizeof *right) != 0) return false;
    }
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
        const struct interval all = { 0, floats };
        for (uint64_t i = 0; i < floats; i += SUMS_MAX)
            sums_of(lanes, batch, nodes[k], i, sums_count(all, i), salt, self.nodes[k] + i);
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
static inline void add(group_t *group, uint64_t number, uint32_t members, uint32_t place,
                       uint32_t lanes, uint32_t batch, uint64_t floats, bool in_place)
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
    const uint64_t piece = is_long ? SUMS_MAX : floats;
    for (uint64_t i = is_long ? place * piece : 0; i < floats;
         i += is_long ? members * piece : piece) {
        const struct interval at = { i, i + piece < floats ? i + piece : floats };
        CHECK(is_sum(result, at, lanes, batch, number, 0));
    }
    vectors_free(&vectors);
}

// One sum of zeros, of a batch of 8 in 8 lanes; says what group_add says.
static inline int sum_zeros(group_t *group, uint64_t number, uint64_t floats, uint32_t timeout_ms)
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
