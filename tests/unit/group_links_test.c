// group_links: who is waited for and how long, what a link that has ended or is silent costs, and one that floods its
// links. Handshakes made by hand: group_handshakes_test.

#include "tests/unit/group_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

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

// The ports of both ends.
static uint32_t ports_of(int fd)
{
    struct sockaddr_in own, other = { 0 };
    socklen_t size = sizeof own;
    CHECK(getsockname(fd, (struct sockaddr *)&own, &size) == 0);
    CHECK(getpeername(fd, (struct sockaddr *)&other, &size) == 0);
    return (uint32_t)own.sin_port << 16 | other.sin_port;
}

// Nobody is expected. Member 1 does not come to a sum; the next window does not rely on that link.
static void miss_a_sum(void *arg)
{
    const struct group_options options = options_of(me);
    (void)arg;
    group_t *group = group_of(&options);
    CHECK(group_form(group, 1, shared->members, 2, me, FORM_MS, &why, &blame) == 0);
    const uint32_t before = ports_of(group->members[1 - me]->control.fd);
    if (me == 0) CHECK(sum_zeros(group, 0, 1000, 50) == FAULT_TIMEOUT && blame.member == 1);
    pthread_barrier_wait(&shared->barrier);
    CHECK(group_form(group, 2, shared->members, 2, me, FORM_MS, &why, &blame) == 0);
    CHECK(ports_of(group->members[1 - me]->control.fd) != before);
    add(group, 0, 2, me, 8, 8, 2000, false);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void a_link_over_which_nothing_comes_is_replaced(void **state)
{
    (void)state;
    run(2, be_silent, NULL, 0);
    run(2, miss_a_sum, NULL, 0);
}

// A channel ends between two windows, its control connection does not: another one takes its place.
static void end_a_channel(void *arg)
{
    const struct group_options options = options_of(me);
    int is_kept_alive = 0;
    socklen_t size = sizeof is_kept_alive;
    (void)arg;
    group_t *group = group_of(&options);
    CHECK(group_form(group, 1, shared->members, 2, me, FORM_MS, &why, &blame) == 0);
    const int fd = group->members[1 - me]->channels[0].fd;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_kept_alive, &size) == 0 && is_kept_alive);
    add(group, 0, 2, me, 8, 8, 2000, false);
    pthread_barrier_wait(&shared->barrier);
    if (me == 0) CHECK(shutdown(fd, SHUT_RDWR) == 0);
    CHECK(group_form(group, 2, shared->members, 2, me, FORM_MS, &why, &blame) == 0);
    add(group, 0, 2, me, 8, 8, 2000, false);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void a_channel_that_ends_between_two_windows_is_replaced(void **state)
{
    (void)state;
    run(2, end_a_channel, NULL, 0);
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

static bool count_question(void *arg)
{
    ++*(uint32_t *)arg;
    return false;
}

// A job that waits, which only the end of this one can take up, costs no work meanwhile.
static void one_that_hears_out_is_not_called(void **state)
{
    uint32_t asked = 0, member;
    const void *bytes;
    size_t count;
    struct group_options options = options_of(0);
    struct group_member members[] = { { *identity_key(options.identity), 100, "" },
                                      { *identity_key(identity_of(1)), 101, "none" } };
    group_t *group;
    (void)state;
    options.called = count_question;
    options.called_arg = &asked;
    options.called_fd = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(group_new(&options, &why, &group), 0);
    assert_int_equal(group_form(group, 1, members, 2, 0, 0, &why, &blame), FAULT_CONFIG);
    const double before_ms = cpu_ms();
    assert_int_equal(group_hear_out(group, 150, &why, &member, &bytes, &count), FAULT_TIMEOUT);
    assert_int_equal(asked, 0);
    assert_true(cpu_ms() - before_ms < 75);
    close(options.called_fd);
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

TESTS(TEST(a_member_that_sends_another_size_is_named),
      TEST(a_member_that_is_late_is_named_and_may_come_back),
      TEST(a_wait_ends_when_the_caller_is_called), TEST(one_that_is_expected_joins),
      TEST(one_that_left_and_is_expected_costs_no_work),
      TEST(one_that_cannot_be_reached_disturbs_nobody),
      TEST(a_link_over_which_nothing_comes_is_replaced),
      TEST(a_channel_that_ends_between_two_windows_is_replaced),
      TEST(without_a_descriptor_it_sleeps), TEST(one_that_hears_out_is_not_called),
      TEST(one_that_floods_does_not_stop_the_others))
