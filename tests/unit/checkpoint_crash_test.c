// A checkpoint stays whole through kill -9, a reader beside a writer and a full disk.
#include "tests/unit/checkpoint_fixture.h"
#include "tests/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

enum { KILLS = 30 };

// Fills a small disk. Needs leave to mount; in a namespace of its own, so that nothing is left
// behind.
static void a_full_disk_spares_the_old_checkpoint(void **unused)
{
    (void)unused;
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", root, "tmpfs", 0, "size=256k") < 0) {
        print_message("             NOT TESTED: mounting a small tmpfs is not permitted here\n");
        skip();
    }
    assert_rc(write_step(1, 4), 0);
    const int fd =
        open(file_path("step-00000001", "ballast"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    static const char block[4096];
    size_t room = 0;
    while (write(fd, block, sizeof block) == sizeof block) room += sizeof block;
    for (size_t left = 0; left < 40000; left += 4096) { // Fails later and later in the writing
        assert_int_equal(ftruncate(fd, (off_t)(room - left)), 0);
        const int rc = write_step(2, 4);
        if (rc == 0) break;
        assert_rc(rc, FAULT_DISK_FULL);
        assert_why("checkpoint of step 2 not written, older ones stand");
        assert_int_equal(count_names(""), 1);
        assert_int_equal(newest_is_whole(), 1);
    }
    assert_int_equal(newest_is_whole(), 2);
    assert_int_equal(count_names(""), 2);
    close(fd);
    assert_int_equal(umount(root), 0);
}

// In a child: writes on from `step` for ever, and says each step that it was told is durable. With
// a pipe of leave, only as many as there are bytes in it.
static void write_for_ever(uint64_t step, unsigned keep, int out, int leave)
{
    for (char byte;; step++) {
        if (leave >= 0 && read(leave, &byte, 1) != 1) _exit(3);
        if (write_step(step, keep) < 0) _exit(1);
        if (write(out, &step, sizeof step) != sizeof step) _exit(2);
    }
}

static pid_t start_writer(uint64_t step, unsigned keep, int leave, int *ret_in)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_for_ever(step, keep, ends[1], leave);
    close(ends[1]);
    *ret_in = ends[0];
    return child;
}

// Kills the writer and returns the last step that it was told is durable.
static uint64_t stop_writer(pid_t child, int in, uint64_t step)
{
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    while (read(in, &step, sizeof step) == sizeof step) {
    }
    close(in);
    return step;
}

static void a_killed_writer_leaves_a_whole_newest_one(void **unused)
{
    (void)unused;
    unsigned seed = 3, interrupted = 0;
    uint64_t step = 1;
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    assert_rc(write_step(step, 1), 0);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    const long took_ns = (ended.tv_sec - begun.tv_sec) * 1000000000 + ended.tv_nsec - begun.tv_nsec;
    const long most_ns = took_ns < 30000000 ? took_ns + took_ns / 2 : 45000000;
    for (int turn = 0; turn < KILLS; turn++) {
        int in;
        uint64_t first;
        const pid_t child = start_writer(step + 1, 1 + (unsigned)turn % 3, -1, &in);
        assert_int_equal(read(in, &first, sizeof first), sizeof first); // It is at work
        const struct timespec pause = { .tv_nsec = rand_r(&seed) % most_ns };
        nanosleep(&pause, NULL); // The instant of death is the test
        const uint64_t durable = stop_writer(child, in, first);
        interrupted += count_names(".tmp-") > 0;
        step = newest_is_whole();
        assert_in_range(step, durable, durable + 1); // Visible at most one ahead of its word
        struct checkpoint_seen list[CHECKPOINT_LIST_MAX];
        size_t count;
        assert_rc(checkpoint_list(root, "run-1", &why, list, &count), 0);
        for (size_t i = 0; i < count; i++) assert_int_equal(list[i].fault, 0);
    }
    assert_rc(checkpoint_clean(root, &why), 0);
    assert_int_equal(count_names(".tmp-"), 0);
    print_message("             %d kills, %u in the middle of one, %u steps written\n", KILLS,
                  interrupted, (unsigned)step);
}

// The writer keeps one checkpoint and is never more than two ahead of what it has announced. So the
// newest one may go while it is read, twice, however the two processes are scheduled.
static void a_reader_beside_a_writer_finds_whole_ones(void **unused)
{
    (void)unused;
    int in, leave[2], announced;
    uint64_t step, last = 0;
    size_t allowed = 2;
    assert_int_equal(pipe(leave), 0);
    assert_int_equal(write(leave[1], "..", 2), 2);
    const pid_t child = start_writer(1, 1, leave[0], &in);
    assert_int_equal(read(in, &step, sizeof step), sizeof step);
    for (int i = 0; i < 100; i++) {
        checkpoint_t *checkpoint;
        assert_int_equal(ioctl(in, FIONREAD, &announced), 0);
        for (; allowed < 3 + (size_t)announced / sizeof step; allowed++)
            assert_int_equal(write(leave[1], ".", 1), 1);
        assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
        assert_true(checkpoint_info(checkpoint)->step >= last);
        last = checkpoint_info(checkpoint)->step;
        checkpoint_close(&checkpoint);
    }
    stop_writer(child, in, step);
    close(leave[0]), close(leave[1]);
}

TESTS(CHECKPOINT_TEST(a_killed_writer_leaves_a_whole_newest_one),
      CHECKPOINT_TEST(a_reader_beside_a_writer_finds_whole_ones),
      CHECKPOINT_TEST(a_full_disk_spares_the_old_checkpoint))
