// A damaged ledger is refused, the damage is named, and the files stay as they are. The damage is
// done through LMDB itself: bit rot below it looks like that from above.

#include "common/base/bytes.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/test.h"
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>

enum { FLIP, REMOVE, REPLACE };

struct deed {
    int how, at;
    const void *bytes;
    size_t count;
};

// Flips a bit of byte `at` (from the end, if negative), removes, or replaces by `bytes`.
static void do_deed(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, const struct deed *deed)
{
    uint8_t bytes[1024];
    MDB_val value = { deed->count, bytes };
    assert_true(deed->count <= sizeof bytes);
    if (deed->how == REMOVE) {
        assert_int_equal(mdb_del(txn, dbi, key, NULL), 0);
        return;
    }
    if (deed->how == REPLACE) {
        memcpy(bytes, deed->bytes, deed->count);
    } else {
        assert_int_equal(mdb_get(txn, dbi, key, &value), 0);
        assert_true(value.mv_size <= sizeof bytes);
        memcpy(bytes, value.mv_data, value.mv_size);
        bytes[deed->at < 0 ? (int)value.mv_size + deed->at : deed->at] ^= 1;
        value.mv_data = bytes;
    }
    assert_int_equal(mdb_put(txn, dbi, key, &value, 0), 0);
}

// Alters an entry behind the ledger's back.
static void alter(const char *table, const void *key_bytes, size_t key_count, struct deed deed)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    uint8_t key_copy[16];
    memcpy(key_copy, key_bytes, key_count);
    MDB_val key = { key_count, key_copy };
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
    assert_int_equal(mdb_env_open(env, dir, MDB_NOSYNC, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, table, 0, &dbi), 0);
    do_deed(txn, dbi, &key, &deed);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void damage(const char *table, const char *name, int how, int at)
{
    alter(table, name, strlen(name), (struct deed){ .how = how, .at = at });
}

static void replace_number(const char *table, uint64_t number, const void *bytes, size_t count)
{
    uint8_t key[8];
    be_put(key, number, 8);
    alter(table, key, sizeof key, (struct deed){ REPLACE, 0, bytes, count });
}

static void damage_number(const char *table, uint64_t number, int how, int at)
{
    uint8_t key[8];
    be_put(key, number, 8);
    alter(table, key, sizeof key, (struct deed){ .how = how, .at = at });
}

static void make_ten(void)
{
    struct ledger *ledger = open_ledger(NULL);
    commit_records(ledger, 10, NULL);
    ledger_close(&ledger);
}

static void every_part_of_a_record_is_guarded(void **state)
{
    (void)state;
    // Magic, flag, number, index key, previous chain, chain, first and last byte
    static const int places[] = { 0, 3, 7, 15, 23, 24, 55, 56, 87, 88, -1 };
    make_ten();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        damage_number("log", 3, FLIP, places[i]);
        assert_refused(FAULT_CORRUPT, "run", "3 ");
        assert_non_null(strstr(why.text, "restore a backup"));
        damage_number("log", 3, FLIP, places[i]);
    }
    struct ledger *ledger = open_ledger(NULL);
    assert_true(ledger_incarnation(ledger) == 2); // No refusal changed anything
    assert_holds(ledger, 1, 10);
    ledger_close(&ledger);
}

static void missing_records_are_named(void **state)
{
    (void)state;
    make_ten();
    damage_number("log", 5, REMOVE, 0);
    assert_refused(FAULT_CORRUPT, "run", "9 records, but meta names record 10 as its head");
    teardown(NULL), setup(NULL), make_ten();
    damage_number("log", 10, REMOVE, 0);
    assert_refused(FAULT_CORRUPT, "run", "record 10 as its head");
    teardown(NULL), setup(NULL), make_ten();
    damage_number("log", 1, REMOVE, 0);
    assert_refused(FAULT_CORRUPT, "run", "record 10 as its head");
    struct ledger *reader;
    assert_int_equal(ledger_open_readonly(dir, &why, &reader), FAULT_CORRUPT);
}

// A record whose own hashes are right, after `previous`.
static struct hash forge(uint64_t seq, const struct hash *previous)
{
    uint8_t stored[RECORD_HEADER_BYTES + 6];
    struct record record = { .seq = seq, .previous = *previous, .bytes = "forged", .count = 6 };
    record.chain = record_chain(previous, seq, record.bytes, record.count);
    record_encode(&record, stored);
    replace_number("log", seq, stored, sizeof stored);
    return record.chain;
}

static void a_forged_record_breaks_the_chain(void **state)
{
    (void)state;
    struct record third;
    struct ledger *ledger = open_ledger(NULL);
    commit_records(ledger, 10, NULL);
    assert_int_equal(ledger_read(ledger, 3, &why, &third), 0);
    struct hash chain = third.chain;
    ledger_close(&ledger);
    forge(4, &chain);
    assert_refused(FAULT_CORRUPT, "run", "record 5 does not follow the chain");
}

// Even where nothing after it gives it away.
static void the_chain_begins_with_nothing(void **state)
{
    (void)state;
    struct hash previous = { { 1 } };
    uint8_t head[8 + HASH_BYTES];
    uint64_t seq;
    struct ledger *ledger = open_ledger(NULL);
    assert_int_equal(ledger_begin(ledger, &why), 0);
    assert_int_equal(ledger_append(ledger, "true", 4, NULL, &why, &seq), 0);
    assert_int_equal(ledger_commit(ledger, &why), 0);
    ledger_close(&ledger);
    struct hash chain = forge(1, &previous);
    be_put(head, 1, 8);
    memcpy(head + 8, chain.bytes, HASH_BYTES);
    alter("meta", "head", 4, (struct deed){ REPLACE, 0, head, sizeof head });
    assert_refused(FAULT_CORRUPT, "run", "record 1 does not follow the chain");
}

// Its own hash is right, but it follows no record of this log.
static void a_snapshot_of_another_chain_is_passed_over(void **state)
{
    (void)state;
    uint8_t stored[SNAPSHOT_HEADER_BYTES + 6];
    struct snapshot snapshot = { .seq = 10, .chain = { { 1 } }, .bytes = "forged", .count = 6 };
    struct ledger *ledger = open_ledger(NULL);
    commit_records(ledger, 5, "older");
    commit_records(ledger, 5, "newest");
    ledger_close(&ledger);
    snapshot_encode(&snapshot, stored);
    replace_number("snap", 10, stored, sizeof stored);
    ledger = open_ledger(NULL);
    assert_int_equal(ledger_damaged_snapshots(ledger), 1);
    assert_snapshot(ledger, 5, "older");
    ledger_close(&ledger);
    snapshot.seq = 4;
    snapshot_encode(&snapshot, stored);
    replace_number("snap", 4, stored, sizeof stored);
    snapshot.seq = 11; // Beyond the head
    snapshot_encode(&snapshot, stored);
    replace_number("snap", 11, stored, sizeof stored);
    ledger = open_ledger(NULL);
    assert_int_equal(ledger_damaged_snapshots(ledger), 3);
    assert_snapshot(ledger, 5, "older");
    ledger_close(&ledger);
}

static void meta_and_index_are_guarded(void **state)
{
    (void)state;
    make_ten();
    damage("meta", "head", FLIP, 20);
    assert_refused(FAULT_CORRUPT, "run", "is last, but meta names another");
    damage("meta", "head", FLIP, 20);
    damage("meta", "schema", FLIP, 6);
    assert_refused(FAULT_UNSUPPORTED, "run", "schema 257");
    damage("meta", "schema", FLIP, 6);
    damage_number("index", 1003, FLIP, 7);
    assert_refused(FAULT_CORRUPT, "run", "index");
    damage_number("index", 1003, FLIP, 7);
    damage_number("index", 1009, REMOVE, 0);
    assert_refused(FAULT_CORRUPT, "run", "record 9 is not found by its index key");
    damage("meta", "incarnation", REMOVE, 0);
    assert_refused(FAULT_CORRUPT, "run", "no incarnation");
}

static void a_damaged_snapshot_is_passed_over(void **state)
{
    (void)state;
    struct ledger *ledger = open_ledger(NULL);
    commit_records(ledger, 5, "older");
    commit_records(ledger, 5, "newest");
    ledger_close(&ledger);
    damage_number("snap", 10, FLIP, -1);
    ledger = open_ledger(NULL);
    assert_int_equal(ledger_damaged_snapshots(ledger), 1);
    assert_snapshot(ledger, 5, "older");
    assert_holds(ledger, 6, 10);
    commit_records(ledger, 1, "newer"); // Takes the place of the damaged one
    ledger_close(&ledger);
    ledger = open_ledger(NULL);
    assert_int_equal(ledger_damaged_snapshots(ledger), 0);
    assert_snapshot(ledger, 11, "newer");
    ledger_close(&ledger);
    damage_number("snap", 11, FLIP, 50);
    damage_number("snap", 5, FLIP, 16);
    ledger = open_ledger(NULL); // Neither of the two: the log alone leads there
    assert_int_equal(ledger_damaged_snapshots(ledger), 2);
    assert_snapshot(ledger, 0, "");
    assert_holds(ledger, 1, 11);
    ledger_close(&ledger);
}

static void write_over(off_t at, const void *bytes, size_t count)
{
    int fd = open(data, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, count, at), (ssize_t)count);
    close(fd);
}

static void a_file_that_is_no_ledger_is_refused_and_kept(void **state)
{
    (void)state;
    uint8_t noise[8192];
    struct stat before, after;
    memset(noise, 0x5a, sizeof noise);
    make_ten();
    assert_int_equal(stat(data, &before), 0);
    write_over(0, noise, sizeof noise);
    assert_refused(FAULT_CORRUPT, "run", "names an invalid page size");
    assert_int_equal(stat(data, &after), 0);
    assert_true(before.st_size == after.st_size);
    assert_int_equal(truncate(data, 100), 0);
    assert_refused(FAULT_CORRUPT, "run", "move the directory away");
    struct ledger *reader;
    snprintf(dir, sizeof dir, "%s/nothing", top);
    assert_int_equal(ledger_open_readonly(dir, &why, &reader), FAULT_NOT_FOUND);
    assert_int_equal(access(dir, F_OK), -1); // A reader makes nothing
}

static void a_file_cut_short_is_refused_without_a_signal(void **state)
{
    (void)state;
    struct stat stat_data;
    struct ledger *reader, *ledger = open_ledger(NULL);
    commit_records(ledger, 500, NULL);
    ledger_close(&ledger);
    assert_int_equal(stat(data, &stat_data), 0);
    assert_int_equal(truncate(data, stat_data.st_size / 2), 0);
    assert_int_equal(ledger_open_readonly(dir, &why, &reader), FAULT_CORRUPT);
    assert_refused(FAULT_CORRUPT, "run", "damaged");
    off_t half = stat_data.st_size / 2;
    assert_int_equal(stat(data, &stat_data), 0);
    assert_true(stat_data.st_size == half); // Left as it was found
}

static void another_programs_database_is_refused(void **state)
{
    (void)state;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    char name[] = "meta";
    MDB_val key = { 4, name };
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, dir, MDB_NOSYNC, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &key, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    assert_refused(FAULT_FORMAT, "run", "not a ledger");
}

TESTS(LEDGER_TEST(every_part_of_a_record_is_guarded), LEDGER_TEST(missing_records_are_named),
      LEDGER_TEST(a_forged_record_breaks_the_chain), LEDGER_TEST(the_chain_begins_with_nothing),
      LEDGER_TEST(a_snapshot_of_another_chain_is_passed_over),
      LEDGER_TEST(meta_and_index_are_guarded), LEDGER_TEST(a_damaged_snapshot_is_passed_over),
      LEDGER_TEST(a_file_that_is_no_ledger_is_refused_and_kept),
      LEDGER_TEST(a_file_cut_short_is_refused_without_a_signal),
      LEDGER_TEST(another_programs_database_is_refused))
