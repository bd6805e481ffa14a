// kills -- a writer is killed with SIGKILL at any instant, and what it confirmed must be there.

#include "tests/storage/storm.h"
#include "common/base/ensure.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONFIRMED_MAX = 4096, KILLS_PER_LEDGER = 100 };

// Written by the writer, read once it is dead: an entry counts only if its number is within the
// count.
struct shared {
    atomic_ulong count;
    struct position confirmed[CONFIRMED_MAX];
};

static void write_for_ever(const char *dir, uint64_t seed, uint64_t life, struct shared *shared)
{
    struct ledger *ledger;
    struct why why;
    uint64_t prng = seed ^ life << 32;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ledger_open(dir, "storm", NULL, &why, &ledger) < 0) _exit(1);
    for (unsigned long n = 0; n < CONFIRMED_MAX; n++) {
        if (storm_commit(ledger, seed, &prng, &why, &shared->confirmed[n]) < 0) _exit(2);
        atomic_store(&shared->count, n + 1);
    }
    for (;;) pause();
}

// False if the writer ended by itself, which it never should.
static bool kill_one(const char *dir, uint64_t seed, uint64_t life, uint64_t *prng,
                     struct shared *shared)
{
    const struct timespec wait = { .tv_nsec = (long)storm_roll(prng, 12000000) };
    int status;
    atomic_store(&shared->count, 0);
    pid_t child = fork();
    ensure(child >= 0);
    if (child == 0) write_for_ever(dir, seed, life, shared);
    nanosleep(&wait, NULL);
    kill(child, SIGKILL);
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

void storm_kills(uint64_t kills, uint64_t seed, struct tally *tally)
{
    char dir[256];
    uint64_t prng = seed;
    struct position confirmed = { 0 };
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(shared != MAP_FAILED);
    for (uint64_t i = 0; i < kills; i++) {
        if (i % KILLS_PER_LEDGER == 0) {
            if (i > 0) storm_remove_dir(dir);
            storm_make_dir(dir);
            confirmed = (struct position){ 0 };
            seed++;
        }
        if (!kill_one(dir, seed, i, &prng, shared)) tally->lost++;
        const unsigned long count = atomic_load(&shared->count);
        if (count > 0) confirmed = shared->confirmed[count - 1];
        // Unconfirmed records may be there. The next writer then goes on from them, and it may be
        // killed before it confirms anything itself.
        if (storm_judge(dir, seed, &confirmed, false, tally)) confirmed = tally->head;
    }
    if (kills > 0) storm_remove_dir(dir);
    munmap(shared, sizeof *shared);
}
