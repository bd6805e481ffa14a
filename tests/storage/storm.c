// storm -- makes records from their numbers, reopens a ledger after a fault, and judges what it
// still holds.

#include "tests/storage/storm.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t storm_roll(uint64_t *prng, uint64_t below)
{
    uint64_t z = *prng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return below ? z % below : 0;
}

size_t storm_fill(uint64_t seed, uint64_t seq, uint8_t bytes[STORM_RECORD_MAX])
{
    uint64_t prng = seed ^ seq * 0xD1342543DE82EF95u;
    size_t count = storm_roll(&prng, storm_roll(&prng, 8) ? 400 : STORM_RECORD_MAX);
    for (size_t i = 0; i < count; i += 8) {
        const uint64_t word = storm_roll(&prng, 0);
        memcpy(bytes + i, &word, count - i < 8 ? count - i : 8);
    }
    return count;
}

static int append(struct ledger *ledger, uint64_t seed, uint64_t *prng, struct why *why)
{
    uint8_t bytes[STORM_RECORD_MAX];
    struct position head;
    ledger_head(ledger, &head.seq, &head.chain);
    uint64_t seq = head.seq, count = 1 + storm_roll(prng, STORM_TRANSACTION_MAX);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t key = ++seq;
        int rc = ledger_append(ledger, bytes, storm_fill(seed, seq, bytes), seq % 3 ? &key : NULL,
                               why, &seq);
        if (rc < 0) return rc;
    }
    if (storm_roll(prng, 4)) return 0;
    return ledger_put_snapshot(ledger, bytes, storm_fill(seed, ~seq, bytes), why);
}

int storm_commit(struct ledger *ledger, uint64_t seed, uint64_t *prng, struct why *why,
                 struct position *ret_after)
{
    int rc = ledger_begin(ledger, why);
    if (rc == 0) rc = append(ledger, seed, prng, why);
    if (rc == 0) rc = ledger_commit(ledger, why);
    if (rc < 0) return rc;
    ledger_head(ledger, &ret_after->seq, &ret_after->chain);
    return 0;
}

// ---- the verdict --------------------------------------------------------------------------------

struct look {
    uint64_t seed, next;
};

static int look(void *arg, const struct record *record)
{
    struct look *self = arg;
    uint8_t bytes[STORM_RECORD_MAX];
    const size_t count = storm_fill(self->seed, record->seq, bytes);
    bool same = record->seq == self->next++ && record->count == count &&
                memcmp(record->bytes, bytes, count) == 0;
    return same ? 0 : FAULT_DIGEST;
}

// A coordinator on an older ledger that goes on reaches the old ledger head with another history.
// If it cannot go on, its process ends, which is as good.
static bool is_detected_later(struct ledger *ledger, const struct position *confirmed)
{
    struct position now = { 0 };
    struct why why;
    uint64_t prng = confirmed->seq;
    while (now.seq < confirmed->seq)
        if (storm_commit(ledger, ~confirmed->seq, &prng, &why, &now) < 0) return true;
    return ledger_covers(ledger, confirmed->seq, &confirmed->chain, &why) == FAULT_CORRUPT;
}

static bool judge_opened(struct ledger *ledger, uint64_t seed, const struct position *confirmed,
                         bool may_tear, struct tally *tally, struct why *why)
{
    struct position head;
    struct look looking = { seed, 1 };
    ledger_head(ledger, &head.seq, &head.chain);
    tally->head = head;
    if (head.seq > 0 && ledger_each(ledger, looking.next, look, &looking, why) < 0) {
        if (!why->text[0])
            why_set(why, FAULT_DIGEST, "record %" PRIu64 " is not what was written",
                    (uint64_t)looking.next - 1);
        return false;
    }
    if (looking.next != head.seq + 1 || head.seq > confirmed->seq + STORM_TRANSACTION_MAX) {
        why_set(why, FAULT_CORRUPT, "records up to %" PRIu64 ", head %" PRIu64,
                (uint64_t)looking.next - 1, head.seq);
        return false;
    }
    tally->unacknowledged += head.seq > confirmed->seq;
    int rc = ledger_covers(ledger, confirmed->seq, &confirmed->chain, why);
    if (head.seq >= confirmed->seq) return rc == 0;
    tally->rollbacks++;
    if (rc != FAULT_CORRUPT) return false;
    tally->detected++;
    return is_detected_later(ledger, confirmed) && may_tear;
}

bool storm_judge(const char *dir, uint64_t seed, const struct position *confirmed, bool may_tear,
                 struct tally *tally)
{
    static const struct ledger_options options = { .map_bytes_start = 1 << 20 };
    struct ledger *ledger = NULL;
    struct why why = { 0 };
    const uint64_t rollbacks = tally->rollbacks;
    bool good = false;
    tally->trials++;
    int rc = ledger_open(dir, "storm", &options, &why, &ledger);
    if (rc == 0) good = judge_opened(ledger, seed, confirmed, may_tear, tally, &why);
    if (!good && rc < 0) good = rc == FAULT_CORRUPT && confirmed->seq == 0;
    if (good && rc < 0) tally->unborn++;
    bool refused = !good && may_tear && tally->rollbacks == rollbacks && why.text[0];
    tally->refused += refused;
    ledger_close(&ledger);
    if (good || refused) return true;
    tally->lost++;
    fprintf(stderr, "# lost: seed %" PRIu64 ", record %" PRIu64 " was confirmed: %s\n", seed,
            confirmed->seq, why.text);
    return false;
}

// ---- places -------------------------------------------------------------------------------------

void storm_make_dir(char dir[256])
{
    const char *tmp = getenv("TMPDIR"), *memory = "/dev/shm";
    snprintf(dir, 256, "%s/shoal-storage.XXXXXX",
             tmp                         ? tmp
             : access(memory, W_OK) == 0 ? memory
                                         : "/tmp");
    ensure(mkdtemp(dir));
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

void storm_remove_dir(const char *dir) { nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

void storm_judge_apart(const char *dir, uint64_t seed, const struct position *known,
                       struct tally *tally)
{
    int status;
    pid_t child = fork();
    ensure(child >= 0);
    if (child == 0) {
        ensure(freopen("/dev/null", "w", stderr));
        _exit(!storm_judge(dir, seed, known, true, tally));
    }
    ensure(waitpid(child, &status, 0) == child);
    tally->refused += WIFSIGNALED(status);
}
