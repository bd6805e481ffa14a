#pragma once
// store -- the LMDB environment under the ledger: four tables in one file, changed by transactions
// that are wholly on disk or not at all. It knows tables and faults; what is in them, contents.h.
//
//     meta    name → value          log     be64 seq → record
//     index   be64 key → be64 seq   snap    be64 seq → snapshot
//
// Default durable mode: data is synced before the page that refers to it, and that page before
// commit returns. Not WRITEMAP (a full disk would be SIGBUS, a stray write damage), not NOSYNC, no
// DUPSORT, no nested transactions. Keys are big-endian, so the last key is the greatest number.
//
// LMDB's error numbers (here `error`: 0, an errno, or an MDB_ code) stay inside store, contents and
// ledger; faults leave them. One thread. Not to be used in a child after fork.

#include "common/base/fault.h"
#include "common/ledger/record.h"
#include <lmdb.h>

// What is said of a damaged ledger, before what exactly is wrong.
#define STORE_CURE                                                                                 \
    "%s is damaged; nothing was changed: restore a backup, or move the directory "                 \
    "away and start afresh"

struct store {
    const char *dir; // Borrowed: for texts
    int dir_fd;      // Borrowed
    MDB_env *env;
    MDB_dbi meta, log, snap, index;
    uint64_t map_bytes, map_bytes_max;
    uint64_t short_bytes; // The file's length as found, if we lengthened it; 0 once written
    uint32_t readers;     // Read transactions open here; the map does not grow under them
    int fault;            // After a failed write: what every later call returns
    struct why failed;    // And its text
};

// Opens the environment in `dir`, not yet the tables. `map_bytes` is the size to start with; where
// `readonly`, neither it nor the maximum matters. Damage is CORRUPT. On failure nothing stays open.
int store_open(struct store *self, const char *dir, int dir_fd, uint64_t map_bytes,
               uint64_t map_bytes_max, bool readonly, struct why *why);
void store_close(struct store *self);

bool store_is_empty(const struct store *self);                           // No table was ever made
int store_open_tables(struct store *self, MDB_txn *txn, unsigned flags); // Returns an error

uint64_t store_bytes(const struct store *self); // Of the pages that were ever written

// A read transaction. Short, since it keeps all that it sees from being reused.
int store_read_begin(struct store *self, struct why *why, MDB_txn **ret_txn);
void store_read_end(struct store *self, MDB_txn *txn);

// Runs `put` in a write transaction, which is durable when this returns 0. `put` returns an error;
// it runs again from the beginning if the map had to grow. A map at its maximum is DISK_FULL, and
// all is as before. Any other failure is final: whether the transaction is on disk is known only
// after a restart, so the store refuses every further call with the same fault.
typedef int store_put_fn(struct store *self, MDB_txn *txn, void *arg);
int store_write(struct store *self, store_put_fn *put, void *arg, struct why *why);

// The fault that later calls return after a failed write; 0 before.
int store_check(const struct store *self, struct why *why);

// A fault for a read that failed with `error`; where that was opening, with the cure.
int store_fail(const struct store *self, int error, const char *doing, struct why *why);
int store_open_failed(const struct store *self, int error, struct why *why);

// Copies what is committed, compacted, to a new directory `path` that can be opened like this one:
// written under a name beside it, synced, then renamed. An existing directory with files is
// refused.
int store_copy(struct store *self, const char *path, struct why *why);

// Numbered entries; they return an error. `checked`, for read transactions only: a value that would
// lie outside the file is MDB_CORRUPTED.
int store_get_checked(MDB_txn *txn, MDB_dbi table, uint64_t number, MDB_val *ret_value);
int store_get(MDB_txn *txn, MDB_dbi table, uint64_t number, MDB_val *ret_value);
int store_reserve(MDB_txn *txn, MDB_dbi table, uint64_t number, size_t count, unsigned flags,
                  uint8_t **ret_room); // The caller fills all of it at once
int store_remove(MDB_txn *txn, MDB_dbi table, uint64_t number);
