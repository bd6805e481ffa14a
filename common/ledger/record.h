#pragma once
// record -- the format of a record and a snapshot on disk, and the hash chain over them.
//
//   record     "SLR" 1 │ indexed be32 │ seq be64 │ index key be64 │ previous 32 │ chain 32 │ bytes
//   snapshot   "SLS" 1 │ zero be32 │ seq be64 │ chain 32 │ hash 32 │ bytes
//
//   chain(seq) = SHA-256(chain(seq - 1) ‖ be64 seq ‖ bytes), where chain(0) is all zero
//   hash       = SHA-256("SLS" 1 ‖ be64 seq ‖ chain(seq) ‖ bytes)
//
// So the chain of the newest record covers every byte of all records ever appended, and a snapshot
// names the record that it follows. Pure; nothing allocated; any thread. decode is total.

#include "common/base/fault.h"
#include "common/base/hash.h"

enum { RECORD_HEADER_BYTES = 88, SNAPSHOT_HEADER_BYTES = 80 };

struct record {
    uint64_t seq;       // Counts from 1
    uint64_t index_key; // Meaningful if `indexed`
    bool indexed;
    struct hash previous; // Chain up to the record before this one
    struct hash chain;    // Chain up to and including this record
    const void *bytes;    // Borrowed
    size_t count;
};

struct snapshot {
    uint64_t seq;      // The last record whose effect it contains
    struct hash chain; // Of that record
    const void *bytes; // Borrowed
    size_t count;
};

struct hash record_chain(const struct hash *previous, uint64_t seq, const void *bytes,
                         size_t count);

// Write the header and the bytes: RECORD_HEADER_BYTES + count, SNAPSHOT_HEADER_BYTES + count.
void record_encode(const struct record *self, uint8_t *ret_stored);
void snapshot_encode(const struct snapshot *self, uint8_t *ret_stored);

// CORRUPT if the bytes do not have this format, are not number `seq`, or do not match their hash.
// The result points into `stored`.
int record_decode(const uint8_t *stored, size_t count, uint64_t seq, struct why *why,
                  struct record *ret_record);
int snapshot_decode(const uint8_t *stored, size_t count, uint64_t seq, struct why *why,
                    struct snapshot *ret_snapshot);
