// The power is cut, and the process is killed, at any instant of a ledger's life: no commit that
// was acknowledged is lost, and what is opened afterwards is a state that there was.
//
// Cuts are modelled. All writes and syncs of a life are recorded (LMDB's calls come here first,
// since a program's own functions go before those of the C library). An image is what the disk may
// hold if the power went before the n-th of them: everything synced, and of what was written since
// any subset, each write whole or torn between sectors of 512 bytes.
//
// LMDB's meta page is a write below a sector. Where a disk tears even that, LMDB falls back by a
// commit in silence, and nobody can see it from the file alone; but the head is then not the one
// that was said to others, and that is how it is detected: by who remembers a later record.
//
// The long form: make chaos POWER=1.

#include "tests/unit/ledger_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum {
    COMMITS = 40,
    OPS_MAX = 4000,
    SECTOR = 512,
    IMAGES = 2000,
    KILLS = 40,
    FRESH_AFTER_KILLS = 10
};
enum op_kind { WRITE, SYNC, ACKNOWLEDGED };

struct op {
    enum op_kind kind;
    bool is_synchronous;                        // A write to a descriptor that is O_DSYNC
    size_t at, count;
    uint8_t *bytes;
    uint64_t head;                              // ACKNOWLEDGED: what the caller was told
};

static struct op ops[OPS_MAX];
static size_t ops_count, file_bytes;
static bool records;                            // Else calls are only passed on
static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

// ---- recording ----------------------------------------------------------------------------------

static bool is_data(int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(data, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

static void note_write(int fd, const void *bytes, size_t count, off_t at)
{
    if (!records || !is_data(fd)) return;
    assert_true(ops_count < OPS_MAX);
    struct op *op = &ops[ops_count++];
    *op = (struct op){ .kind = WRITE, .is_synchronous = (fcntl(fd, F_GETFL) & O_DSYNC) != 0,
                       .at = (size_t)at, .count = count, .bytes = malloc(count) };
    memcpy(op->bytes, bytes, count);
    if (op->at + count > file_bytes) file_bytes = op->at + count;
}

static void note_sync(int fd)
{
    if (records && is_data(fd)) ops[ops_count++] = (struct op){ .kind = SYNC };
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    note_write(fd, bytes, count, at);
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

static void note_parts(int fd, const struct iovec *parts, int count, off_t at)
{
    for (int i = 0; i < count; at += (off_t)parts[i++].iov_len)
        note_write(fd, parts[i].iov_base, parts[i].iov_len, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    note_parts(fd, parts, count, at);
    return syscall(SYS_pwritev, fd, parts, (long)count, (long)at, 0l);
}

// From where the descriptor stands: LMDB seeks before.
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (records) note_parts(fd, parts, count, lseek(fd, 0, SEEK_CUR));
    return syscall(SYS_writev, fd, parts, (long)count);
}

// Nothing is cut off in earnest, so nothing need reach the disk.
int fdatasync(int fd) { return note_sync(fd), 0; }
int fsync(int fd) { return note_sync(fd), 0; }

static void live(void)
{
    records = true;
    struct ledger *ledger = open_ledger(&(struct ledger_options){ .map_bytes_start = 256 << 10 });
    for (unsigned i = 0; i < COMMITS; i++) {
        size_t removed;
        commit_records(ledger, 1 + i % 3, i % 7 == 6 ? "state" : NULL);
        if (i % 16 == 15) assert_int_equal(ledger_trim(ledger, UINT64_MAX, &why, &removed), 0);
        ops[ops_count++] = (struct op){ .kind = ACKNOWLEDGED, .head = head_of(ledger) };
        if (i == COMMITS / 2) {                 // A second life: the incarnation is written, too
            ledger_close(&ledger);
            ledger = open_ledger(NULL);
        }
    }
    ledger_close(&ledger);
    records = false;
}

// ---- an image -----------------------------------------------------------------------------------

static void put_op(uint8_t *image, const struct op *op)
{
    memcpy(image + op->at, op->bytes, op->count);
}

static void put_torn(uint8_t *image, const struct op *op)
{
    for (size_t from = 0; from < op->count; from += SECTOR) {
        const size_t rest = op->count - from;
        if (draw(2)) memcpy(image + op->at + from, op->bytes + from, rest < SECTOR ? rest : SECTOR);
    }
}

// Below a sector: only the first bytes of it arrive, or only the last.
static void put_cut(uint8_t *image, const struct op *op)
{
    const size_t cut = draw(op->count);
    if (draw(2)) memcpy(image + op->at, op->bytes, cut);
    else memcpy(image + op->at + cut, op->bytes + cut, op->count - cut);
}

// What the disk may hold if the power goes just before op `end`. Returns what was acknowledged by
// then.
static uint64_t make_image(uint8_t *image, size_t end, bool below_sector)
{
    uint64_t acknowledged = 0;
    size_t synced = 0;
    const uint64_t some = draw(3);              // None, any, most of what is not synced
    memset(image, 0, file_bytes);
    for (size_t i = 0; i < end; i++) if (ops[i].kind == SYNC) synced = i;
    for (size_t i = 0; i < end; i++) {
        const struct op *op = &ops[i];
        const bool is_last = i + 1 == end;      // It was under way
        if (op->kind == ACKNOWLEDGED) acknowledged = op->head;
        if (op->kind != WRITE) continue;
        if (i < synced || (op->is_synchronous && !is_last)) put_op(image, op);
        else if (below_sector && op->is_synchronous) put_cut(image, op);
        else if (some && draw(4) < 2 * some - 1) draw(3) ? put_op(image, op) : put_torn(image, op);
    }
    return acknowledged;
}

static void write_image(const uint8_t *image)
{
    int fd = open(data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, image, file_bytes) == (ssize_t)file_bytes);
    close(fd);
}

static uint64_t check_whole(struct ledger *ledger)
{
    const uint64_t head = head_of(ledger);
    if (head > 0) assert_holds(ledger, ledger_oldest(ledger), head);
    return head;
}

static unsigned number(const char *name, unsigned otherwise)
{
    return getenv(name) ? (unsigned)strtoul(getenv(name), NULL, 10) : otherwise;
}

static uint64_t oldest_cut(void)                // Before that there is no ledger yet
{
    size_t at = 0;
    while (ops[at].kind != ACKNOWLEDGED) at++;
    return at;
}

// What became of an image, in the order of the tally.
enum outcome { SAME, FURTHER, BACK, REFUSED, ENDED, BROKEN, OUTCOMES };
struct tally { unsigned of[OUTCOMES]; };

static enum outcome open_image(uint64_t acknowledged)
{
    struct ledger *ledger = NULL;
    int rc = ledger_open(dir, "run", NULL, &why, &ledger);
    if (rc < 0) return REFUSED;
    const uint64_t head = check_whole(ledger);
    if (draw(32) == 0) {                        // It goes on from there
        commit_records(ledger, 2, NULL);
        assert_true(head_of(ledger) == head + 2);
    }
    ledger_close(&ledger);
    return head == acknowledged ? SAME : head > acknowledged ? FURTHER : BACK;
}

// LMDB may end a process that opens what contradicts itself: a child's, here.
static enum outcome open_in_child(uint64_t acknowledged)
{
    int status;
    draw(2);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        _exit(open_image(acknowledged));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) return ENDED;
    return WIFEXITED(status) && WEXITSTATUS(status) <= REFUSED ? (enum outcome)WEXITSTATUS(status)
                                                               : BROKEN;
}

static struct tally cut(unsigned images, bool below_sector)
{
    struct tally tally = { 0 };
    uint8_t *image = malloc(file_bytes);
    const size_t first = oldest_cut();
    for (unsigned n = 0; n < images; n++) {
        size_t end = first + 1 + draw(ops_count - first);
        for (int tries = 0;
             below_sector && !(ops[end - 1].kind == WRITE && ops[end - 1].is_synchronous);) {
            assert_true(++tries < 10000);       // Nobody writes meta pages
            end = first + 1 + draw(ops_count - first);
        }
        const uint64_t acknowledged = make_image(image, end, below_sector);
        write_image(image);
        tally.of[below_sector ? open_in_child(acknowledged) : open_image(acknowledged)]++;
        if (tally.of[BROKEN] || (!below_sector && (tally.of[REFUSED] || tally.of[BACK])))
            fail_msg("image %u, cut at call %zu of %zu: %s", n, end, ops_count, why.text);
    }
    free(image);
    return tally;
}

static void forget_ops(void)
{
    while (ops_count > 0) free(ops[--ops_count].bytes);
    file_bytes = 0;
}

static void no_cut_loses_what_was_acknowledged(void **state)
{
    (void)state;
    const unsigned images = number("LEDGER_IMAGES", IMAGES);
    live();
    const struct tally tally = cut(images, false);
    print_message(
        "             %u images of %zu calls: %u as acknowledged, %u with a commit more, 0 lost\n",
        images, ops_count, tally.of[SAME], tally.of[FURTHER]);
    assert_true(tally.of[SAME] > images / 2 && tally.of[FURTHER] > 0);
    forget_ops();
}

// Of a meta page torn below a sector either nothing is lost, or it is not opened, or the head says
// so to anyone who remembers the record that was acknowledged. What is opened is always whole.
static void a_torn_sector_shows_in_the_head(void **state)
{
    (void)state;
    const unsigned images = number("LEDGER_IMAGES", IMAGES) / 10;
    live();
    const struct tally tally = cut(images, true);
    print_message(
        "             %u images with a sector torn: %u as acknowledged, %u further, %u refused, %u "
        "ended by LMDB, %u fell back: the head is not the one that was told\n",
        images, tally.of[SAME], tally.of[FURTHER], tally.of[REFUSED], tally.of[ENDED],
        tally.of[BACK]);
    assert_true(tally.of[SAME] + tally.of[FURTHER] > images / 2);
    forget_ops();
}

// ---- kills --------------------------------------------------------------------------------------

static void commit_for_ever(int out)
{
    struct ledger *ledger = open_ledger(NULL);
    for (unsigned i = 0;; i++) {
        commit_records(ledger, 1 + i % 3, i % 7 == 6 ? "state" : NULL);
        const uint64_t head = head_of(ledger);
        if (write(out, &head, sizeof head) != sizeof head) _exit(1);
    }
}

// Returns what the child was told last.
static uint64_t kill_one(uint64_t before)
{
    int ends[2], status;
    uint64_t head = before, heard;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) commit_for_ever(ends[1]);
    close(ends[1]);
    for (uint64_t n = 1 + draw(20); n > 0; n--)         // It is at work
        if (read(ends[0], &heard, sizeof heard) == sizeof heard) head = heard;
    const struct timespec pause = { .tv_nsec = (long)draw(300000) };
    nanosleep(&pause, NULL);                    // The instant of death is the test
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(ends[0], &heard, sizeof heard) == sizeof heard) head = heard;
    close(ends[0]);
    return head;
}

static void no_kill_loses_what_was_acknowledged(void **state)
{
    const unsigned kills = number("LEDGER_KILLS", KILLS);
    unsigned further = 0;
    uint64_t head = 0;
    for (unsigned n = 0; n < kills; n++) {
        if (n > 0 && n % FRESH_AFTER_KILLS == 0) {
            teardown(state), setup(state);
            head = 0;
        }
        const uint64_t acknowledged = kill_one(head);
        struct ledger *ledger = open_ledger(NULL);
        head = check_whole(ledger);
        assert_true(head >= acknowledged && head <= acknowledged + 3);
        further += head > acknowledged;
        ledger_close(&ledger);
    }
    print_message("             %u kills, %u with a commit more than was acknowledged, 0 lost\n",
                  kills, further);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_cut_loses_what_was_acknowledged),
        TEST(a_torn_sector_shows_in_the_head),
        TEST(no_kill_loses_what_was_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
