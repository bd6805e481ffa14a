// ledger -- opening takes the lock, opens the store and verifies everything; then it raises the
// incarnation durably and verifies once more. Appended records wait in `pending`, outside the
// database, with their chain computed; commit writes them in one transaction and only then changes
// what readers see. Trimming removes records that the older of two snapshots makes superfluous.

#include "common/base/bytes.h"
#include "common/ledger/ledger.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/instance_lock.h"
#include "common/ledger/contents.h"
#include "common/ledger/pending.h"
#include "common/ledger/store.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t map_bytes_least = 256 << 10, map_bytes_most = 1ull << 40,
                      map_bytes_start = 64 << 20, map_bytes_max = 64ull << 30;

struct ledger {
    char *dir;
    int dir_fd, lock_fd;
    bool readonly;
    struct store store;
    struct contents contents; // As committed
    bool open;                // Between begin and commit
    struct pending pending;
    uint64_t next_seq; // Of the transaction: the next record's number,
    struct hash chain; // and the chain up to it
    void *borrowed;    // What the last read returned
};

// ---- opening

static int check_options(const char *run_id, const struct ledger_options *given, struct why *why,
                         struct ledger_options *ret_options)
{
    struct ledger_options options = given ? *given : (struct ledger_options){ 0 };
    if (!options.map_bytes_start) options.map_bytes_start = map_bytes_start;
    if (!options.map_bytes_max) options.map_bytes_max = map_bytes_max;
    if (run_id[0] == 0 || strlen(run_id) > LEDGER_RUN_ID_MAX)
        return why_set(why, FAULT_RANGE, "run id: %zu bytes, not 1 to %d", strlen(run_id),
                       LEDGER_RUN_ID_MAX);
    if (options.map_bytes_start < map_bytes_least || options.map_bytes_max > map_bytes_most ||
        options.map_bytes_start > options.map_bytes_max)
        return why_set(why, FAULT_RANGE,
                       "ledger map of %" PRIu64 " to %" PRIu64 " bytes: must be "
                       "ordered and within %" PRIu64 " to %" PRIu64,
                       options.map_bytes_start, options.map_bytes_max, map_bytes_least,
                       map_bytes_most);
    *ret_options = options;
    return 0;
}

static int open_dir(struct ledger *self, bool make, struct why *why)
{
    bool made = make && mkdir(self->dir, 0700) == 0;
    if (make && !made && errno != EEXIST)
        return why_set(why, fault_from_errno(errno), "making %s: %s", self->dir, strerror(errno));
    self->dir_fd = open(self->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->dir_fd < 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->dir, strerror(errno));
    if (!made) return 0;
    int parent_fd = openat(self->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = parent_fd < 0 || fsync(parent_fd) < 0 ? errno : 0; // Makes its name durable
    if (parent_fd >= 0) close(parent_fd);
    if (!error) return 0;
    return why_set(why, fault_from_errno(error), "%s/..: %s", self->dir, strerror(error));
}

static int verify(struct ledger *self, struct why *why)
{
    MDB_txn *txn;
    int rc = store_read_begin(&self->store, why, &txn);
    if (rc < 0) return rc;
    int error = store_open_tables(&self->store, txn, 0);
    if (error == MDB_NOTFOUND || error == MDB_INCOMPATIBLE)
        rc = why_set(why, FAULT_FORMAT,
                     "%s/data.mdb is an LMDB file, but not a ledger (%s); nothing "
                     "was changed: give another directory",
                     self->dir, mdb_strerror(error));
    else
        rc = error ? store_open_failed(&self->store, error, why)
                   : contents_verify(&self->store, txn, why, &self->contents);
    store_read_end(&self->store, txn);
    return rc;
}

// Makes a new ledger in one transaction: after a crash it is there completely or not at all.
static int put_new(struct store *store, MDB_txn *txn, void *arg)
{
    int error = store_open_tables(store, txn, MDB_CREATE);
    if (!error) error = contents_put_run(store, txn, arg);
    if (!error) error = contents_put_incarnation(store, txn, 1);
    return error;
}

static int put_incarnation(struct store *store, MDB_txn *txn, void *arg)
{
    return contents_put_incarnation(store, txn, *(const uint64_t *)arg);
}

static int make_new(struct ledger *self, const char *run_id, struct why *why)
{
    char copy[LEDGER_RUN_ID_MAX + 1];
    strcpy(copy, run_id);
    failpoint("ledger_make");
    int rc = store_write(&self->store, put_new, copy, why);
    return rc < 0 ? rc : verify(self, why);
}

static int take_over(struct ledger *self, const char *run_id, struct why *why)
{
    int rc = verify(self, why);
    if (rc < 0) return rc;
    failpoint("ledger_take_over");
    if (strcmp(self->contents.run_id, run_id) != 0)
        return why_set(why, FAULT_FOREIGN,
                       "%s belongs to run \"%s\", not \"%s\"; nothing was "
                       "changed: give the directory of that run, or a new one",
                       self->dir, self->contents.run_id, run_id);
    uint64_t incarnation = self->contents.incarnation + 1;
    rc = store_write(&self->store, put_incarnation, &incarnation, why);
    // Verified again after the write. If the disk damaged the page that names the tables, the
    // tables may be complete while the list of free pages names some of their pages: only a write
    // shows it.
    return rc < 0 ? rc : verify(self, why);
}

static struct ledger *ledger_new(const char *dir, bool readonly)
{
    struct ledger *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->dir_fd = self->lock_fd = -1;
    self->readonly = readonly;
    self->dir = strdup(dir);
    if (!self->dir) ledger_close(&self);
    return self;
}

int ledger_open(const char *dir, const char *run_id, const struct ledger_options *options,
                struct why *why, struct ledger **ret_ledger)
{
    struct ledger_options checked = { 0 };
    int rc = check_options(run_id, options, why, &checked);
    if (rc < 0) return rc;
    struct ledger *self = ledger_new(dir, false);
    if (!self) return why_set(why, FAULT_MEMORY, "no memory to open %s", dir);
    rc = open_dir(self, true, why);
    if (rc == 0) rc = instance_lock_take(self->dir_fd, self->dir, "lock", why, &self->lock_fd);
    if (rc == 0)
        rc = store_open(&self->store, self->dir, self->dir_fd, checked.map_bytes_start,
                        checked.map_bytes_max, false, why);
    if (rc == 0)
        rc = store_is_empty(&self->store) ? make_new(self, run_id, why)
                                          : take_over(self, run_id, why);
    if (rc < 0) ledger_close(&self);
    else *ret_ledger = self;
    return rc;
}

int ledger_open_readonly(const char *dir, struct why *why, struct ledger **ret_ledger)
{
    struct ledger *self = ledger_new(dir, true);
    if (!self) return why_set(why, FAULT_MEMORY, "no memory to open %s", dir);
    int rc = open_dir(self, false, why);
    if (rc == 0) rc = store_open(&self->store, self->dir, self->dir_fd, 0, 0, true, why);
    if (rc == 0 && store_is_empty(&self->store))
        rc = why_set(why, FAULT_NOT_FOUND, "%s holds no ledger yet", dir);
    if (rc == 0) rc = verify(self, why);
    if (rc < 0) ledger_close(&self);
    else *ret_ledger = self;
    return rc;
}

void ledger_close(struct ledger **self_p)
{
    struct ledger *self = *self_p;
    *self_p = NULL;
    if (!self) return;
    store_close(&self->store);
    if (self->dir_fd >= 0) close(self->dir_fd);
    instance_lock_release(self->lock_fd); // Last: until here no other process may open it
    pending_free(&self->pending);
    free(self->borrowed);
    free(self->dir);
    free(self);
}

// ---- reading

const char *ledger_run_id(const struct ledger *self) { return self->contents.run_id; }
uint64_t ledger_incarnation(const struct ledger *self) { return self->contents.incarnation; }

void ledger_room(const struct ledger *self, uint64_t *ret_bytes, uint64_t *ret_bytes_max)
{
    *ret_bytes = store_bytes(&self->store);
    *ret_bytes_max = self->store.map_bytes_max;
}

uint32_t ledger_damaged_snapshots(const struct ledger *self)
{
    return self->contents.damaged_snapshots;
}

void ledger_head(const struct ledger *self, uint64_t *ret_seq, struct hash *ret_hash)
{
    *ret_seq = self->contents.head_seq;
    *ret_hash = self->contents.head;
}

// Copies a value out of the map, which may change when the transaction ends.
static int borrow(struct ledger *self, const MDB_val *value, struct why *why)
{
    free(self->borrowed);
    self->borrowed = malloc(value->mv_size ? value->mv_size : 1);
    if (!self->borrowed)
        return why_set(why, FAULT_MEMORY, "no memory for %zu bytes of %s", value->mv_size,
                       self->dir);
    memcpy(self->borrowed, value->mv_data, value->mv_size);
    return 0;
}

// Reads an entry of a table into `borrowed`.
static int fetch(struct ledger *self, MDB_dbi table, uint64_t number, const char *what,
                 struct why *why, size_t *ret_count)
{
    MDB_txn *txn;
    MDB_val value;
    int rc = store_read_begin(&self->store, why, &txn);
    if (rc < 0) return rc;
    int error = store_get_checked(txn, table, number, &value);
    if (error == MDB_NOTFOUND)
        rc = why_set(why, FAULT_NOT_FOUND, "%s: no %s %" PRIu64, self->dir, what, number);
    else rc = error ? store_fail(&self->store, error, "reading", why) : borrow(self, &value, why);
    if (rc == 0) *ret_count = value.mv_size;
    store_read_end(&self->store, txn);
    return rc;
}

int ledger_snapshot(struct ledger *self, struct why *why, struct snapshot *ret_snapshot)
{
    size_t count;
    uint64_t seq = self->contents.newest_snapshot;
    int rc = store_check(&self->store, why);
    if (rc < 0) return rc;
    if (seq == 0) {
        *ret_snapshot = (struct snapshot){ .seq = 0 };
        return 0;
    }
    rc = fetch(self, self->store.snap, seq, "snapshot", why, &count);
    return rc < 0 ? rc : snapshot_decode(self->borrowed, count, seq, why, ret_snapshot);
}

int ledger_read(struct ledger *self, uint64_t seq, struct why *why, struct record *ret_record)
{
    size_t count;
    int rc = fetch(self, self->store.log, seq, "record", why, &count);
    return rc < 0 ? rc : record_decode(self->borrowed, count, seq, why, ret_record);
}

int ledger_find(struct ledger *self, uint64_t index_key, struct why *why, uint64_t *ret_seq)
{
    size_t count;
    int rc = fetch(self, self->store.index, index_key, "index entry", why, &count);
    if (rc < 0) return rc;
    if (count != 8)
        return why_set(why, FAULT_CORRUPT, "%s: index entry %" PRIu64 " has %zu bytes, not 8",
                       self->dir, index_key, count);
    *ret_seq = be_get(self->borrowed, 8);
    return 0;
}

static int visit_from(struct ledger *self, MDB_txn *txn, uint64_t seq, ledger_visit_fn *visit,
                      void *arg, struct why *why)
{
    for (;; seq++) {
        MDB_val value;
        struct record record;
        int error = store_get_checked(txn, self->store.log, seq, &value);
        if (error == MDB_NOTFOUND && seq > self->contents.head_seq) return 0;
        if (error == MDB_NOTFOUND)
            return why_set(why, FAULT_CORRUPT,
                           STORE_CURE ": record %" PRIu64 " is missing, and the "
                                      "head is %" PRIu64,
                           self->dir, seq, self->contents.head_seq);
        if (error) return store_fail(&self->store, error, "reading the log", why);
        int rc = record_decode(value.mv_data, value.mv_size, seq, why, &record);
        if (rc == 0) rc = visit(arg, &record);
        if (rc != 0) return rc;
    }
}

static int fell_behind(const struct ledger *self, uint64_t seq, const struct hash *seen,
                       uint64_t own_seq, const struct hash *own, struct why *why)
{
    char theirs[HASH_HEX], ours[HASH_HEX];
    return why_set(
        why, FAULT_CORRUPT,
        "%s fell behind: record %" PRIu64 " with chain %.16s was seen "
        "before, but here record %" PRIu64 " has chain %.16s%s. An older copy of the disk "
        "was put in its place, or the disk lost writes that it had confirmed. Put the newer copy "
        "back. If it is lost, start the run again from the newest checkpoint, in an empty "
        "directory and with --begin-anew. If this is the newer copy and an older one "
        "was in use for a while, start this once with --begin-anew",
        self->dir, seq, hash_to_hex(seen, theirs), own_seq, hash_to_hex(own, ours),
        own_seq < seq ? " and is the last" : "");
}

int ledger_covers(struct ledger *self, uint64_t seq, const struct hash *chain, struct why *why)
{
    const struct contents *contents = &self->contents;
    struct record record;
    if (seq == 0) return 0;
    if (seq > contents->head_seq)
        return fell_behind(self, seq, chain, contents->head_seq, &contents->head, why);
    int rc = ledger_read(self, seq, why, &record);
    if (rc < 0 || hash_equal(&record.chain, chain)) return rc;
    return fell_behind(self, seq, chain, seq, &record.chain, why);
}

int ledger_each(struct ledger *self, uint64_t from_seq, ledger_visit_fn *visit, void *arg,
                struct why *why)
{
    MDB_txn *txn;
    ensure(from_seq >= 1);
    int rc = store_read_begin(&self->store, why, &txn);
    if (rc < 0) return rc;
    rc = visit_from(self, txn, from_seq, visit, arg, why);
    store_read_end(&self->store, txn);
    return rc;
}

// ---- writing

int ledger_begin(struct ledger *self, struct why *why)
{
    ensure(!self->readonly && !self->open);
    int rc = store_check(&self->store, why);
    if (rc < 0) return rc;
    self->open = true;
    self->next_seq = self->contents.head_seq + 1;
    self->chain = self->contents.head;
    return 0;
}

int ledger_append(struct ledger *self, const void *bytes, size_t count, const uint64_t *index_key,
                  struct why *why, uint64_t *ret_seq)
{
    ensure(self->open);
    if (count > LEDGER_RECORD_MAX)
        return why_set(why, FAULT_LIMIT, "a record of %zu bytes: at most %d; it was not added",
                       count, LEDGER_RECORD_MAX);
    struct record record = { .seq = self->next_seq,
                             .indexed = index_key,
                             .index_key = index_key ? *index_key : 0,
                             .previous = self->chain,
                             .chain = record_chain(&self->chain, self->next_seq, bytes, count),
                             .bytes = bytes,
                             .count = count };
    int rc = pending_add(&self->pending, &record, why);
    if (rc < 0) return rc;
    self->chain = record.chain;
    *ret_seq = self->next_seq++;
    return 0;
}

int ledger_put_snapshot(struct ledger *self, const void *bytes, size_t count, struct why *why)
{
    ensure(self->open && self->next_seq > 1);
    if (count > LEDGER_SNAPSHOT_MAX)
        return why_set(why, FAULT_LIMIT, "a snapshot of %zu bytes: at most %d; it was not added",
                       count, LEDGER_SNAPSHOT_MAX);
    struct snapshot snapshot = {
        .seq = self->next_seq - 1, .chain = self->chain, .bytes = bytes, .count = count
    };
    return pending_set_snapshot(&self->pending, &snapshot, why);
}

static int put_record(struct store *store, MDB_txn *txn, const struct record *record)
{
    uint8_t *reserved;
    int error = store_reserve(txn, store->log, record->seq, RECORD_HEADER_BYTES + record->count,
                              MDB_APPEND, &reserved);
    if (error) return error;
    record_encode(record, reserved);
    if (!record->indexed) return 0;
    error = store_reserve(txn, store->index, record->index_key, 8, 0, &reserved);
    if (!error) be_put(reserved, record->seq, 8);
    return error;
}

// Removes all snapshots but `newest` and `older`, damaged ones included.
static int prune_snapshots(struct store *store, MDB_txn *txn, uint64_t newest, uint64_t older)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int error = mdb_cursor_open(txn, store->snap, &cursor);
    if (error) return error;
    while ((error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        uint64_t seq = key.mv_size == 8 ? be_get(key.mv_data, 8) : 0;
        if (seq && (seq == newest || seq == older)) continue;
        error = mdb_cursor_del(cursor, 0);
        if (error) break;
    }
    mdb_cursor_close(cursor);
    return error == MDB_NOTFOUND ? 0 : error;
}

static int put_snapshot(struct store *store, MDB_txn *txn, const struct snapshot *snapshot,
                        uint64_t older)
{
    uint8_t *reserved;
    int error = store_reserve(txn, store->snap, snapshot->seq,
                              SNAPSHOT_HEADER_BYTES + snapshot->count, 0, &reserved);
    if (error) return error;
    snapshot_encode(snapshot, reserved);
    return prune_snapshots(store, txn, snapshot->seq, older);
}

// The snapshot that stays beside a new one at `seq`: the newest, or, if the new one replaces it
// because it follows the same record, the older.
static uint64_t snapshot_beside(const struct contents *contents, uint64_t seq)
{
    return contents->newest_snapshot == seq ? contents->older_snapshot : contents->newest_snapshot;
}

static int put_pending(struct store *store, MDB_txn *txn, void *arg)
{
    struct ledger *self = arg;
    int error = 0;
    for (size_t i = 0; !error && i < self->pending.count; i++) {
        struct record record = pending_get_record(&self->pending, i);
        error = put_record(store, txn, &record);
    }
    if (!error && self->pending.has_snapshot) {
        struct snapshot snapshot = pending_get_snapshot(&self->pending);
        error = put_snapshot(store, txn, &snapshot, snapshot_beside(&self->contents, snapshot.seq));
    }
    return error ? error : contents_put_head(store, txn, self->next_seq - 1, &self->chain);
}

static void adopt_pending(struct ledger *self)
{
    struct contents *contents = &self->contents;
    contents->head_seq = self->next_seq - 1;
    contents->head = self->chain;
    if (!self->pending.has_snapshot) return;
    uint64_t seq = self->pending.snapshot.seq;
    contents->older_snapshot = snapshot_beside(contents, seq);
    contents->newest_snapshot = seq;
    contents->damaged_snapshots = 0; // prune_snapshots removed them
}

int ledger_commit(struct ledger *self, struct why *why)
{
    ensure(self->open);
    bool nothing = self->pending.count == 0 && !self->pending.has_snapshot;
    int rc = nothing ? store_check(&self->store, why)
                     : store_write(&self->store, put_pending, self, why);
    if (rc == 0) adopt_pending(self);
    ledger_abort(self); // In either case the transaction is closed
    return rc;
}

void ledger_abort(struct ledger *self)
{
    pending_clear(&self->pending);
    self->open = false;
}
