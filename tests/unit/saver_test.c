// saver_test -- a save that is written beside the work: what was copied is what is saved, whatever
// the work does to its memory meanwhile; one at a time; a save that fails costs nothing but itself.

#include "common/checkpoint/saver.h"
#include "tests/unit/pieces_fixture.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { COUNT = 100000, BYTES = COUNT * 4 + 16 };

static uint32_t numbers[COUNT];
static char text[16] = "schedule";

static void fill(uint32_t with)
{
    for (uint32_t i = 0; i < COUNT; i++) numbers[i] = with + i;
}

// The numbers of this worker, and a value that all have.
static void list_parts(struct pieces_part parts[2], uint32_t worker, uint32_t workers)
{
    const uint64_t begin = COUNT * (uint64_t)worker / workers;
    const uint64_t end = COUNT * (uint64_t)(worker + 1) / workers;
    parts[0] = (struct pieces_part){ "numbers", TAG_RESHARD, 4, end - begin, numbers + begin };
    parts[1] = (struct pieces_part){ "schedule", TAG_REPLICATE, 1, sizeof text, text };
}

static saver_t *new_saver(unsigned keep)
{
    saver_t *saver = NULL;
    const struct saver_options options = {
        .root = root, .run = "a", .born_unix_ms = 7, .bytes = BYTES, .keep = keep
    };
    if (saver_new(&options, &why, &saver) != 0) fail_msg("%s", why.text);
    return saver;
}

static void take(saver_t *saver, uint64_t step, uint32_t worker, uint32_t workers)
{
    struct pieces_part parts[2];
    const struct pieces_save save = save_of(step, 1, worker, workers);
    list_parts(parts, worker, workers);
    if (saver_take(saver, &save, parts, 2, &why) != 0) fail_msg("%s", why.text);
}

static struct saver_result result_of(saver_t *saver)
{
    struct saver_result result;
    assert_true(saver_wait(saver, &result));
    assert_false(saver_result(saver, &result)); // Said once
    return result;
}

// What the save of a step has, in whatever pieces.
static void expect_saved(uint64_t step, uint32_t with)
{
    static uint32_t read[COUNT];
    pieces_t *pieces = NULL;
    if (pieces_open(root, step, "a", &why, &pieces) != 0) fail_msg("%s", why.text);
    const struct pieces_item *item = pieces_find(pieces, "numbers");
    assert_non_null(item);
    if (pieces_read(pieces, item, (struct interval){ 0, COUNT }, read, &why) != 0)
        fail_msg("%s", why.text);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(read[i], with + i);
    pieces_close(&pieces);
}

static void the_work_may_go_on_at_once(void **unused)
{
    (void)unused;
    saver_t *saver = new_saver(3);
    fill(7);
    take(saver, 10, 0, 1);
    fill(1000000);
    const struct saver_result result = result_of(saver);
    assert_int_equal(result.rc, 0);
    assert_int_equal(result.step, 10);
    assert_int_equal(result.bytes, BYTES);
    assert_int_equal(result.missing, 1);
    expect_saved(10, 7);
    saver_destroy(&saver);
}

static void another_save_waits_for_the_result(void **unused)
{
    (void)unused;
    saver_t *saver = new_saver(3);
    struct pieces_part parts[2];
    struct saver_result result;
    const struct pieces_save second = save_of(20, 1, 0, 1);
    fill(7);
    take(saver, 10, 0, 1);
    list_parts(parts, 0, 1);
    assert_int_equal(saver_take(saver, &second, parts, 2, &why), FAULT_BUSY);
    assert_non_null(strstr(why.text, "step 10"));
    while (saver_is_writing(saver)) sched_yield();
    assert_int_equal(saver_take(saver, &second, parts, 2, &why), FAULT_BUSY); // Unread
    assert_true(saver_result(saver, &result));
    assert_int_equal(result.step, 10);
    assert_int_equal(saver_take(saver, &second, parts, 2, &why), 0);
    assert_int_equal(result_of(saver).step, 20);
    assert_false(saver_wait(saver, &result));
    saver_destroy(&saver);
}

// Two workers save together: the second that has written makes it whole, and it is in the interval
// of each.
static void the_last_worker_makes_it_whole(void **unused)
{
    (void)unused;
    saver_t *savers[2] = { new_saver(3), new_saver(3) };
    fill(7);
    take(savers[1], 10, 1, 2);
    struct saver_result result = result_of(savers[1]);
    assert_int_equal(result.rc, 0);
    assert_int_equal(result.missing, 0); // Worker 0
    take(savers[0], 10, 0, 2);
    result = result_of(savers[0]);
    assert_int_equal(result.missing, 2);
    expect_saved(10, 7);
    for (int i = 0; i < 2; i++) saver_destroy(&savers[i]);
}

// Worker 1 sees another folder: so each of its saves is said to be unfinished when the next is written. Once it sees ours,
// nothing is said.
static void who_writes_elsewhere_is_named(void **unused)
{
    (void)unused;
    saver_t *savers[2] = { new_saver(3), new_saver(3) };
    fill(7);
    take(savers[0], 10, 0, 2);
    assert_int_equal(result_of(savers[0]).unfinished, 0);
    take(savers[0], 20, 0, 2);
    struct saver_result result = result_of(savers[0]);
    assert_int_equal(result.unfinished, 10);
    assert_int_equal(result.unfinished_missing, 1);
    take(savers[1], 20, 1, 2);
    assert_int_equal(result_of(savers[1]).missing, 2);
    take(savers[0], 30, 0, 2);
    assert_int_equal(result_of(savers[0]).unfinished, 0);
    for (int i = 0; i < 2; i++) saver_destroy(&savers[i]);
}

// The first that begins the next save removes the parts of the one before: the others cannot tell any more, and name nobody.
static void nobody_is_named_when_the_parts_are_gone(void **unused)
{
    (void)unused;
    saver_t *savers[2] = { new_saver(3), new_saver(3) };
    fill(7);
    for (uint64_t step = 10; step <= 20; step += 10) { // Worker 1 never comes
        take(savers[0], step, 0, 3);
        assert_int_equal(result_of(savers[0]).unfinished, step - 10);
        take(savers[1], step, 2, 3);
        assert_int_equal(result_of(savers[1]).unfinished, 0);
    }
    for (int i = 0; i < 2; i++) saver_destroy(&savers[i]);
}

// Also if the next one does not become whole either: a disk would fill up.
static void a_failed_one_goes_before_the_next(void **unused)
{
    (void)unused;
    char path[300];
    struct stat unused_stat;
    saver_t *saver = new_saver(2);
    fill(7);
    for (uint64_t step = 5; step <= 10; step += 5) {
        take(saver, step, 0, 2); // Worker 1 never comes
        assert_int_equal(result_of(saver).missing, 1);
        snprintf(path, sizeof path, "%s/step-00000005.save-1", root);
        assert_int_equal(stat(path, &unused_stat), step == 5 ? 0 : -1);
    }
    saver_destroy(&saver);
}

static void old_saves_go_and_a_failed_one_too(void **unused)
{
    uint64_t steps[CHECKPOINT_LIST_MAX];
    size_t count;
    (void)unused;
    saver_t *saver = new_saver(2);
    fill(7);
    take(saver, 5, 0, 2); // Worker 1 never comes
    assert_int_equal(result_of(saver).missing, 1);
    for (uint64_t step = 10; step <= 40; step += 10) {
        take(saver, step, 0, 1);
        assert_int_equal(result_of(saver).rc, 0);
    }
    assert_int_equal(pieces_list(root, &why, steps, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(steps[0], 40);
    assert_int_equal(steps[1], 30);
    char path[300];
    struct stat unused_stat;
    snprintf(path, sizeof path, "%s/step-00000005.save-1", root);
    assert_int_equal(stat(path, &unused_stat), -1);
    saver_destroy(&saver);
}

static void what_cannot_be_written_is_said(void **unused)
{
    (void)unused;
    saver_t *saver = new_saver(2);
    fill(7);
    take(saver, 10, 0, 1);
    assert_int_equal(result_of(saver).rc, 0);
    char command[600];
    snprintf(command, sizeof command, "mv %s %s.away", root, root);
    assert_int_equal(system(command), 0);
    take(saver, 20, 0, 1);
    struct saver_result result = result_of(saver);
    assert_true(result.rc < 0);
    assert_string_not_equal(result.why.text, "");
    snprintf(command, sizeof command, "mv %s.away %s", root, root);
    assert_int_equal(system(command), 0);
    take(saver, 30, 0, 1); // The folder is back
    assert_int_equal(result_of(saver).rc, 0);
    expect_saved(30, 7);
    expect_saved(10, 7);
    saver_destroy(&saver);
}

static void a_full_disk_costs_that_save_alone(void **unused)
{
    (void)unused;
    saver_t *saver = new_saver(2);
    struct rlimit limit, before;
    fill(7);
    take(saver, 10, 0, 1);
    assert_int_equal(result_of(saver).rc, 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit = before;
    limit.rlim_cur = BYTES / 2;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    take(saver, 20, 0, 1);
    const struct saver_result result = result_of(saver);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(result.rc < 0);
    assert_non_null(strstr(result.why.text, "step 20"));
    char command[600]; // Nothing of it takes room
    snprintf(command, sizeof command, "test -z \"$(ls -d %s/*20* 2>/dev/null)\"", root);
    assert_int_equal(system(command), 0);
    take(saver, 30, 0, 1);
    assert_int_equal(result_of(saver).rc, 0);
    expect_saved(30, 7);
    expect_saved(10, 7);
    saver_destroy(&saver);
}

static void too_much_is_refused(void **unused)
{
    (void)unused;
    saver_t *saver = new_saver(2);
    struct saver_result result;
    const struct pieces_save save = save_of(10, 1, 0, 1);
    struct pieces_part part = { "numbers", TAG_RESHARD, 4, BYTES / 4 + 1, numbers };
    assert_int_equal(saver_take(saver, &save, &part, 1, &why), FAULT_RANGE);
    part = (struct pieces_part){ "numbers", TAG_RESHARD, 4, UINT64_MAX / 2, numbers };
    assert_int_equal(saver_take(saver, &save, &part, 1, &why), FAULT_RANGE);
    struct pieces_part many[PIECES_ITEMS_MAX + 1] = { 0 };
    assert_int_equal(saver_take(saver, &save, many, PIECES_ITEMS_MAX + 1, &why), FAULT_RANGE);
    // A name that would fit if it were cut
    char name[TAGS_NAME_MAX + 3] = { 0 };
    memset(name, 'a', TAGS_NAME_MAX + 2);
    part = (struct pieces_part){ name, TAG_RESHARD, 4, 1, numbers };
    assert_int_equal(saver_take(saver, &save, &part, 1, &why), 0);
    result = result_of(saver);
    assert_int_equal(result.rc, FAULT_RANGE);
    saver_destroy(&saver);
    const struct saver_options none = { .root = root, .run = "a", .bytes = 1, .keep = 0 };
    assert_int_equal(saver_new(&none, &why, &saver), FAULT_RANGE);
    assert_null(saver);
}

static void an_end_waits_for_what_is_written(void **unused)
{
    (void)unused;
    saver_t *saver = new_saver(2);
    fill(7);
    take(saver, 10, 0, 1);
    saver_destroy(&saver);
    assert_null(saver);
    expect_saved(10, 7);
}

static int take_no_digest(const struct pieces_save *save, struct why *whose,
                          struct hash *ret_digest)
{
    (void)save, (void)ret_digest;
    return why_set(whose, FAULT_IO, "a piece cannot be read");
}

// The save is whole and nothing is left behind: so the one reason is not taken for the other.
static void a_digest_that_cannot_be_taken_is_said(void **unused)
{
    (void)unused;
    const struct saver_options options = { .root = root,
                                           .run = "a",
                                           .born_unix_ms = 7,
                                           .bytes = BYTES,
                                           .keep = 3,
                                           .digest = take_no_digest };
    saver_t *saver = NULL;
    assert_int_equal(saver_new(&options, &why, &saver), 0);
    fill(7);
    take(saver, 10, 0, 1);
    const struct saver_result result = result_of(saver);
    assert_int_equal(result.rc, 0);
    assert_int_equal(result.missing, 1);
    assert_string_equal(result.digest_why.text, "a piece cannot be read");
    assert_string_equal(result.why.text, "");
    assert_true(hash_is_none(&result.digest));
    expect_saved(10, 7);
    saver_destroy(&saver);
}

// Who may write beside the folder of a run puts a link in its place, to saves of another run: they are not ours to clean.
static void a_link_in_place_of_the_folder_is_not_followed(void **unused)
{
    char others[300], link[300];
    uint64_t steps[CHECKPOINT_LIST_MAX];
    size_t count;
    (void)unused;
    snprintf(others, sizeof others, "%s/others", root);
    snprintf(link, sizeof link, "%s/ours", root);
    assert_int_equal(mkdir(others, 0755), 0);
    assert_int_equal(symlink(others, link), 0);
    for (uint64_t step = 1; step <= 3; step++) {
        struct pieces_save save = save_of(step, 1, 0, 1);
        uint32_t missing;
        save.root = others;
        assert_int_equal(
            pieces_write(&save, &(struct pieces_part){ "numbers", TAG_RESHARD, 4, COUNT, numbers },
                         1, &why),
            0);
        assert_int_equal(pieces_seal(&save, &why, &missing), 0);
    }
    const struct saver_options options = {
        .root = link, .makes_root = true, .run = "a", .born_unix_ms = 7, .bytes = BYTES, .keep = 1
    };
    saver_t *saver = NULL;
    assert_int_equal(saver_new(&options, &why, &saver), 0);
    take(saver, 10, 0, 1);
    assert_true(result_of(saver).rc < 0);
    struct pieces_save save = save_of(10, 1, 0, 1);
    save.root = link;
    assert_true(pieces_clean(&save, 1, &why) < 0);
    assert_true(pieces_clean_attempts(&save, &why) < 0);
    assert_int_equal(pieces_list(others, &why, steps, &count), 0);
    assert_int_equal(count, 3);
    saver_destroy(&saver);
}

#define IN_FOLDER(test) TEST_WITH(test, set_up, tear_down)

// The second worker's own value does not count.
static void a_value_that_does_not_count_is_not_written(void **unused)
{
    (void)unused;
    struct pieces_part parts[2];
    saver_t *savers[2] = { new_saver(3), new_saver(3) };
    fill(7);
    take(savers[0], 10, 0, 2);
    const struct saver_result first = result_of(savers[0]);
    assert_int_equal(first.rc, 0);
    assert_int_equal(first.missing, 1);
    assert_string_equal(first.why.text, ""); // That the other has not written yet is no fault
    const struct pieces_save save = save_of(10, 1, 1, 2);
    list_parts(parts, 1, 2);
    parts[1].bytes = NULL;
    if (saver_take(savers[1], &save, parts, 2, &why) != 0) fail_msg("%s", why.text);
    const struct saver_result result = result_of(savers[1]);
    if (result.rc < 0) fail_msg("%s", result.why.text);
    assert_int_equal(result.missing, 2);
    expect_saved(10, 7);
    for (int i = 0; i < 2; i++) saver_destroy(&savers[i]);
}

TESTS(IN_FOLDER(a_value_that_does_not_count_is_not_written), IN_FOLDER(the_work_may_go_on_at_once),
      IN_FOLDER(another_save_waits_for_the_result), IN_FOLDER(the_last_worker_makes_it_whole),
      IN_FOLDER(who_writes_elsewhere_is_named), IN_FOLDER(nobody_is_named_when_the_parts_are_gone),
      IN_FOLDER(a_failed_one_goes_before_the_next), IN_FOLDER(old_saves_go_and_a_failed_one_too),
      IN_FOLDER(what_cannot_be_written_is_said), IN_FOLDER(a_full_disk_costs_that_save_alone),
      IN_FOLDER(too_much_is_refused), IN_FOLDER(an_end_waits_for_what_is_written),
      IN_FOLDER(a_digest_that_cannot_be_taken_is_said),
      IN_FOLDER(a_link_in_place_of_the_folder_is_not_followed))
