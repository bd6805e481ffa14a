// group: sums among processes on a loopback, their bits, the words beside them, and deaths in their middle.

#include "tests/unit/group_fixture.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>

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
        sums_of(8, 1, (struct lane_node){ 0, 8 }, theirs.end - 1, 1, 0, &right);
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

// A sum that is scattered; then each owner changes its share, and the changed vector is gathered.
static void scatter_and_gather(group_t *group, uint64_t number, uint32_t batch, uint64_t floats)
{
    const struct interval own = group_interval(floats, me, world);
    struct vectors vectors = vectors_new(8, batch, world, me, floats, number);
    struct leaves leaves = { .group = group, .place = me };
    float *vector = (number & 2) && vectors.count ? vectors.nodes[0] : vectors.result;
    struct group_sum sum = { .way = GROUP_SCATTER,
                             .number = number,
                             .floats = floats,
                             .lanes = 8,
                             .batch = batch,
                             .nodes = (const float *const *)vectors.nodes,
                             .result = vector,
                             .timeout_ms = SUM_MS,
                             .summed = leaf_is_told,
                             .arg = &leaves };
    leaves.sum = &sum;
    if ((number + me) % 4 < 2) CHECK(group_add(group, &sum, &why, &blame) == 0);
    else CHECK(add_in_parts(group, &sum, &vectors) == 0);
    CHECK(leaves.told == interval_length(own) && owned(group, &sum, me) == leaves.told);
    CHECK(is_sum(vector, own, 8, batch, number, 0));
    for (uint64_t i = 0; i < floats; i++)
        vector[i] = i >= own.begin && i < own.end ? vector[i] + 1 : -1;
    sum.way = GROUP_GATHER, sum.number++, sum.nodes = NULL, sum.summed = NULL;
    CHECK(group_add(group, &sum, &why, &blame) == 0);
    CHECK(is_sum(vector, (struct interval){ 0, floats }, 8, batch, number, 1));
    vectors_free(&vectors);
}

static void halves(void *arg)
{
    static const uint64_t sizes[] = { 1, 10032, 16384, 16385, 70001, 150000 };
    const struct kind *kind = arg;
    struct group_options options = options_of(me);
    options.link = kind->link;
    options.connections = kind->connections;
    group_t *group = group_of(&options);
    uint64_t number = 0;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++, number += 2) {
        scatter_and_gather(group, number, s % 2 ? 64 : 5, sizes[s]);
        add(group, number + 2, world, me, 8, 64, sizes[s], true); // Between them whole sums
        number++;
    }
    if (world == 3 && kind->link == GROUP_PLAIN) // Large: without a copy, several segments
        scatter_and_gather(group, number, 8, 3 << 20);
    group_destroy(&group);
}

static void a_sum_is_scattered_and_a_vector_gathered(void **state)
{
    struct kind kinds[] = { { GROUP_PLAIN, 1 }, { GROUP_SEALED, 1 }, { GROUP_PLAIN, 3 } };
    (void)state;
    for (uint32_t members = 1; members <= 8; members++) run(members, halves, &kinds[0], 0);
    for (int i = 1; i < 3; i++) run(3, halves, &kinds[i], 0);
}

// Members that compute, and others that own, as with parameter servers; or some that do both.
struct parts {
    uint32_t computers, owners;
};

static void play_parts(void *arg)
{
    static const uint64_t sizes[] = { 1, 16385, 70001, 3 << 20 };
    const struct parts *parts = arg;
    const struct group_options options = options_of(me);
    const uint32_t first_owner = world - parts->owners;
    const bool computes = me < parts->computers, owns = me >= first_owner;
    group_t *group = group_of(&options);
    uint64_t number = 0;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    const size_t small =
        sizeof sizes / sizeof *sizes - 1; // The large one takes seconds to check: for three members
    for (size_t s = 0; s < small + (world == 3); s++, number += 2) {
        const uint64_t floats = sizes[s];
        const struct interval own = owns ? group_interval(floats, me - first_owner, parts->owners)
                                         : (struct interval){ 0, 0 };
        struct vectors vectors = computes
                                     ? vectors_new(8, 8, parts->computers, me, floats, number)
                                     : (struct vectors){ .result = malloc(floats * sizeof(float)) };
        struct group_sum sum = { .way = GROUP_SCATTER,
                                 .number = number,
                                 .floats = floats,
                                 .lanes = 8,
                                 .batch = 8,
                                 .nodes = (const float *const *)vectors.nodes,
                                 .result = vectors.result,
                                 .timeout_ms = SUM_MS,
                                 .computers = parts->computers,
                                 .owners = parts->owners };
        CHECK(owned(group, &sum, me) == interval_length(own));
        CHECK(group_add(group, &sum, &why, &blame) == 0);
        CHECK(is_sum(vectors.result, own, 8, 8, number, 0));
        for (uint64_t i = 0; i < floats; i++)
            vectors.result[i] = i >= own.begin && i < own.end ? vectors.result[i] + 1 : -1;
        sum.way = GROUP_GATHER, sum.number++, sum.nodes = NULL;
        CHECK(group_add(group, &sum, &why, &blame) == 0);
        const struct interval told = computes ? (struct interval){ 0, floats } : own;
        CHECK(is_sum(vectors.result, told, 8, 8, number, 1));
        for (uint64_t i = 0; i < floats; i++)
            CHECK((i >= told.begin && i < told.end) || vectors.result[i] == -1);
        vectors_free(&vectors);
    }
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void some_compute_and_others_own(void **state)
{
    static const struct parts all[] = { { 1, 1 }, { 2, 1 }, { 4, 3 }, { 1, 3 }, { 7, 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        run(all[i].computers + all[i].owners, play_parts, (void *)(uintptr_t)&all[i], 0);
    run(3, play_parts, (void *)(uintptr_t) & (struct parts){ 2, 2 }, 0); // One of them does both
}

// A member that never comes to gather is the one that is named.
static void wait_to_gather(void *arg)
{
    enum { FLOATS = 3 * GROUP_LEAF_FLOATS, WAIT_MS = 300 };
    static float vector[FLOATS];
    struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    const struct group_sum sum = { .way = GROUP_GATHER,
                                   .floats = FLOATS,
                                   .lanes = 8,
                                   .batch = 8,
                                   .result = vector,
                                   .timeout_ms = WAIT_MS };
    (void)arg;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    if (me != 1) CHECK(group_add(group, &sum, &why, &blame) == FAULT_TIMEOUT && blame.member == 1);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void who_does_not_gather_is_named(void **state)
{
    (void)state;
    run(3, wait_to_gather, NULL, 0);
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

// Member 2 leaves, and with it the window of member 1 breaks. Member 0 learns both, and says one more word: 1 hears it,
// also if 0 was in a sum meanwhile, in which it has read the end of 1's channels.
static void hear_out(void *arg)
{
    const struct group_options options = options_of(me);
    group_t *group = group_of(&options);
    uint32_t member;
    const void *bytes;
    size_t count;
    const bool *has_read_ends = arg;
    CHECK(group_form(group, 1, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    pthread_barrier_wait(&shared->barrier);
    if (me == 0) {
        for (int ended = 0; ended < 2; ended++)
            CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) ==
                  FAULT_UNREACHABLE);
        if (*has_read_ends) peer_end(group->members[1], FAULT_UNREACHABLE, "a channel has ended");
        CHECK(group_tell(group, "late", 4, &why, &blame) == FAULT_UNREACHABLE);
    } else if (me == 1) {
        CHECK(sum_zeros(group, 0, 1000, SUM_MS) == FAULT_UNREACHABLE && blame.member == 2);
        CHECK(group_hear(group, SUM_MS, &why, &blame, &member, &bytes, &count) ==
              FAULT_UNREACHABLE);
        CHECK(group_hear_out(group, SUM_MS, &why, &member, &bytes, &count) == 0);
        CHECK(member == 0 && count == 4 && memcmp(bytes, "late", 4) == 0);
        CHECK(group_hear_out(group, 1, &why, &member, &bytes, &count) == FAULT_TIMEOUT);
    } else {
        group_destroy(&group);
    }
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void a_word_is_heard_in_a_window_that_is_broken(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        bool has_read_ends = i % 2;
        run(3, hear_out, &has_read_ends, 0);
    }
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
      TEST(a_sum_is_scattered_and_a_vector_gathered), TEST(some_compute_and_others_own),
      TEST(who_does_not_gather_is_named), TEST(a_word_is_heard_in_a_window_that_is_broken),
      TEST(a_death_is_known_and_the_others_go_on),
      TEST(what_a_member_never_read_is_not_taken_for_the_next_window),
      TEST(all_that_died_at_once_are_named), TEST(a_process_that_listens_is_not_dead),
      TEST(deaths_at_any_moment_leave_a_group_that_sums),
      TEST(links_that_are_cut_are_connected_again))
