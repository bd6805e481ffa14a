// What an actor that crashes leaves behind. By itself nothing, whatever the machine's settings are.
// SHOAL_DUMPABLE=1 allows a core dump, for debugging. In such a dump there is no key that signs: the test reads
// what a dump would have from each actor of a run, and the dumps themselves where this machine makes them. While an
// actor signs, for some 25 microseconds, libsodium has the scalar on the stack. So one look may find it; then none of
// the next ones may.

#include "common/base/ensure.h"
#include "common/net/curve.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 16 << 20, OVERLAP = 256, ACTORS = 7, LOOKS = 5, BETWEEN_MS = 20 };

static const char *const dumpable[] = { "SHOAL_DUMPABLE=1", NULL };

// False: this machine makes none.
static bool crashes_with_a_dump(struct testbed *bed, const char *name)
{
    struct testbed_actor *actor = testbed_actor(bed, name);
    actor->may_end = true;
    testbed_signal(bed, name, SIGABRT);
    testbed_signal(bed, name, SIGCONT); // If it is stopped: it ends in the state that was looked at
    testbed_await_end(bed, name, TESTBED_WAIT_MS);
    assert_true(WIFSIGNALED(actor->status) && WTERMSIG(actor->status) == SIGABRT);
    return WCOREDUMP(actor->status);
}

static bool may_dump(void)
{
    const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    if (setrlimit(RLIMIT_CORE, &all) == 0) return true;
    print_message("core dumps are not allowed here (ulimit -Hc)\n");
    return false;
}

static void no_actor_leaves_its_memory_behind(void **state)
{
    struct testbed *bed = *state = testbed_new(
        &(struct testbed_options){ .trainers = 1, .witnesses = 1, .total_steps = 4000 });
    unsigned crashed = 0;
    unsetenv("SHOAL_DUMPABLE");
    if (!may_dump()) skip();
    testbed_start_with(bed, "broker", &(struct testbed_launch){ .env = dumpable });
    testbed_await_log(bed, "broker", "broker.ready", TESTBED_WAIT_MS);
    if (!crashes_with_a_dump(bed, "broker")) {
        print_message("this machine makes no core dumps (core_pattern): nothing is shown\n");
        skip();
    }
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    for (unsigned i = bed->actors_count; i-- > 0;) { // The broker last
        if (!bed->actors[i].pid) continue;
        if (crashes_with_a_dump(bed, bed->actors[i].name))
            fail_msg("%s left a core dump", bed->actors[i].name);
        crashed++;
    }
    assert_int_equal(crashed, 6);
}

// ---- what is looked for -------------------------------------------------------------------------

// An actor's secret in each form in which somebody could sign with it; and two that must be found, or the
// search is blind: its public key, and of the broker the CURVE secret that libzmq keeps.
enum form { SEED, SCALAR, SCALAR_RAW, PREFIX, FORMS, PUBLIC = FORMS, CURVE_SECRET, ALL_FORMS };
static const char *const form_names[ALL_FORMS] = { "the secret",        "the scalar that signs",
                                                   "the secret's hash", "the nonces' prefix",
                                                   "the public key",    "the CURVE secret" };

struct needles {
    uint8_t bytes[ALL_FORMS][32];
    char hex[ALL_FORMS][65];
    unsigned found[ALL_FORMS];
};

static void find_needles(struct testbed *bed, const char *name, struct needles *ret_needles)
{
    uint8_t hash[crypto_hash_sha512_BYTES];
    struct identity *identity = testbed_identity(name);
    struct curve_pair pair;
    char path[PATH_MAX];
    struct needles *to = ret_needles;
    *to = (struct needles){ .found = { 0 } };
    snprintf(path, sizeof path, "%s/%s.key", bed->dir, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ensure(fd >= 0 && read(fd, to->bytes[SEED], 32) == 32);
    close(fd);
    crypto_hash_sha512(hash, to->bytes[SEED], 32);
    memcpy(to->bytes[SCALAR_RAW], hash, 32);
    memcpy(to->bytes[PREFIX], hash + 32, 32);
    hash[0] &= 248, hash[31] = (uint8_t)((hash[31] & 127) | 64);
    memcpy(to->bytes[SCALAR], hash, 32);
    memcpy(to->bytes[PUBLIC], identity_key(identity)->bytes, 32);
    curve_of_broker(identity, &pair);
    memcpy(to->bytes[CURVE_SECRET], pair.secret, 32);
    for (int i = 0; i < ALL_FORMS; i++)
        sodium_bin2hex(to->hex[i], sizeof to->hex[i], to->bytes[i], 32);
    identity_destroy(&identity);
}

static unsigned count_in(const uint8_t *bytes, size_t count, const void *needle, size_t length)
{
    unsigned found = 0;
    const uint8_t *end = bytes + count;
    for (const uint8_t *at = bytes; (at = memmem(at, (size_t)(end - at), needle, length)); at++)
        found++;
    return found;
}

static void search(const uint8_t *bytes, size_t count, struct needles *needles)
{
    for (int i = 0; i < ALL_FORMS; i++)
        needles->found[i] += count_in(bytes, count, needles->bytes[i], 32) +
                             count_in(bytes, count, needles->hex[i], 64);
}

// From `at` up to `end`, or as far as it can be read.
static void search_file(int fd, uint64_t at, uint64_t end, struct needles *needles)
{
    static uint8_t chunk[CHUNK];
    while (at < end) {
        const size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        const ssize_t count = pread(fd, chunk, want, (off_t)at);
        if (count <= 0) return;
        search(chunk, (size_t)count, needles);
        if ((uint64_t)count == end - at || count <= OVERLAP) return;
        at += (uint64_t)count - OVERLAP;
    }
}

static void judge(const struct needles *needles, const char *name, const char *where)
{
    print_message("%-14s %-9s public key %u times, CURVE secret %u\n", name, where,
                  needles->found[PUBLIC], needles->found[CURVE_SECRET]);
    for (int i = 0; i < FORMS; i++)
        if (needles->found[i])
            fail_msg("%s: %s is %u times in its %s", name, form_names[i], needles->found[i], where);
    if (!needles->found[PUBLIC]) fail_msg("%s: the search of its %s saw nothing", name, where);
    if (strcmp(name, "broker") == 0) assert_true(needles->found[CURVE_SECRET] > 0);
}

// ---- where ------------------------------------------------------------------------------------

struct mapping {
    uint64_t begin, end, inode;
    char perms[5];
};

// What the kernel puts into a dump: private memory that is not a file's, or was written to, and is not marked
// "dd" (MADV_DONTDUMP). Once the flags of a mapping come, all else of it is known.
static void search_memory(pid_t pid, const char *name, struct needles *needles)
{
    struct mapping mapping = { .begin = 0 }, next;
    char path[64], line[4096 + 512];
    unsigned kept_out = 0;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
    FILE *maps = fopen(path, "re");
    ensure(fd >= 0 && maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &next.begin, &next.end,
                   next.perms, &next.inode) == 4)
            mapping = next;
        if (strncmp(line, "VmFlags:", 8) != 0) continue;
        const bool is_out = strstr(line, " dd") != NULL;
        const bool is_file = mapping.inode && mapping.perms[1] != 'w';
        kept_out += is_out;
        if (mapping.perms[0] == 'r' && mapping.perms[3] == 'p' && !is_out && !is_file)
            search_file(fd, mapping.begin, mapping.end, needles);
    }
    fclose(maps);
    close(fd);
    if (!kept_out) fail_msg("%s: no memory is marked to be kept out of a dump", name);
}

// False: it left none where it ran.
static bool search_dump(const struct testbed *bed, pid_t pid, struct needles *needles)
{
    char paths[2][PATH_MAX];
    snprintf(paths[0], PATH_MAX, "%s/core", bed->dir);
    snprintf(paths[1], PATH_MAX, "%s/core.%d", bed->dir, (int)pid);
    for (int i = 0; i < 2; i++) {
        const int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        search_file(fd, 0, (uint64_t)lseek(fd, 0, SEEK_END), needles);
        close(fd);
        unlink(paths[i]);
        return true;
    }
    return false;
}

static bool has_key(const struct needles *needles)
{
    bool has = false;
    for (int i = 0; i < FORMS; i++) has |= needles->found[i] > 0;
    return has;
}

// Stopped, so that nothing moves while it is read, and so it is left.
static void look(struct testbed *bed, const char *name, struct needles *needles)
{
    const pid_t pid = testbed_actor(bed, name)->pid;
    int status;
    find_needles(bed, name, needles);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    search_memory(pid, name, needles);
}

static void search_actor(struct testbed *bed, const char *name)
{
    const pid_t pid = testbed_actor(bed, name)->pid;
    const struct timespec between = { .tv_nsec = BETWEEN_MS * 1000000L };
    struct needles needles;
    look(bed, name, &needles);
    const bool may_sign = has_key(&needles);
    for (int looks = 1; may_sign && looks < LOOKS; looks++) {
        assert_int_equal(kill(pid, SIGCONT), 0);
        nanosleep(&between, NULL); // No event tells that it has signed
        look(bed, name, &needles);
        if (has_key(&needles)) break;
    }
    judge(&needles, name, "memory");
    find_needles(bed, name, &needles);
    if (!crashes_with_a_dump(bed, name) || !search_dump(bed, pid, &needles))
        print_message("%s: this machine leaves no core file (core_pattern, ulimit -Hc)\n", name);
    else judge(&needles, name, "core dump");
}

// One trainer has its secret in the environment as well, which a dump would show.
static void no_dump_has_a_key_that_signs(void **state)
{
    struct testbed *bed = *state = testbed_new(
        &(struct testbed_options){ .trainers = 2, .witnesses = 1, .total_steps = 4000 });
    char secret[128] = IDENTITY_ENV "=";
    struct needles needles;
    setenv("SHOAL_DUMPABLE", "1", 1);
    may_dump();
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    testbed_signal(bed, "trainer1", SIGKILL);
    find_needles(bed, "trainer1", &needles);
    snprintf(secret + strlen(secret), sizeof secret - strlen(secret), "%s", needles.hex[SEED]);
    testbed_start_with(bed, "trainer1",
                       &(struct testbed_launch){ .env = (const char *const[]){ secret, NULL } });
    testbed_await_log(bed, "trainer1", "member.admitted", TESTBED_WAIT_MS);
    testbed_await_step(bed, bed->news.commits + 2);
    unsigned searched = 0;
    for (unsigned i = bed->actors_count; i-- > 0;)
        if (bed->actors[i].pid) {
            search_actor(bed, bed->actors[i].name);
            searched++;
        }
    assert_int_equal(searched, ACTORS);
    unsetenv("SHOAL_DUMPABLE");
}

TESTS(TESTBED_TEST(no_actor_leaves_its_memory_behind), TESTBED_TEST(no_dump_has_a_key_that_signs))
