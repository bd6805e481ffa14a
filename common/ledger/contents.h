#pragma once
// contents -- the entries of a store, and the check that they are a complete ledger.
//
//     log    1, 2 ... head: no gap, each record's chain over the one before it
//     snap   at most two in use, newest and older; each follows a record that is known here
//     index  for each key, the newest record with that key
//     meta   schema, run_id, incarnation, head (seq and chain of the last record)
//
// A damaged record makes the ledger unusable. A damaged snapshot is skipped, since an older one, or
// the log from record 1, still leads to the head; it is counted, and stays until newer ones replace
// it.

#include "common/ledger/store.h"

enum { LEDGER_SCHEMA = 1, LEDGER_RUN_ID_MAX = 63 };

struct contents {
    char run_id[LEDGER_RUN_ID_MAX + 1];
    uint64_t incarnation;
    uint64_t head_seq;                        // 0: empty
    struct hash head;                         // Chain of record head_seq
    uint64_t newest_snapshot, older_snapshot; // Their seq; 0: none
    uint32_t damaged_snapshots;
};

// Reads and hashes everything once: about 200,000 records of 1 KB a second. UNSUPPORTED: another
// schema. CORRUPT: the text names the first damaged entry. The tables must be open.
int contents_verify(struct store *store, MDB_txn *txn, struct why *why,
                    struct contents *ret_contents);

// Write parts of `meta` (the first: schema, run and head 0); return an error of LMDB.
int contents_put_run(struct store *store, MDB_txn *txn, const char *run_id);
int contents_put_incarnation(struct store *store, MDB_txn *txn, uint64_t incarnation);
int contents_put_head(struct store *store, MDB_txn *txn, uint64_t seq, const struct hash *head);
