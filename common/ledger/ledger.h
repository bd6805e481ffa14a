#pragma once
// ledger -- the coordinator's memory: a hash-chained log of records, snapshots of the state they
// lead to, and nothing else that survives. What was committed is on disk when commit returns; a
// crash at any instruction leaves either all of a transaction or none of it.
//
//     begin ─▶ append, append, put_snapshot ─▶ commit ─▶ (only now may anyone hear of it)
//
//     rc = ledger_open(dir, run_id, NULL, &why, &ledger);
//     rc = ledger_snapshot(ledger, &why, &snapshot);                 // seq 0: begin from nothing
//     rc = ledger_each(ledger, snapshot.seq + 1, replay, state, &why);
//
// Records and snapshots are bytes that the ledger does not understand. Each record is chained to
// the one before it (record.h); opening verifies the chain from the oldest kept record to the head,
// and every snapshot. Appended records wait in memory until commit, so a reader sees only what is
// durable, and so does ledger_head.
//
// When writing to disk fails, no one can know what is there: that call and all later ones return
// the same fault, and the process must end. The next one opens, verifies and continues from what it
// finds.
//
// One process (the file `lock` in the directory sees to that), one thread, no use after fork. Bytes
// returned are borrowed until the next call on the same ledger.

#include "common/base/fault.h"
#include "common/ledger/record.h"

enum {
    LEDGER_RECORD_MAX = 8 << 20,    // Bytes of one record
    LEDGER_SNAPSHOT_MAX = 64 << 20, // Bytes of one snapshot
    LEDGER_TRIM_MAX = 500,          // Records removed by one call
};

struct ledger_options {
    uint64_t map_bytes_start; // Address space to begin with, 256 KiB to 1 TiB; 0: 64 MiB
    uint64_t map_bytes_max;   // It doubles up to here; 0: 64 GiB
};

struct ledger;

// Opens the ledger of `run_id` (1 to 63 bytes) in `dir`, which is made, mode 0700, if it is not
// there. `options` may be NULL. On return the incarnation is one higher than ever before, durably.
// Refused, and nothing changed: another process has it (BUSY); it is of another run (FOREIGN) or
// another schema (UNSUPPORTED); it is damaged (CORRUPT: the text names the record and the cure).
int ledger_open(const char *dir, const char *run_id, const struct ledger_options *options,
                struct why *why, struct ledger **ret_ledger);

// For tools, beside a living coordinator or on a backup: verifies and reads, takes no lock, raises
// no incarnation. What it says of the head is as of opening; each and read see what is there when
// called.
int ledger_open_readonly(const char *dir, struct why *why, struct ledger **ret_ledger);

void ledger_close(struct ledger **self_p); // NULL is allowed; what is not committed is gone

const char *ledger_run_id(const struct ledger *self);
uint64_t ledger_incarnation(const struct ledger *self);
uint64_t ledger_oldest(const struct ledger *self); // The first record still kept; 1 at first

// The last record that is durable, and the chain up to it. 0 and none: the ledger is empty.
void ledger_head(const struct ledger *self, uint64_t *ret_seq, struct hash *ret_hash);

// Whether record `seq` with this chain, which somebody saw and remembers, is in this ledger. CORRUPT,
// naming both positions: the ledger ends before it, or has another record in its place, so the disk
// went back to an older state, perhaps whole in itself. 0 also for seq 0, and for what was trimmed.
int ledger_covers(struct ledger *self, uint64_t seq, const struct hash *chain, struct why *why);

// Bytes of the file that hold, or once held, anything; and map_bytes_max, where it is full.
void ledger_room(const struct ledger *self, uint64_t *ret_bytes, uint64_t *ret_bytes_max);

// Snapshots passed over at opening, because they are damaged: warn someone.
uint32_t ledger_damaged_snapshots(const struct ledger *self);

// The newest snapshot that is whole; its seq is 0 if there is none.
int ledger_snapshot(struct ledger *self, struct why *why, struct snapshot *ret_snapshot);

// One record. NOT_FOUND: trimmed, or not yet there.
int ledger_read(struct ledger *self, uint64_t seq, struct why *why, struct record *ret_record);

// Shows the records from `from_seq` (≥ 1) on, in order. `visit` borrows the record for the call,
// may read the ledger but not write to it, and ends the walk by returning anything but 0, which is
// then the result. NOT_FOUND if `from_seq` was trimmed.
typedef int ledger_visit_fn(void *arg, const struct record *record);
int ledger_each(struct ledger *self, uint64_t from_seq, ledger_visit_fn *visit, void *arg,
                struct why *why);

// The newest kept record that was appended with this index key.
int ledger_find(struct ledger *self, uint64_t index_key, struct why *why, uint64_t *ret_seq);

// Opens a transaction. There is one at a time.
int ledger_begin(struct ledger *self, struct why *why);

// Adds a record, keeping a copy. With an index key, find leads to this one from now on. LIMIT:
// larger than LEDGER_RECORD_MAX, or the transaction is full (pending.h); nothing was added, commit
// is possible.
int ledger_append(struct ledger *self, const void *bytes, size_t count, const uint64_t *index_key,
                  struct why *why, uint64_t *ret_seq);

// Adds a snapshot, keeping a copy: the state after the last record appended so far (there must be
// one). The last one in a transaction counts. The two newest are kept, older ones removed.
int ledger_put_snapshot(struct ledger *self, const void *bytes, size_t count, struct why *why);

// Closes the transaction, durably. DISK_FULL because of map_bytes_max: the transaction is gone, all
// else is as before, and the ledger goes on. Any other fault is final (see above).
int ledger_commit(struct ledger *self, struct why *why);
void ledger_abort(struct ledger *self); // Allowed when there is none

// Removes the oldest records: those before `before_seq` that the older of two snapshots makes
// superfluous, at most LEDGER_TRIM_MAX in a call. Call again while that many went.
int ledger_trim(struct ledger *self, uint64_t before_seq, struct why *why, size_t *ret_removed);

// Copies what is committed to the new directory `path`, which then is a ledger like this one. It is
// written beside its name and renamed, so it is there whole or not at all. An existing one is
// refused.
int ledger_backup(struct ledger *self, const char *path, struct why *why);
