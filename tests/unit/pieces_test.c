// pieces_test -- the files of a save: what a worker that dies leaves, two that seal at once, a
// damaged or foreign file by name, how many bytes a reader reads, and what cleaning removes.

#include "common/base/dirfile.h"
#include "common/checkpoint/piece_file.h"
#include "common/checkpoint/pieces.h"
#include "tests/unit/pieces_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAF = PIECE_LEAF_BYTES, BIG = 3 * LEAF + 100, WORKERS = 2 };

static uint8_t big[WORKERS * BIG];

static int set_up_big(void **unused)
{
    for (size_t i = 0; i < sizeof big; i++) big[i] = (uint8_t)(i * 31 + (i >> 8));
    return set_up(unused);
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static int write_worker(uint64_t step, uint32_t attempt, uint32_t worker)
{
    const struct pieces_save save = save_of(step, attempt, worker, WORKERS);
    const struct pieces_part parts[] = {
        { "m", TAG_RESHARD, 1, BIG, big + (size_t)worker * BIG },
        { "schedule", TAG_REPLICATE, 1, 5, "abcde" },
    };
    return pieces_write(&save, parts, 2, &why);
}

static uint32_t seal(uint64_t step, uint32_t attempt)
{
    uint32_t missing = 99;
    const struct pieces_save save = save_of(step, attempt, 0, WORKERS);
    assert_int_equal(pieces_seal(&save, &why, &missing), 0);
    return missing;
}

static void save_all(uint64_t step)
{
    for (uint32_t w = 0; w < WORKERS; w++) assert_int_equal(write_worker(step, 1, w), 0);
    assert_int_equal(seal(step, 1), WORKERS);
}

static pieces_t *open_save(uint64_t step)
{
    pieces_t *pieces = NULL;
    assert_int_equal(pieces_open(root, step, "a", &why, &pieces), 0);
    return pieces;
}

static bool is_there(const char *name) { return access(path_of(name), F_OK) == 0; }

// ---- a save -------------------------------------------------------------------------------------

static void a_save_is_whole_or_not_there(void **state)
{
    (void)state;
    uint64_t steps[CHECKPOINT_LIST_MAX];
    size_t count;
    pieces_t *pieces;
    assert_int_equal(write_worker(5, 1, 1), 0);
    assert_int_equal(seal(5, 1), 0); // Worker 0 has not written
    assert_int_equal(pieces_list(root, &why, steps, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(pieces_open(root, 5, "a", &why, &pieces), FAULT_NOT_FOUND);
    assert_int_equal(write_worker(5, 1, 0), 0);
    assert_int_equal(seal(5, 1), WORKERS);
    assert_int_equal(seal(5, 1), WORKERS); // Again: it is
    assert_int_equal(pieces_list(root, &why, steps, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(steps[0], 5);
    assert_true(is_there("step-00000005/m.0-196708"));
    assert_true(is_there("step-00000005/m.196708-393416"));
    assert_true(is_there("step-00000005/schedule"));
    assert_false(is_there("step-00000005.save-1"));
    pieces = open_save(5);
    assert_int_equal(pieces_verify(pieces, &why), 0);
    assert_int_equal(pieces_meta(pieces)->workers, WORKERS);
    pieces_close(&pieces);
}

// Worker 0 is killed while it writes, by its own limit for files: the next attempt of all succeeds.
static void a_worker_that_died_is_replaced_by_the_next_attempt(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 2 * LEAF, 2 * LEAF });
        write_worker(5, 1, 0);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    assert_true(is_there("step-00000005.save-1/m.worker-0"));
    assert_int_equal(write_worker(5, 1, 1), 0);
    assert_int_equal(seal(5, 1), 0);
    assert_true(is_there("step-00000005.save-1"));
    for (uint32_t w = 0; w < WORKERS; w++) assert_int_equal(write_worker(5, 2, w), 0);
    assert_int_equal(seal(5, 2), WORKERS);
    assert_int_equal(clean(5, 2, 3, UINT64_MAX), 0);
    assert_false(is_there("step-00000005.save-1"));
    assert_true(is_there("step-00000005"));
}

// Where this process is killed; NULL: nowhere. The name of a failpoint (common/base/failpoint.h).
static const char *killed_at;

int failpoint_reached(const char *name);
int failpoint_reached(const char *name)
{
    if (killed_at && strcmp(name, killed_at) == 0) raise(SIGKILL);
    return 0;
}

// All pieces are there, and who makes a save of them is killed: the save is not there, and the one before it is. The
// next attempt makes it.
static void who_is_killed_while_it_seals_leaves_the_older_save(void **state)
{
    (void)state;
    static const char *const places[] = { "pieces_note", "pieces_manifest", "pieces_publish" };
    save_all(5);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const uint64_t step = 10 + i;
        uint64_t steps[CHECKPOINT_LIST_MAX];
        size_t count;
        int status;
        assert_int_equal(write_worker(step, 1, 1), 0);
        const pid_t child = fork();
        if (child == 0) {
            killed_at = places[i];
            write_worker(step, 1, 0);
            seal(step, 1);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(pieces_list(root, &why, steps, &count), 0);
        assert_int_equal(count, 1 + i);
        pieces_t *pieces = open_save(i ? step - 1 : 5);
        assert_int_equal(pieces_verify(pieces, &why), 0);
        pieces_close(&pieces);
        for (uint32_t w = 0; w < WORKERS; w++) assert_int_equal(write_worker(step, 2, w), 0);
        assert_int_equal(seal(step, 2), WORKERS);
        pieces = open_save(step);
        assert_int_equal(pieces_verify(pieces, &why), 0);
        pieces_close(&pieces);
    }
}

// Many processes seal the same save at the same time: each says that it is sealed.
static void many_may_seal_at_once(void **state)
{
    (void)state;
    enum { SEALERS = 8, TURNS = 20 };
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        pid_t children[SEALERS];
        int gate[2];
        char go;
        assert_int_equal(pipe(gate), 0);
        for (uint32_t w = 0; w < WORKERS; w++) assert_int_equal(write_worker(turn, 1, w), 0);
        for (int i = 0; i < SEALERS; i++) {
            if ((children[i] = fork()) != 0) continue;
            uint32_t missing;
            const struct pieces_save save = save_of(turn, 1, 0, WORKERS);
            close(gate[1]);
            (void)!read(gate[0], &go, 1); // All begin when the parent closes it
            const int rc = pieces_seal(&save, &why, &missing);
            if (rc < 0) fprintf(stderr, "%s\n", why.text);
            _exit(rc == 0 && missing == WORKERS ? 0 : 1);
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < SEALERS; i++) {
            int status;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
        pieces_t *pieces = open_save(turn);
        assert_int_equal(pieces_verify(pieces, &why), 0);
        pieces_close(&pieces);
    }
}

// The run has gone back, and comes to a step again that was saved before.
static void a_later_attempt_replaces_an_earlier_one(void **state)
{
    (void)state;
    uint32_t missing;
    pieces_t *pieces = NULL;
    save_all(5); // Attempt 1
    for (uint64_t attempt = 3; attempt >= 2; attempt--) {
        for (uint32_t w = 0; w < WORKERS; w++)
            assert_int_equal(write_worker(5, (uint32_t)attempt, w), 0);
        const struct pieces_save save = save_of(5, (uint32_t)attempt, 0, WORKERS);
        const int rc = pieces_seal(&save, &why, &missing);
        if (rc != (attempt == 3 ? 0 : FAULT_BUSY)) fail_msg("%d %s", rc, why.text);
        assert_int_equal(pieces_open(root, 5, "a", &why, &pieces), 0);
        assert_int_equal(pieces_about(pieces)->attempt, 3);
        assert_int_equal(pieces_verify(pieces, &why), 0);
        pieces_close(&pieces);
    }
    assert_false(is_there("step-00000005.save-0"));
}

// ---- the cut ------------------------------------------------------------------------------------

static ino_t cut_file(char name[64])
{
    ino_t inode = 0;
    struct stat stat_of;
    DIR *list = opendir(root);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (strncmp(entry->d_name, "meta-", 5) != 0) continue;
        assert_int_equal(inode, 0); // One
        snprintf(name, 64, "%.63s", entry->d_name);
        assert_int_equal(stat(path_of(name), &stat_of), 0);
        inode = stat_of.st_ino;
    }
    closedir(list);
    return inode;
}

static void flip(const char *name, off_t at)
{
    uint8_t byte;
    const int fd = open(path_of(name), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

// It is written once for all saves that have it, again when an item is added, and removed with the
// last of them.
static void an_unchanged_cut_is_not_written_again(void **state)
{
    (void)state;
    char before[64], after[64];
    save_all(1);
    const ino_t inode = cut_file(before);
    assert_int_not_equal(inode, 0);
    save_all(2);
    assert_int_equal(cut_file(after), inode);
    for (uint32_t w = 0; w < WORKERS; w++) {
        const struct pieces_save save = save_of(3, 1, w, WORKERS);
        const struct pieces_part parts[] = {
            { "m", TAG_RESHARD, 1, BIG, big + (size_t)w * BIG },
            { "schedule", TAG_REPLICATE, 1, 5, "abcde" },
            { "added", TAG_DROP, 1, 1, "x" },
        };
        assert_int_equal(pieces_write(&save, parts, 3, &why), 0);
    }
    assert_int_equal(seal(3, 1), WORKERS);
    assert_int_equal(clean(3, 1, 1, UINT64_MAX), 0);
    assert_int_not_equal(cut_file(after), inode); // One is left, the new one
    assert_string_not_equal(before, after);
    pieces_t *pieces = open_save(3);
    assert_int_equal(pieces_verify(pieces, &why), 0);
    pieces_close(&pieces);
}

// The next save that has it writes it anew, and the earlier one is whole again.
static void a_damaged_cut_is_written_again(void **state)
{
    (void)state;
    char name[64];
    pieces_t *pieces = NULL;
    save_all(1);
    cut_file(name);
    flip(name, 30);
    assert_int_equal(pieces_open(root, 1, "a", &why, &pieces), FAULT_DIGEST);
    save_all(2);
    for (uint64_t step = 1; step <= 2; step++) {
        pieces = open_save(step);
        assert_int_equal(pieces_verify(pieces, &why), 0);
        pieces_close(&pieces);
    }
}

static void a_cut_says_where_each_tensor_lies(void **state)
{
    (void)state;
    struct layout_tensor tensors[2];
    struct layout layout;
    layout_init(&layout, tensors, 2);
    assert_int_equal(layout_add_matrix(&layout, "w", 10, 30, LAYOUT_F32, &why), 0);
    assert_int_equal(layout_add_vector(&layout, "norm", 30, LAYOUT_F32, &why), 0);
    for (uint32_t w = 0; w < WORKERS; w++) {
        const struct pieces_save save = save_of(1, 1, w, WORKERS);
        const struct pieces_part part = { "m", TAG_RESHARD, 4, 165, big };
        assert_int_equal(pieces_write(&save, &part, 1, &why), 0);
    }
    struct pieces_save save = save_of(1, 1, 0, WORKERS);
    uint32_t missing;
    save.layout = &layout;
    assert_int_equal(pieces_seal(&save, &why, &missing), 0);
    pieces_t *pieces = open_save(1);
    const struct layout *read = &pieces_meta(pieces)->layout;
    assert_int_equal(read->count, 2);
    assert_string_equal(read->tensors[1].name, "norm");
    assert_int_equal(read->tensors[1].offset, 300);
    assert_int_equal(read->tensors[0].rows, 10);
    assert_int_equal(read->tensors[0].cols, 30);
    assert_int_equal(read->tensors[1].dims, 1);
    assert_int_equal(read->total, 330);
    pieces_close(&pieces);
}

// ---- damage -------------------------------------------------------------------------------------

static void refuse_open(int fault, const char *words)
{
    pieces_t *pieces = NULL;
    assert_int_equal(pieces_open(root, 5, "a", &why, &pieces), fault);
    if (!strstr(why.text, words)) print_message("%s\n", why.text);
    assert_non_null(strstr(why.text, words));
    assert_non_null(strstr(why.text, "step-00000005"));
}

static void a_damaged_leaf_is_named_and_the_others_are_read(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(BIG);
    assert_non_null(bytes);
    save_all(5);
    flip("step-00000005/m.0-196708", 2 * LEAF + 5);
    pieces_t *pieces = open_save(5);
    const struct pieces_item *item = pieces_find(pieces, "m");
    assert_int_equal(pieces_read(pieces, item, (struct interval){ 0, BIG }, bytes, &why),
                     FAULT_DIGEST);
    assert_non_null(strstr(why.text, "m.0-196708: bytes 131072 to 196608 are not those"));
    assert_int_equal(pieces_read(pieces, item, (struct interval){ 0, 2 * LEAF }, bytes, &why), 0);
    assert_memory_equal(bytes, big, 2 * LEAF);
    assert_int_equal(pieces_verify(pieces, &why), FAULT_DIGEST);
    pieces_close(&pieces);
    free(bytes);
}

static void damage_is_named(void **state)
{
    (void)state;
    char name[64];
    save_all(5);
    flip("step-00000005/m.0-196708", BIG + 3); // Of the hashes
    pieces_t *pieces = open_save(5);
    assert_int_equal(pieces_verify(pieces, &why), FAULT_DIGEST);
    assert_non_null(strstr(why.text, "its hashes have the root"));
    pieces_close(&pieces);
    assert_int_equal(truncate(path_of("step-00000005/m.0-196708"), BIG), 0);
    refuse_open(FAULT_CORRUPT, "m.0-196708 has 196708 bytes, by the cut it has 196836");
    assert_int_equal(unlink(path_of("step-00000005/m.0-196708")), 0);
    refuse_open(FAULT_CORRUPT, "incomplete: m.0-196708");
    cut_file(name);
    flip(name, 30);
    refuse_open(FAULT_DIGEST, "has SHA-256");
    assert_int_equal(unlink(path_of(name)), 0);
    refuse_open(FAULT_CORRUPT, "incomplete");
    flip("step-00000005/shoal.json", 60);
    refuse_open(FAULT_DIGEST, "does not match its own sha256");
    assert_int_equal(unlink(path_of("step-00000005/shoal.json")), 0);
    refuse_open(FAULT_CORRUPT, "incomplete");
}

static void a_renamed_or_foreign_save_is_refused(void **state)
{
    (void)state;
    pieces_t *pieces;
    char from[512];
    save_all(4);
    snprintf(from, sizeof from, "%s", path_of("step-00000004"));
    assert_int_equal(rename(from, path_of("step-00000005")), 0);
    refuse_open(FAULT_CORRUPT, "says step 4: it was renamed");
    assert_int_equal(rename(path_of("step-00000005"), from), 0);
    assert_int_equal(pieces_open(root, 4, "b", &why, &pieces), FAULT_FOREIGN);
    assert_int_equal(pieces_open(root, 4, NULL, &why, &pieces), 0);
    pieces_close(&pieces);
}

// Cut and manifest each match their own hash, but not each other: a piece of another cut is never
// read.
static void a_cut_of_another_save_is_refused(void **state)
{
    (void)state;
    char old[64], other[64], line[1024];
    save_all(5);
    cut_file(old);
    for (uint32_t w = 0; w < WORKERS; w++) {
        const struct pieces_save save = save_of(6, 1, w, WORKERS);
        const struct pieces_part part = { "m", TAG_RESHARD, 1, 10 + w, big };
        assert_int_equal(pieces_write(&save, &part, 1, &why), 0);
    }
    assert_int_equal(unlink(path_of(old)), 0);
    assert_int_equal(seal(6, 1), WORKERS);
    cut_file(other);
    snprintf(line, sizeof line, "%s", path_of(other));
    assert_int_equal(rename(line, path_of(old)), 0);
    refuse_open(FAULT_DIGEST, "has SHA-256");
}

// ---- what is read -------------------------------------------------------------------------------

// A row is a leaf, so that what is read is what is owned and its hashes.
static void a_reader_reads_what_it_asked_for(void **state)
{
    (void)state;
    enum { ROWS = 37, OLD = 3, NEW = 5 };
    uint8_t *rows = malloc((size_t)ROWS * LEAF), *read = malloc((size_t)ROWS * LEAF);
    assert_non_null(rows);
    assert_non_null(read);
    for (size_t i = 0; i < (size_t)ROWS * LEAF; i++) rows[i] = (uint8_t)(i * 7 + (i >> 16));
    for (uint32_t w = 0; w < OLD; w++) {
        struct pieces_save save = save_of(1, 1, w, WORKERS);
        const struct interval at = interval_share(ROWS, w, OLD);
        const struct pieces_part part = { "rows", TAG_RESHARD, LEAF, interval_length(at),
                                          rows + at.begin * LEAF };
        save.workers = OLD;
        assert_int_equal(pieces_write(&save, &part, 1, &why), 0);
    }
    struct pieces_save save = save_of(1, 1, 0, WORKERS);
    uint32_t missing;
    save.workers = OLD;
    assert_int_equal(pieces_seal(&save, &why, &missing), 0);
    for (uint32_t w = 0; w < NEW; w++) {
        pieces_t *pieces = open_save(1);
        const struct interval at = interval_share(ROWS, w, NEW);
        const struct pieces_item *item = pieces_find(pieces, "rows");
        uint64_t hashes = 0;
        for (uint32_t o = 0; o < OLD; o++) {
            const struct interval has = interval_share(ROWS, o, OLD);
            if (!interval_empty(interval_meet(has, at)))
                hashes += interval_length(has) * HASH_BYTES;
        }
        const uint64_t before = bytes_read();
        assert_int_equal(pieces_read(pieces, item, at, read + at.begin * LEAF, &why), 0);
        const uint64_t did = bytes_read() - before, wants = interval_length(at) * LEAF + hashes;
        assert_in_range(did, wants, wants + COUNT_BYTES);
        pieces_close(&pieces);
    }
    assert_memory_equal(read, rows, (size_t)ROWS * LEAF);
    free(rows);
    free(read);
}

// Any interval of any piece, whole leaves and parts of leaves.
static void any_interval_is_read(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(2 * BIG);
    assert_non_null(bytes);
    save_all(5);
    pieces_t *pieces = open_save(5);
    const struct pieces_item *item = pieces_find(pieces, "m");
    const uint64_t places[] = { 0,       1,   LEAF - 1, LEAF,       LEAF + 1,    3 * LEAF,
                                BIG - 1, BIG, BIG + 1,  BIG + LEAF, 2 * BIG - 1, 2 * BIG };
    enum { PLACES = sizeof places / sizeof *places };
    for (int i = 0; i < PLACES; i++)
        for (int k = i; k < PLACES; k++) {
            const struct interval at = { places[i], places[k] };
            memset(bytes, 0, 2 * BIG);
            assert_int_equal(pieces_read(pieces, item, at, bytes, &why), 0);
            assert_memory_equal(bytes, big + at.begin, interval_length(at));
            if (interval_length(at) < 2 * BIG) assert_int_equal(bytes[interval_length(at)], 0);
        }
    pieces_close(&pieces);
    free(bytes);
}

// ---- cleaning -----------------------------------------------------------------------------------

// Somebody has put the folder of another run in the place of ours.
static void saves_of_another_run_stay(void **state)
{
    struct pieces_save save = save_of(9, 1, 0, 1);
    (void)state;
    for (uint64_t step = 1; step <= 3; step++) save_all(step);
    assert_int_equal(mkdir(path_of("step-00000004.save-1"), 0755), 0);
    save.run = "b";
    assert_int_equal(pieces_clean(&save, 1, &why), FAULT_FOREIGN);
    assert_non_null(strstr(why.text, "is of run 'a'"));
    assert_int_equal(pieces_clean_attempts(&save, &why), FAULT_FOREIGN);
    save.run = "a";
    save.born_unix_ms++; // Another run of this name
    assert_int_equal(pieces_clean(&save, 1, &why), FAULT_FOREIGN);
    for (uint64_t step = 1; step <= 3; step++) {
        char name[32];
        snprintf(name, sizeof name, "step-%08" PRIu64, step);
        assert_true(is_there(name));
    }
    assert_true(is_there("step-00000004.save-1"));
}

// Somebody has put one folder of another run beside ours. It stays, does not count, and ours are cleaned all the same.
static void a_save_of_another_run_does_not_end_the_cleaning(void **state)
{
    struct pieces_save save = save_of(9, 1, 0, 1), theirs = save_of(5, 1, 0, 1);
    const struct pieces_part part = { "m", TAG_RESHARD, 1, BIG, big };
    uint32_t missing;
    (void)state;
    for (uint64_t step = 1; step <= 4; step++) save_all(step);
    theirs.run = "b";
    assert_int_equal(pieces_write(&theirs, &part, 1, &why), 0);
    assert_int_equal(pieces_seal(&theirs, &why, &missing), 0);
    assert_int_equal(pieces_clean(&save, 1, &why), 0);
    assert_true(is_there("step-00000005"));
    assert_true(is_there("step-00000004"));
    assert_false(is_there("step-00000003"));
}

static void the_newest_saves_stay(void **state)
{
    (void)state;
    for (uint64_t step = 1; step <= 5; step++) save_all(step);
    assert_int_equal(mkdir(path_of("step-00000002.save-7"), 0755), 0);
    assert_int_equal(mkdir(path_of("step-00000006.save-1"), 0755), 0); // Of the save under way
    assert_int_equal(mkdir(path_of("step-00000002.savings"), 0755), 0);
    assert_int_equal(mkdir(path_of("new.7.0.meta-5.json"), 0755), 0); // Its writer died
    assert_int_equal(clean(5, 1, 2, 3), 0);
    assert_false(is_there("new.7.0.meta-5.json"));
    assert_true(is_there("step-00000003"));
    assert_false(is_there("step-00000002") || is_there("step-00000001"));
    assert_int_equal(clean(5, 1, 2, UINT64_MAX), 0);
    assert_true(is_there("step-00000005") && is_there("step-00000004"));
    assert_false(is_there("step-00000003"));
    assert_false(is_there("step-00000002.save-7"));
    assert_true(is_there("step-00000006.save-1"));
    assert_true(is_there("step-00000002.savings")); // None of ours
}

// A file system's own folder within a save, say. All else is removed, each time, and the fault is told.
static void what_cannot_be_removed_stays_alone(void **state)
{
    (void)state;
    for (uint64_t step = 1; step <= 5; step++) save_all(step);
    assert_int_equal(mkdir(path_of("step-00000002/@eaDir"), 0755), 0);
    assert_int_equal(mkdir(path_of("step-00000001.save-7"), 0755), 0);
    assert_int_equal(mkdir(path_of("step-00000001.save-7/x"), 0755), 0);
    assert_true(clean(5, 1, 2, UINT64_MAX) < 0);
    for (uint64_t step = 6; step <= 7; step++) save_all(step);
    assert_true(clean(7, 1, 2, UINT64_MAX) < 0);
    assert_true(is_there("step-00000007") && is_there("step-00000006"));
    for (int step = 1; step <= 5; step++) {
        char name[32];
        snprintf(name, sizeof name, "step-%08d", step);
        assert_false(is_there(name));
    }
}

// Folders that somebody made beside the saves, and saves whose manifests are damaged: the newest stays.
static void what_is_no_save_is_not_counted_and_stays(void **state)
{
    static const char *const others[] = { "step-99999998", "step-99999999", "step-00000005" };
    (void)state;
    for (uint64_t step = 1; step <= 5; step++) save_all(step);
    for (int i = 0; i < 2; i++) assert_int_equal(mkdir(path_of(others[i]), 0755), 0);
    assert_int_equal(truncate(path_of("step-00000005/" CHECKPOINT_MANIFEST), 10), 0);
    assert_int_equal(truncate(path_of("step-00000001/" CHECKPOINT_MANIFEST), 10), 0);
    assert_int_equal(clean(5, 1, 2, UINT64_MAX), 0);
    assert_true(is_there("step-00000004") && is_there("step-00000003"));
    assert_false(is_there("step-00000002") || is_there("step-00000001"));
    for (int i = 0; i < 3; i++) assert_true(is_there(others[i]));
    uint64_t steps[CHECKPOINT_LIST_MAX];
    size_t count;
    assert_int_equal(pieces_list(root, NULL, steps, &count), 0);
    assert_int_equal(count, 3);
    assert_true(steps[0] == 5 && steps[1] == 4 &&
                steps[2] == 3); // The damaged one is named as it is opened
}

// The workers have taken different steps: what all have alike is as the first one has it.
static void of_what_is_alike_the_first_value_may_do(void **state)
{
    (void)state;
    char read[5] = "";
    for (uint32_t w = 0; w < WORKERS; w++) {
        const struct pieces_save save = save_of(3, 1, w, WORKERS);
        struct pieces_part parts[] = {
            { "m", TAG_RESHARD, 1, BIG, big + (size_t)w * BIG },
            { "schedule", TAG_REPLICATE, 1, 5, w == 0 ? "abcde" : NULL },
        };
        assert_int_equal(pieces_write(&save, parts, 2, &why), 0);
        parts[w == 0].bytes = NULL; // Those count
        assert_int_equal(pieces_write(&save, parts, 2, &why), FAULT_RANGE);
    }
    assert_int_equal(seal(3, 1), WORKERS);
    pieces_t *pieces = open_save(3);
    assert_int_equal(pieces_verify(pieces, &why), 0);
    assert_int_equal(
        pieces_read(pieces, pieces_find(pieces, "schedule"), (struct interval){ 0, 5 }, read, &why),
        0);
    assert_memory_equal(read, "abcde", 5);
    pieces_close(&pieces);
}

TESTS(TEST_WITH(a_save_of_another_run_does_not_end_the_cleaning, set_up_big, tear_down),
      TEST_WITH(of_what_is_alike_the_first_value_may_do, set_up_big, tear_down),
      TEST_WITH(what_is_no_save_is_not_counted_and_stays, set_up_big, tear_down),
      TEST_WITH(a_save_is_whole_or_not_there, set_up_big, tear_down),
      TEST_WITH(a_worker_that_died_is_replaced_by_the_next_attempt, set_up_big, tear_down),
      TEST_WITH(who_is_killed_while_it_seals_leaves_the_older_save, set_up_big, tear_down),
      TEST_WITH(many_may_seal_at_once, set_up_big, tear_down),
      TEST_WITH(a_later_attempt_replaces_an_earlier_one, set_up_big, tear_down),
      TEST_WITH(an_unchanged_cut_is_not_written_again, set_up_big, tear_down),
      TEST_WITH(a_damaged_cut_is_written_again, set_up_big, tear_down),
      TEST_WITH(a_cut_says_where_each_tensor_lies, set_up_big, tear_down),
      TEST_WITH(a_damaged_leaf_is_named_and_the_others_are_read, set_up_big, tear_down),
      TEST_WITH(damage_is_named, set_up_big, tear_down),
      TEST_WITH(a_renamed_or_foreign_save_is_refused, set_up_big, tear_down),
      TEST_WITH(a_cut_of_another_save_is_refused, set_up_big, tear_down),
      TEST_WITH(a_reader_reads_what_it_asked_for, set_up_big, tear_down),
      TEST_WITH(any_interval_is_read, set_up_big, tear_down),
      TEST_WITH(the_newest_saves_stay, set_up_big, tear_down),
      TEST_WITH(what_cannot_be_removed_stays_alone, set_up_big, tear_down),
      TEST_WITH(saves_of_another_run_stay, set_up_big, tear_down))
