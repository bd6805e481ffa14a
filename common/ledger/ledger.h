#pragma once
// ledger -- the coordinator's durable state: a hash-chained log of records, and snapshots of the
// state that the records lead to. A transaction is on disk when commit returns; a crash at any
// instruction leaves either all of it or none of it.
//
//     begin ─▶ append, append, put_snapshot ─▶ commit ─▶ (only now may a message speak of it)
//
//     rc = ledger_open(dir, run_id, NULL, &why, &ledger);
//     rc = ledger_snapshot(ledger, &why, &snapshot);                 // seq 0: begin from nothing
//     rc = ledger_each(ledger, snapshot.seq + 1, replay, state, &why);
//
// To the ledger, records and snapshots are bytes without meaning. Each record is chained to the one
// before it (record.h); opening verifies the chain from record 1 to the ledger head, and every
// snapshot. Appended records wait in memory until commit, so readers and ledger_head see
// only durable records.
//
// When a write to disk fails, the state of the disk is unknown: that call and all later ones return
// the same fault, and the process must end. The next process opens, verifies and continues from the
// records that it finds.
//
// One process (the file `lock` in the directory ensures it), one thread, no use after fork.
// Returned bytes are borrowed until the next call on the same ledger.

#include "common/base/fault.h"
#include "common/ledger/record.h"

enum {
    LEDGER_RECORD_MAX = 8 << 20,    // Bytes of one record
    LEDGER_SNAPSHOT_MAX = 64 << 20, // Bytes of one snapshot
};

struct ledger_options {
    uint64_t map_bytes_start; // Address space at the beginning, 256 KiB to 1 TiB; 0: 64 MiB
    uint64_t map_bytes_max;   // It doubles up to this size; 0: 64 GiB
};

struct ledger;

// Opens the ledger of `run_id` (1 to 63 bytes) in `dir`, which is made, mode 0700, if it is
// missing. `options` may be NULL. On return the incarnation is one higher than any before, durably.
// Refused, and nothing is changed: another process has it (BUSY); it is of another run (FOREIGN) or
// another schema (UNSUPPORTED); it is damaged (CORRUPT: the text names the record and the cure).
int ledger_open(const char *dir, const char *run_id, const struct ledger_options *options,
                struct why *why, struct ledger **ret_ledger);

// For tools, beside a running coordinator or on a copy: verifies and reads, takes no lock, does
// not raise the incarnation. ledger_head is that of the time of opening; ledger_each and
// ledger_read see the records of the time of the call.
int ledger_open_readonly(const char *dir, struct why *why, struct ledger **ret_ledger);

void ledger_close(struct ledger **self_p); // NULL is allowed; drops what is not committed

const char *ledger_run_id(const struct ledger *self);
uint64_t ledger_incarnation(const struct ledger *self);

// The ledger head: the newest durable record, and the chain up to it. An empty ledger has 0 and an
// all-zero hash.
void ledger_head(const struct ledger *self, uint64_t *ret_seq, struct hash *ret_hash);

// Whether this ledger has record `seq` with this chain, which a member saw and remembers. CORRUPT,
// naming both records: the ledger ends before it or has another record `seq`, so the disk went back
// to an older state, even if that state is consistent. 0 also for seq 0.
int ledger_covers(struct ledger *self, uint64_t seq, const struct hash *chain, struct why *why);

// The bytes of the file that are or were in use, and map_bytes_max, at which it is full.
void ledger_room(const struct ledger *self, uint64_t *ret_bytes, uint64_t *ret_bytes_max);

// The number of damaged snapshots that opening skipped. The caller should log it.
uint32_t ledger_damaged_snapshots(const struct ledger *self);

// The newest undamaged snapshot; its seq is 0 if there is none.
int ledger_snapshot(struct ledger *self, struct why *why, struct snapshot *ret_snapshot);

// One record. NOT_FOUND: it is newer than the head.
int ledger_read(struct ledger *self, uint64_t seq, struct why *why, struct record *ret_record);

// Calls `visit` with each record from `from_seq` (≥ 1) on, in order. `visit` borrows the record for
// the call and may read the ledger but not write to it. A result other than 0 ends the walk and is
// returned.
typedef int ledger_visit_fn(void *arg, const struct record *record);
int ledger_each(struct ledger *self, uint64_t from_seq, ledger_visit_fn *visit, void *arg,
                struct why *why);

// The newest record that was appended with this index key.
int ledger_find(struct ledger *self, uint64_t index_key, struct why *why, uint64_t *ret_seq);

// Opens a transaction. There is one at a time.
int ledger_begin(struct ledger *self, struct why *why);

// Adds a record, keeping a copy. With an index key, ledger_find returns this record from now on.
// LIMIT: larger than LEDGER_RECORD_MAX, or the transaction is full (pending.h); then nothing was
// added, and commit is possible.
int ledger_append(struct ledger *self, const void *bytes, size_t count, const uint64_t *index_key,
                  struct why *why, uint64_t *ret_seq);

// Adds a snapshot, keeping a copy: the state after the last record appended so far (there must be
// one). A transaction keeps only the last snapshot added. The ledger keeps the two newest.
int ledger_put_snapshot(struct ledger *self, const void *bytes, size_t count, struct why *why);

// Closes the transaction, durably. DISK_FULL because of map_bytes_max: the transaction is dropped,
// the ledger is unchanged and usable. Any other fault is final (see above).
int ledger_commit(struct ledger *self, struct why *why);
void ledger_abort(struct ledger *self); // Allowed when there is none
