#pragma once
// store -- the LMDB environment under the ledger: four tables in one file, changed by transactions
// that are on disk completely or not at all. It knows tables and faults; contents.h knows the
// entries.
//
//     meta    name → value          log     be64 seq → record
//     index   be64 key → be64 seq   snap    be64 seq → snapshot
//
// LMDB's default durable mode: data is synced before the page that refers to it, and that page
// before commit returns. WRITEMAP is not used (a full disk would be SIGBUS, a stray write would
// damage the file), nor NOSYNC, DUPSORT or nested transactions. Keys are big-endian, so the last
// key is the greatest number.
//
// LMDB's error numbers (here `error`: 0, an errno, or an MDB_ code) stay inside store, contents and
// ledger; faults leave them. One thread. Not to be used in a child after fork.

#include "common/base/fault.h"
#include "common/ledger/record.h"
#include <lmdb.h>

// The beginning of every error text about a damaged ledger.
#define STORE_CURE                                                                                 \
    "%s is damaged; nothing was changed: restore a backup, or move the directory "                 \
    "away and start with an empty one"

struct store {
    const char *dir; // Borrowed, for error texts
    int dir_fd;      // Borrowed
    MDB_env *env;
    MDB_dbi meta, log, snap, index;
    uint64_t map_bytes, map_bytes_max;
    uint64_t short_bytes; // The file's length before it was lengthened; 0: unchanged or written
    uint32_t readers;     // Open read transactions; the map does not grow while there are any
    int fault;            // After a failed write: the result of every later call
    struct why failed;    // Its text
};

// Opens the environment in `dir`, but not the tables. `map_bytes` is the size to start with; with
// `readonly`, it and the maximum are ignored. Damage is CORRUPT. On failure nothing stays open.
int store_open(struct store *self, const char *dir, int dir_fd, uint64_t map_bytes,
               uint64_t map_bytes_max, bool readonly, struct why *why);
void store_close(struct store *self);

bool store_is_empty(const struct store *self);                           // No table was ever made
int store_open_tables(struct store *self, MDB_txn *txn, unsigned flags); // Returns an error

uint64_t store_bytes(const struct store *self); // Of the pages that were ever written

// A read transaction. Keep it short: no page that it sees can be reused while it is open.
int store_read_begin(struct store *self, struct why *why, MDB_txn **ret_txn);
void store_read_end(struct store *self, MDB_txn *txn);

// Runs `put` in a write transaction, which is durable when this returns 0. `put` returns an error
// of LMDB; it runs again from the beginning if the map had to grow. A map at its maximum is
// DISK_FULL, and nothing has changed. Any other failure is final: only a restart can tell whether
// the transaction is on disk, so the store refuses every further call with the same fault.
typedef int store_put_fn(struct store *self, MDB_txn *txn, void *arg);
int store_write(struct store *self, store_put_fn *put, void *arg, struct why *why);

// The fault that later calls return after a failed write; 0 before.
int store_check(const struct store *self, struct why *why);

// The fault for a read that failed with `error`; for a failed opening, with the cure.
int store_fail(const struct store *self, int error, const char *doing, struct why *why);
int store_open_failed(const struct store *self, int error, struct why *why);

// Numbered entries; they return an error. `checked`, for read transactions only: a value that would
// lie outside the file is MDB_CORRUPTED.
int store_get_checked(MDB_txn *txn, MDB_dbi table, uint64_t number, MDB_val *ret_value);
int store_get(MDB_txn *txn, MDB_dbi table, uint64_t number, MDB_val *ret_value);
int store_reserve(MDB_txn *txn, MDB_dbi table, uint64_t number, size_t count, unsigned flags,
                  uint8_t **ret_room); // The caller fills all of it at once
