// contents -- verification goes from the outside in: meta, then the numbers of the first and last
// record, then the chain over every record with its index entry, then the snapshots, then the index
// itself. The first fault among meta, log and index ends it; a damaged snapshot is only counted,
// unless the log begins after it.

#include "common/base/bytes.h"
#include "common/ledger/contents.h"
#include <inttypes.h>

enum { HEAD_BYTES = 8 + HASH_BYTES, NAME_MAX_BYTES = 16 };

static int corrupt(struct why *why, const char *what, uint64_t number, const char *wrong)
{
    return why_set(why, FAULT_CORRUPT, "%s %" PRIu64 " %s", what, number, wrong);
}

// LMDB's parameters are not const, so names and values are copied.
static MDB_val name_key(const char *name, char copy[NAME_MAX_BYTES])
{
    size_t count = strlen(name);
    return (MDB_val){ .mv_size = count, .mv_data = memcpy(copy, name, count) };
}

static int put_meta(struct store *store, MDB_txn *txn, const char *name, const void *bytes,
                    size_t count)
{
    char name_copy[NAME_MAX_BYTES], copy[LEDGER_RUN_ID_MAX + 1];
    MDB_val key = name_key(name, name_copy);
    MDB_val value = { .mv_size = count, .mv_data = memcpy(copy, bytes, count) };
    return mdb_put(txn, store->meta, &key, &value, 0);
}

static int get_meta(struct store *store, MDB_txn *txn, const char *name, size_t bytes_min,
                    size_t bytes_max, struct why *why, MDB_val *ret_value)
{
    char name_copy[NAME_MAX_BYTES];
    MDB_val key = name_key(name, name_copy);
    int error = mdb_get(txn, store->meta, &key, ret_value);
    if (error && error != MDB_NOTFOUND) return store_fail(store, error, "reading meta", why);
    if (error) return why_set(why, FAULT_CORRUPT, "meta has no %s", name);
    if (ret_value->mv_size >= bytes_min && ret_value->mv_size <= bytes_max) return 0;
    return why_set(why, FAULT_CORRUPT, "%s in meta has %zu bytes, not %zu to %zu", name,
                   ret_value->mv_size, bytes_min, bytes_max);
}

static int put_meta_number(struct store *store, MDB_txn *txn, const char *name, uint64_t number)
{
    uint8_t bytes[8];
    be_put(bytes, number, 8);
    return put_meta(store, txn, name, bytes, sizeof bytes);
}

int contents_put_incarnation(struct store *store, MDB_txn *txn, uint64_t incarnation)
{
    return put_meta_number(store, txn, "incarnation", incarnation);
}

int contents_put_head(struct store *store, MDB_txn *txn, uint64_t seq, const struct hash *head)
{
    uint8_t bytes[HEAD_BYTES];
    be_put(bytes, seq, 8);
    memcpy(bytes + 8, head->bytes, HASH_BYTES);
    return put_meta(store, txn, "head", bytes, sizeof bytes);
}

int contents_put_run(struct store *store, MDB_txn *txn, const char *run_id)
{
    static const struct hash none;
    int error = put_meta_number(store, txn, "schema", LEDGER_SCHEMA);
    if (!error) error = put_meta(store, txn, "run_id", run_id, strlen(run_id));
    if (!error) error = contents_put_head(store, txn, 0, &none);
    return error;
}

static int verify_meta(struct store *store, MDB_txn *txn, struct why *why,
                       struct contents *contents)
{
    MDB_val value;
    int rc = get_meta(store, txn, "schema", 8, 8, why, &value);
    if (rc < 0) return rc;
    if (be_get(value.mv_data, 8) != LEDGER_SCHEMA)
        return why_set(why, FAULT_UNSUPPORTED,
                       "%s is of schema %" PRIu64 ", this program knows "
                       "%d: run the program that wrote it; nothing was changed",
                       store->dir, be_get(value.mv_data, 8), LEDGER_SCHEMA);
    rc = get_meta(store, txn, "run_id", 1, LEDGER_RUN_ID_MAX, why, &value);
    if (rc < 0) return rc;
    memcpy(contents->run_id, value.mv_data, value.mv_size);
    rc = get_meta(store, txn, "incarnation", 8, 8, why, &value);
    if (rc < 0) return rc;
    contents->incarnation = be_get(value.mv_data, 8);
    if (contents->incarnation == 0 || contents->incarnation == UINT64_MAX)
        return corrupt(why, "incarnation", contents->incarnation, "is not a valid incarnation");
    rc = get_meta(store, txn, "head", HEAD_BYTES, HEAD_BYTES, why, &value);
    if (rc < 0) return rc;
    contents->head_seq = be_get(value.mv_data, 8);
    memcpy(contents->head.bytes, (const uint8_t *)value.mv_data + 8, HASH_BYTES);
    return 0;
}

static int get_record(struct store *store, MDB_txn *txn, uint64_t seq, struct why *why,
                      struct record *ret_record)
{
    MDB_val value;
    int error = store_get_checked(txn, store->log, seq, &value);
    if (error == MDB_NOTFOUND) return corrupt(why, "record", seq, "is missing");
    if (error) return store_fail(store, error, "reading a record", why);
    return record_decode(value.mv_data, value.mv_size, seq, why, ret_record);
}

// The index entry of a record's key must name this record or a newer one with the same key.
static int check_indexed(struct store *store, MDB_txn *txn, const struct record *record,
                         struct why *why)
{
    MDB_val value;
    if (!record->indexed) return 0;
    int error = store_get_checked(txn, store->index, record->index_key, &value);
    if (error && error != MDB_NOTFOUND) return store_fail(store, error, "reading the index", why);
    if (error || value.mv_size != 8 || be_get(value.mv_data, 8) < record->seq)
        return corrupt(why, "record", record->seq, "is not found by its index key");
    return 0;
}

static int verify_log(struct store *store, MDB_txn *txn, struct why *why,
                      const struct contents *contents)
{
    struct record record = { .seq = 0 };
    struct hash chain = { { 0 } };
    for (uint64_t seq = 1; seq <= contents->head_seq; seq++) {
        int rc = get_record(store, txn, seq, why, &record);
        if (rc == 0) rc = check_indexed(store, txn, &record, why);
        if (rc < 0) return rc;
        if (!hash_equal(&record.previous, &chain))
            return corrupt(why, "record", seq, "does not follow the chain of the one before");
        chain = record.chain;
    }
    if (!hash_equal(&chain, &contents->head))
        return corrupt(why, "record", contents->head_seq, "is last, but meta names another");
    return 0;
}

// As many records as the head says: with all from 1 to the head there, none is beside them.
static int verify_extent(struct store *store, MDB_txn *txn, struct why *why,
                         const struct contents *contents)
{
    MDB_stat stat;
    int error = mdb_stat(txn, store->log, &stat);
    if (error) return store_fail(store, error, "reading the log", why);
    if (stat.ms_entries == contents->head_seq) return 0;
    return why_set(why, FAULT_CORRUPT,
                   "the log has %zu records, but meta names "
                   "record %" PRIu64 " as its head",
                   stat.ms_entries, contents->head_seq);
}

// Whether there is an undamaged snapshot `seq` that follows a record of this log.
static bool snapshot_is_good(struct store *store, MDB_txn *txn, const struct contents *contents,
                             uint64_t seq)
{
    MDB_val value;
    struct snapshot snapshot;
    struct record record;
    if (seq == 0 || seq > contents->head_seq) return false;
    if (store_get_checked(txn, store->snap, seq, &value) != 0 ||
        snapshot_decode(value.mv_data, value.mv_size, seq, NULL, &snapshot) < 0)
        return false;
    return get_record(store, txn, seq, NULL, &record) == 0 &&
           hash_equal(&snapshot.chain, &record.chain);
}

static int verify_snapshots(struct store *store, MDB_txn *txn, struct why *why,
                            struct contents *contents)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int error = mdb_cursor_open(txn, store->snap, &cursor);
    if (error) return store_fail(store, error, "reading the snapshots", why);
    while ((error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        uint64_t seq = key.mv_size == 8 ? be_get(key.mv_data, 8) : 0;
        if (snapshot_is_good(store, txn, contents, seq)) {
            contents->older_snapshot = contents->newest_snapshot;
            contents->newest_snapshot = seq;
        } else {
            contents->damaged_snapshots++;
        }
    }
    mdb_cursor_close(cursor);
    return error == MDB_NOTFOUND ? 0 : store_fail(store, error, "reading the snapshots", why);
}

static int verify_index(struct store *store, MDB_txn *txn, struct why *why)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    struct record record;
    int rc = 0, error = mdb_cursor_open(txn, store->index, &cursor);
    if (error) return store_fail(store, error, "reading the index", why);
    while (rc == 0 && (error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        if (key.mv_size != 8 || value.mv_size != 8)
            rc = corrupt(why, "index entry", 0, "has a wrong size");
        else rc = get_record(store, txn, be_get(value.mv_data, 8), why, &record);
        if (rc == 0 && (!record.indexed || record.index_key != be_get(key.mv_data, 8)))
            rc = corrupt(why, "index entry", be_get(key.mv_data, 8), "names a wrong record");
    }
    mdb_cursor_close(cursor);
    if (rc == 0 && error != MDB_NOTFOUND) return store_fail(store, error, "reading the index", why);
    return rc;
}

int contents_verify(struct store *store, MDB_txn *txn, struct why *why,
                    struct contents *ret_contents)
{
    struct contents contents = { .head_seq = 0 };
    int rc = verify_meta(store, txn, why, &contents);
    if (rc == 0) rc = verify_extent(store, txn, why, &contents);
    if (rc == 0) rc = verify_log(store, txn, why, &contents);
    if (rc == 0) rc = verify_snapshots(store, txn, why, &contents);
    if (rc == 0) rc = verify_index(store, txn, why);
    if (rc == FAULT_CORRUPT) return why_wrap(why, rc, STORE_CURE, store->dir);
    if (rc == 0) *ret_contents = contents;
    return rc;
}
