// store -- opening checks in this order: the two front pages, then LMDB opens the file, then its
// length, then every page (pages.h). A write runs in one LMDB transaction. If the map is full it
// grows and the write runs again; any other failure is kept as the answer to every later call. A
// copy is written beside its name and renamed.

#include "common/base/bytes.h"
#include "common/ledger/store.h"
#include "common/base/ensure.h"
#include "common/ledger/pages.h"
#include "common/base/failpoint.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { TABLES = 4, DISK_FULL_BYTES = 1 << 20 };

static int fault_from_lmdb(int error)
{
    switch (error) {
    case MDB_MAP_FULL: return FAULT_DISK_FULL;
    case MDB_NOTFOUND: return FAULT_NOT_FOUND;
    case MDB_READERS_FULL: return FAULT_LIMIT;
    case MDB_VERSION_MISMATCH: return FAULT_UNSUPPORTED;
    }
    return error > 0 ? fault_from_errno(error) : FAULT_CORRUPT;
}

// A full disk first shows as a short write, which LMDB reports as EIO.
static int fault_of_write(const struct store *self, int error)
{
    struct statvfs space;
    if (error == EIO && fstatvfs(self->dir_fd, &space) == 0 &&
        space.f_bavail * space.f_frsize < DISK_FULL_BYTES)
        return FAULT_DISK_FULL;
    return fault_from_lmdb(error);
}

int store_fail(const struct store *self, int error, const char *doing, struct why *why)
{
    return why_set(why, fault_from_lmdb(error), "%s/data.mdb: %s: %s", self->dir, doing,
                   mdb_strerror(error));
}

int store_open_failed(const struct store *self, int error, struct why *why)
{
    int rc = store_fail(self, error, "opening it", why);
    if (rc != FAULT_CORRUPT) return rc;
    return why_wrap(why, rc, STORE_CURE, self->dir);
}

// Reading a mapped page beyond the end of the file is SIGBUS. LMDB never writes a page that one
// transaction took and gave back, so even an undamaged file may be shorter than its header says. If
// we may write, the file is lengthened with zeros, and a real loss is found by its hash. If the
// store is closed without a write, the zeros are removed and the file is as it was found.
static int check_length(struct store *self, const MDB_envinfo *info, bool readonly, struct why *why)
{
    MDB_stat stat;
    struct stat file;
    mdb_filehandle_t fd;
    ensure(mdb_env_stat(self->env, &stat) == 0 && mdb_env_get_fd(self->env, &fd) == 0);
    off_t length = (off_t)((info->me_last_pgno + 1) * stat.ms_psize);
    if (fstat(fd, &file) < 0) return store_fail(self, errno, "opening it", why);
    if (file.st_size >= length) return 0;
    if (readonly)
        return why_set(why, FAULT_CORRUPT,
                       "%s/data.mdb has %" PRId64 " bytes, its header says %" PRId64 ": not "
                       "read; the coordinator checks, when it opens the file, whether anything is "
                       "lost",
                       self->dir, (int64_t)file.st_size, (int64_t)length);
    if (ftruncate(fd, length) < 0) return store_fail(self, errno, "lengthening it", why);
    self->short_bytes = (uint64_t)file.st_size;
    return 0;
}

// Called before LMDB reads a page.
static int check_pages(const struct store *self, struct why *why)
{
    enum { ATTEMPTS = 100 };
    MDB_txn *txn;
    int rc = PAGES_OVERTAKEN;
    for (int i = 0; i < ATTEMPTS && rc == PAGES_OVERTAKEN; i++) {
        const int error = mdb_txn_begin(self->env, NULL, MDB_RDONLY, &txn);
        if (error) return store_open_failed(self, error, why);
        rc = pages_check(txn, self->dir, why);
        mdb_txn_abort(txn);
    }
    if (rc == PAGES_OVERTAKEN)
        return why_set(why, FAULT_BUSY,
                       "%s/data.mdb is written to faster than it can be read; "
                       "retry later",
                       self->dir);
    return rc == FAULT_CORRUPT ? why_wrap(why, rc, STORE_CURE, self->dir) : rc;
}

// LMDB ends the process if pages contradict each other; this message is printed before its own.
static void say_damaged(MDB_env *env, const char *text)
{
    fprintf(stderr, STORE_CURE ": LMDB found %s\n", (const char *)mdb_env_get_userctx(env), text);
}

static int open_env(struct store *self, uint64_t map_bytes, bool readonly, struct why *why)
{
    int dead_readers;
    MDB_envinfo info;
    int rc = pages_check_front(self->dir_fd, self->dir, why);
    if (rc < 0) return rc == FAULT_CORRUPT ? why_wrap(why, rc, STORE_CURE, self->dir) : rc;
    int error = mdb_env_set_maxdbs(self->env, TABLES);
    if (!error) error = mdb_env_set_userctx(self->env, (void *)(uintptr_t)self->dir);
    if (!error) error = mdb_env_set_assert(self->env, say_damaged);
    if (!error && !readonly) error = mdb_env_set_mapsize(self->env, map_bytes);
    unsigned flags = MDB_NOTLS | (readonly ? MDB_RDONLY : 0);
    if (!error) error = mdb_env_open(self->env, self->dir, flags, 0600);
    if (!error) error = mdb_reader_check(self->env, &dead_readers);
    if (!error && !readonly && fsync(self->dir_fd) < 0) error = errno;
    if (error) return store_open_failed(self, error, why);
    ensure(mdb_env_info(self->env, &info) == 0);
    self->map_bytes = info.me_mapsize;
    rc = check_length(self, &info, readonly, why);
    return rc < 0 ? rc : check_pages(self, why);
}

int store_open(struct store *self, const char *dir, int dir_fd, uint64_t map_bytes,
               uint64_t map_bytes_max, bool readonly, struct why *why)
{
    *self = (struct store){ .dir = dir, .dir_fd = dir_fd, .map_bytes_max = map_bytes_max };
    int error = mdb_env_create(&self->env);
    if (error) return store_fail(self, error, "creating an environment", why);
    int rc = open_env(self, map_bytes, readonly, why);
    if (rc < 0) store_close(self);
    return rc;
}

void store_close(struct store *self)
{
    mdb_filehandle_t fd;
    if (!self->env) return;
    if (self->short_bytes && mdb_env_get_fd(self->env, &fd) == 0 &&
        ftruncate(fd, (off_t)self->short_bytes) < 0)
        self->short_bytes = 0; // The zeros stay and do no harm
    mdb_env_close(self->env);
    self->env = NULL;
}

bool store_is_empty(const struct store *self)
{
    MDB_stat stat;
    ensure(mdb_env_stat(self->env, &stat) == 0);
    return stat.ms_entries == 0;
}

int store_open_tables(struct store *self, MDB_txn *txn, unsigned flags)
{
    int error = mdb_dbi_open(txn, "meta", flags, &self->meta);
    if (!error) error = mdb_dbi_open(txn, "log", flags, &self->log);
    if (!error) error = mdb_dbi_open(txn, "snap", flags, &self->snap);
    if (!error) error = mdb_dbi_open(txn, "index", flags, &self->index);
    return error;
}

int store_check(const struct store *self, struct why *why)
{
    return self->fault ? why_set(why, self->fault, "%s", self->failed.text) : 0;
}

int store_read_begin(struct store *self, struct why *why, MDB_txn **ret_txn)
{
    int rc = store_check(self, why);
    if (rc < 0) return rc;
    int error = mdb_txn_begin(self->env, NULL, MDB_RDONLY, ret_txn);
    if (error == MDB_MAP_RESIZED && self->readers == 0) { // Another process enlarged the map
        error = mdb_env_set_mapsize(self->env, 0);
        if (!error) error = mdb_txn_begin(self->env, NULL, MDB_RDONLY, ret_txn);
    }
    if (error) return store_fail(self, error, "reading", why);
    self->readers++;
    return 0;
}

// Commit rather than abort, which would close the tables that the transaction opened.
void store_read_end(struct store *self, MDB_txn *txn)
{
    ensure(mdb_txn_commit(txn) == 0);
    self->readers--;
}

uint64_t store_bytes(const struct store *self)
{
    MDB_envinfo info;
    MDB_stat stat;
    ensure(mdb_env_info(self->env, &info) == 0 && mdb_env_stat(self->env, &stat) == 0);
    return (info.me_last_pgno + 1) * stat.ms_psize;
}

static int fail_for_good(struct store *self, int error, struct why *why)
{
    self->fault = why_set(&self->failed, fault_of_write(self, error),
                          "%s/data.mdb: writing: %s; "
                          "earlier commits are safe; this process must end, and the "
                          "next one continues from what is on disk",
                          self->dir, mdb_strerror(error));
    return store_check(self, why);
}

static int grow(struct store *self, struct why *why)
{
    uint64_t bytes =
        self->map_bytes < self->map_bytes_max / 2 ? 2 * self->map_bytes : self->map_bytes_max;
    if (bytes <= self->map_bytes)
        return why_set(why, FAULT_DISK_FULL,
                       "%s/data.mdb: would exceed map_bytes_max, %" PRIu64
                       " bytes; nothing was written, earlier commits are safe; raise the "
                       "limit (a coordinator's: ledger.map_mib_max)",
                       self->dir, self->map_bytes_max);
    int error = failpoint("ledger_grow") < 0 ? errno : mdb_env_set_mapsize(self->env, bytes);
    if (error) return fail_for_good(self, error, why);
    self->map_bytes = bytes;
    return 0;
}

static int run(struct store *self, store_put_fn *put, void *arg)
{
    MDB_txn *txn;
    int error = failpoint("ledger_begin") < 0 ? errno : mdb_txn_begin(self->env, NULL, 0, &txn);
    if (error) return error;
    error = put(self, txn, arg);
    if (!error && failpoint("ledger_commit") < 0) error = errno;
    if (!error) return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return error;
}

int store_write(struct store *self, store_put_fn *put, void *arg, struct why *why)
{
    int rc = store_check(self, why);
    ensure(self->readers == 0);
    self->short_bytes = 0;
    while (rc == 0) {
        int error = run(self, put, arg);
        if (!error) return 0;
        rc = error == MDB_MAP_FULL ? grow(self, why) : fail_for_good(self, error, why);
    }
    return rc;
}

static MDB_val number_key(uint64_t number, uint8_t bytes[8])
{
    be_put(bytes, number, 8);
    return (MDB_val){ .mv_size = 8, .mv_data = bytes };
}

// LMDB trusts the length in a page; a damaged one would reach beyond the end of the file, where
// reading is SIGBUS. A value lies in one page, or fills pages of its own behind a header: page
// number (8 bytes), 4 bytes without meaning here, count of pages (4).
static bool value_is_within(MDB_env *env, const MDB_val *value)
{
    enum { PAGE_HEADER_BYTES = 16 };
    MDB_envinfo info;
    MDB_stat stat;
    uint64_t page;
    uint32_t pages;
    ensure(mdb_env_info(env, &info) == 0 && mdb_env_stat(env, &stat) == 0);
    size_t at = (uintptr_t)value->mv_data % stat.ms_psize;
    if (value->mv_size <= stat.ms_psize - at) return true;
    if (at != PAGE_HEADER_BYTES) return false;
    memcpy(&page, (const uint8_t *)value->mv_data - 16, sizeof page);
    memcpy(&pages, (const uint8_t *)value->mv_data - 4, sizeof pages);
    return page <= info.me_last_pgno && pages <= info.me_last_pgno + 1 - page &&
           value->mv_size <= (size_t)pages * stat.ms_psize - PAGE_HEADER_BYTES;
}

int store_get(MDB_txn *txn, MDB_dbi table, uint64_t number, MDB_val *ret_value)
{
    uint8_t bytes[8];
    MDB_val key = number_key(number, bytes);
    return mdb_get(txn, table, &key, ret_value);
}

int store_get_checked(MDB_txn *txn, MDB_dbi table, uint64_t number, MDB_val *ret_value)
{
    MDB_val value;
    int error = store_get(txn, table, number, &value);
    if (!error && !value_is_within(mdb_txn_env(txn), &value)) error = MDB_CORRUPTED;
    if (!error) *ret_value = value;
    return error;
}

int store_reserve(MDB_txn *txn, MDB_dbi table, uint64_t number, size_t count, unsigned flags,
                  uint8_t **ret_room)
{
    uint8_t bytes[8];
    MDB_val key = number_key(number, bytes), value = { .mv_size = count };
    int error = mdb_put(txn, table, &key, &value, flags | MDB_RESERVE);
    if (!error) *ret_room = value.mv_data;
    return error;
}
