#pragma once
// What the ledger's tests share: a directory of their own, and records that can be checked without
// having been kept. One test program includes it once.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/ledger/ledger.h"
#include "tests/test.h"

static char top[256], dir[300], data[320];
static struct why why;

static inline int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

static inline int setup(void **state)
{
    (void)state;
    // In memory where there is such a place: what a killed process wrote is safe in either, and a
    // disk would want milliseconds for every commit.
    const char *tmp = getenv("TMPDIR"), *memory = "/dev/shm";
    snprintf(top, sizeof top, "%s/ledger_test.XXXXXX",
             tmp                         ? tmp
             : access(memory, W_OK) == 0 ? memory
                                         : P_tmpdir);
    if (!mkdtemp(top)) return -1;
    snprintf(dir, sizeof dir, "%s/ledger", top);
    snprintf(data, sizeof data, "%s/data.mdb", dir);
    why.text[0] = 0;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline struct ledger *open_ledger(const struct ledger_options *options)
{
    struct ledger *ledger = NULL;
    int rc = ledger_open(dir, "run", options, &why, &ledger);
    if (rc < 0) fail_msg("%s: %s", fault_name(rc), why.text);
    return ledger;
}

static inline void assert_refused(int fault, const char *run_id, const char *word)
{
    struct ledger *ledger = NULL;
    int rc = ledger_open(dir, run_id, NULL, &why, &ledger);
    if (rc != fault) fail_msg("%s, not %s: %s", fault_name(rc), fault_name(fault), why.text);
    assert_null(ledger);
    if (!strstr(why.text, word)) fail_msg("no \"%s\" in: %s", word, why.text);
    assert_non_null(strstr(why.text, dir));
}

static inline uint64_t head_of(const struct ledger *ledger)
{
    uint64_t seq;
    struct hash hash;
    ledger_head(ledger, &seq, &hash);
    return seq;
}

// The bytes of record `seq` in every test: any record can be checked without having been kept.
static inline size_t fill(uint64_t seq, uint8_t bytes[700])
{
    size_t count = (size_t)(seq * 97 % 700);
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(seq * 31 + i);
    return count;
}

static inline void append(struct ledger *ledger, uint64_t number)
{
    uint8_t bytes[700];
    for (uint64_t i = 0; i < number; i++) {
        uint64_t seq = head_of(ledger) + 1 + i, given, key = 1000 + seq;
        assert_int_equal(
            ledger_append(ledger, bytes, fill(seq, bytes), seq % 2 ? &key : NULL, &why, &given), 0);
        assert_true(given == seq);
    }
}

static inline void commit_records(struct ledger *ledger, uint64_t number, const char *snapshot)
{
    assert_int_equal(ledger_begin(ledger, &why), 0);
    append(ledger, number);
    if (snapshot)
        assert_int_equal(ledger_put_snapshot(ledger, snapshot, strlen(snapshot), &why), 0);
    assert_int_equal(ledger_commit(ledger, &why), 0);
}

static inline int check_next(void *arg, const struct record *record)
{
    uint64_t *next = arg;
    uint8_t bytes[700];
    size_t count = fill(record->seq, bytes);
    if (record->seq != *next || record->count != count || memcmp(record->bytes, bytes, count) != 0)
        return FAULT_DIGEST;
    ++*next;
    return 0;
}

static inline void assert_holds(struct ledger *ledger, uint64_t from, uint64_t to)
{
    uint64_t next = from;
    assert_int_equal(ledger_each(ledger, from, check_next, &next, &why), 0);
    assert_true(next == to + 1 && head_of(ledger) == to);
}

static inline void assert_snapshot(struct ledger *ledger, uint64_t seq, const char *text)
{
    struct snapshot snapshot;
    assert_int_equal(ledger_snapshot(ledger, &why, &snapshot), 0);
    assert_true(snapshot.seq == seq);
    assert_int_equal(snapshot.count, strlen(text));
    if (seq) assert_memory_equal(snapshot.bytes, text, snapshot.count);
}

#define LEDGER_TEST(name) TEST_WITH(name, setup, teardown)
