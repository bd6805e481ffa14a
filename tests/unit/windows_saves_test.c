// windows_saves_test -- learners in one process save their state in pieces, and keep shares of it, while their group
// changes (windows_fixture.h). What is saved, and what is put together again, is the state of one learner alone.

#include "tests/unit/windows_fixture.h"
#include <glob.h>

// ---- saves in pieces ----------------------------------------------------------------------------

static char saves_root[PATH_MAX];

static void save_every(uint32_t steps)
{
    shape.vocab = 900; // Four leaves
    newest_whole = 0;
    make_files();
    strategy.save_steps = steps;
    strategy.keep = 100;
    snprintf(strategy.shared_dir, sizeof strategy.shared_dir, "%.200s/shared", folder);
    assert_int_equal(mkdir(strategy.shared_dir, 0755), 0);
    assert_int_equal(shared_dir_root(strategy.shared_dir, "r", BORN, NULL, saves_root), 0);
}

static void save_no_more(void)
{
    strategy.save_steps = 0;
    shape.vocab = 40;
}

// The saves that are whole, newest first.
static size_t list_saves(uint64_t ret_steps[CHECKPOINT_LIST_MAX])
{
    size_t count = 0;
    return pieces_list(saves_root, NULL, ret_steps, &count) == 0 ? count : 0;
}

// Until one of them has said that a save of a later step than `than` is whole. False: the time was up.
static bool await_whole(struct member *const *group, uint32_t count, uint64_t than, int timeout_ms)
{
    zmq_pollitem_t items[MEMBERS_MAX_HERE];
    for (uint32_t i = 0; i < count; i++)
        items[i] =
            (zmq_pollitem_t){ .fd = worker_answers_fd(group[i]->worker), .events = ZMQ_POLLIN };
    while (newest_whole <= than) {
        if (zmq_poll(items, (int)count, timeout_ms) <= 0) return false;
        for (uint32_t i = 0; i < count; i++)
            if (items[i].revents) hear(group[i], 0);
    }
    return true;
}

// A save is skipped if a saver is not done with the one before: then the next one is tried.
static uint64_t take_steps_until_saved(struct course *at, struct member *const *group,
                                       uint32_t count, uint64_t than)
{
    enum { TRIES = 8, PATIENCE_MS = 2000 };
    for (int try = 0; try < TRIES; try++) {
        take_steps(at, strategy.save_steps - (uint32_t)(at->step % strategy.save_steps), group,
                   count);
        if (await_whole(group, count, than, PATIENCE_MS)) return newest_whole;
    }
    fail_msg("nothing is saved up to step %" PRIu64, at->step);
    return 0;
}

static void expect_saved(uint64_t step, uint32_t workers, const struct hash *digest)
{
    struct why why = { 0 };
    pieces_t *pieces = NULL;
    struct hash found;
    if (pieces_open(saves_root, step, "r", &why, &pieces) != 0 ||
        pieces_verify(pieces, &why) != 0 || state_pieces_digest(pieces, NULL, &why, &found) != 0)
        fail_msg("%s", why.text);
    assert_int_equal(pieces_meta(pieces)->workers, workers);
    assert_true(hash_equal(&found, digest));
    pieces_close(&pieces);
}

static void load_save(uint32_t number, uint64_t step, const struct hash *digest)
{
    struct member *self = &members[number];
    struct wire_load load = { .step = step, .pieces = true, .born_unix_ms = BORN };
    snprintf(load.path, sizeof load.path, "%s", strategy.shared_dir);
    send_job(self, FRAME_LOAD, &load);
    const struct wire_loaded *loaded = hear_kind(self, FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
    assert_true(loaded->step == step);
    assert_true(hash_equal(&loaded->digest, digest));
}

// One byte of a file of the save changes, as by a bad disk. `item`: whose numbers.
static void damage(uint64_t step, const char *item)
{
    char pattern[PATH_MAX + 64];
    glob_t found;
    uint8_t byte;
    snprintf(pattern, sizeof pattern, "%s/step-%08" PRIu64 "/%s.*", saves_root, step, item);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    const int file = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
    assert_true(file >= 0 && pread(file, &byte, 1, 100) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, 100), 1);
    close(file);
    globfree(&found);
}

static uint64_t readable_instead(const struct wire_load *load)
{
    send_job(&members[0], FRAME_LOAD, load);
    const struct wire_loaded *loaded = hear_kind(&members[0], FRAME_LOADED);
    assert_true(!loaded->ok && loaded->reason[0]);
    return loaded->readable;
}

// Steps 2, 4 and 6 are saved, and the saves of 6 and 4 are damaged.
static void of_damaged_saves_the_newest_whole_one_is_named(void **state)
{
    enum { EVERY = 2 };
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    struct hash digests[4];
    save_every(EVERY);
    begin_group(group, 1);
    for (int i = 1; i <= 3; i++) {
        digests[i] = take_steps(&at, EVERY, group, 1);
        assert_true(await_whole(group, 1, at.step - 1, WAIT_MS));
    }
    save_no_more();
    end_group();
    shape.vocab = 900;
    struct wire_load load = { .step = 6,
                              .pieces = true,
                              .born_unix_ms = BORN,
                              .older.first = { 4, digests[2] },
                              .older.second = { 2, digests[1] } };
    snprintf(load.path, sizeof load.path, "%s", strategy.shared_dir);
    be_born(&members[0], 0, 0, NULL);
    damage(6, "parameters");
    assert_int_equal(readable_instead(&load), 4);
    damage(4, "adamw-m");
    assert_int_equal(readable_instead(&load), 2);
    load.older.second.digest =
        digests[2]; // It is whole, and of another state than the one on record
    assert_int_equal(readable_instead(&load), 0);
    load.older.second = (struct wire_saved_step){ 0 };
    assert_int_equal(readable_instead(&load), 0);
    load = (struct wire_load){ .step = 2, .pieces = true, .born_unix_ms = BORN };
    snprintf(load.path, sizeof load.path, "%s", strategy.shared_dir);
    load.digest = digests[2]; // It is whole here, too
    assert_int_equal(readable_instead(&load), 0);
    load.digest = digests[1];
    send_job(&members[0], FRAME_LOAD, &load);
    assert_true(((const struct wire_loaded *)hear_kind(&members[0], FRAME_LOADED))->ok);
    end_group();
    save_no_more();
}

// A process is born, and loads the save of a step.
static void begin_with_save(uint32_t number, uint64_t step, const struct hash *digest)
{
    be_born(&members[number], number, 0, NULL);
    load_save(number, step, digest);
}

static void a_group_saves_its_state_in_pieces(void **state)
{
    enum { EVERY = 4, SAVES = 16 };
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct hash digests[SAVES];
    struct course at = { 0, 0 };
    save_every(0);
    begin_group(group, 1);
    for (int i = 0; i < SAVES; i++) digests[i] = take_steps(&at, EVERY, group, 1);
    end_group();
    uint64_t steps[CHECKPOINT_LIST_MAX];
    assert_int_equal(list_saves(steps), 0); // Without an interval none is made
    strategy.save_steps = EVERY;
    begin_group(group, 3);
    at = (struct course){ 0, 0 };
    take_steps(&at, 1, group, 3); // A save is within a window
    const uint64_t by_three = take_steps_until_saved(&at, group, 3, 0);
    die(group[1]);
    struct member *rest[] = { group[0], group[2] };
    const uint64_t by_two = take_steps_until_saved(&at, rest, 2, by_three);
    expect_saved(by_three, 3, &digests[by_three / EVERY - 1]);
    expect_saved(by_two, 2, &digests[by_two / EVERY - 1]);
    // A process that begins with a save holds its state
    begin_with_save(1, by_two, &digests[by_two / EVERY - 1]);
    save_no_more();
    end_group();
}

// ---- moments by shares, whose holders change ----------------------------------------------------

// Four members, three, five, two, six: each takes its share when a window begins.
static void shares_are_dealt_again_when_a_group_ends(void **state)
{
    static const uint32_t worlds[] = { 4, 3, 5, 2, 6 };
    enum { STEPS_EACH = 4, WORLDS = sizeof worlds / sizeof *worlds };
    struct member *group[MEMBERS_MAX_HERE];
    struct hash digests[WORLDS];
    struct course at = { 0, 0 };
    (void)state;
    stores_in_folders = true; // And so are the copies between two groups
    share_moments();
    strategy.parts = PARTS_NONE;
    begin_group(group, 1);
    for (int i = 0; i < WORLDS; i++) digests[i] = take_steps(&at, STEPS_EACH, group, 1);
    end_group();
    strategy.parts = PARTS_MOMENTS;
    uint32_t count = begin_group(group, worlds[0]);
    at = (struct course){ 0, 0 };
    for (int i = 0; i < WORLDS; i++) {
        while (count > worlds[i]) die(&members[--count]);
        while (count < worlds[i]) join(count++, at.step);
        assert_int_equal(living(group), count);
        const struct hash digest = take_steps(&at, STEPS_EACH, group, count);
        assert_true(hash_equal(&digest, &digests[i]));
    }
    end_group();
    stores_in_folders = false;
}

// One of three dies in a window that the two others end without it. The next window has its share for somebody else.
static void moments_that_died_are_missed(void **state)
{
    enum { STEPS_EACH = 4 };
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    struct plan plan;
    (void)state;
    share_moments();
    begin_group(group, 3);
    take_steps(&at, STEPS_EACH, group, 3);
    plan_window(&plan, &at, STEPS_EACH, group, 3);
    give_one(&plan, group, 0);
    give_one(&plan, group, 2);
    die(group[1]);
    struct member *rest[] = { group[0], group[2] };
    hear_kind(rest[0], FRAME_BROKE);
    assert_int_equal(freeze(rest, 2, at.step),
                     at.step); // They stand where all of the state is here
    struct wire_close_window job = { next_window - 1, at.step, true };
    for (int i = 0; i < 2; i++) {
        send_job(rest[i], FRAME_CLOSE_WINDOW, &job);
        const struct wire_closed_window *closed = hear_kind(rest[i], FRAME_CLOSED_WINDOW);
        assert_true(closed->ok && !hash_is_none(&closed->digest));
    }
    take_steps(&at, STEPS_EACH, rest, 2);
    give_window(&at, 3, rest, 2);
    await_end(rest, 1, at.step + 2); // In its middle
    die(rest[1]);
    do hear(rest[0], WAIT_MS);
    while (rest[0]->kind != FRAME_BROKE);
    const uint64_t end = freeze(rest, 1, at.step);
    job = (struct wire_close_window){ next_window - 1, end, false };
    send_job(rest[0], FRAME_CLOSE_WINDOW, &job);
    const struct wire_closed_window *closed = hear_kind(rest[0], FRAME_CLOSED_WINDOW);
    assert_true(closed->ok); // That the next window has another cut is not known yet
    job.digest = true, job.window = 0;
    send_job(rest[0], FRAME_CLOSE_WINDOW, &job);
    closed = hear_kind(rest[0], FRAME_CLOSED_WINDOW);
    assert_true(!closed->ok && strstr(closed->reason, "only our share"));
    at.step = end;
    give_window(&at, 2, rest, 1);
    const struct wire_broke *broke = hear_kind(rest[0], FRAME_BROKE);
    assert_non_null(strstr(broke->reason, "moments of a member that is gone are lost"));
    assert_int_equal(broke->dead, 0); // It was in place 1 of the group before
    job = (struct wire_close_window){ next_window - 1, end, false };
    send_job(rest[0], FRAME_CLOSE_WINDOW, &job);
    closed = hear_kind(rest[0], FRAME_CLOSED_WINDOW);
    assert_true(!closed->ok && strstr(closed->reason, "are lost"));
    end_group();
}

// Four with shares save step SAVED and end. One, three and six go on from it with shares, and two without, and so do two
// of another run, which begins with that state: each step has the loss and the digest that one member alone had, which
// never stopped.
static void a_save_by_four_goes_on_in_any_world(void **state)
{
    enum { SAVED = 4, END = 8, WORLDS = 5, WITHOUT_SHARES = 3, OTHER_RUN = 4 };
    static const uint32_t worlds[WORLDS] = { 1, 3, 6, 2, 2 };
    struct member *group[MEMBERS_MAX_HERE];
    struct hash digests[END + 1];
    float losses[END + 1];
    (void)state;
    shares_moments = true;
    save_every(0);
    shares_moments = false;
    strategy.parts = PARTS_NONE;
    begin_group(group, 1);
    for (struct course at = { 0, 0 }; at.step < END;) {
        const struct hash digest = take_steps(&at, 1, group, 1);
        digests[at.step] = digest, losses[at.step] = newest_loss;
    }
    end_group();
    strategy.parts = PARTS_MOMENTS, strategy.save_steps = SAVED;
    struct course saved = { 0, 0 };
    begin_group(group, 4);
    take_steps(&saved, SAVED, group, 4);
    assert_true(await_whole(group, 4, 0, WAIT_MS));
    end_group();
    expect_saved(SAVED, 4, &digests[SAVED]);
    strategy.save_steps = 0;
    for (int i = 0; i < WORLDS; i++) {
        if (i == WITHOUT_SHARES) strategy.parts = PARTS_NONE;
        if (i == OTHER_RUN)
            snprintf(first_state, sizeof first_state, "%.220s/step-%08d", saves_root, SAVED);
        for (uint32_t w = 0; w < worlds[i]; w++) {
            if (i == OTHER_RUN) be_born(&members[w], w, SAVED, NULL);
            else begin_with_save(w, SAVED, &digests[SAVED]);
        }
        living(group);
        for (struct course at = saved; at.step < END;) {
            const struct hash digest = take_steps(&at, 1, group, worlds[i]);
            assert_true(hash_equal(&digest, &digests[at.step]));
            assert_true(newest_loss == losses[at.step]);
        }
        // The same processes, at the same places, go back to the save and on from it again
        for (uint32_t w = 0; w < worlds[i]; w++) load_save(w, SAVED, &digests[SAVED]);
        struct course again = saved;
        const struct hash digest = take_steps(&again, END - SAVED, group, worlds[i]);
        assert_true(hash_equal(&digest, &digests[END]));
        end_group();
    }
    first_state[0] = 0;
    save_no_more();
}

// One byte of the first moment changes in each copy of the state that lies in a file. Returns how many there are.
static uint32_t damage_copies(void)
{
    const uint64_t place = state_cut_place(&built_cut, 1) + 8;
    uint32_t damaged = 0;
    glob_t found;
    assert_int_equal(glob("/proc/self/fd/*", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const int file = atoi(strrchr(found.gl_pathv[i], '/') + 1);
        struct stat about;
        uint8_t byte;
        if (fstat(file, &about) < 0 || !S_ISREG(about.st_mode) || about.st_nlink > 0 ||
            (uint64_t)about.st_size != state_cut_room(&built_cut))
            continue;
        assert_int_equal(pread(file, &byte, 1, (off_t)place), 1);
        byte ^= 1;
        assert_int_equal(pwrite(file, &byte, 1, (off_t)place), 1);
        damaged++;
    }
    globfree(&found);
    return damaged;
}

// Between two groups the moments lie in files. One whose file has changed there says so and takes no step.
static void moments_that_change_on_the_disk_are_found(void **state)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    (void)state;
    stores_in_folders = true;
    share_moments();
    begin_group(group, 3);
    take_steps(&at, 4, group, 3);
    die(group[2]);
    const uint32_t damaged = damage_copies();
    if (damaged == 0) print_message("not tested: %s is in memory, and so are the copies\n", folder);
    else {
        give_window(&at, 2, group, 2);
        const struct wire_broke *broke = hear_kind(group[0], FRAME_BROKE);
        assert_non_null(strstr(broke->reason, "has changed on the disk"));
    }
    end_group();
    stores_in_folders = false;
}

// ---- saves, again -------------------------------------------------------------------------------

// The first steps have 3 samples and more. A pass has 10: its last sample is in one of the steps 1 to 4.
static void a_pass_ends_with_a_save(void **state)
{
    (void)state;
    static uint64_t steps[CHECKPOINT_LIST_MAX];
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(0);
    strategy.save_passes = 1;
    begin_group(group, 2);
    while (at.samples_done < PASS) {
        assert_int_equal(list_saves(steps), 0);
        take_steps(&at, 1, group, 2);
    }
    assert_true(await_whole(group, 2, 0, WAIT_MS));
    assert_true(list_saves(steps) == 1 && steps[0] == at.step);
    strategy.save_passes = 0;
    save_no_more();
    end_group();
}

// 35 steps in windows of any length, with a save every ten: just these. Micro-batches of a step save nothing.
static void a_save_is_written_every_so_many_steps(void **state)
{
    enum { EVERY = 10, END = 35 };
    (void)state;
    static uint64_t steps[CHECKPOINT_LIST_MAX];
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(EVERY);
    begin_group(group, 2);
    while (at.step < END) {
        const uint32_t to_save = EVERY - (uint32_t)(at.step % EVERY),
                       left = (uint32_t)(END - at.step);
        const uint32_t most = to_save < left ? to_save : left;
        take_steps(&at, most < WINDOW ? most : WINDOW, group, 2);
        if (at.step % EVERY == 0) assert_true(await_whole(group, 2, at.step - 1, WAIT_MS));
        assert_int_equal(list_saves(steps), at.step / EVERY);
    }
    assert_true(steps[0] == 30 && steps[1] == 20 && steps[2] == 10);
    end_group(); // Ends what is written
    assert_int_equal(list_saves(steps), 3);
    save_no_more();
}

// One member's disk stands still at step 2. The two others have written, and could save again at step 4.
static void while_one_writes_nobody_saves(void **state)
{
    (void)state;
    static uint64_t steps[CHECKPOINT_LIST_MAX];
    char path[PATH_MAX + 32];
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(2);
    begin_group(group, 3);
    hold(true);
    take_steps(&at, 2, group, 3);
    await_hold();
    take_steps(&at, 3, group, 3);
    snprintf(path, sizeof path, "%s/step-00000004.save-%" PRIu64, saves_root, next_window - 1);
    assert_int_equal(access(path, F_OK), -1);
    hold(false);
    assert_true(take_steps_until_saved(&at, group, 3, 2) > 4);
    const size_t count = list_saves(steps);
    assert_true(count == 2 && steps[1] == 2);
    save_no_more();
    end_group();
}

// The shared folder is gone: the save fails, at each member, and the steps go on. It comes back, empty.
static void a_save_that_fails_stops_nothing(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(3);
    begin_group(group, 2);
    take_steps(&at, 2, group, 2);
    assert_int_equal(rmdir(strategy.shared_dir), 0);
    take_steps(&at, 2, group, 2);
    assert_int_equal(access(saves_root, F_OK), -1);
    assert_int_equal(mkdir(strategy.shared_dir, 0755), 0);
    take_steps_until_saved(&at, group, 2, 0);
    save_no_more();
    end_group();
}

static void expect_no_model(struct member *self, uint32_t micro_batch, const char *says,
                            bool may_pass)
{
    tell_build(self, micro_batch);
    const struct wire_built *built = hear_kind(self, FRAME_BUILT);
    assert_false(built->ok);
    if (!strstr(built->reason, says)) fail_msg("%s", built->reason);
    assert_int_equal(built->may_pass, may_pass);
}

// A folder that is not mounted yet, a port that another process has: the actor is started again. What the run's
// config says would stay the same.
static void a_build_that_may_succeed_later_says_so(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    char away[PATH_MAX], taken[sizeof group[0]->options.links_bind];
    save_every(3);
    begin_group(group, 2);
    snprintf(away, sizeof away, "%s-away", strategy.shared_dir);
    assert_int_equal(rename(strategy.shared_dir, away), 0);
    expect_no_model(group[0], 2, "cannot be used for saves", true);
    assert_int_equal(rename(away, strategy.shared_dir), 0);
    snprintf(taken, sizeof taken, "127.0.0.1%s", strrchr(group[1]->endpoint, ':'));
    memcpy(group[0]->options.links_bind, taken, sizeof taken);
    expect_no_model(group[0], 2, "another process has this port", true);
    expect_no_model(group[0], 0, "micro_batch_size", false);
    snprintf(group[0]->options.links_bind, sizeof taken, "127.0.0.1:0");
    build(group[0]);
    save_no_more();
    end_group();
}

TESTS(FOLDER_TEST(a_build_that_may_succeed_later_says_so),
      FOLDER_TEST(a_group_saves_its_state_in_pieces),
      FOLDER_TEST(of_damaged_saves_the_newest_whole_one_is_named),
      FOLDER_TEST(while_one_writes_nobody_saves), FOLDER_TEST(a_pass_ends_with_a_save),
      FOLDER_TEST(a_save_that_fails_stops_nothing),
      FOLDER_TEST(a_save_is_written_every_so_many_steps),
      FOLDER_TEST(shares_are_dealt_again_when_a_group_ends),
      FOLDER_TEST(a_save_by_four_goes_on_in_any_world), FOLDER_TEST(moments_that_died_are_missed),
      FOLDER_TEST(moments_that_change_on_the_disk_are_found))
