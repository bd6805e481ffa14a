// pending -- records in one array, the bytes of all of them in one buffer. Offsets, not pointers,
// because the buffer moves when it grows.

#include "common/ledger/pending.h"
#include "common/base/ensure.h"
#include <stdlib.h>

enum { KEEP_BYTES_MAX = 1 << 20, CAPACITY_MIN = 64 };

static int no_memory(struct why *why)
{
    return why_set(why, FAULT_MEMORY, "no memory to add to the transaction; commit or abort it");
}

static int add_bytes(struct pending *self, const void *bytes, size_t count, struct why *why,
                     size_t *ret_offset)
{
    if (count > PENDING_BYTES_MAX - self->bytes_count)
        return why_set(why, FAULT_LIMIT,
                       "%zu bytes more in a transaction that holds %zu: at most "
                       "%d fit; commit first",
                       count, self->bytes_count, PENDING_BYTES_MAX);
    size_t need = self->bytes_count + count,
           capacity = self->bytes_capacity ? self->bytes_capacity : 4096;
    while (capacity < need) capacity *= 2;
    if (capacity != self->bytes_capacity) {
        uint8_t *grown = realloc(self->bytes, capacity);
        if (!grown) return no_memory(why);
        self->bytes = grown;
        self->bytes_capacity = capacity;
    }
    if (count) memcpy(self->bytes + self->bytes_count, bytes, count);
    *ret_offset = self->bytes_count;
    self->bytes_count = need;
    return 0;
}

static int make_room(struct pending *self, struct why *why)
{
    if (self->count < self->capacity) return 0;
    if (self->count == PENDING_RECORDS_MAX)
        return why_set(why, FAULT_LIMIT,
                       "a transaction has at most %d records; "
                       "commit first",
                       PENDING_RECORDS_MAX);
    size_t capacity = self->capacity ? 2 * self->capacity : CAPACITY_MIN;
    struct pending_record *records = realloc(self->records, capacity * sizeof *records);
    if (!records) return no_memory(why);
    self->records = records;
    self->capacity = capacity;
    return 0;
}

int pending_add(struct pending *self, const struct record *record, struct why *why)
{
    struct pending_record kept = { .record = *record };
    int rc = make_room(self, why);
    if (rc == 0) rc = add_bytes(self, record->bytes, record->count, why, &kept.offset);
    if (rc == 0) self->records[self->count++] = kept;
    return rc;
}

int pending_set_snapshot(struct pending *self, const struct snapshot *snapshot, struct why *why)
{
    int rc = add_bytes(self, snapshot->bytes, snapshot->count, why, &self->snapshot_offset);
    if (rc < 0) return rc;
    self->snapshot = *snapshot;
    self->has_snapshot = true;
    return 0;
}

struct record pending_get_record(const struct pending *self, size_t index)
{
    ensure(index < self->count);
    struct record record = self->records[index].record;
    record.bytes = self->bytes + self->records[index].offset;
    return record;
}

struct snapshot pending_get_snapshot(const struct pending *self)
{
    ensure(self->has_snapshot);
    struct snapshot snapshot = self->snapshot;
    snapshot.bytes = self->bytes + self->snapshot_offset;
    return snapshot;
}

void pending_clear(struct pending *self)
{
    if (self->bytes_capacity > KEEP_BYTES_MAX) {
        free(self->bytes);
        self->bytes = NULL;
        self->bytes_capacity = 0;
    }
    self->count = self->bytes_count = 0;
    self->has_snapshot = false;
}

void pending_free(struct pending *self)
{
    free(self->records);
    free(self->bytes);
    *self = (struct pending){ 0 };
}
