// What is acknowledged stays, through reopening, kill -9 and a full disk.

#include "tests/unit/ledger_fixture.h"
#include "tests/test.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include "common/ledger/pending.h"

enum { KILLS = 30 };

static void what_is_committed_is_there_after_reopening(void **state)
{
    (void)state;
    struct hash before, after;
    struct stat stat_dir;
    uint64_t seq;
    struct ledger *ledger = open_ledger(NULL);
    assert_true(head_of(ledger) == 0);
    assert_snapshot(ledger, 0, "");
    assert_holds(ledger, 1, 0);
    assert_int_equal(stat(dir, &stat_dir), 0);
    assert_int_equal(stat_dir.st_mode & 0777, 0700);
    commit_records(ledger, 1, NULL);
    commit_records(ledger, 20, NULL);
    commit_records(ledger, 0, NULL);
    ledger_head(ledger, &seq, &before);
    ledger_close(&ledger);
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    ledger_head(ledger, &seq, &after);
    assert_true(hash_equal(&before, &after));
    assert_holds(ledger, 1, 21);
    assert_string_equal(ledger_run_id(ledger), "run");
    ledger_close(&ledger);
}

static void the_chain_is_as_it_is_written_down(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL);
    struct record record;
    struct hash chain = { { 0 } };
    commit_records(ledger, 3, NULL);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        uint8_t bytes[HASH_BYTES + 8 + 700];
        memcpy(bytes, chain.bytes, HASH_BYTES);
        for (int i = 0; i < 8; i++) bytes[HASH_BYTES + i] = (uint8_t)(seq >> (56 - 8 * i));
        chain = hash_of(bytes, HASH_BYTES + 8 + fill(seq, bytes + HASH_BYTES + 8));
        assert_int_equal(ledger_read(ledger, seq, &why, &record), 0);
        assert_true(hash_equal(&record.chain, &chain));
    }
    ledger_close(&ledger);
}

static void what_is_aborted_or_left_open_is_gone(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL);
    struct record record;
    commit_records(ledger, 2, NULL);
    assert_int_equal(ledger_begin(ledger, &why), 0);
    append(ledger, 5);
    assert_true(head_of(ledger) == 2); // Not before it is durable
    assert_int_equal(ledger_read(ledger, 3, &why, &record), FAULT_NOT_FOUND);
    ledger_abort(ledger);
    assert_holds(ledger, 1, 2);
    assert_int_equal(ledger_begin(ledger, &why), 0);
    append(ledger, 5);
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    assert_holds(ledger, 1, 2);
    commit_records(ledger, 1, NULL); // The numbers were not used up
    assert_holds(ledger, 1, 3);
    ledger_close(&ledger);
}

static void the_incarnation_rises_with_every_opening(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 4; i++) {
        struct ledger *ledger = open_ledger(NULL), *reader;
        assert_true(ledger_incarnation(ledger) == i);
        ledger_close(&ledger);
        assert_int_equal(ledger_open_readonly(dir, &why, &reader), 0);
        assert_true(ledger_incarnation(reader) == i);
        ledger_close(&reader);
    }
}

static void the_index_leads_to_the_newest(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL);
    uint64_t keys[] = { 7, 0, UINT64_MAX, 7 }, seq;
    assert_int_equal(ledger_begin(ledger, &why), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ledger_append(ledger, "x", 1, &keys[i], &why, &seq), 0);
    assert_int_equal(ledger_find(ledger, 7, &why, &seq), FAULT_NOT_FOUND);
    assert_int_equal(ledger_commit(ledger, &why), 0);
    assert_int_equal(ledger_find(ledger, 7, &why, &seq), 0);
    assert_true(seq == 4);
    assert_int_equal(ledger_find(ledger, UINT64_MAX, &why, &seq), 0);
    assert_true(seq == 3);
    assert_int_equal(ledger_find(ledger, 8, &why, &seq), FAULT_NOT_FOUND);
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    assert_int_equal(ledger_find(ledger, 0, &why, &seq), 0);
    assert_true(seq == 2);
    ledger_close(&ledger);
}

static void limits_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL), *other = NULL;
    uint64_t seq = 0;
    char *large = calloc(1, LEDGER_RECORD_MAX + 1), name[65] = "";
    assert_non_null(large);
    assert_int_equal(ledger_begin(ledger, &why), 0);
    assert_int_equal(ledger_append(ledger, large, LEDGER_RECORD_MAX + 1, NULL, &why, &seq),
                     FAULT_LIMIT);
    assert_true(seq == 0);
    for (int i = 0; i < 16; i++)
        assert_int_equal(ledger_append(ledger, large, LEDGER_RECORD_MAX, NULL, &why, &seq), 0);
    assert_int_equal(ledger_append(ledger, large, 1, NULL, &why, &seq), FAULT_LIMIT);
    assert_non_null(strstr(why.text, "commit first"));
    ledger_abort(ledger);
    assert_int_equal(ledger_begin(ledger, &why), 0);
    for (int i = 0; i < PENDING_RECORDS_MAX; i++)
        assert_int_equal(ledger_append(ledger, NULL, 0, NULL, &why, &seq), 0);
    assert_int_equal(ledger_append(ledger, NULL, 0, NULL, &why, &seq), FAULT_LIMIT);
    assert_int_equal(ledger_put_snapshot(ledger, NULL, LEDGER_SNAPSHOT_MAX + 1ul, &why),
                     FAULT_LIMIT);
    assert_int_equal(ledger_put_snapshot(ledger, NULL, 0, &why), 0);
    assert_int_equal(ledger_commit(ledger, &why), 0);
    ledger_close(&ledger);
    free(large);
    ledger = open_ledger(NULL);
    assert_true(head_of(ledger) == PENDING_RECORDS_MAX);
    ledger_close(&ledger);
    memset(name, 'n', 64);
    assert_int_equal(ledger_open(dir, name, NULL, &why, &other), FAULT_RANGE);
    assert_int_equal(ledger_open(dir, "", NULL, &why, &other), FAULT_RANGE);
    struct ledger_options tiny = { 1, 1 }, disordered = { 2 << 20, 1 << 20 };
    assert_int_equal(ledger_open(dir, "run", &tiny, &why, &other), FAULT_RANGE);
    assert_int_equal(ledger_open(dir, "run", &disordered, &why, &other), FAULT_RANGE);
    assert_null(other);
}

static void snapshot_and_replay_give_the_state(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL);
    commit_records(ledger, 5, "state at 5");
    commit_records(ledger, 3, NULL);
    assert_snapshot(ledger, 5, "state at 5");
    assert_holds(ledger, 6, 8);
    commit_records(ledger, 2, "state at 10");
    commit_records(ledger, 0, "state at 10, again");
    assert_snapshot(ledger, 10, "state at 10, again");
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    assert_snapshot(ledger, 10, "state at 10, again");
    assert_holds(ledger, 11, 10);
    assert_holds(ledger, 1, 10);
    // In one transaction with records on both sides: it is of the records before it.
    uint64_t seq;
    assert_int_equal(ledger_begin(ledger, &why), 0);
    assert_int_equal(ledger_append(ledger, "a", 1, NULL, &why, &seq), 0);
    assert_int_equal(ledger_put_snapshot(ledger, "state at 11", 11, &why), 0);
    assert_int_equal(ledger_append(ledger, "b", 1, NULL, &why, &seq), 0);
    assert_int_equal(ledger_commit(ledger, &why), 0);
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    assert_snapshot(ledger, 11, "state at 11");
    assert_true(head_of(ledger) == 12);
    ledger_close(&ledger);
}

static void another_run_is_refused(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL);
    commit_records(ledger, 3, NULL);
    ledger_close(&ledger);
    assert_refused(FAULT_FOREIGN, "other", "belongs to run \"run\", not \"other\"");
    ledger = open_ledger(NULL);
    assert_true(ledger_incarnation(ledger) == 2); // The refused opening changed nothing
    assert_holds(ledger, 1, 3);
    ledger_close(&ledger);
}

static void a_second_process_is_refused_and_readers_are_not(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL), *reader;
    char pid[32];
    commit_records(ledger, 3, NULL);
    snprintf(pid, sizeof pid, "process %d:", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct ledger *second;
        bool good = ledger_open(dir, "run", NULL, &why, &second) == FAULT_BUSY &&
                    strstr(why.text, pid) && ledger_open_readonly(dir, &why, &reader) == 0 &&
                    head_of(reader) == 3 && ledger_incarnation(reader) == 1;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    commit_records(ledger, 1, NULL);
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    assert_holds(ledger, 1, 4);
    ledger_close(&ledger);
}

// A process that was killed holds its lock until the kernel has taken it apart: who starts at once waits for that.
static void a_restart_right_after_a_kill_succeeds(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        int pair[2];
        char byte;
        assert_int_equal(pipe(pair), 0);
        const pid_t child = fork();
        if (child == 0) {
            (void)!write(
                pair[1],
                ledger_open(dir, "run", NULL, &why, &(struct ledger *){ 0 }) == 0 ? "y" : "n", 1);
            for (;;) pause();
        }
        assert_int_equal(read(pair[0], &byte, 1), 1);
        assert_int_equal(byte, 'y');
        assert_int_equal(kill(child, SIGKILL), 0);
        struct ledger *ledger =
            open_ledger(NULL); // Not after waitpid: the child may still be ending
        ledger_close(&ledger);
        assert_int_equal(waitpid(child, NULL, 0), child);
        close(pair[0]), close(pair[1]);
    }
}

static void a_reader_follows_a_growing_map(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(&(struct ledger_options){ 256 << 10, 64 << 20 });
    commit_records(ledger, 1, NULL);
    int down[2], up[2], status;
    char byte;
    assert_true(pipe(down) == 0 && pipe(up) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct ledger *reader;
        uint64_t next = 1;
        bool good = ledger_open_readonly(dir, &why, &reader) == 0 && write(up[1], "x", 1) == 1 &&
                    read(down[0], &byte, 1) == 1 &&
                    ledger_each(reader, 1, check_next, &next, &why) == 0 && next == 4002;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    commit_records(ledger, 4000, NULL); // 1.4 MB
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    close(down[0]), close(down[1]), close(up[0]), close(up[1]);
    ledger_close(&ledger);
}

static void the_map_grows_up_to_its_maximum(void **state)
{
    (void)state;
    struct ledger_options options = { 256 << 10, 4 << 20 };
    struct ledger *ledger = open_ledger(&options);
    struct hash before, after;
    uint64_t seq, head;
    char *large = calloc(1, 1 << 20);
    assert_non_null(large);
    uint64_t used, room;
    ledger_room(ledger, &used, &room);
    assert_in_range(used, 2 * 4096, 40 * 4096);
    assert_int_equal(room, options.map_bytes_max);
    for (int i = 0; i < 20; i++) commit_records(ledger, 100, i % 5 ? NULL : "state"); // 0.9 MB
    ledger_room(ledger, &used, &room);
    assert_in_range(used, 500000, 2 << 20);
    ledger_head(ledger, &head, &before);
    assert_int_equal(ledger_begin(ledger, &why), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ledger_append(ledger, large, 1 << 20, NULL, &why, &seq), 0);
    assert_int_equal(ledger_commit(ledger, &why), FAULT_DISK_FULL);
    assert_non_null(strstr(why.text, "map_bytes_max, 4194304 bytes"));
    free(large);
    ledger_head(ledger, &seq, &after);
    assert_true(seq == head && hash_equal(&before, &after));
    assert_holds(ledger, 1, 2000);
    commit_records(ledger, 10, NULL); // It goes on
    ledger_close(&ledger);
    ledger = open_ledger(&options);
    assert_holds(ledger, 1, 2010);
    ledger_close(&ledger);
}

// Commits one record after the other and tells through the pipe what is durable.
static void commit_for_ever(int acknowledge)
{
    struct ledger *ledger;
    uint8_t bytes[700];
    if (ledger_open(dir, "run", NULL, &why, &ledger) < 0) _exit(1);
    for (;;) {
        uint64_t seq = head_of(ledger) + 1, key = seq;
        int rc = ledger_begin(ledger, &why);
        for (int i = 0; i < 3 && rc == 0; i++, seq++)
            rc = ledger_append(ledger, bytes, fill(seq, bytes), &key, &why, &seq);
        seq--;
        if (rc == 0 && seq % 5 == 0)
            rc = ledger_put_snapshot(ledger, bytes, fill(seq, bytes), &why);
        if (rc == 0) rc = ledger_commit(ledger, &why);
        if (rc < 0 || write(acknowledge, &seq, sizeof seq) != sizeof seq) _exit(1);
    }
}

static uint64_t kill_one(int round)
{
    int fds[2], status;
    uint64_t acknowledged = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) commit_for_ever(fds[1]);
    close(fds[1]);
    for (int i = 0; i < 1 + round % 6; i++)
        assert_int_equal(read(fds[0], &acknowledged, sizeof acknowledged), sizeof acknowledged);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    while (read(fds[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) continue;
    close(fds[0]);
    return acknowledged;
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    (void)state;
    uint64_t head = 0;
    for (int round = 0; round < KILLS; round++) {
        uint64_t acknowledged = kill_one(round);
        struct ledger *ledger = open_ledger(NULL); // Verifies chain, snapshots and index
        assert_true(head_of(ledger) >= acknowledged && acknowledged > head);
        assert_true(ledger_incarnation(ledger) == 2 * (uint64_t)round + 2);
        head = head_of(ledger);
        assert_true(head % 3 == 0); // All of a transaction or none of it
        assert_holds(ledger, 1, head);
        ledger_close(&ledger);
    }
}

enum { CANNOT_MOUNT = 77 };

// In a mount namespace of its own, so that nothing is left behind whatever happens.
static int fill_small_disk(void)
{
    struct ledger *ledger;
    struct why again;
    int rc = 0, last;
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", dir, "tmpfs", 0, "size=1m") < 0)
        return CANNOT_MOUNT;
    if (ledger_open(dir, "run", NULL, &why, &ledger) < 0) return 1;
    while (rc == 0) { // 14 KB each: writes of several pages, cut short
        if (head_of(ledger) > 5000 || ledger_begin(ledger, &why) < 0) return 2;
        append(ledger, 40);
        rc = ledger_commit(ledger, &why);
    }
    uint64_t head = head_of(ledger), next = 1;
    if (rc != FAULT_DISK_FULL || !strstr(why.text, "must end")) return 3;
    // Not to be continued: every call says the same.
    last = ledger_begin(ledger, &again);
    if (last != rc || strcmp(why.text, again.text) != 0) return 4;
    if (ledger_each(ledger, 1, check_next, &next, &again) != rc) return 5;
    ledger_close(&ledger);
    if (ledger_open_readonly(dir, &why, &ledger) < 0) return 6;
    if (head < 400 || head_of(ledger) != head) return 7;
    if (ledger_each(ledger, 1, check_next, &next, &why) < 0 || next != head + 1) return 8;
    return 0;
}

static void a_full_disk_is_said_and_what_was_committed_stays(void **state)
{
    (void)state;
    int status;
    assert_int_equal(mkdir(dir, 0700), 0);
    pid_t child = fork();
    if (child == 0) _exit(fill_small_disk());
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_MOUNT) {
        print_message("skipped: no small file system can be mounted here (needs root)\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

TESTS(LEDGER_TEST(what_is_committed_is_there_after_reopening),
      LEDGER_TEST(the_chain_is_as_it_is_written_down),
      LEDGER_TEST(what_is_aborted_or_left_open_is_gone),
      LEDGER_TEST(the_incarnation_rises_with_every_opening),
      LEDGER_TEST(the_index_leads_to_the_newest),
      LEDGER_TEST(limits_are_refused_and_change_nothing),
      LEDGER_TEST(snapshot_and_replay_give_the_state), LEDGER_TEST(another_run_is_refused),
      LEDGER_TEST(a_second_process_is_refused_and_readers_are_not),
      LEDGER_TEST(a_restart_right_after_a_kill_succeeds),
      LEDGER_TEST(a_reader_follows_a_growing_map), LEDGER_TEST(the_map_grows_up_to_its_maximum),
      LEDGER_TEST(what_was_acknowledged_survives_kill_9),
      LEDGER_TEST(a_full_disk_is_said_and_what_was_committed_stays))
