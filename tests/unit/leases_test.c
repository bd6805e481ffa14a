// leases_test -- tasks that are pulled: each sample of a pass once, strikes, old numbers, times, passes; and a run by a
// seed, of which each instant is held against a list with one word for each task.

#include "common/run/leases.h"
#include "tests/test.h"
#include <string.h>

enum { ENTRIES = 4096, PASS = 103, TASK = 10, TASKS = 11, LIST = 64 };

static struct wire_table_entry memory[2 * ENTRIES];
static struct table table;
static struct leases leases;
static struct lease_rules rules;
static uint64_t next_number, now_ms, process; // process: the instance of all trainers

static int set_up(void **state)
{
    (void)state;
    table_init(&table, memory, ENTRIES, PASS, 0);
    leases = (struct leases){ 0 };
    rules = (struct lease_rules){ .task_samples = TASK,
                                  .strikes_max = 3,
                                  .time_min_ms = 100,
                                  .time_max_ms = 5000,
                                  .pass_barrier = true };
    next_number = process = 1;
    now_ms = 1000;
    return 0;
}

// The number of the lease; 0: none is dealt now.
static uint64_t pull(uint32_t member, uint64_t *ret_task, uint64_t *ret_samples)
{
    struct interval list[LIST];
    uint32_t count;
    struct lease lease = { .member = member, .instance = process, .since_ms = now_ms };
    const enum lease_answer answer =
        leases_next(&leases, &table, &rules, &lease, list, LIST, &count);
    if (answer == LEASE_NONE_NOW) return 0;
    assert_int_equal(answer, LEASE_OK);
    lease.number = next_number++;
    assert_int_equal(leases_put(&leases, &table, &rules, &lease, list, count), LEASE_OK);
    if (ret_task) *ret_task = lease.task;
    if (ret_samples) *ret_samples = interval_list_total(list, count);
    return lease.number;
}

static enum lease_answer end(uint64_t number, enum lease_end how)
{
    return leases_end(&leases, &table, number, how, now_ms);
}

// Fails a lease as a coordinator does; the next one is of another process. True: the task is given up.
static bool fail_lease(uint64_t number)
{
    const struct lease *lease = leases_find(&leases, number, 0, process);
    for (uint32_t i = 0; i < leases.count && !lease; i++) // Of a process before
        if (leases.leases[i].number == number) lease = &leases.leases[i];
    assert_non_null(lease);
    const enum lease_end how = leases_outcome(&leases, &rules, lease);
    process++;
    assert_int_equal(end(number, how), LEASE_OK);
    return how == LEASE_GIVEN_UP;
}

static void check_counts(uint64_t pass, uint64_t todo, uint64_t pending, uint64_t done,
                         uint64_t failed)
{
    const struct lease_counts counts = leases_count(&table, &rules);
    assert_int_equal(counts.pass, pass);
    assert_int_equal(counts.todo, todo);
    assert_int_equal(counts.pending, pending);
    assert_int_equal(counts.done, done);
    assert_int_equal(counts.failed, failed);
}

static void a_pass_is_dealt_once(void **unused)
{
    uint64_t task, samples, total = 0;
    (void)unused;
    check_counts(0, TASKS, 0, 0, 0);
    for (uint64_t i = 0; i < TASKS; i++) {
        assert_int_equal(pull(0, &task, &samples), i + 1);
        assert_int_equal(task, i * TASK);
        total += samples;
        check_counts(0, TASKS - i - 1, i + 1, 0, 0);
    }
    assert_int_equal(total, PASS);
    assert_int_equal(pull(0, NULL, NULL), 0); // The barrier
    for (uint64_t i = 0; i + 1 < TASKS; i++) assert_int_equal(end(i + 1, LEASE_DONE), LEASE_OK);
    assert_int_equal(pull(0, NULL, NULL), 0);
    assert_int_equal(end(TASKS, LEASE_DONE), LEASE_OK);
    check_counts(1, TASKS, 0, 0, 0);
    assert_true(pull(0, &task, NULL) > 0);
    assert_int_equal(task, PASS);
}

static void without_a_barrier_the_next_pass_goes_on(void **unused)
{
    uint64_t task;
    (void)unused;
    rules.pass_barrier = false;
    for (uint64_t i = 0; i < TASKS; i++) pull(0, NULL, NULL);
    assert_true(pull(0, &task, NULL) > 0);
    assert_int_equal(task, PASS);
    check_counts(0, 0, TASKS, 0, 0);
}

static void the_fourth_strike_gives_a_task_up(void **unused)
{
    uint64_t task;
    (void)unused;
    for (int i = 0; i < 3; i++) {
        assert_false(fail_lease(pull(0, &task, NULL)));
        assert_int_equal(task, 0);
        check_counts(0, TASKS, 0, 0, 0);
    }
    assert_true(fail_lease(pull(0, NULL, NULL)));
    check_counts(0, TASKS - 1, 0, 0, 1);
    pull(0, &task, NULL);
    assert_int_equal(task, TASK);
}

// PaddlePaddle's master hangs here.
static void a_pass_ends_if_its_last_task_or_all_are_given_up(void **unused)
{
    uint64_t task;
    (void)unused;
    for (uint64_t i = 0; i + 1 < TASKS; i++)
        assert_int_equal(end(pull(0, NULL, NULL), LEASE_DONE), LEASE_OK);
    for (int i = 0; i < 4; i++) fail_lease(pull(0, NULL, NULL));
    check_counts(1, TASKS, 0, 0, 0);
    for (uint64_t i = 0; i < 4 * TASKS; i++) fail_lease(pull(0, NULL, NULL));
    check_counts(2, TASKS, 0, 0, 0);
    for (int i = 0; i < 3; i++) assert_false(fail_lease(pull(0, &task, NULL))); // No strike is left
    assert_int_equal(task, 2 * PASS);
    assert_int_equal(leases.struck_count, 3); // One for each process
}

static void a_word_under_an_old_number_ends_nothing(void **unused)
{
    (void)unused;
    const uint64_t first = pull(0, NULL, NULL);
    fail_lease(first);
    const uint64_t again = pull(7, NULL, NULL);
    assert_int_equal(end(first, LEASE_DONE), LEASE_STALE);
    assert_null(leases_find(&leases, first, 0, 1));
    assert_null(leases_find(&leases, again, 0, 2)); // It is member 7's
    assert_null(leases_find(&leases, again, 7, 1)); // And of its process 2
    assert_non_null(leases_find(&leases, again, 7, 2));
    check_counts(0, TASKS - 1, 1, 0, 0);
}

static void a_lease_has_its_time(void **unused)
{
    (void)unused;
    const uint64_t first = pull(0, NULL, NULL);
    assert_int_equal(leases_due_ms(&leases), now_ms + 5000);
    now_ms += 50;
    assert_int_equal(end(first, LEASE_DONE), LEASE_OK);
    assert_in_range(leases_time_ms(&leases, &rules), 150, 160); // Three times what that took
    const uint64_t second = pull(0, NULL, NULL);
    now_ms += 149;
    assert_null(leases_late(&leases, now_ms));
    leases_rearm(&leases, &rules, now_ms); // The coordinator was away
    now_ms += 149;
    assert_null(leases_late(&leases, now_ms));
    now_ms += 20;
    assert_int_equal(leases_late(&leases, now_ms)->number, second);
    leases.average_ms = 1;
    assert_int_equal(leases_time_ms(&leases, &rules), 100);
    leases.average_ms = UINT64_MAX / 2;
    assert_int_equal(leases_time_ms(&leases, &rules), 5000);
}

static void a_newer_process_has_none_of_the_leases_of_the_old_one(void **unused)
{
    (void)unused;
    const uint64_t number = pull(3, NULL, NULL);
    assert_null(leases_of_dead(&leases, 3, 1));
    assert_int_equal(leases_of_dead(&leases, 3, 2)->number, number);
    assert_int_equal(leases_of_dead(&leases, 3, 0)->number, number);
    assert_null(leases_of_dead(&leases, 4, 0));
}

// Another strategy has trained samples 3 to 5 and 12 to 40.
static void what_is_trained_of_a_task_is_not_dealt(void **unused)
{
    static const struct interval before[] = { { 3, 6 }, { 12, 41 } };
    uint64_t task, samples;
    (void)unused;
    assert_int_equal(table_deal_again(&table, 99, before, 2), TABLE_OK);
    assert_int_equal(table_done(&table, 99, before, 2), TABLE_OK);
    check_counts(0, TASKS - 2, 0, 2, 0);
    pull(0, &task, &samples);
    assert_true(task == 0 && samples == 7);
    pull(0, &task, &samples);
    assert_true(task == 10 && samples == 2);
    pull(0, &task, &samples);
    assert_true(task == 40 && samples == 9);
    check_counts(0, TASKS - 5, 3, 2, 0);
}

// So many tasks have a strike that the next one would find no room: only those that have one are dealt.
static void a_task_is_dealt_if_there_is_room_for_its_strike(void **unused)
{
    struct interval list[LIST];
    struct lease next = { .instance = 1 };
    uint32_t count;
    (void)unused;
    leases.struck_count = STRIKES_KEPT_MAX;
    for (uint32_t i = 0; i < STRIKES_KEPT_MAX; i++)
        leases.struck[i] = (struct strikes){ .task = (i + 1) * (uint64_t)TASK, .count = 1 };
    assert_int_equal(leases_next(&leases, &table, &rules, &next, list, LIST, &count), LEASE_OK);
    assert_int_equal(next.task, TASK); // The first one has no strike
    for (uint32_t i = 0; i < STRIKES_KEPT_MAX; i++)
        leases.struck[i].task = PASS + i * (uint64_t)TASK;
    assert_int_equal(leases_next(&leases, &table, &rules, &next, list, LIST, &count), LEASE_FULL);
    leases.struck[0].task = 0;
    assert_int_equal(leases_next(&leases, &table, &rules, &next, list, LIST, &count), LEASE_OK);
    fail_lease(pull(0, NULL, NULL));
    assert_int_equal(leases.struck[0].count, 2);
}

// Alone it fails each task of a pass again and again: none is given up, each is todo. It is dealt one that it has failed
// only when there is no other. The strike of another process counts.
static void a_process_strikes_a_task_once(void **unused)
{
    uint64_t task;
    (void)unused;
    rules.strikes_max = 1;
    for (uint64_t i = 0; i < 3 * TASKS; i++) {
        const uint64_t number = pull(0, &task, NULL);
        assert_int_equal(task, i < TASKS ? i * TASK : 0);
        assert_false(fail_lease(number));
        process = 1;
        check_counts(0, TASKS, 0, 0, 0);
    }
    assert_int_equal(leases.struck_count, TASKS);
    process = 2;
    assert_true(fail_lease(pull(0, &task, NULL)));
    assert_int_equal(task, 0);
    check_counts(0, TASKS - 1, 0, 0, 1);
}

// Those that took 50 ms have left. The one that is left needs 200, and gets them after a few tries.
static void a_run_of_slow_ones_gets_its_time(void **unused)
{
    (void)unused;
    rules.time_min_ms = 1;
    leases.average_ms = 50;
    for (int late = 0; leases_time_ms(&leases, &rules) < 200; late++) {
        assert_true(late < 3);
        leases_note_late(&leases, leases_time_ms(&leases, &rules));
    }
}

// ---- by a seed ----------------------------------------------------------------------------------

enum word { W_TODO, W_PENDING, W_DONE, W_FAILED };
static enum word words[TASKS];
static uint32_t struck[TASKS];
static uint64_t chance;

static uint64_t roll(uint64_t below)
{
    uint64_t z = chance += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

static void check_words(uint64_t pass)
{
    uint64_t of[4] = { 0 };
    for (int i = 0; i < TASKS; i++) of[words[i]]++;
    check_counts(pass, of[W_TODO], of[W_PENDING], of[W_DONE], of[W_FAILED]);
    assert_true(table_check(&table));
}

static void play(uint64_t seed)
{
    uint64_t pass = 0;
    chance = seed;
    memset(words, 0, sizeof words);
    memset(struck, 0, sizeof struck);
    for (int step = 0; step < 3000; step++) {
        uint64_t task;
        now_ms += roll(50);
        if (leases.count == 0 || roll(2)) {
            int lowest = 0;
            while (lowest < TASKS && words[lowest] != W_TODO) lowest++;
            const uint64_t number = pull(0, &task, NULL);
            assert_int_equal(number > 0, lowest < TASKS);
            if (number == 0) continue;
            assert_int_equal(task, pass * PASS + (uint64_t)lowest * TASK);
            words[lowest] = W_PENDING;
        } else {
            const struct lease lease = leases.leases[roll(leases.count)];
            const uint64_t at = (lease.task - pass * PASS) / TASK;
            assert_int_equal(words[at], W_PENDING);
            if (roll(3) > 0) {
                assert_int_equal(end(lease.number, LEASE_DONE), LEASE_OK);
                words[at] = W_DONE;
            } else {
                assert_int_equal(fail_lease(lease.number), ++struck[at] == 4);
                words[at] = struck[at] == 4 ? W_FAILED : W_TODO;
            }
        }
        bool over = true;
        for (int i = 0; i < TASKS; i++) over &= words[i] == W_DONE || words[i] == W_FAILED;
        if (over) {
            memset(words, 0, sizeof words);
            memset(struck, 0, sizeof struck);
            pass++;
        }
        check_words(pass);
    }
    assert_true(pass > 20);
}

static void the_sum_is_the_number_of_tasks_at_each_instant(void **unused)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        set_up(unused);
        play(seed);
    }
}

TESTS(TEST_WITH(a_pass_is_dealt_once, set_up, NULL),
      TEST_WITH(without_a_barrier_the_next_pass_goes_on, set_up, NULL),
      TEST_WITH(the_fourth_strike_gives_a_task_up, set_up, NULL),
      TEST_WITH(a_pass_ends_if_its_last_task_or_all_are_given_up, set_up, NULL),
      TEST_WITH(a_word_under_an_old_number_ends_nothing, set_up, NULL),
      TEST_WITH(a_lease_has_its_time, set_up, NULL),
      TEST_WITH(a_newer_process_has_none_of_the_leases_of_the_old_one, set_up, NULL),
      TEST_WITH(what_is_trained_of_a_task_is_not_dealt, set_up, NULL),
      TEST_WITH(a_task_is_dealt_if_there_is_room_for_its_strike, set_up, NULL),
      TEST_WITH(a_process_strikes_a_task_once, set_up, NULL),
      TEST_WITH(a_run_of_slow_ones_gets_its_time, set_up, NULL),
      TEST_WITH(the_sum_is_the_number_of_tasks_at_each_instant, set_up, NULL))
