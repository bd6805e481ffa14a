#pragma once
// pending -- records and snapshot of the open transaction. They are kept outside the database, so
// that a transaction that outgrows the map can be run again from the beginning. Memory only; one
// thread.

#include "common/ledger/record.h"

enum {
    PENDING_RECORDS_MAX = 65536,   // Per transaction
    PENDING_BYTES_MAX = 128 << 20, // Of records and snapshot together
};

struct pending_record {
    struct record record; // All members but `bytes`
    size_t offset;        // Of its bytes in the common buffer, which moves when it grows
};

struct pending {
    struct pending_record *records;
    size_t count, capacity;
    uint8_t *bytes;
    size_t bytes_count, bytes_capacity;
    struct snapshot snapshot; // Meaningful if `has_snapshot`
    size_t snapshot_offset;
    bool has_snapshot;
};

// Keep a copy of the record, or of the snapshot in place of an earlier one. FAULT_LIMIT and
// FAULT_MEMORY change nothing.
int pending_add(struct pending *self, const struct record *record, struct why *why);
int pending_set_snapshot(struct pending *self, const struct snapshot *snapshot, struct why *why);

// Valid until the next add, set or clear.
struct record pending_get_record(const struct pending *self, size_t index);
struct snapshot pending_get_snapshot(const struct pending *self);

void pending_clear(struct pending *self); // Empties it; frees unusually large buffers
void pending_free(struct pending *self);
